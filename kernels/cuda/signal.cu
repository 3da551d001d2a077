// Signals between ranks whose memory can be reached: a kernel tells ranks that what was put into their
// windows is there, and waits for signals of others. Both are counted on the device, so launches and
// replays of graphs mix.
#include "comm.h"

constexpr u32 most = 8; // ranks

// SignalArgs is engine/grid.signalArgs in Go.
struct SignalArgs {
  Comm comm;
  u64 counts;     // for each rank: signals sent to it, and signals of it that were waited for
  u32 send[most]; // signals to each rank
  u32 wait[most]; // signals of each rank to wait for
};

// Arrived is where a sign board has the count of signals of a rank.
constexpr u64 arrived = 32;

static DEVICE u64 board(const Comm &c, u32 of, u32 from) {
  return Access<8>::load(c.signs + 8 * of) + from * sign_bytes + arrived;
}

KERNEL(32, 1) void signal_copy(const SignalArgs a) {
  Stop stop = {};
  State state = look(a.comm);
  begin(a.comm, state);
  bool goes = !any(state.over);
  u32 p = thread();
  if (goes && p < a.comm.ranks) {
    u64 sent = a.counts + 16 * p, waited = sent + 8;
    if (a.send[p]) {
      u64 n = Access<8>::load(sent) + a.send[p];
      Access<8>::store(sent, n);
      fence(); // what was put before, by work ahead on the stream, is there
      store_relaxed64(board(a.comm, p, a.comm.rank), n);
    }
    if (a.wait[p]) {
      u64 n = Access<8>::load(waited) + a.wait[p], at = board(a.comm, a.comm.rank, p);
      Access<8>::store(waited, n);
      auto other = [&]() FORCED { return false; };
#pragma unroll 1
      for (u32 i = 1; !stop.kind && (s64)(load_acquire(at) - n) < 0; i++)
        if (i % soon == 0) give_up(a.comm, i % polls == 0, {0, receiving, p, 0, 0}, other, stop);
    }
  }
  if (stop.kind) report(a.comm, stop);
  barrier();
  if (thread() == 0) end(a.comm, look(a.comm));
}
