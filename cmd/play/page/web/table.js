// The steps of the chosen rank, and the buttons that break them.
const table = {
  swap: -1, // the step whose swap is pressed

  build(show, rank, breaking, edit) {
    const head = make("tr", {}, ...["step", "turn", "value", "keep", "send", "holds then"].map(h => make("th", { scope: "col" }, h)));
    if (breaking) head.append(make("th", { scope: "col" }, "break"));
    const memory = ref => ref.buf ? `${bufferNames[ref.buf]}[${ref.chunk}]` : "";
    this.rows = show.steps[rank].map((s, i) => {
      const from = s.recv >= 0 ? `from ${s.recv}` : "";
      const value = [from, memory(s.src)].filter(Boolean).join(" ⊕ ");
      const row = make("tr", {}, make("td", {}, `${i}`), make("td", {}, s.turn < 0 ? "never" : `${s.turn + 1}`), make("td", {}, value), make("td", {}, memory(s.dst)),
        make("td", {}, s.send >= 0 ? `to ${s.send}` : ""), make("td", { class: "holds" }));
      if (breaking) {
        const swap = make("button", { type: "button", "aria-label": `swap step ${i}`, "aria-pressed": this.swap === i, onclick: () => {
          if (this.swap < 0) this.swap = i;
          else if (this.swap === i) this.swap = -1;
          else return edit(`swap ${rank} ${this.swap} ${i}`);
          this.rows.forEach((row, j) => row.querySelectorAll("button")[1].setAttribute("aria-pressed", this.swap === j));
        } }, "swap");
        row.append(make("td", {}, make("button", { type: "button", "aria-label": `drop step ${i}`, onclick: () => edit(`drop ${rank} ${i}`) }, "drop"), " ", swap));
      }
      return row;
    });
    const body = make("tbody", {}, ...this.rows);
    $("table").replaceChildren(make("thead", {}, head), body);
    for (const p of (show.answer.places || []).filter(p => p.rank === rank)) {
      const what = p.out >= 0 ? `Out[${p.out}] ${p.why}` : p.step >= 0 ? `step ${p.step} ${p.why}` : p.why;
      const row = make("tr", { class: "wrong" }, make("td", { colspan: breaking ? 7 : 6 }, `✗ ${what}`));
      if (p.step >= 0 && this.rows[p.step]) this.rows[p.step].after(row); else body.append(row);
    }
  },

  draw(show, rank) {
    const at = show.index(rank);
    this.rows.forEach((row, i) => {
      const s = show.steps[rank][i], done = i <= at;
      row.className = done && s.turn === show.position - 1 ? "now" : done ? "done" : "";
      row.querySelector(".holds").textContent = done ? words(s.value) : "";
    });
    const now = this.rows.find(row => row.className === "now");
    const box = $("table").parentElement;
    if (now && box.scrollHeight > box.clientHeight) box.scrollTop = now.offsetTop - box.clientHeight / 2;
  },
};
