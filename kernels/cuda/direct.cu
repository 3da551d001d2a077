// Direct kernels: every rank writes to every other rank's mailbox and waits only for the
// lines in its own. That takes one hop, or two for an all-reduce of which each rank
// combines a part. With TYPE and OP it reduces; without, it only copies.
//
// A message travels in lines, see lines.h. A line's flag has the epoch, which grows
// by one a round, so the flag alone tells that the line has arrived. Where lines may tear,
// the flag and the digest together tell it.
//
// A mailbox has two halves, for even and odd epochs. Two are enough: a rank that
// writes for epoch e + 2 has received a line of epoch e + 1 from the reader, which the
// reader sent after it was done with epoch e. So every rank has to send every other rank
// a line in each kernel, an empty one if there is no data. In a kernel of several rounds
// each group of 8 threads sends a line in each round; since a group's lines lie in the
// same places in all rounds, the argument holds for each group, and from kernel to kernel
// for all groups. It holds for lines that tear: a group sends its line of epoch e + 1 when
// all words of its lines of epoch e are in registers, and no part of a line is loaded later.
#include "exchange.h"

// Send sends the line of each message, unless all is over: then a peer may be gone, or still wait for a line of an
// earlier kernel, which must stay as it is. The state and the epoch are looked at when the data are on their way too,
// so that no load waits for another one.
static DEVICE void send(const DirectArgs &a, const Cell &l, Wide factor, State &state, u64 &epoch, u32 round) {
  u32 to = l.first ? ~0u : l.on ? a.to : 0;
  Pair v[most];
  auto settle = [&]() FORCED {
    loaded(state), loaded(epoch);
    if (vote(state.over)) to = 0;
    return round_of(a, hash_of(a.hash, first_number(a.comm, state)), epoch + round);
  };
  auto line = [&](const Round &r, Pair v) FORCED { return marked(l, r, contribution(a, factor, v)); };
  auto store = [&](u32 k, const Round &r, Pair line) FORCED {
    if (to >> k & 1) store_line(a.sends[k].lines + (r.half + l.slot), line);
  };
  if (a.same && !a.torn) {
    v[1] = load(l, a.sends[1]);
    Round r = settle();
    v[1] = line(r, v[1]);
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      store(k, r, v[1]);
    }
    return;
  }
  if (l.whole && !a.torn && !early(a)) { // else the code of each contribution would be there seven times
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      v[k] = load(l, a.sends[k]);
    }
    Round r = settle();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      store(k, r, marked(l, r, v[k]));
    }
    return;
  }
  Round r;
#pragma unroll 1
  for (u32 k = 1; k < ranks(a); k++) {
    if (k == 1 || !a.same) {
      v[1] = load(l, a.sends[k]);
      r = settle();
      v[1] = sealed(a, l, line(r, v[1]));
    }
    store(k, r, v[1]);
  }
}

// Deliver stores the lines received of the ranks in from in the caller's memory.
static DEVICE void deliver(const DirectArgs &a, const Cell &l, u32 from, const Pair *v) {
  if (l.whole) {
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (from >> p & 1) store(l, a.recvs[p].memory, l.left(a.recvs[p]), v[p]);
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
    if (from >> p & 1) store(l, a.recvs[p].memory, l.left(a.recvs[p]), w);
  }
}

// Take waits for a line of each rank, of the first or the second hop, and combines,
// sends or delivers it. It returns false if the warp has to stop.
static DEVICE bool take(const DirectArgs &a, const Cell &l, const Round &r, u32 hop, u32 others, Wide factor, Stop &stop) {
  Pair v[most] = {};
  Pair own = {};
  bool has = a.from >> a.comm.rank & 1;
  if (has && hop == 0) own = contribution(a, factor, load(l, a.sends[0]));
  u32 want = l.first ? others : l.on ? a.from & others : 0;
  if (!receive(a, l, r, hop ? a.second : 0, want, v, stop)) return false;
#ifdef TYPE
  if (hop) {
    deliver(a, l, others, v);
    return true;
  }
  if (!has) return true;
  own = combine(a, factor, v, own);
  if (a.two) {
    Pair v = sealed(a, l, marked(l, r, own));
    syncwarp();
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (l.first || l.on) store_line(a.sends[k].lines + (a.second + r.half + l.slot), v);
    }
  }
  store(l, a.mine, l.left(a.sends[0]), own);
#else
  (void)factor;
  deliver(a, l, a.from & others, v);
  if (has && a.mine != a.sends[0].memory) store(l, a.mine, l.left(a.sends[0]), own);
#endif
  return true;
}

// Rounds carries out all rounds, or stops. It returns the last epoch.
static DEVICE u64 rounds(const DirectArgs &a, u64 epoch, State &state, Stop &stop) {
  u32 group = (block() * threads() + thread()) / 8, groups = blocks() * threads() / 8, round = 0;
  u32 others = ((1u << ranks(a)) - 1) & ~(1u << a.comm.rank);
  bool tells = group == 0 || a.lines > a.room;
  Wide factor = scalar(a);
#pragma unroll 1
  for (u32 done = 0; done < a.lines; done += a.room) {
    round++;
    u32 lines = a.lines - done < a.room ? a.lines - done : a.room;
    auto cell = [&](u32 from) FORCED {
      u32 line = from + group, j = thread() % 8;
      return Cell{j == 7, tells && from == 0, line < lines,
                  a.even == 2 || (a.even == 1 && (done + from + groups) * line_data <= a.shortest),
                  (done + line) * line_data + 16 * j, line * line_bytes + 16 * j};
    };
#pragma unroll 1
    for (u32 from = 0; from < lines; from += groups) send(a, cell(from), factor, state, epoch, round);
    if (done == 0) {
      begin(a.comm, state); // while the lines are on their way
      if (vote(state.over)) break;
    }
    Round r = round_of(a, hash_of(a.hash, first_number(a.comm, state)), epoch + round);
#pragma unroll 1
    for (u32 hop = 0; hop <= a.two; hop++) {
#pragma unroll 1
      for (u32 from = 0; from < lines; from += groups) {
        if (!take(a, cell(from), r, hop, others, factor, stop)) return epoch + round;
      }
    }
  }
  return epoch + round;
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
