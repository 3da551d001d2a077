// Collectives in which every rank writes to every other rank's mailbox and waits
// for nothing but what comes to its own: one hop, or two for an all-reduce of
// which each rank combines a part. With TYPE and OP it reduces; without, it only
// copies.
//
// A message travels in lines of 128 bytes: 120 of data and a flag, which says
// that the data is there. 8 neighbouring threads, a group, store a line with one
// instruction, 16 bytes each, and load it with one; the hardware moves aligned
// lines as a whole, between GPUs too.
//
// The flag is the epoch, which grows by one a round, and a hash of the call. A
// mailbox has two halves, for even and odd epochs. That is enough: who writes for
// epoch e + 2 has heard from the reader in epoch e + 1, and the reader had then
// done with epoch e. For that every rank sends every other a line in each kernel,
// an empty one if need be, and where a kernel has several rounds each group does so
// in each round: then the same holds for each group, whose lines lie in the same
// places in all rounds, and from kernel to kernel for all of them together.
#include "lines.h"

#define PASTE(kernel, type, op) kernel##_##type##_##op
#define EXPAND(kernel, type, op) PASTE(kernel, type, op)

#ifdef TYPE
#define ENTRY EXPAND(exchange, TYPE, OP)
#else
#define ENTRY exchange_copy
#endif

// Send sends the line of each message.
static DEVICE void send(const Args &a, const Lane &l) {
  u32 to = l.first ? ~0u : l.on ? a.to : 0;
  Pair v[most];
  if (a.same) {
    v[1] = load(a, l, a.sends[1]);
    together();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (to >> k & 1) store_line(a.sends[k].lines + l.slot, v[1]);
    }
    return;
  }
  if (l.whole) {
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      v[k] = load(a, l, a.sends[k]);
    }
    together();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (to >> k & 1) store_line(a.sends[k].lines + l.slot, v[k]);
    }
    return;
  }
#pragma unroll 1
  for (u32 k = 1; k < ranks(a); k++) {
    v[1] = load(a, l, a.sends[k]);
    together();
    if (to >> k & 1) store_line(a.sends[k].lines + l.slot, v[1]);
  }
}

// Polls is how often a warp looks before it asks whether to go on. The warps of the
// grid take turns in asking the host, and tell the others: the answer takes some µs,
// many more if all ask at once, in which a warp does not see that its lines have come.
constexpr u32 line_polls = 32;
constexpr u64 epoch_bits = 40;

static DEVICE bool over(const Comm &c, bool asks) {
  return heard(c) || (asks && stopped(c));
}

// Missing finds why a line does not come: the host has us stop, or a peer is at
// another call. That is known from the sign boards, and from the flag if they still
// say nothing after another look.
static DEVICE void missing(const Args &a, const Lane &l, bool asks, u32 want, const Pair *v, u32 &odd, Stop &stop) {
  u32 who = most;
  u64 has = 0;
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a)) break;
    if (who == most && want >> p & 1 && v[p].y != l.flag) who = p, has = v[p].y;
  }
  if (!l.last || who == most) return;
  if (over(a.comm, asks)) stop = {aborted, receiving, who, 0, 0};
  else if (asks && !contradicted(a.comm, stop) && (has ^ l.flag) << (64 - epoch_bits) == 0 && odd++)
    stop = {mismatch, receiving, who, 0, 0};
}

// Receive waits for a line of each rank in want, of the hop whose lines are hop
// bytes further; false if the warp has to stop.
static DEVICE bool receive(const Args &a, const Lane &l, u32 hop, u32 want, Pair *v, Stop &stop) {
  u32 odd = 0;
  together(); // or some threads of a line look before it has come, and those with the flag after
#pragma unroll 1
  for (u32 i = 1;; i++) {
    bool bad = false;
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (want >> p & 1) v[p] = load_line(a.takes[p].lines + (hop + l.slot));
    }
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      bad |= (want >> p & 1) && v[p].y != l.flag;
    }
    if (!vote(bad && l.last)) return true;
    if (i % line_polls) continue;
    bool asks = (i / line_polls + (block() * threads() + thread()) / 32) % (blocks() * threads() / 32) == 0;
    missing(a, l, asks, want, v, odd, stop);
    if (vote(stop.kind)) return false;
  }
}

// Place stores what came.
static DEVICE void place(const Args &a, const Lane &l, u32 from, const Pair *v) {
  if (l.whole) {
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (from >> p & 1) store(a, l, a.takes[p].memory, l.left(a.takes[p]), v[p]);
    }
    return;
  }
#pragma unroll 1
  for (u32 p = 0; p < ranks(a); p++) {
    Pair w = v[0];
#pragma unroll
    for (u32 q = 1; q < most; q++) {
      if (p == q) w = v[q];
    }
    if (from >> p & 1) store(a, l, a.takes[p].memory, l.left(a.takes[p]), w);
  }
}

#ifdef TYPE

using Wide = TYPE::Wide;
using Word = TYPE::Word;
constexpr int per_word = TYPE::per_word, elements = 8 / TYPE::size;

static DEVICE Wide scalar(const Args &a) {
  if (!OP::scales) return 0;
  return a.scalar ? TYPE::widen(Access<TYPE::size>::load(a.scalar)) : TYPE::scalar(a.value);
}

static DEVICE void unpack(u64 w, Wide *x) {
#pragma unroll
  for (int i = 0; i < elements; i += per_word) TYPE::unpack(w >> (8 * i * TYPE::size), x + i);
}

