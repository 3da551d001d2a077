// The memory of all ranks: a row a rank, a column a chunk, a stripe a contribution.
const chunks = {
  buffer: 2,
  stripes: new Map(),

  build(show, choose) {
    if (!show.chunks[this.buffer]) this.buffer = 2;
    for (const tab of document.querySelectorAll(".tabs button")) {
      const buf = Number(tab.dataset.buffer);
      tab.hidden = !show.chunks[buf];
      tab.setAttribute("aria-pressed", buf === this.buffer);
    }
    this.stripes.clear();
    const n = show.ranks, count = show.chunks[this.buffer], name = bufferNames[this.buffer];
    const small = count > 16;
    const table = $("chunks");
    table.className = (small ? "small" : n > 12 ? "thin" : "") + (n > 32 ? " low" : "");
    table.style.setProperty("--least", `${34 + count * (small ? 7 : 34)}px`);
    table.style.setProperty("--tall", n > 32 ? "8px" : n > 16 ? "15px" : n > 8 ? "28px" : "46px");
    const head = make("tr", {}, make("th", { scope: "col" }, "rank"));
    for (let c = 0; c < count; c += small ? 8 : 1) head.append(make("th", { scope: small ? "colgroup" : "col", colspan: small ? Math.min(8, count - c) : 1 }, `${c}`));
    this.cells = [];
    const body = make("tbody");
    for (let r = 0; r < n; r++) {
      const row = make("tr", {}, make("th", { scope: "row", onclick: () => choose(r) }, n > 32 && r % 4 ? "" : `${r}`));
      this.cells.push([]);
      for (let c = 0; c < count; c++) {
        const cell = { bar: make("span", { class: "bar" }), say: make("span", { class: "say" }), value: undefined, tag: "" };
        cell.td = make("td", { onclick: () => choose(r), onmouseenter: () => this.tell(show, r, c) }, cell.bar, cell.say);
        if (!show.has(r, this.buffer)) cell.td.classList.add("absent");
        this.cells[r].push(cell);
        row.append(cell.td);
      }
      body.append(row);
    }
    this.rows = [...body.children];
    table.replaceChildren(make("thead", {}, head), body);
    this.watcher ??= new ResizeObserver(() => { $("sideways").hidden = $("chunks").offsetWidth <= $("chunks").parentElement.clientWidth; });
    this.watcher.observe(table.parentElement);
    this.watcher.observe(table);
  },

  // passed are sums that a rank has made and sent on without keeping them, while the messages are on
  // their way, by the chunk of Out where the rank would keep them.
  passed(show) {
    const map = new Map();
    if (this.buffer !== 2 || !show.answer.sums || show.chunks[1] !== show.chunks[2]) return map;
    for (const m of show.messages) {
      if (m.sent < show.position && m.taken >= show.position) map.set(m.from * 4096 + m.value.chunk, m.value);
    }
    return map;
  },

  // bar is a gradient with a stripe for each rank in set; of more than 16 chunks one bar, as high as the share of
  // ranks.
  bar(show, set, whole) {
    const key = `${set} ${whole}`;
    if (show.chunks[this.buffer] > 16) {
      const part = Math.max(20, 100 * ranksOf(set).length / show.ranks);
      return `linear-gradient(0deg, ${whole ? "var(--green)" : "var(--blue)"} ${part}%, transparent ${part}%)`;
    }
    if (!this.stripes.has(key)) {
      const colour = whole ? "var(--green)" : "var(--blue)", n = show.ranks, stops = [];
      for (let r = 0; r < n; r++) {
        const c = set >> BigInt(r) & 1n ? colour : "transparent", gap = n <= 8 ? 12 / n : 0;
        stops.push(`${c} ${(100 * r) / n}% ${(100 * (r + 1)) / n - gap}%`);
        if (gap) stops.push(`var(--hollow) ${(100 * (r + 1)) / n - gap}% ${(100 * (r + 1)) / n}%`);
      }
      this.stripes.set(key, `linear-gradient(90deg, ${stops.join(", ")})`);
    }
    return this.stripes.get(key);
  },

  draw(show, chosen, places) {
    const fresh = new Set(show.now().filter(s => s.dst.buf === this.buffer).map(s => s.rank * 4096 + s.dst.chunk));
    const wrong = new Set(this.buffer === 2 && show.position === show.turns ? places.filter(p => p.out >= 0).map(p => p.rank * 4096 + p.out) : []);
    const passed = this.passed(show), name = bufferNames[this.buffer];
    this.cells.forEach((row, r) => {
      this.rows[r].classList.toggle("chosen", r === chosen);
      row.forEach((cell, c) => {
        const key = r * 4096 + c, kept = show.memory[r][this.buffer][c], value = kept || passed.get(key);
        const tag = (fresh.has(key) ? " new" : "") + (wrong.has(key) ? " wrong" : "") + (!kept && value ? " passed" : "");
        if (cell.value === value && cell.tag === tag) return;
        cell.value = value;
        cell.tag = tag;
        const whole = show.whole(value), ranks = value ? ranksOf(value.set) : [];
        cell.bar.style.background = value ? this.bar(show, value.set, whole && show.answer.sums) : "none";
        cell.say.textContent = wrong.has(key) ? "✗" : !value ? "" : ranks.length === 1 ? `of ${ranks[0]}` : whole ? "✓ all" : `${ranks.length}/${show.ranks}${kept || show.ranks > 12 ? "" : " →"}`;
        cell.td.className = (show.has(r, this.buffer) ? "" : "absent") + (whole && show.answer.sums ? " whole" : "") + tag;
        cell.td.dataset.holds = kept ? `${value.chunk}:${value.set.toString(16)}` : "";
        cell.td.setAttribute("aria-label", `rank ${r} ${name}[${c}]: ` + (!kept && value ? `not kept, sent on: ${words(value)}` : words(kept)));
      });
    });
  },

  say(show, r, c) {
    const kept = show.memory[r][this.buffer][c], passed = this.passed(show).get(r * 4096 + c);
    return `rank ${r} ${bufferNames[this.buffer]}[${c}]: ` + (!kept && passed ? `not kept, sent on: ${words(passed)}` : words(kept));
  },

  // sum says how many chunks of the buffer a rank has.
  sum(show, r) {
    const memory = show.memory[r][this.buffer], done = memory.filter(v => show.whole(v)).length, name = bufferNames[this.buffer];
    $("chunk").textContent = !show.has(r, this.buffer) ? `rank ${r} has no ${name} in this collective` :
      `rank ${r} has ${done} of ${memory.length} chunks of ${name}${show.answer.sums && this.buffer !== 1 ? " in full" : ""}. Point at a cell for its words.`;
  },

  tell(show, r, c) {
    const value = show.memory[r][this.buffer][c];
    $("chunk").textContent = this.say(show, r, c) + (value && value.text.includes("+") ? `, as ${value.text}` : "");
  },
};
