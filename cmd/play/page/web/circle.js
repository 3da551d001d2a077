// The ranks on a circle, and the messages between them.
const circle = {
  // build places the ranks of a show. A click on a rank calls choose.
  build(show, choose) {
    const n = show.ranks, node = show.question.node;
    const nodes = node > 0 && node < n ? Math.ceil(n / node) : 1;
    const gap = nodes > 1 ? 0.7 : 0; // between nodes, in seats
    this.size = Math.max(7, Math.min(32, 400 / n));
    this.reach = 248 - this.size / 3;
    const outside = n > 24; // seats are too small: numbers stand outside
    this.at = Array.from({ length: n }, (_, r) => {
      const place = (r + (nodes > 1 ? Math.floor(r / node) * gap : 0)) / (n + nodes * gap);
      const angle = 2 * Math.PI * place - Math.PI / 2;
      return { x: 300 + this.reach * Math.cos(angle), y: 300 + this.reach * Math.sin(angle) };
    });
    this.seats = [];
    this.arrows = make("g");
    const svg = $("circle");
    svg.classList.toggle("many", outside);
    svg.replaceChildren(make("circle", { class: "wire", cx: 300, cy: 300, r: this.reach }));
    if (nodes > 1) svg.append(...this.nodes(n, node));
    svg.append(this.arrows);
    const around = 2 * Math.PI * (this.size + 4);
    for (let r = 0; r < n; r++) {
      const { x, y } = this.at[r];
      const share = make("circle", { class: "share", cx: x, cy: y, r: this.size + 4, transform: `rotate(-90 ${x} ${y})`, "stroke-dasharray": `0 ${around}` });
      const flag = make("text", { class: "flag", x: x + this.size * 0.95, y: y - this.size * 0.95, "font-size": Math.max(20, this.size) });
      const at = outside ? { x: 300 + (x - 300) * 1.13, y: 300 + (y - 300) * 1.13 } : { x, y };
      const number = make("text", { ...at, "font-size": outside ? 17 : this.size * 0.8 }, outside && r % (n / 16 | 0) ? "" : `${r}`);
      const seat = make("g", { class: "seat", role: "button", tabindex: -1, onclick: () => choose(r), onkeydown: e => { if (e.key === "Enter") choose(r); } },
        make("title", {}, `rank ${r}`), share, make("circle", { class: "face", cx: x, cy: y, r: this.size }), number, flag);
      this.seats.push({ seat, share, flag, around });
      svg.append(seat);
    }
  },

  // choose lets the keyboard reach the chosen rank.
  choose(rank) {
    const inside = $("circle").contains(document.activeElement);
    this.seats.forEach(({ seat }, r) => seat.setAttribute("tabindex", r === rank ? 0 : -1));
    if (inside) this.seats[rank].seat.focus();
  },

  // nodes draws a band around the ranks of each node.
  nodes(n, node) {
    const shapes = [];
    for (let first = 0; first < n; first += node) {
      const path = this.at.slice(first, Math.min(n, first + node)).map((p, i) => `${i ? "L" : "M"}${p.x} ${p.y}`).join(" ");
      shapes.push(make("path", { class: "wire", d: path, "stroke-linecap": "round", "stroke-linejoin": "round",
        style: `stroke: var(--hollow); stroke-width: ${2 * this.size + (n > 24 ? 8 : 26)}px` }));
    }
    return shapes;
  },

  // draw shows the turn that has just happened.
  draw(show, chosen, wrong, beat) {
    const busy = new Set(show.now().map(s => s.rank));
    for (let r = 0; r < show.ranks; r++) {
      const { seat, share, flag, around } = this.seats[r];
      const out = show.memory[r][2], done = out.filter(v => show.whole(v)).length;
      const part = show.has(r, 2) && out.length ? done / out.length : 0;
      share.setAttribute("stroke-dasharray", `${part * around} ${around}`);
      share.style.display = part ? "" : "none";
      seat.setAttribute("class", "seat" + (part === 1 ? " whole" : "") + (r === chosen ? " chosen" : "") + (busy.has(r) ? "" : " idle"));
      flag.textContent = wrong.has(r) ? "✗" : part === 1 && show.ranks <= 24 ? "✓" : ""; // of more ranks the seat's colour shows it
      flag.style.fill = wrong.has(r) ? "" : "var(--green)";
      seat.setAttribute("aria-label", `rank ${r}: ${done} of ${show.has(r, 2) ? out.length : 0} chunks complete` + (wrong.has(r) ? ", wrong" : ""));
    }
    const turn = show.position - 1;
    const sent = show.messages.filter(m => m.sent === turn && m.from !== m.to);
    const under = show.messages.filter(m => m.sent < turn && m.taken > turn && m.from !== m.to);
    this.arrows.replaceChildren();
    for (const m of under) this.arrow(show, m, m.taken === Infinity ? "lost" : "way", "");
    const few = show.ranks <= 12 && sent.length <= 24; // of many messages those of the chosen rank stand out
    const own = m => m.from === chosen || m.to === chosen;
    for (const m of sent.sort((a, b) => own(a) - own(b))) {
      const kind = m.taken === Infinity ? "lost" : show.answer.sums && show.whole(m.value) ? "result" : "";
      this.arrow(show, m, few ? kind : kind + (own(m) ? " own" : " other"), few || own(m) ? this.label(show, m) : "", beat);
    }
    this.arrows.classList.remove("moving");
    if (beat) {
      this.arrows.style.setProperty("--beat", `${beat}ms`);
      this.arrows.classList.add("moving");
    }
  },

  label(show, m) {
    const ranks = ranksOf(m.value.set);
    if (m.taken === Infinity) return "never received";
    return ranks.length === 1 ? `${ranks[0]}[${m.value.chunk}]` : `Σ${ranks.length}[${m.value.chunk}]`;
  },

  // arrow draws a message, bent to the right of its way so that two directions stay apart.
  arrow(show, m, kind, label, beat) {
    const a = this.at[m.from], b = this.at[m.to];
    const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1;
    const bend = Math.min(34, far * 0.16);
    const mx = (a.x + b.x) / 2 - dy / far * bend, my = (a.y + b.y) / 2 + dx / far * bend;
    const edge = (p) => {
      const ex = mx - p.x, ey = my - p.y, e = Math.hypot(ex, ey) || 1, out = this.size + (show.ranks > 24 ? 5 : 8);
      return { x: p.x + ex / e * out, y: p.y + ey / e * out };
    };
    const from = edge(a), to = edge(b);
    const path = `M${from.x} ${from.y} Q${mx} ${my} ${to.x} ${to.y}`;
    const tx = to.x - mx, ty = to.y - my, t = Math.hypot(tx, ty) || 1, size = Math.max(7, Math.min(12, this.size * 0.5));
    const [ux, uy] = [tx / t, ty / t];
    const tip = [[to.x + ux * 4, to.y + uy * 4], [to.x - ux * size - uy * size * 0.6, to.y - uy * size + ux * size * 0.6], [to.x - ux * size + uy * size * 0.6, to.y - uy * size - ux * size * 0.6]];
    const title = make("title", {}, `rank ${m.from} to rank ${m.to}: ${words(m.value)}`);
    this.arrows.append(make("path", { class: `arrow ${kind}`, d: path }, title), make("polygon", { class: `tip ${kind}`, points: tip.map(p => p.join(",")).join(" ") }));
    if (label && far - 2 * this.size > 60) { // no label in the middle of the circle, where arrows cross
      const u = far > 1.2 * this.reach ? 0.25 : 0.4, on = (a, m, b) => (1 - u) ** 2 * a + 2 * u * (1 - u) * m + u * u * b;
      this.arrows.append(make("text", { class: "tag", x: on(from.x, mx, to.x), y: on(from.y, my, to.y) }, label));
    }
    if (beat) this.arrows.append(make("circle", { class: "mover", r: 5, style: `offset-path: path("${path}")` }));
  },

  legend(show) {
    const line = (kind, text) => make("li", {}, make("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" }, make("line", { class: `arrow ${kind}`, x1: 0, y1: 6, x2: 34, y2: 6 })), text);
    const items = show.answer.sums ? [line("", "a sum on its way, Σ3[5]: of 3 ranks, chunk 5"), line("result", "a whole sum")] : [line("", "a copy, 2[0]: of rank 2, chunk 0")];
    items.push(line("way", "sent earlier, not yet received"));
    if (show.answer.error) items.push(line("lost", "never received"));
    $("legend").replaceChildren(...items);
  },
};
