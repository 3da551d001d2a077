// The steps of all ranks on the clock: a lane a rank, with the model's times above, and below
// them those of a trace, if there is one.
const lanes = {
  left: 34, top: 22,

  build(show) {
    this.show = show;
    const box = $("lanes");
    if (!this.watcher) {
      this.watcher = new ResizeObserver(() => { if (this.show && box.clientWidth !== this.width) { this.build(this.show); this.draw(this.show); } });
      this.watcher.observe(box);
    }
    this.width = box.clientWidth || 600;
    const real = trace.stepsOf(show);
    this.tall = show.ranks > 32 ? 8 : show.ranks > 16 ? 12 : show.ranks > 8 ? 18 : 24;
    if (real) this.tall *= 1.6;
    const height = this.top + show.ranks * this.tall + 4;
    const timed = show.steps.flat().filter(s => s.turn >= 0 && s.end !== undefined);
    this.end = Math.max(1e-8, ...[timed.map(s => s.end), (real || []).map(s => s.end)].map(list => list.reduce((a, b) => Math.max(a, b), 0)));
    const svg = make("svg", { viewBox: `0 0 ${this.width} ${height}`, height, role: "img", "aria-label": this.say(show, real) });
    for (const t of this.ticks()) {
      svg.append(make("line", { class: "wire", x1: this.x(t), x2: this.x(t), y1: this.top - 4, y2: height }),
        make("text", { class: "tick", x: Math.min(this.x(t), this.width - 24), y: 12 }, formatTime(t)));
    }
    const every = Math.ceil(14 / this.tall);
    for (let r = 0; r < show.ranks; r++) {
      if (r % every === 0) svg.append(make("text", { class: "lane", x: this.left - 8, y: this.y(r) + this.tall / 2 }, `${r}`));
    }
    const part = real ? 0.44 : 0.78;
    svg.append(
      make("path", { class: "model", d: timed.map(s => this.box(s.rank, s.start + s.waitRecv, s.end, 0.08, part)).join("") }),
      make("path", { class: "waiting", d: timed.filter(s => s.waitRecv > 0).map(s => this.line(s.rank, s.start, s.start + s.waitRecv, 0.08 + part / 2)).join("") }));
    if (real) {
      svg.append(make("path", { class: "real", d: real.map(s => this.box(s.rank, s.start, s.end, 0.54, 0.38)).join("") }),
        make("path", { class: "realwait", d: real.flatMap(s => s.waits.map(w => this.box(s.rank, w.start, w.end, 0.66, 0.14))).join("") }));
    }
    this.now = make("path", { class: "nowsteps" });
    this.hand = make("line", { class: "hand", y1: this.top - 6, y2: height });
    this.timed = timed;
    this.part = part;
    svg.append(this.now, this.hand);
    const key = (kind, text) => make("li", {}, make("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" }, make("path", { class: kind, d: kind === "waiting" ? "M0 6h34" : "M0 2h34v8h-34z" })), text);
    const items = [key("model", `a step under the model (${show.answer.model})`), key("waiting", "waits for its message"), key("nowsteps", "steps of this turn")];
    if (real) items.push(key("real", "a step that was measured"), key("realwait", "waited in it"));
    box.replaceChildren(svg, make("ul", { class: "legend" }, ...items));
  },

  x(t) { return this.left + (t / this.end) * (this.width - this.left - 2); },
  y(rank) { return this.top + rank * this.tall; },

  // box is a path of a step in its lane, from a share of the lane's height on.
  box(rank, start, end, from, share) {
    const w = Math.max(0.7, this.x(end) - this.x(start) - 0.5);
    return `M${this.x(start).toFixed(1)} ${(this.y(rank) + from * this.tall).toFixed(1)}h${w.toFixed(1)}v${(share * this.tall).toFixed(1)}h${(-w).toFixed(1)}z`;
  },

  line(rank, start, end, at) {
    return `M${this.x(start).toFixed(1)} ${(this.y(rank) + at * this.tall).toFixed(1)}H${this.x(end).toFixed(1)}`;
  },

  // ticks are round times.
  ticks() {
    const count = Math.max(2, Math.floor(this.width / 130)), raw = this.end / count, ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(m => m * ten).find(s => s >= raw), list = [];
    for (let i = 0; i * step <= this.end; i++) list.push(i * step);
    return list;
  },

  draw(show) {
    this.now.setAttribute("d", show.now().filter(s => s.end !== undefined).map(s => this.box(s.rank, s.start + s.waitRecv, s.end, 0.08, this.part)).join(""));
    this.hand.setAttribute("x1", this.x(show.clock));
    this.hand.setAttribute("x2", this.x(show.clock));
  },

  say(show, real) {
    const a = show.answer;
    return `${show.ranks} lanes of steps; under the model ${a.model} ` + (a.time === undefined ? "it does not end" : `all end after ${formatTime(a.time)}`) +
      (real ? `; measured, after ${formatTime(real.reduce((m, s) => Math.max(m, s.end), 0))}` : "");
  },
};
