// Many small all-reduces of a group in one kernel, each in one hop as in direct.cu. The
// batch is the calls that the group has side by side, the same on all ranks. Entry i of
// it belongs to block i modulo blocks, which carries out its entries one after the other,
// in lines of its own part of the mailboxes; other blocks wait neither for it nor for each
// other. A rank may carry out a batch by several kernels, of as many entries as fit into
// the arguments or are on one stream: the peers see no difference. Entries have no order: what
// one writes no other may use.
//
// Each entry takes an epoch of its block, and in the last round blocks without an entry
// have an empty one, so all blocks have the same epoch after a batch. Each group of 8
// threads sends a line for each entry: the argument in direct.cu for two halves holds.
#include "exchange.h"

// An Entry is one all-reduce.
struct Entry {
  u64 in, out;
  u32 bytes;
  u32 hash; // of the call and the batch, 24 bits; below them even as in DirectArgs
};

// ManyArgs is engine/grid.manyArgs in Go. Of direct, what is about data is not looked at.
struct ManyArgs {
  DirectArgs direct;
  u32 first, past; // the kernel's part of the batch
  u32 count;       // entries in entry: those that come after are empty
  u32 last;        // 1: the batch ends with this kernel
  u32 room;        // lines of a block's part of a mailbox's area
  u32 unused;
  Entry entry[143];
};

// One carries out entry i of the kernel's; false if the warp has to stop. at is where the
// block's part of a half begins. The first entry begins the operation.
static DEVICE bool one(const DirectArgs &a, const Entry &e, u32 i, u64 &epoch, u32 round, u32 at, u32 others, Wide factor, State &state, Stop &stop) {
  u32 group = thread() / 8, groups = threads() / 8, j = thread() % 8, even = e.hash & 3;
  u32 lines = e.bytes ? (e.bytes + line_data - 1) / line_data : 1;
  Transfer own = {0, e.in, e.bytes, 0};
  auto cell = [&](u32 from) FORCED {
    u32 line = from + group;
    return Cell{j == 7, from == 0, line < lines, even == 2 || (even == 1 && (from + groups) * line_data <= e.bytes),
                line * line_data + 16 * j, at + line * line_bytes + 16 * j};
  };
  auto this_round = [&]() FORCED { return round_of(a, hash_of((u64)e.hash << 32, first_number(a.comm, state) + i), epoch + round); };
#pragma unroll 1
  for (u32 from = 0; from < lines; from += groups) {
    Cell l = cell(from);
    Pair v = load(l, own);
    loaded(state), loaded(epoch); // as in direct.cu
    if (vote(state.over)) continue;
    Round r = this_round();
    v = sealed(a, l, marked(l, r, v));
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(a)) break;
      if (l.first || l.on) store_line(a.sends[k].lines + (r.half + l.slot), v);
    }
  }
  if (round == 1) begin(a.comm, state); // while the lines are on their way
  if (vote(state.over)) return false;
  Round r = this_round();
#pragma unroll 1
  for (u32 from = 0; from < lines; from += groups) {
    Cell l = cell(from);
    Pair v[most] = {}, mine = load(l, own);
    if (!receive(a, l, r, 0, l.first || l.on ? others : 0, v, stop)) return false;
    store(l, e.out, l.left(own), combine(a, factor, v, mine));
  }
  return true;
}

KERNEL(256, 2) void ENTRY(many)(const ManyArgs a) {
  const DirectArgs &d = a.direct;
  Stop stop = {};
  u64 epoch = Access<8>::load(d.epochs + 8 * block());
  State state = look(d.comm);
  u32 others = ((1u << ranks(d)) - 1) & ~(1u << d.comm.rank);
  Wide factor = scalar(d);
  u32 round = 0;
#pragma unroll 1
  for (u32 i = (block() + blocks() - a.first % blocks()) % blocks(); a.first + i < a.past; i += blocks()) {
    Entry e = {};
    if (i < a.count) e = a.entry[i];
    if (!one(d, e, i, epoch, ++round, block() * a.room * line_bytes, others, factor, state, stop)) break;
  }
  if (round == 0) begin(d.comm, state);
  if (stop.kind) report(d.comm, stop);
  barrier();
  if (thread() == 0 && last(d.comm)) end(d.comm, state);
  u32 step = a.last ? blocks() : copies;
#pragma unroll 1
  for (u32 i = block() + thread() * step; i < copies; i += threads() * step) Access<8>::store(d.epochs + 8 * i, epoch + round);
}
