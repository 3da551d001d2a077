// A Show is an answer of Go with a position: the number of turns that have happened.
const bufferNames = ["", "In", "Out", "Tmp"];

class Show {
  constructor(question, answer) {
    this.question = question;
    this.answer = answer;
    const [ranks, ins, outs, tmps] = answer.shape;
    this.ranks = ranks;
    this.chunks = [0, ins, outs, tmps];
    this.chunkBytes = Math.ceil(question.bytes / Math.max(ins, outs, 1));
    this.all = (1n << BigInt(ranks)) - 1n;
    this.gives = BigInt("0x" + answer.gives);
    this.gets = BigInt("0x" + answer.gets);
    this.values = answer.values.map(([chunk, set, text]) => ({ chunk, set: BigInt("0x" + set), text }));
    this.steps = answer.steps.map((row, rank) => row.map((s, index) => ({
      rank, index, turn: s[0], hops: s[1], recv: s[2], send: s[3],
      src: { buf: s[4], chunk: s[5] }, dst: { buf: s[6], chunk: s[7] },
      value: this.values[s[8]], text: s[9],
      start: s[10], end: s[11], waitRecv: s[12], waitSend: s[13], // undefined if the model does not come to the step
    })));
    this.turns = answer.turns;
    this.byTurn = Array.from({ length: this.turns }, () => []);
    for (const row of this.steps) for (const s of row) if (s.turn >= 0) this.byTurn[s.turn].push(s);
    this.messages = this.pair();
    this.seek(0);
  }

  // pair matches receives with sends: between two ranks messages arrive in the order sent.
  pair() {
    const queues = new Map(), all = [];
    const between = (from, to) => {
      const key = from * 64 + to;
      if (!queues.has(key)) queues.set(key, { sent: [], taken: 0 });
      return queues.get(key);
    };
    for (const row of this.steps) for (const s of row) {
      if (s.turn < 0 || s.send < 0) continue;
      const m = { from: s.rank, to: s.send, sent: s.turn, taken: Infinity, value: s.value };
      between(s.rank, s.send).sent.push(m);
      all.push(m);
    }
    for (const row of this.steps) for (const s of row) {
      if (s.turn < 0 || s.recv < 0) continue;
      const q = between(s.recv, s.rank);
      q.sent[q.taken++].taken = s.turn;
    }
    return all;
  }

  // seek carries out the turns before position.
  seek(position) {
    position = Math.max(0, Math.min(this.turns, position));
    if (this.memory === undefined || position < this.position) {
      this.memory = Array.from({ length: this.ranks }, (_, r) => this.chunks.map((count, buf) =>
        Array.from({ length: count }, (_, c) => buf === 1 && this.gives >> BigInt(r) & 1n ? { chunk: c, set: 1n << BigInt(r), text: `${r}[${c}]` } : null)));
      this.position = 0;
      this.sent = new Array(this.ranks).fill(0);
      this.hops = 0;
      this.clock = 0;
    }
    for (; this.position < position; this.position++) {
      for (const s of this.byTurn[this.position]) {
        if (s.dst.buf) this.memory[s.rank][s.dst.buf][s.dst.chunk] = s.value;
        if (s.send >= 0 && s.send !== s.rank) this.sent[s.rank]++;
        this.hops = Math.max(this.hops, s.hops);
        this.clock = Math.max(this.clock, s.end || 0);
      }
    }
  }

  // now are the steps of the turn that has just happened.
  now() { return this.position ? this.byTurn[this.position - 1] : []; }

  // has reports whether a rank has a buffer in this collective.
  has(rank, buf) {
    const set = buf === 1 ? this.gives : buf === 2 ? this.gets : this.all;
    return this.chunks[buf] > 0 && !!(set >> BigInt(rank) & 1n);
  }

  // whole reports whether a value is final: a sum over all ranks, or of collectives that copy any value.
  whole(value) { return !!value && (!this.answer.sums || value.set === this.all); }

  // index is the index of the last step that a rank has done, -1 for none.
  index(rank) {
    const row = this.steps[rank];
    let i = -1;
    while (i + 1 < row.length && row[i + 1].turn >= 0 && row[i + 1].turn < this.position) i++;
    return i;
  }
}

function ranksOf(set) {
  const list = [];
  for (let r = 0; set >> BigInt(r); r++) if (set >> BigInt(r) & 1n) list.push(r);
  return list;
}

// spans writes ranks as 0–3, 6.
function spans(list) {
  const parts = [];
  for (let i = 0; i < list.length; i++) {
    const from = list[i];
    while (list[i + 1] === list[i] + 1) i++;
    parts.push(list[i] === from ? `${from}` : list[i] === from + 1 ? `${from}, ${list[i]}` : `${from}–${list[i]}`);
  }
  return parts.join(", ");
}

// words describes the value of a chunk.
function words(value) {
  if (!value) return "nothing yet";
  const ranks = ranksOf(value.set);
  return ranks.length === 1 ? `chunk ${value.chunk} of rank ${ranks[0]}` : `chunk ${value.chunk} summed over ${ranks.length} ranks: ${spans(ranks)}`;
}

function formatBytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return `${u === 0 || n >= 100 ? Math.round(n) : n >= 10 ? n.toFixed(1) : n.toFixed(2)} ${units[u]}`;
}

function formatTime(seconds) {
  const us = seconds * 1e6;
  const three = x => x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
  return us >= 1e6 ? three(us / 1e6) + " s" : us >= 1e3 ? three(us / 1e3) + " ms" : three(us) + " µs";
}

// make is an element with attributes and children.
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "circle", "line", "rect", "text", "title", "polygon"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children);
  return e;
}

const $ = id => document.getElementById(id);
