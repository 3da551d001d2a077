// The common part of all kernels of a communicator: memory order, the control block
// by which the host stops them and learns why they stopped, and the wait for other
// ranks. Package engine/grid mirrors the structs.
#pragma once
#include "base.h"

#define SHARED __attribute__((shared))

// Memory order. A thread that acquires a value sees all that the releasing thread had
// stored before, and all that had happened before that.

DEVICE u64 load_acquire(u64 p) {
  u64 v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

DEVICE u32 load_relaxed(u64 p) {
  u32 v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

DEVICE void store_relaxed(u64 p, u32 v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

DEVICE u64 load_relaxed64(u64 p) {
  u64 v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

DEVICE void store_relaxed64(u64 p, u64 v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Halves are the halves of 64 bits, loaded or stored at once, for memory where others load or store one half alone: in
// PTX, strong accesses of different sizes that overlap are a race.
struct Halves {
  u32 low, high;
};
DEVICE Halves load_relaxed_halves(u64 p) {
  Halves v;
  asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.low), "=r"(v.high) : "l"(p) : "memory");
  return v;
}
DEVICE void store_relaxed_halves(u64 p, u64 v) {
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"((u32)v), "r"((u32)(v >> 32)) : "memory");
}

// Fence orders all that this thread has stored or seen before its next stores, for
// every thread that sees those.
DEVICE void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Fence_device is fence for the threads of the device alone.
DEVICE void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Add is p += v for all blocks of the device. It returns the value from before.
DEVICE u32 add(u64 p, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

// Barrier waits for all threads of the block.
DEVICE void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }

// Any is a barrier that tells all threads whether x holds for any of them.
DEVICE bool any(bool x) {
  u32 r;
  asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbar.red.or.pred q, 0, p;\n\tselp.u32 %0, 1, 0, q;\n\t}"
               : "=r"(r)
               : "r"((u32)x)
               : "memory");
  return r;
}

// Meet and arrive use one of 16 barriers, which opens when n threads, whole warps, have
// arrived. Meet waits for that, arrive does not.
DEVICE void meet(u32 id, u32 n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEVICE void arrive(u32 id, u32 n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }

constexpr u32 warp = 32;

// Vote tells the threads of a warp whether x holds for any of them.
DEVICE bool vote(bool x) {
  u32 r;
  asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.any.pred q, p, -1;\n\tselp.u32 %0, 1, 0, q;\n\t}"
               : "=r"(r)
               : "r"((u32)x)
               : "memory");
  return r;
}

// Syncwarp waits for all threads of the warp.
DEVICE void syncwarp() { asm volatile("bar.warp.sync -1;" ::: "memory"); }

// Control is in host memory; see engine/grid.Control.
namespace control {
constexpr u64 word = 0;                     // the host's Wish, and in the high half a bit for each rank that has left
constexpr u64 started = 64, finished = 72;  // numbers of operations
constexpr u64 consumed = 80;                // the token of the last kernel that had one and ended
constexpr u64 kind = 128, peer = 132, phase = 136; // of the first fault, 32 bits each; kind is written last
constexpr u64 my_bytes = 144, mine = 152;          // length and stamp that were expected
constexpr u64 theirs = 168;                        // stamp and length that came
constexpr u64 awaited = 256; // 32 bits by rank: not 0 if a kernel has waited for that rank since the host asked
} // namespace control

// Local is on the device and outlasts a launch. A kernel loads the first 16 bytes at once.
// What is added to by atomic operations has a line of its own: a load of such a line at
// the start of the next kernel takes longer.
namespace local {
constexpr u64 finished = 0; // operations
constexpr u64 number = 8;   // 32 bits: of the last collective
constexpr u64 over = 12;    // 32 bits: not 0 once all kernels are to end: one has found out, or the host says so
constexpr u64 left = 128;   // 32 bits: blocks that ended
constexpr u64 fault = 132;  // 32 bits: faults so far
} // namespace local

enum Wish : u32 { to_end = 1, to_say = 2 }; // kernels are to end, or those that wait to say for whom
enum Fault : u32 { aborted = 1, mismatch = 2, departed = 3 }; // departed is no fault that the host hears of
enum Phase : u32 { sending = 1, receiving = 2 };

