"use strict";
// The module is Go for WASI preview 1. It needs from its host a clock, random bytes, and an output
// for the text of a panic; all other functions of WASI answer EBADF.
const module = {
  async load(base64) {
    const packed = Uint8Array.from(atob(base64.trim()), c => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const compiled = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    const host = new Proxy(this.host, { get: (known, name) => known[name] || (() => 8 /* EBADF */) });
    const instance = await WebAssembly.instantiate(compiled, { wasi_snapshot_preview1: host });
    this.go = instance.exports;
    this.go._initialize();
  },

  // ask gives Go a question, lines of key=value, and returns the answer.
  ask(lines) {
    const text = new TextEncoder().encode(lines);
    const at = this.go.question(text.length);
    new Uint8Array(this.go.memory.buffer, at, text.length).set(text);
    const length = this.go.ask();
    return JSON.parse(new TextDecoder().decode(new Uint8Array(this.go.memory.buffer, this.go.answer(), length)));
  },

  host: {
    args_sizes_get: (count, size) => module.words([count, 0], [size, 0]),
    args_get: () => 0,
    environ_sizes_get: (count, size) => module.words([count, 0], [size, 0]),
    environ_get: () => 0,
    sched_yield: () => 0,
    poll_oneoff: (_in, _out, _n, events) => module.words([events, 0]),
    random_get(at, length) {
      crypto.getRandomValues(new Uint8Array(module.go.memory.buffer, at, length));
      return 0;
    },
    clock_time_get(_id, _precision, at) {
      new DataView(module.go.memory.buffer).setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    fd_write(_fd, list, count, written) {
      const view = new DataView(module.go.memory.buffer);
      let all = 0, text = "";
      for (let i = 0; i < count; i++) {
        const at = view.getUint32(list + 8 * i, true), length = view.getUint32(list + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(module.go.memory.buffer, at, length));
        all += length;
      }
      console.error(text);
      return module.words([written, all]);
    },
    proc_exit(code) { throw new Error("the module has ended: " + code); },
  },

  // words stores numbers of 32 bits in Go's memory, by address.
  words(...pairs) {
    const view = new DataView(module.go.memory.buffer);
    for (const [at, value] of pairs) view.setUint32(at, value, true);
    return 0;
  },
};
