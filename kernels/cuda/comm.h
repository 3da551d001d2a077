// What kernels of several GPUs that work together share: memory order, queues,
// and the control block through which the host stops them and learns why they
// stopped. Package engine/grid mirrors the structs.
#pragma once
#include "base.h"

#define SHARED __attribute__((shared))

// Memory order. Stores of a thread that come before a release, and those of
// others that happened before, are seen by who acquires what it stored.

DEVICE u64 load_acquire(u64 p) {
  u64 v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

DEVICE void store_release(u64 p, u64 v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

DEVICE u32 load_relaxed(u64 p) {
  u32 v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

DEVICE void store_relaxed(u64 p, u32 v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

DEVICE void store_relaxed64(u64 p, u64 v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Add is p += v for all blocks of the device, and gives what was there.
DEVICE u32 add(u64 p, u32 v) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
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

// Control is in host memory; see engine/grid.Control.
namespace control {
constexpr u64 abort = 0;                    // 32 bits: not 0 if kernels are to end
constexpr u64 started = 64, finished = 72;  // numbers of operations
constexpr u64 kind = 128, peer = 132, phase = 136; // of the first fault, 32 bits each; kind comes last
constexpr u64 my_bytes = 144, mine = 152;          // length and stamp that were expected
constexpr u64 theirs = 168;                        // stamp and length that came
} // namespace control

// Local is on the device and outlasts a launch.
namespace local {
constexpr u64 number = 0; // of the last operation
constexpr u64 left = 8;   // 32 bits: blocks that ended
constexpr u64 fault = 12; // 32 bits: faults so far
} // namespace local

enum Fault : u32 { aborted = 1, mismatch = 2 };
enum Phase : u32 { sending = 1, receiving = 2 };

// Comm is what all operations of a communicator have. It is part of kernels'
// arguments.
struct Comm {
  u64 control, local; // addresses
  u64 stamp[2];
};

// Begin is called by one thread of block 0.
static DEVICE void begin(const Comm &c) {
  u64 n = Access<8>::load(c.local + local::number) + 1;
  Access<8>::store(c.local + local::number, n);
  store_relaxed64(c.control + control::started, n);
}

// End is called by one thread of each block, at its end.
static DEVICE void end(const Comm &c) {
  if (add(c.local + local::left, 1) + 1 < blocks()) return;
  store_relaxed(c.local + local::left, 0);
  store_relaxed64(c.control + control::finished, Access<8>::load(c.local + local::number));
}

// Stopped asks the host, which takes about a µs.
static DEVICE bool stopped(const Comm &c) { return load_relaxed(c.control + control::abort) != 0; }

// An End is one end of the queues to or from a peer, as the host describes it;
// see engine/grid.End.
struct End {
  u64 queues, post, seen, counts;
  u32 slots, slot_bytes, queue_bytes, peer;
};

constexpr u64 lane_stride = 128;
constexpr u32 header_bytes = 32;

// A Port is an End in the lane of this block. It lies in shared memory.
struct Port {
  u64 slots, headers; // addresses
  u64 post, seen;     // counters: ours and the other end's
  u64 count;          // slots that went through this end
  u64 known;          // the other end's counter as last seen, 0 at first: it may be behind ours
  u32 mask;           // number of slots - 1
  u32 slot_bytes;
  u64 peer;

  DEVICE void open(const End *e, u32 lane) {
    slots = e->queues + (u64)lane * e->queue_bytes;
    headers = slots + (u64)e->slots * e->slot_bytes;
    post = e->post + lane * lane_stride;
    seen = e->seen + lane * lane_stride;
    count = Access<8>::load(e->counts + 8 * lane);
    known = 0;
    mask = e->slots - 1;
    slot_bytes = e->slot_bytes;
    peer = e->peer;
  }

  // Close keeps the count for the next kernel.
  DEVICE void close(const End *e, u32 lane) const { Access<8>::store(e->counts + 8 * lane, count); }

  DEVICE u64 slot() const { return slots + (u64)((u32)count & mask) * slot_bytes; }
  DEVICE u64 header() const { return headers + ((u32)count & mask) * header_bytes; }
};

// Polls is how often a waiting thread looks before it asks the host whether to
// go on, well below a ms.
constexpr u32 polls = 1024;

// A Stop is why a thread stopped.
struct Stop {
  u32 kind; // Fault, 0 if it did not
  Phase phase;
  u32 port;
  u64 bytes; // that were expected
};

// Wait returns when the other end's counter is at least n, or false when the
// host has us stop.
static DEVICE bool wait(const Comm &c, Port &p, u64 n) {
  u64 known = p.known;
#pragma unroll 1
  for (u32 i = 1; (s64)(known - n) < 0; i++) {
    known = load_acquire(p.seen);
    if (i % polls == 0 && stopped(c)) return false;
  }
  p.known = known;
  return true;
}

// Agrees reports whether the slot received belongs to this operation.
static DEVICE bool agrees(const Comm &c, const Port &p, u64 bytes) {
  u64 h = p.header();
  return Access<8>::load(h) == c.stamp[0] && Access<8>::load(h + 8) == c.stamp[1] && Access<8>::load(h + 16) == bytes;
}

// Publish hands the slot on; one thread calls it after a barrier.
static DEVICE void publish(const Comm &c, Port &p, u64 bytes) {
  u64 h = p.header();
  Access<8>::store(h, c.stamp[0]);
  Access<8>::store(h + 8, c.stamp[1]);
  Access<8>::store(h + 16, bytes);
  store_release(p.post, ++p.count);
}

// Release gives the slot back; one thread calls it after a barrier.
static DEVICE void release(Port &p) { store_release(p.post, ++p.count); }

// Report tells the host about the first fault of all. A mismatch has all blocks
// of this device end.
static DEVICE void report(const Comm &c, const Stop &s, const Port &p) {
  if (add(c.local + local::fault, 1) == 0) {
    u64 at = c.control, h = p.header();
    Access<4>::store(at + control::peer, p.peer);
    Access<4>::store(at + control::phase, s.phase);
    Access<8>::store(at + control::my_bytes, s.bytes);
    for (int i = 0; i < 2; i++) Access<8>::store(at + control::mine + 8 * i, c.stamp[i]);
    if (s.kind == mismatch) {
      for (int i = 0; i < 3; i++) Access<8>::store(at + control::theirs + 8 * i, Access<8>::load(h + 8 * i));
    }
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    store_relaxed(at + control::kind, s.kind);
  }
  if (s.kind == mismatch) store_relaxed(c.control + control::abort, 1);
}