// Comm is the part of kernels' arguments that all operations of a communicator have.
// It is the same for a launch and for a graph that holds it, so collectives are numbered
// on the device, when they run: what is captured and thrown away leaves no gap.
struct Comm {
  u64 control, local; // addresses
  u64 stamp[2];       // without the number, which belongs into the high half of the first word
  u64 signs;          // address of the addresses of all ranks' sign boards, 0 for those without peer access
  u64 token;          // for control::consumed, 0: none
  u32 sign;           // hash of the stamp for the sign boards, 0: the call is not on them
  u32 rank, ranks;
  u16 fresh;      // collectives that begin with this kernel: they take the next numbers
  u16 collective; // 1: the stamp has a number
};

// A State is where the communicator is when a kernel starts.
struct State {
  u64 finished; // operations
  u32 number;   // of the last collective before this kernel
  u32 over;     // not 0: all kernels are to end
};

// Look is called by each thread first. A kernel that finds that all is over touches
// nothing from then on that the peers or the caller own, which may be gone: it counts
// as an operation and ends. Kernels that send lines have loaded from the caller's In by
// then. Threads of a block may find different things, for another block may say in the
// meantime that all is over.
static DEVICE State look(const Comm &c) {
  u32 low, high, number, over;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(low), "=r"(high), "=r"(number), "=r"(over)
               : "l"(c.local)
               : "memory");
  return {(u64)high << 32 | low, number, over};
}

// Loaded keeps what depends on a value behind the loads that come before it here, so
// that those do not wait for the value.
static DEVICE void loaded(u64 &v) { asm volatile("" : "+l"(v)); }
static DEVICE void loaded(State &s) { asm volatile("" : "+l"(s.finished), "+r"(s.number), "+r"(s.over)); }

// First_number is the number of the first collective of this kernel.
static DEVICE u32 first_number(const Comm &c, const State &s) { return s.number + (c.fresh != 0); }

// Number_of is the number in the stamp, 0 for a message between two ranks.
static DEVICE u32 number_of(const Comm &c, const State &s) { return c.collective ? first_number(c, s) : 0; }

// Numbered is the first word of a stamp with a number.
static DEVICE u64 numbered(u64 stamp, u32 number) { return stamp | (u64)number << 32; }

// Hash_of is a call's hash with its number.
static DEVICE u64 hash_of(u64 hash, u32 number) { return hash ^ (u64)(number * 0x9e3779b9u) << 32; }

constexpr u64 sign_bytes = 64; // on a sign board for each rank: number and sign, stamp, 0, count of signals (signal.cu), proof

// Proof_of shows that a sign and the words of a stamp belong together: they arrive in any order.
static DEVICE u64 proof_of(u64 sign, u64 first, u64 second) { return sign ^ first ^ second * 0x9e3779b97f4a7c15; }

// Begin is called by all threads of a block. Block 0 counts the operation and
// writes its sign to all peers' sign boards.
static DEVICE void begin(const Comm &c, const State &s) {
  if (block() != 0) return;
  if (thread() == 0) store_relaxed64(c.control + control::started, s.finished + 1);
  if (c.sign == 0 || s.over) return;
#pragma unroll 1
  for (u32 p = thread(); p < c.ranks; p += threads()) {
    u64 board = Access<8>::load(c.signs + 8 * p), at = board + c.rank * sign_bytes;
    if (board == 0) continue;
    u64 sign = numbered(c.sign, first_number(c, s)), stamp = numbered(c.stamp[0], first_number(c, s));
    store_relaxed64(at + 8, stamp);
    store_relaxed64(at + 16, c.stamp[1]);
    store_relaxed64(at + 40, proof_of(sign, stamp, c.stamp[1]));
    store_relaxed64(at, sign);
  }
}

// Last is called by one thread of each block, at its end. It reports whether all
// other blocks have ended.
static DEVICE bool last(const Comm &c) {
  if (blocks() == 1) return true;
  if (add(c.local + local::left, 1) + 1 < blocks()) return false;
  store_relaxed(c.local + local::left, 0);
  return true;
}

// End is called in the last block. It counts the operation as finished, if it ends with
// this kernel, and the kernel's tables as read. It does not wait for stores: the next
// kernel starts after all of this one.
static DEVICE void end(const Comm &c, const State &s, bool finishes = true) {
  store_relaxed(c.local + local::number, s.number + c.fresh);
  if (finishes) {
    store_relaxed_halves(c.local + local::finished, s.finished + 1); // look() loads words
    store_relaxed64(c.control + control::finished, s.finished + 1);
  }
  if (c.token) store_relaxed64(c.control + control::consumed, c.token);
}

// Over reports whether the device knows that all kernels are to end.
static DEVICE bool over(const Comm &c) { return load_relaxed(c.local + local::over) != 0; }

// A flag says that data have arrived and for which call: the low bits count the uses of
// the memory, the others are a hash of the call.
constexpr u64 counter_bits = 40;