template <bool exact> static DEVICE u64 pack(const Wide *x) {
  u64 w = 0;
#pragma unroll
  for (int i = 0; i < elements; i += per_word)
    w |= (u64)(exact ? TYPE::pack_exact(x + i) : TYPE::pack(x + i)) << (8 * i * TYPE::size);
  return w;
}

static DEVICE u64 finish(u64 w, u64 value) {
  Wide x[elements];
  unpack(w, x);
#pragma unroll
  for (Wide &y : x) y = OP::finish(y, value);
  return pack<false>(x);
}

// Combine is what the ranks contribute, in their order; v lacks our own.
static DEVICE Pair combine(const Args &a, Wide factor, const Pair *v, Pair own) {
  Wide sum[2][elements], x[2][elements];
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a)) break;
    unpack(p == a.comm.rank ? own.x : v[p].x, x[0]);
    unpack(p == a.comm.rank ? own.y : v[p].y, x[1]);
#pragma unroll
    for (int w = 0; w < 2; w++)
#pragma unroll
      for (int e = 0; e < elements; e++) {
        if (OP::scales) x[w][e] *= factor;
        sum[w][e] = p ? OP::of(sum[w][e], x[w][e]) : x[w][e];
      }
  }
  Pair r = {pack<OP::selects>(sum[0]), pack<OP::selects>(sum[1])};
  if (OP::finishes<Wide> && a.finish) r = {finish(r.x, a.value), finish(r.y, a.value)};
  return r;
}

#else

using Wide = int;
static DEVICE int scalar(const Args &) { return 0; }

#endif

// Take waits for a line of each rank and goes on with it, after the first or the
// second hop; false if the warp has to stop.
static DEVICE bool take(const Args &a, const Lane &l, u32 hop, u32 others, Wide factor, Stop &stop) {
  Pair v[most] = {};
  Pair own = {};
  bool has = a.from >> a.comm.rank & 1;
  if (has && hop == 0) own = load(a, l, a.sends[0]);
  u32 want = l.first ? others : l.on ? a.from & others : 0;
  if (!receive(a, l, hop ? a.second : 0, want, v, stop)) return false;
#ifdef TYPE
  if (hop) {
    place(a, l, others, v);
    return true;
  }
  if (!has) return true;
  own = combine(a, factor, v, own);
  if (a.two) {
    Pair r = {own.x, l.last ? l.flag : own.y};
    together();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (l.first || l.on) store_line(a.sends[k].lines + (a.second + l.slot), r);
    }
  }
  store(a, l, a.mine, l.left(a.sends[0]), own);
#else
  (void)factor;
  place(a, l, a.from & others, v);
  if (has && a.mine != a.sends[0].memory) store(a, l, a.mine, l.left(a.sends[0]), own);
#endif
  return true;
}

// Rounds carries out all rounds after an epoch, or stops. It returns the last.
static DEVICE u64 rounds(const Args &a, u64 epoch, Stop &stop) {
  u32 group = (block() * threads() + thread()) / 8, groups = blocks() * threads() / 8;
  u32 others = ((1u << ranks(a)) - 1) & ~(1u << a.comm.rank);
  bool tells = group == 0 || a.lines > a.room;
  u64 hash = (a.comm.stamp[0] ^ a.comm.stamp[1] * 0x9e3779b97f4a7c15) * 0xc2b2ae3d27d4eb4f;
  Wide factor = scalar(a);
#pragma unroll 1
  for (u32 done = 0; done < a.lines; done += a.room) {
    epoch++;
    u32 lines = a.lines - done < a.room ? a.lines - done : a.room;
    u64 flag = hash >> epoch_bits << epoch_bits | epoch << (64 - epoch_bits) >> (64 - epoch_bits);
    auto lane = [&](u32 from) {
      u32 line = from + group, j = thread() % 8;
      return Lane{j == 7, tells && from == 0, line < lines,
                  a.even == 2 || (a.even == 1 && (done + from + groups) * line_data <= a.shortest),
                  (done + line) * line_data + 16 * j, (u32)(epoch & 1) * a.half + line * line_bytes + 16 * j, flag};
    };
#pragma unroll 1
    for (u32 from = 0; from < lines; from += groups) send(a, lane(from));
    if (done == 0) begin(a.comm); // while the lines are on their way
#pragma unroll 1
    for (u32 hop = 0; hop <= a.two; hop++) {
#pragma unroll 1
      for (u32 from = 0; from < lines; from += groups) {
        if (!take(a, lane(from), hop, others, factor, stop)) return epoch;
      }
    }
  }
  return epoch;
}

// Leave is end without waiting for what was stored: that kernels follow each
// other is order enough. number is that of the operation before.
static DEVICE void leave(const Comm &c, u64 number) {
  if (blocks() > 1) {
    u32 left;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(left) : "l"(c.local + local::left) : "memory");
    if (left + 1 < blocks()) return;
    store_relaxed(c.local + local::left, 0);
  }
  store_relaxed64(c.local + local::number, number + 1);
  store_relaxed64(c.control + control::finished, number + 1);
}

KERNEL(512, 1) void ENTRY(const Args a) {
  Stop stop = {};
  u64 before = Access<8>::load(a.epochs + 8 * block()), number = load_relaxed64(a.comm.local + local::number);
  u64 epoch = rounds(a, before, stop);
  if (stop.kind) report(a.comm, stop);
  barrier();
  if (thread() == 0) leave(a.comm, number);
#pragma unroll 1
  for (u32 i = block() + thread() * blocks(); i < copies; i += threads() * blocks()) Access<8>::store(a.epochs + 8 * i, epoch);
}
