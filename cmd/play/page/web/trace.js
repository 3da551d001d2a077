// A trace of "ringo bench --trace", to be laid over the model's times. Package trace describes the
// format.
const trace = {
  calls: [], // with the steps of all ranks
  chosen: -1,

  // read takes the calls of a trace that can be played. known is the catalogue of collectives and algorithms.
  read(text, known) {
    const file = JSON.parse(text);
    if (file.otherData?.format !== "ringo trace 1") throw new Error("this is not a file of ringo bench --trace");
    const ranks = new Map(), groups = new Map();
    for (const e of file.traceEvents) {
      if (e.ph !== "X") continue;
      if (e.cat === "call") {
        ranks.set(e.args.call, { ...e.args, start: Number(e.ts) * 1e-6, end: (Number(e.ts) + Number(e.dur)) * 1e-6, steps: [] });
      } else if (e.cat === "step" && e.args.round === 0) {
        ranks.get(e.args.call).steps.push({ ...e.args, start: Number(e.ts) * 1e-6, end: (Number(e.ts) + Number(e.dur)) * 1e-6, waits: [] });
      } else if (e.cat === "wait" || e.cat === "connect") {
        const steps = ranks.get(e.args.call).steps, last = steps[steps.length - 1];
        if (last && last.step === e.args.step && e.args.round === 0) last.waits.push({ start: Number(e.ts) * 1e-6, end: (Number(e.ts) + Number(e.dur)) * 1e-6 });
      }
    }
    for (const c of ranks.values()) {
      if (c.model || c.error || c.lost) continue;
      const key = [c.comm, c.number, c.lane, c.gpu, c.kind].join();
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(c);
    }
    const calls = [...groups.values()].filter(all => all.length === all[0].size).map(all => this.call(all)).filter(c => this.playable(c, known));
    if (!calls.length) throw new Error("the trace has no collective of 2 to 64 ranks that this page can play");
    this.calls = calls;
    this.chosen = calls.length - 1;
  },

  playable(c, known) {
    return c.ranks >= 2 && c.ranks <= known.most && known.collectives.find(k => k.name === c.collective)?.algorithms.some(a => a.name === c.algo && (!a.tables || a.tables[c.ranks]));
  },

  // call joins the calls of all ranks into one. Steps of a second schedule follow those of the first. A call
  // without steps, of one kernel, is one step with index -1.
  call(all) {
    const first = all[0], begin = Math.min(...all.map(c => c.start));
    const steps = all.flatMap(c => {
      if (!c.steps.length) return [{ rank: c.rank, index: -1, start: c.start - begin, end: c.end - begin, waits: [] }];
      let part = 0, offset = 0, last = -1;
      return c.steps.map(s => {
        if (s.part !== part) [part, offset] = [s.part, last + 1];
        last = offset + s.step;
        return { rank: c.rank, index: last, start: s.start - begin, end: s.end - begin, waits: s.waits.map(w => ({ start: w.start - begin, end: w.end - begin })) };
      });
    });
    const hosts = new Set(all.map(c => c.host)).size, bytes = Math.max(...all.map(c => c.bytes));
    const end = Math.max(...all.map(c => c.end)) - begin;
    return {
      title: `${first.kind} #${first.number} ${first.algo}, ${formatBytes(bytes)}, ${first.size} ranks${first.gpu ? " on GPUs" : ""}: ${formatTime(end)}`,
      collective: first.kind.toLowerCase(), algo: first.algo, ranks: first.size, bytes, root: Math.max(0, first.peer),
      node: hosts > 1 ? Math.ceil(first.size / hosts) : 0, steps, end,
    };
  },

  // of is the chosen measured call if it matches the show, else null.
  of(show) {
    const c = this.calls[this.chosen];
    return c && this.matches(c, show.question) && !page.edits.length ? c : null;
  },

  matches(call, question) { return ["collective", "algo", "ranks", "bytes", "root"].every(k => call[k] === question[k]); },
};
