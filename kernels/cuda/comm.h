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

// Add is p += v for all blocks of the device, and gives what was there.
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

// Meet waits at one of 16 barriers until n threads, whole warps, have met there or
// arrived, which does not wait.
DEVICE void meet(u32 id, u32 n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEVICE void arrive(u32 id, u32 n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }

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
constexpr u64 number = 0; // of the last operation that finished
constexpr u64 left = 8;   // 32 bits: blocks that ended
constexpr u64 fault = 12; // 32 bits: faults so far
constexpr u64 over = 16;  // 32 bits: not 0 if a block heard that kernels are to end
} // namespace local

enum Fault : u32 { aborted = 1, mismatch = 2 };
enum Phase : u32 { sending = 1, receiving = 2 };

// Comm is what all operations of a communicator have. It is part of kernels'
// arguments.
struct Comm {
  u64 control, local; // addresses
  u64 stamp[2];
  u64 signs; // address of the addresses of all ranks' sign boards, 0 for those out of reach
  u64 sign;  // stands for the stamp: the number of the call in the high half, a hash below; 0: it has no number
  u32 rank, ranks;
};

constexpr u64 sign_bytes = 64; // on a sign board for each rank: sign, stamp, 0

// Begin is called by all threads of a block. Block 0 counts, and tells the peers
// what we are at.
static DEVICE void begin(const Comm &c) {
  if (block() != 0) return;
  if (thread() == 0) {
    store_relaxed64(c.control + control::started, load_relaxed64(c.local + local::number) + 1);
  }
  if (c.sign == 0) return;
#pragma unroll 1
  for (u32 p = thread(); p < c.ranks; p += threads()) {
    u64 board = Access<8>::load(c.signs + 8 * p), at = board + c.rank * sign_bytes;
    if (board == 0) continue;
    store_relaxed64(at + 8, c.stamp[0]);
    store_relaxed64(at + 16, c.stamp[1]);
    store_relaxed64(at, c.sign);
  }
}

// End is called by one thread of each block, at its end. The last one counts.
static DEVICE void end(const Comm &c) {
  if (add(c.local + local::left, 1) + 1 < blocks()) return;
  u64 n = load_relaxed64(c.local + local::number) + 1;
  store_relaxed64(c.local + local::number, n);
  store_relaxed(c.local + local::left, 0);
  store_relaxed64(c.control + control::finished, n);
}

// Heard reports whether the device knows already that kernels are to end.
static DEVICE bool heard(const Comm &c) { return load_relaxed(c.local + local::over) != 0; }

// Stopped asks the host, which takes about a µs, and has the device know.
static DEVICE bool stopped(const Comm &c) {
  if (load_relaxed(c.control + control::abort) == 0) return false;
  store_relaxed(c.local + local::over, 1);
  return true;
}

// An End is one end of the queues to or from a peer, as the host describes it;
// see engine/grid.End.
struct End {
  u64 queues, post, seen, counts;
  u32 slots, slot_bytes, queue_bytes, peer;
  u32 note_bytes, unused;
};

constexpr u64 lane_stride = 128;
constexpr u32 header_bytes = 32;
constexpr u64 count_bits = 40; // of a note's flag; see notes.h

// A Port is an End in the lane of this block. It lies in shared memory.
struct Port {
  u64 slots;      // address
  u64 post, seen; // counters: ours and the other end's
  u64 count;      // slots that went through this end
  u64 next;       // the slot to wait for: ahead of count where others still work on some
  u64 known;      // the other end's counter as last seen, 0 at first: it may be behind ours
  u32 mask;       // number of slots - 1
  u32 slot_bytes;
  u32 peer, note_bytes;

  DEVICE void open(const End *e, u32 lane) {
    slots = e->queues + (u64)lane * e->queue_bytes;
    post = e->post + lane * lane_stride;
    seen = e->seen + lane * lane_stride;
    count = next = Access<8>::load(e->counts + 8 * lane);
    known = 0;
    mask = e->slots - 1;
    slot_bytes = e->slot_bytes;
    peer = e->peer;
    note_bytes = e->note_bytes;
  }

  // Close keeps the count for the next kernel.
  DEVICE void close(const End *e, u32 lane) const { Access<8>::store(e->counts + 8 * lane, count); }

  // Needed is what the other end's counter has to be for the next slot to be ours.
  DEVICE u64 needed(Phase phase) const { return phase == sending ? next - mask : next + 1; }

  // Has reports whether the next slot is ours, without waiting.
  DEVICE bool has(Phase phase) {
    if ((s64)(known - needed(phase)) < 0) known = load_acquire(seen);
    return (s64)(known - needed(phase)) >= 0;
  }

