// Direct kernels: every rank writes to every other rank's mailbox and waits only for the
// lines in its own. That takes one hop, or two for an all-reduce of which each rank
// combines a part. With TYPE and OP it reduces; without, it only copies.
//
// A message travels in lines, see lines.h. A line's flag has the epoch, which grows
// by one a round, so the flag alone tells that the line has arrived.
//
// A mailbox has two halves, for even and odd epochs. Two are enough: a rank that
// writes for epoch e + 2 has received a line of epoch e + 1 from the reader, which the
// reader sent after it was done with epoch e. So every rank has to send every other rank
// a line in each kernel, an empty one if there is no data. In a kernel of several rounds
// each group of 8 threads sends a line in each round; since a group's lines lie in the
// same places in all rounds, the argument holds for each group, and from kernel to kernel
// for all groups.
#include "direct.h"

// Send sends the line of each message, unless all is over: then a peer may still
// wait for a line of an earlier kernel, which must stay as it is, or be gone. The threads
// of a line agree on that when the data are on their way to them, so that no load waits
// for another one.
static DEVICE void send(const DirectArgs &a, const Cell &l, bool ends) {
  u32 to = l.first ? ~0u : l.on ? a.to : 0;
  Pair v[most];
  if (a.same) {
    v[1] = load(a, l, a.sends[1]);
    if (vote(ends)) to = 0;
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
    if (vote(ends)) to = 0;
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
    if (vote(ends)) to = 0;
    if (to >> k & 1) store_line(a.sends[k].lines + l.slot, v[1]);
  }
}

// A warp polls its lines this often before it calls give_up. The warps of the grid take
// turns in asking the host, and tell the others: the answer takes some µs, and many more
// if all ask at once, and meanwhile a warp does not see its lines arrive.
constexpr u32 line_polls = 32;

// Missing finds out why a line does not arrive. All threads call it; those with the
// flag find the reason.
static DEVICE void missing(const DirectArgs &a, const Cell &l, bool asks, u32 want, const Pair *v, u32 &odd, Stop &stop) {
  u32 who = most;
  u64 has = 0;
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a)) break;
    if (who == most && want >> p & 1 && v[p].y != l.flag) who = p, has = v[p].y;
  }
  if (!l.last || who == most) return;
  // The sign boards give a better report than the flag: they get one more chance.
  auto other = [&]() FORCED { return ahead(has, l.flag) == 0 && odd++; };
  give_up(a.comm, asks, {0, receiving, who, 0, 0}, other, stop);
}

// Receive waits for a line of each rank in want; false if the warp has to stop. hop
// is the distance of the hop's lines from those of the first.
static DEVICE bool receive(const DirectArgs &a, const Cell &l, u32 hop, u32 want, Pair *v, Stop &stop) {
  u32 odd = 0;
  syncwarp(); // else some threads may load a line before it arrives, and those with the flag after
#pragma unroll 1
  for (u32 i = 1;; i++) {
    bool bad = false;
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (want >> p & 1) v[p] = load_line(a.recvs[p].lines + (hop + l.slot));
    }
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      bad |= (want >> p & 1) && v[p].y != l.flag;
    }
    if (!vote(bad && l.last)) return true;
    if (i % line_polls) continue;
    bool asks = (i / line_polls + (block() * threads() + thread()) / warp) % (blocks() * threads() / warp) == 0;
    missing(a, l, asks, want, v, odd, stop);
    if (vote(stop.kind)) return false;
  }
}

// Deliver stores a received line in the caller's memory.
static DEVICE void deliver(const DirectArgs &a, const Cell &l, u32 from, const Pair *v) {
  if (l.whole) {
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (from >> p & 1) store(a, l, a.recvs[p].memory, l.left(a.recvs[p]), v[p]);
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
    if (from >> p & 1) store(a, l, a.recvs[p].memory, l.left(a.recvs[p]), w);
  }
}