static DEVICE u64 flag_of(u64 hash, u64 counter) {
  return hash >> counter_bits << counter_bits | counter << (64 - counter_bits) >> (64 - counter_bits);
}

// Ahead is greater than 0 if the counter of a flag is greater than that of another,
// and 0 if they are the same.
static DEVICE s64 ahead(u64 flag, u64 other) { return (s64)((flag - other) << (64 - counter_bits)); }

// A Stop is why a thread stopped.
struct Stop {
  u32 kind; // Fault, 0 if it did not stop
  Phase phase;
  u64 peer;
  u64 bytes;  // that were expected
  u64 theirs; // address of the peer's stamp and length, 0 if they are not known
  bool spare = false; // no data are awaited: a peer among the first 32 who has left need not come
};

// Gone has a bit for each of the first 32 ranks that has left.
static DEVICE u32 gone(const Comm &c) { return load_relaxed_halves(c.control + control::word).high; }

// Stopped asks the host whether to end, which takes about a µs, and tells the device. The host
// may ask for whom this thread waits. It returns a Fault, 0 for none.
static DEVICE u32 stopped(const Comm &c, const Stop &at) {
  Halves word = load_relaxed_halves(c.control + control::word);
  if (word.low == to_end) {
    store_relaxed(c.local + local::over, 1);
    return aborted;
  }
  if (at.spare && word.high >> at.peer & 1) return departed;
  if (word.low == to_say) store_relaxed(c.control + control::awaited + 4 * at.peer, 1);
  return 0;
}

// Contradicted reports whether a peer is at another call under the number of ours.
// Without it, ranks that wait for each other in different calls would never find out.
static DEVICE bool contradicted(const Comm &c, Stop &stop) {
  if (c.sign == 0) return false;
  u64 at = Access<8>::load(c.signs + 8 * c.rank), sign = numbered(c.sign, first_number(c, look(c)));
#pragma unroll 1
  for (u32 p = 0; p < c.ranks; p++, at += sign_bytes) {
    u64 s = load_relaxed64(at);
    if (s == sign || (s ^ sign) >> 32) continue;
    if (load_relaxed64(at + 40) != proof_of(s, load_relaxed64(at + 8), load_relaxed64(at + 16))) continue;
    stop = {mismatch, receiving, p, 0, at + 8};
    return true;
  }
  return false;
}

// Lines of another call may come some µs before the sign of it, and longer before where a GPU uses the peer's sign board for
// the first time. So often a wait looks at the sign boards, if the call is on them, before it goes by the lines.
static DEVICE u32 sign_chances(const Comm &c) { return c.sign ? 12 : 0; }

// A wait polls. After each soon polls in vain it calls give_up; after each polls polls,
// well below a ms, give_up also asks the host.
constexpr u32 polls = 1024, soon = 16;

// Give_up reports whether to stop waiting, with the reason in stop: all kernels are to
// end, a peer that can be spared has left, a peer is at another call, or other() reports that
// data of another call have arrived. at describes the wait of this thread. Without asks
// only the first is looked for, on the device: the host's control block and the sign boards
// take longer.
template <class F> static DEVICE bool give_up(const Comm &c, bool asks, Stop at, F other, Stop &stop) {
  if (u32 fault = over(c) ? (u32)aborted : asks ? stopped(c, at) : 0) {
    stop = at;
    stop.kind = fault;
  } else if (asks && !contradicted(c, stop) && other()) {
    stop = at;
    stop.kind = mismatch;
  }
  return stop.kind;
}

// Report tells the host about the first fault of all, and tells the device that all
// kernels are to end. At a mismatch the host ends the other ranks too.
static DEVICE void report(const Comm &c, const Stop &s) {
  if (add(c.local + local::fault, 1) == 0) {
    u64 at = c.control;
    Access<4>::store(at + control::peer, s.peer);
    Access<4>::store(at + control::phase, s.phase);
    Access<8>::store(at + control::my_bytes, s.bytes);
    Access<8>::store(at + control::mine, numbered(c.stamp[0], number_of(c, look(c))));
    Access<8>::store(at + control::mine + 8, c.stamp[1]);
    if (s.kind == mismatch && s.theirs) {
      for (int i = 0; i < 3; i++) Access<8>::store(at + control::theirs + 8 * i, load_relaxed64(s.theirs + 8 * i));
    }
    fence();
    store_relaxed(at + control::kind, s.kind);
  }
  store_relaxed(c.local + local::over, 1);
  if (s.kind == mismatch) store_relaxed(c.control + control::word, to_end);
}
