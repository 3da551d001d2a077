// The page: it asks Go a question, and shows the answer at a position.
const page = {
  show: null, rank: 0, breaking: false, edits: [], timer: 0,

  async start() {
    this.setup = JSON.parse($("setup").textContent);
    await module.load($("module").textContent);
    $("module").remove();
    this.known = module.ask("");
    for (const own of this.setup.own || []) {
      this.known.collectives.find(c => c.name === own.collective).algorithms.push({ name: own.algo, nodes: false, tables: own.tables });
    }
    this.listen();
    this.begin(this.address());
    window.addEventListener("hashchange", () => { this.stop(); this.begin(this.address()); });
    if (!this.show) this.begin(this.setup.question); // the address is wrong
    if ($("trace").textContent) this.lay($("trace").textContent, this.setup.follow);
  },

  // address is the question in the page's address, completed by the setup's question.
  address() {
    return { ...this.setup.question, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  },

  // begin fills a question into the form, and plays it.
  begin(asked) {
    this.fill("collective", this.known.collectives.map(c => [c.name, c.name]), asked.collective);
    this.fill("net", this.known.nets.map(n => [n.name, n.title]), asked.net);
    const sizes = [8, 1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30];
    if (!sizes.includes(Number(asked.bytes))) sizes.push(Number(asked.bytes));
    this.fill("bytes", sizes.sort((a, b) => a - b).map(b => [b, formatBytes(b)]), asked.bytes);
    $("ranks").value = asked.ranks;
    $("root").value = asked.root;
    $("algo").value = $("node").value = "";
    this.asked = asked;
    this.edits = (asked.edits || "").split(";").filter(Boolean);
    this.breaking = this.edits.length > 0;
    this.algorithms();
    this.ask();
  },

  // lay lays a trace over the model, and plays the trace's last call if follow is set.
  lay(text, follow) {
    try {
      trace.read(text, this.known);
    } catch (err) {
      $("laid").hidden = false;
      $("laid").textContent = `✗ ${err.message}`;
      return;
    }
    const match = trace.calls.findLastIndex(c => trace.matches(c, this.question()));
    if (!follow && match >= 0) trace.chosen = match;
    $("measured").hidden = false;
    $("measured").replaceChildren(...trace.calls.map((c, i) => make("option", { value: i }, c.title)));
    $("measured").value = trace.chosen;
    if (follow) return this.follow();
    lanes.build(this.show);
    lanes.draw(this.show);
  },

  // follow plays the schedule of the trace's chosen call.
  follow() {
    this.stop();
    this.begin({ ...this.question(), ...trace.calls[trace.chosen], edits: "" });
  },

  fill(id, pairs, value) {
    $(id).replaceChildren(...pairs.map(([v, text]) => make("option", { value: v }, text)));
    if (pairs.some(([v]) => String(v) === String(value))) $(id).value = value;
  },

  // algorithms fills the fields of the form that depend on the collective and the number of ranks.
  algorithms() {
    const c = this.known.collectives.find(c => c.name === $("collective").value);
    const n = Math.min(Number($("ranks").value), this.known.most); // Go refuses more ranks, after the question
    this.fill("algo", c.algorithms.filter(a => !a.tables || a.tables[n]).map(a => [a.name, a.name]), $("algo").value || this.asked.algo);
    $("root-label").hidden = !c.rooted;
    $("root").max = n - 1;
    if (Number($("root").value) >= n) $("root").value = 0;
    const parts = [];
    for (let d = 2; d < n; d++) if (n % d === 0) parts.push(d);
    const a = c.algorithms.find(a => a.name === $("algo").value), node = $("node").value || this.asked.node;
    this.fill("node", [...(a.nodes ? [] : [[0, "of the links"]]), ...parts.map(p => [p, `${p}`])], node);
  },

  question() {
    const q = { collective: $("collective").value, algo: $("algo").value, ranks: Number($("ranks").value), node: Number($("node").value),
      root: Number($("root").value), bytes: Number($("bytes").value), net: $("net").value };
    const c = this.known.collectives.find(c => c.name === q.collective);
    q.own = c.algorithms.find(a => a.name === q.algo)?.tables?.[q.ranks];
    if (!c.rooted) q.root = 0;
    return q;
  },

  // ask has Go play the question of the form and the edits.
  ask() {
    const q = this.question();
    const { own, ...plain } = q;
    const lines = Object.entries(plain).map(([key, value]) => `${key}=${value}`);
    lines.push(`edits=${this.edits.join(";")}`);
    if (own) lines.push(`table=${own[Math.min(q.root, own.length - 1)]}`);
    const answer = module.ask(lines.join("\n"));
    if (answer.wrong) {
      this.stop();
      $("verdict").className = "bad";
      $("verdict").querySelector(".mark").textContent = "✗";
      $("verdict").querySelector(".words").textContent = answer.wrong;
      return;
    }
    const before = this.show, same = before && this.edits.length;
    this.show = new Show(q, answer);
    history.replaceState(null, "", "#" + new URLSearchParams(this.edits.length ? { ...plain, edits: this.edits.join(";") } : plain));
    this.rank = Math.min(this.rank, this.show.ranks - 1);
    this.fill("rank", Array.from({ length: this.show.ranks }, (_, r) => [r, r]), this.rank);
    $("seek").max = this.show.turns;
    circle.build(this.show, r => this.choose(r));
    circle.legend(this.show);
    chunks.build(this.show, r => this.choose(r));
    lanes.build(this.show);
    this.verdict();
    this.seek(same ? before.position : 0);
    this.choose(this.rank);
  },

  verdict() {
    const a = this.show.answer, q = this.show.question;
    const what = `${a.goal} by ${q.algo} on ${q.ranks} ranks`, bad = a.error !== undefined;
    document.title = `${what} – ringo play`;
    $("break").setAttribute("aria-pressed", this.breaking);
    $("breaking").hidden = !this.breaking;
    $("verdict").className = bad ? "bad" : "good";
    $("verdict").querySelector(".mark").textContent = bad ? "✗" : "✓";
    $("verdict").querySelector(".words").textContent = bad ? `${what}, changed in ${this.edits.length === 1 ? "one place" : this.edits.length + " places"}: refuted, ${this.why()}`
      : this.edits.length ? `${what}, changed, and still proved: every contribution arrives once` : `${what}: proved, every contribution arrives once`;
    $("refutation").hidden = !bad;
    $("refuted").textContent = a.error || "";
    $("places").replaceChildren(...(a.places || []).slice(0, 12).map(p => make("button", { type: "button", onclick: () => {
      this.choose(p.rank);
      table.rows[p.step]?.scrollIntoView({ block: "nearest" });
    } }, p.step >= 0 ? `rank ${p.rank}, step ${p.step}` : p.out >= 0 ? `rank ${p.rank}, Out[${p.out}]` : `rank ${p.rank}`)));
    $("undo").disabled = $("repair").disabled = !this.edits.length;
    this.wrong = new Set((a.places || []).map(p => p.rank));
  },

  // why says where a schedule goes wrong first, and what is wrong there.
  why() {
    const a = this.show.answer, p = a.places?.[0];
    if (!p) return a.error.split("\n")[0];
    const more = a.places.length - 1;
    return `${p.step >= 0 ? `step ${p.step} of rank ${p.rank}` : p.out >= 0 ? `Out[${p.out}] of rank ${p.rank}` : `rank ${p.rank}`}: ${p.why}${more ? `; and ${more} more` : ""}`;
  },

  // seek goes to a position; beat is the milliseconds until the next one, when playing.
  seek(position, beat) {
    const s = this.show;
    s.seek(position);
    $("seek").value = s.position;
    $("seek").setAttribute("aria-valuetext", `turn ${s.position} of ${s.turns}`);
    const part = (id, text, small) => $(id).replaceChildren(text, " ", make("small", {}, small));
    part("turn", `${s.position}`, `of ${s.turns}`);
    $("hops").textContent = s.hops;
    $("sent").textContent = formatBytes(s.sent.reduce((a, b) => a + b, 0) * s.chunkBytes);
    $("most").textContent = formatBytes(Math.max(...s.sent) * s.chunkBytes);
    this.clock();
    circle.draw(s, this.rank, this.wrong, beat);
    chunks.draw(s, this.rank, s.answer.places || []);
    chunks.sum(s, this.rank);
    if (table.rows) table.draw(s, this.rank);
    $("first").disabled = $("back").disabled = s.position === 0;
    $("next").disabled = $("last").disabled = s.position === s.turns;
    if (!beat) $("told").textContent = this.tell();
  },

  clock() {
    const a = this.show.answer, ends = a.time !== undefined;
    const small = !ends ? "and no end" : a.rounds > 1 ? `first of ${a.rounds} pieces; all ${formatTime(a.time)}` : `of ${formatTime(a.time)}`;
    $("clock").title = a.endless || "";
    $("clock").replaceChildren(formatTime(this.show.clock), " ", make("small", {}, small));
    lanes.draw(this.show);
  },

  // tell describes the turn that has just happened.
  tell() {
    const s = this.show, now = s.now();
    if (!s.position) return `Start: every rank holds its own contribution. ${s.turns} turns follow.`;
    const said = now.slice(0, 4).map(e => `rank ${e.rank}: ${e.text}`).join("; ");
    return `Turn ${s.position}: ${said}${now.length > 4 ? `; and ${now.length - 4} more` : ""}`;
  },

  choose(rank) {
    this.rank = rank;
    table.swap = -1;
    $("rank").value = rank;
    circle.choose(rank);
    table.build(this.show, rank, this.breaking, e => this.edit(e));
    circle.draw(this.show, rank, this.wrong);
    chunks.draw(this.show, rank, this.show.answer.places || []);
    chunks.sum(this.show, rank);
    table.draw(this.show, rank);
  },

  edit(e) {
    const inside = $("table").contains(document.activeElement);
    this.edits.push(e);
    this.changed();
    if (inside) $("undo").focus(); // the table is new, without the pressed button
  },

  changed() {
    this.stop();
    this.ask();
    const place = this.show.answer.places?.[0];
    if (place && !this.show.answer.places.some(p => p.rank === this.rank)) this.choose(place.rank);
  },

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.button("play", "M4 2.5v11L13 8z");
  },

  // button sets the text and the icon of the play button.
  button(text, icon) {
    $("play").querySelector("path").setAttribute("d", icon);
    $("play").querySelector("span").textContent = text;
    $("play").setAttribute("aria-label", text);
  },

  toggle() {
    if (this.timer) {
      this.stop();
      $("told").textContent = this.tell();
      return;
    }
    if (this.show.position === this.show.turns) this.seek(0);
    this.button("pause", "M3.5 3h3v10h-3zM9.5 3h3v10h-3z");
    const beat = () => {
      const ms = 900 / Number($("speed").value);
      this.seek(this.show.position + 1, ms * 0.8);
      if (this.show.position === this.show.turns) {
        this.stop();
        $("told").textContent = this.tell();
      } else this.timer = setTimeout(beat, ms);
    };
    this.timer = setTimeout(beat, 50);
  },

  go(position) {
    this.stop();
    this.seek(position);
  },

  toggleBreaking() {
    this.breaking = !this.breaking;
    this.verdict();
    this.choose(this.rank);
  },

  // surprise breaks a random step of a random rank.
  surprise() {
    const pick = n => Math.floor(Math.random() * n);
    const rank = pick(this.show.ranks), n = this.show.steps[rank].length, i = pick(n);
    this.rank = rank;
    this.edit(n > 1 && Math.random() < 0.5 ? `swap ${rank} ${i} ${(i + 1) % n}` : `drop ${rank} ${i}`);
  },

  listen() {
    const fresh = () => { this.stop(); this.edits = []; this.algorithms(); this.ask(); };
    for (const id of ["collective", "algo", "ranks", "root", "node", "bytes", "net"]) $(id).addEventListener("change", fresh);
    $("first").onclick = () => this.go(0);
    $("back").onclick = () => this.go(this.show.position - 1);
    $("play").onclick = () => this.toggle();
    $("next").onclick = () => this.go(this.show.position + 1);
    $("last").onclick = () => this.go(this.show.turns);
    $("seek").oninput = () => this.go(Number($("seek").value));
    $("rank").onchange = () => this.choose(Number($("rank").value));
    $("break").onclick = () => this.toggleBreaking();
    $("undo").onclick = () => { this.edits.pop(); this.changed(); };
    $("repair").onclick = () => { this.edits = []; this.changed(); };
    $("open").onclick = () => $("file").click();
    $("file").onchange = async () => {
      const file = $("file").files[0];
      if (file) this.lay(await file.text(), true);
      $("file").value = "";
    };
    $("measured").onchange = () => { trace.chosen = Number($("measured").value); this.follow(); };
    $("stretch").onchange = () => { lanes.build(this.show); lanes.draw(this.show); };
    $("surprise").onclick = () => this.surprise();
    for (const tab of document.querySelectorAll(".tabs button")) {
      tab.onclick = () => {
        chunks.buffer = Number(tab.dataset.buffer);
        chunks.build(this.show, r => this.choose(r));
        chunks.draw(this.show, this.rank, this.show.answer.places || []);
        chunks.sum(this.show, this.rank);
      };
    }
    document.addEventListener("keydown", e => this.key(e));
  },

  key(e) {
    const at = e.target.tagName, scrolls = e.target.classList?.contains("scroll") && e.key.startsWith("Arrow");
    if (scrolls || e.ctrlKey || e.altKey || e.metaKey || at === "SELECT" || at === "INPUT" && e.target.type === "number") return;
    const n = this.show.ranks;
    const keys = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.go(this.show.position - 1),
      ArrowRight: () => this.go(this.show.position + 1),
      Home: () => this.go(0),
      End: () => this.go(this.show.turns),
      ArrowUp: () => this.choose((this.rank + n - 1) % n),
      ArrowDown: () => this.choose((this.rank + 1) % n),
      b: () => this.toggleBreaking(),
      u: () => this.edits.length ? $("undo").click() : null,
      r: () => this.edits.length ? $("repair").click() : null,
    };
    const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!act || e.key === " " && (at === "BUTTON" || e.target.type === "checkbox")) return;
    e.preventDefault();
    act();
  },
};

page.start().catch(err => {
  console.error(err);
  $("verdict").className = "bad";
  $("verdict").querySelector(".words").textContent = `This page cannot start here: ${err.message}`;
});