#ifdef TYPE

constexpr int per_word = TYPE::per_word, elements = 8 / TYPE::size;

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

// Combine combines the ranks' contributions in order of rank; ours is own and not in v.
static DEVICE Pair combine(const DirectArgs &a, Wide factor, const Pair *v, Pair own) {
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

#endif

// Take waits for a line of each rank, of the first or the second hop, and combines,
// sends or delivers it. It returns false if the warp has to stop.
static DEVICE bool take(const DirectArgs &a, const Cell &l, u32 hop, u32 others, Wide factor, Stop &stop) {
  Pair v[most] = {};
  Pair own = {};
  bool has = a.from >> a.comm.rank & 1;
  if (has && hop == 0) own = load(a, l, a.sends[0]);
  u32 want = l.first ? others : l.on ? a.from & others : 0;
  if (!receive(a, l, hop ? a.second : 0, want, v, stop)) return false;
#ifdef TYPE
  if (hop) {
    deliver(a, l, others, v);
    return true;
  }
  if (!has) return true;
  own = combine(a, factor, v, own);
  if (a.two) {
    Pair r = {own.x, l.last ? l.flag : own.y};
    syncwarp();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (l.first || l.on) store_line(a.sends[k].lines + (a.second + l.slot), r);
    }
  }
  store(a, l, a.mine, l.left(a.sends[0]), own);
#else
  (void)factor;
  deliver(a, l, a.from & others, v);
  if (has && a.mine != a.sends[0].memory) store(a, l, a.mine, l.left(a.sends[0]), own);
#endif
  return true;
}

// Rounds carries out all rounds after an epoch, or stops. It returns the last.
static DEVICE u64 rounds(const DirectArgs &a, u64 epoch, const State &state, Stop &stop) {
  u32 group = (block() * threads() + thread()) / 8, groups = blocks() * threads() / 8;
  u32 others = ((1u << ranks(a)) - 1) & ~(1u << a.comm.rank);
  bool tells = group == 0 || a.lines > a.room;
  u64 hash = hash_of(a.hash, state.number);
  Wide factor = scalar(a);
#pragma unroll 1
  for (u32 done = 0; done < a.lines; done += a.room) {
    epoch++;
    u32 lines = a.lines - done < a.room ? a.lines - done : a.room;
    u64 flag = flag_of(hash, epoch);
    auto cell = [&](u32 from) FORCED {
      u32 line = from + group, j = thread() % 8;
      return Cell{j == 7, tells && from == 0, line < lines,
                  a.even == 2 || (a.even == 1 && (done + from + groups) * line_data <= a.shortest),
                  (done + line) * line_data + 16 * j, (u32)(epoch & 1) * a.half + line * line_bytes + 16 * j, flag};
    };
#pragma unroll 1
    for (u32 from = 0; from < lines; from += groups) send(a, cell(from), state.over);
    if (done == 0) {
      begin(a.comm, state); // while the lines are on their way
      if (vote(state.over)) return epoch;
    }
#pragma unroll 1
    for (u32 hop = 0; hop <= a.two; hop++) {
#pragma unroll 1
      for (u32 from = 0; from < lines; from += groups) {
        if (!take(a, cell(from), hop, others, factor, stop)) return epoch;
      }
    }
  }
  return epoch;
}

KERNEL(512, 1) void ENTRY(direct)(const DirectArgs a) {
  Stop stop = {};
  u64 epoch = Access<8>::load(a.epochs + 8 * block());
  State state = look(a.comm);
  epoch = rounds(a, epoch, state, stop);
  if (stop.kind) report(a.comm, stop);
  barrier();
  if (thread() == 0 && last(a.comm)) end(a.comm, state);
#pragma unroll 1
  for (u32 i = block() + thread() * blocks(); i < copies; i += threads() * blocks()) Access<8>::store(a.epochs + 8 * i, epoch);
}
