// The steps of all ranks on the clock: a lane for each rank, with the model's times above, and the
// times of a trace below if there is one.
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
    this.timed = show.steps.flat().filter(s => s.turn >= 0 && s.end !== undefined);
    const last = steps => steps.reduce((m, s) => Math.max(m, s.end), 1e-8), real = trace.of(show);
    this.end = this.realEnd = last(this.timed);
    if (real) {
      this.realEnd = last(real.steps);
      const ratio = this.realEnd / this.end;
      if (real !== this.real) $("stretch").checked = ratio > 5 || ratio < 0.2; // on one scale the shorter one were too small to see
      if (!$("stretch").checked) this.end = this.realEnd = Math.max(this.end, this.realEnd);
    }
    this.real = real;
    this.tall = (show.ranks > 32 ? 8 : show.ranks > 16 ? 12 : show.ranks > 8 ? 18 : 24) * (real ? 1.7 : 1);
    this.part = real ? 0.4 : 0.78; // of a lane's height
    const height = this.top + show.ranks * this.tall + 4;
    const svg = make("svg", { viewBox: `0 0 ${this.width} ${height}`, height, role: "img", "aria-label": this.say(show) });
    for (const t of this.ticks()) {
      svg.append(make("line", { class: "wire", x1: this.x(t), x2: this.x(t), y1: this.top - 4, y2: height }),
        make("text", { class: "tick", x: Math.min(this.x(t), this.width - 24), y: 12 }, formatTime(t)));
    }
    const every = Math.ceil(14 / this.tall);
    for (let r = 0; r < show.ranks; r += every) svg.append(make("text", { class: "lane", x: this.left - 8, y: this.y(r) + this.tall / 2 }, `${r}`));
    svg.append(
      make("path", { class: "model", d: this.timed.map(s => this.box(s.rank, s.start + s.waitRecv, s.end, 0.08, this.part)).join("") }),
      make("path", { class: "waiting", d: this.timed.filter(s => s.waitRecv > 0).map(s => this.line(s.rank, s.start, s.start + s.waitRecv, 0.08 + this.part / 2)).join("") }));
    if (real) {
      const scaled = (s, from, share) => this.box(s.rank, s.start * this.end / this.realEnd, s.end * this.end / this.realEnd, from, share);
      svg.append(make("path", { class: "real", d: real.steps.map(s => scaled(s, 0.54, 0.38)).join("") }),
        make("path", { class: "realwait", d: real.steps.flatMap(s => s.waits.filter(w => w.end - w.start > this.realEnd / this.width).map(w => scaled({ rank: s.rank, ...w }, 0.67, 0.12))).join("") }));
    }
    this.now = make("path", { class: "nowsteps" });
    this.hand = make("line", { class: "hand", y1: this.top - 6, y2: height });
    svg.append(this.now, this.hand);
    const key = (kind, text) => make("li", {}, make("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" },
      make("path", { class: kind, d: kind === "waiting" ? "M0 6h34" : kind === "realwait" ? "M0 4h34v4h-34z" : "M0 2h34v8h-34z" })), text);
    const items = [key("model", `a step under the model (${show.answer.model})`), key("waiting", "waits for its message"), key("nowsteps", "steps of this turn")];
    if (real) items.push(key("real", "a step as measured, below"), key("realwait", "a wait in it"));
    box.replaceChildren(svg, make("ul", { class: "legend" }, ...items));
    this.compare(show);
  },

  // compare says how the measured call and the model differ.
  compare(show) {
    $("stretch").parentElement.hidden = !this.real;
    $("real-box").hidden = !this.real;
    $("laid").hidden = !trace.calls.length;
    if (!trace.calls.length) return;
    const model = show.answer.time, real = this.real, ratio = real && real.end / model;
    $("laid").textContent = !real ? "The measured call is of other ranks, bytes or algorithm than what is played: choose it again to see it."
      : `Measured ${formatTime(real.end)}, under the model ${formatTime(model)}: ${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)} times. ` +
        (show.answer.rounds > 1 ? `Shown are the steps over the first of ${show.answer.rounds} pieces.` : "") + this.late(real);
  },

  // late names the rank that began last.
  late(real) {
    const begins = new Map();
    for (const s of real.steps) if (!begins.has(s.rank) || s.start < begins.get(s.rank)) begins.set(s.rank, s.start);
    const [rank, when] = [...begins].reduce((a, b) => b[1] > a[1] ? b : a, [-1, -1]);
    return when > real.end / 100 ? ` Rank ${rank} came last, ${formatTime(when)} after the first.` : "";
  },

  x(t) { return this.left + (t / this.end) * (this.width - this.left - 2); },
  y(rank) { return this.top + rank * this.tall; },

  // box is the path of a step in its lane. from and share are its top and height, as shares of the lane's height.
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
    const now = show.now(), scale = this.end / this.realEnd;
    let path = now.filter(s => s.end !== undefined).map(s => this.box(s.rank, s.start + s.waitRecv, s.end, 0.08, this.part)).join("");
    if (this.real) {
      const keys = new Set(now.map(s => s.rank * 65536 + s.index));
      path += this.real.steps.filter(s => keys.has(s.rank * 65536 + s.index)).map(s => this.box(s.rank, s.start * scale, s.end * scale, 0.54, 0.38)).join("");
      const done = this.real.steps.filter(s => show.steps[s.rank][s.index]?.turn < show.position);
      const stepped = this.real.steps.some(s => s.index >= 0);
      $("real").replaceChildren(formatTime(stepped ? done.reduce((m, s) => Math.max(m, s.end), 0) : this.real.end), " ",
        make("small", {}, stepped ? `of ${formatTime(this.real.end)}` : "in one kernel"));
    }
    this.now.setAttribute("d", path);
    this.hand.setAttribute("x1", this.x(show.clock));
    this.hand.setAttribute("x2", this.x(show.clock));
  },

  say(show) {
    const a = show.answer;
    return `${show.ranks} lanes of steps; under the model ${a.model} ` + (a.time === undefined ? "they do not end" : `all end after ${formatTime(a.time)}`) +
      (this.real ? `; measured, after ${formatTime(this.real.end)}` : "");
  },
};