  DEVICE u64 slot(u64 count) const { return slots + (u64)((u32)count & mask) * slot_bytes; }
  DEVICE u64 header(u64 count) const { return slots + (mask + 1) * (u64)slot_bytes + ((u32)count & mask) * header_bytes; }
  DEVICE u64 header() const { return header(count); }

  // Note is where lines lie that are sent in place of a slot.
  DEVICE u64 note(u64 count) const {
    u32 headers = ((mask + 1) * header_bytes + 127) & ~127u;
    return slots + (mask + 1) * (u64)slot_bytes + headers + (u64)((u32)count & mask) * note_bytes;
  }

  // Has_note reports whether lines came for the next slot, whatever they say.
  DEVICE bool has_note() const {
    return note_bytes && (load_relaxed64(note(next) + 120) ^ (next + 1)) << (64 - count_bits) == 0;
  }
};

// A Stop is why a thread stopped.
struct Stop {
  u32 kind; // Fault, 0 if it did not
  Phase phase;
  u64 peer;
  u64 bytes;  // that were expected
  u64 theirs; // address of the peer's stamp and length
};

// Contradicted reports whether a peer is at another call of our number. So ranks
// find out that wait for each other in different calls.
static DEVICE bool contradicted(const Comm &c, Stop &stop) {
  if (c.sign == 0) return false;
  u64 at = Access<8>::load(c.signs + 8 * c.rank);
#pragma unroll 1
  for (u32 p = 0; p < c.ranks; p++, at += sign_bytes) {
    u64 s = load_relaxed64(at);
    if (s == c.sign || (s ^ c.sign) >> 32) continue;
    stop = {mismatch, receiving, p, 0, at + 8};
    return true;
  }
  return false;
}

// Polls is how often a waiting thread looks before it asks the host whether to
// go on, well below a ms. Soon is how often before it looks whether kernels before it
// were told to end: many may be queued when an operation fails.
constexpr u32 polls = 1024, soon = 16;

// Wait returns when the other end's counter is at least n, or with a Stop.
static DEVICE void wait(const Comm &c, Port &p, u64 n, Phase phase, u64 bytes, Stop &stop) {
  u64 known = p.known;
#pragma unroll 1
  for (u32 i = 1; (s64)(known - n) < 0; i++) {
    known = load_acquire(p.seen);
    if (i % polls && (i % soon || !heard(c))) continue;
    if (i % polls || stopped(c)) stop = {aborted, phase, p.peer, bytes, 0};
    if (!stop.kind && phase == receiving && p.has_note()) stop = {mismatch, phase, p.peer, bytes, p.header(p.next)};
    if (stop.kind || contradicted(c, stop)) return;
  }
  p.known = known;
}

// A Header comes with a slot.
struct Header {
  u64 stamp[2], bytes;

  DEVICE void load(u64 p) {
    stamp[0] = Access<8>::load(p);
    stamp[1] = Access<8>::load(p + 8);
    bytes = Access<8>::load(p + 16);
  }
  DEVICE bool of(const Comm &c, u64 n) const { return stamp[0] == c.stamp[0] && stamp[1] == c.stamp[1] && bytes == n; }
};

// Stamp writes the header of a slot to be sent.
static DEVICE void stamp(u64 header, const u64 *stamp, u64 bytes) {
  store_relaxed64(header, stamp[0]);
  store_relaxed64(header + 8, stamp[1]);
  store_relaxed64(header + 16, bytes);
}

// Fence orders what this thread did, and what happened before, with what it
// stores next, for all who see that.
DEVICE void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Post tells the other end, after a fence, that the slot is theirs.
static DEVICE void post(Port &p) { store_relaxed64(p.post, ++p.count); }

// Report tells the host about the first fault of all. A mismatch has all blocks
// of this device end.
static DEVICE void report(const Comm &c, const Stop &s) {
  if (add(c.local + local::fault, 1) == 0) {
    u64 at = c.control;
    Access<4>::store(at + control::peer, s.peer);
    Access<4>::store(at + control::phase, s.phase);
    Access<8>::store(at + control::my_bytes, s.bytes);
    for (int i = 0; i < 2; i++) Access<8>::store(at + control::mine + 8 * i, c.stamp[i]);
    if (s.theirs) {
      for (int i = 0; i < 3; i++) Access<8>::store(at + control::theirs + 8 * i, load_relaxed64(s.theirs + 8 * i));
    }
    fence();
    store_relaxed(at + control::kind, s.kind);
  }
  if (s.kind == mismatch) store_relaxed(c.control + control::abort, 1);
}
