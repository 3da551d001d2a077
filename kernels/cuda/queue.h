// Queues of slots between two ranks, one for each lane. The sender counts the slots
// that it has published, the receiver those that it has released.
#pragma once
#include "comm.h"

// An End is one end of the queues to or from a peer, as the host describes it;
// see engine/grid.End.
struct End {
  u64 slots, heads, post, seen, counts; // heads: headers, then notes
  u32 count, slot_bytes, note_bytes, peer;
  u32 slots_stride, heads_stride; // from a lane to the next
};

using Ends = const GLOBAL End *;

constexpr u64 lane_stride = 128;
constexpr u32 header_bytes = 32;

// A Port is an End in one lane: the block's, or a task's of messages.h. It lies in shared memory, but for kernel notes.
struct Port {
  u64 slots;      // address
  u64 headers;    // address
  u64 post, seen; // addresses of counters: this end's, which the peer reads, and the peer's
  u64 count;      // slots that have gone through this end
  u64 next;       // the slot to wait for, greater than count while earlier ones are in use
  u64 known;      // the peer's counter when last read, 0 at first: it may have grown since
  u32 mask;       // number of slots - 1
  u32 slot_bytes;
  u32 peer, note_bytes;

  DEVICE void open(Ends e, u32 lane) {
    slots = e->slots + (u64)lane * e->slots_stride;
    headers = e->heads + (u64)lane * e->heads_stride;
    post = e->post + lane * lane_stride;
    seen = e->seen + lane * lane_stride;
    count = next = Access<8>::load(e->counts + 8 * lane);
    known = 0;
    mask = e->count - 1;
    slot_bytes = e->slot_bytes;
    peer = e->peer;
    note_bytes = e->note_bytes;
  }

  // Close keeps the count for the next kernel.
  DEVICE void close(Ends e, u32 lane) const { Access<8>::store(e->counts + 8 * lane, count); }

  // Needed is the least value of the peer's counter with which the next slot is ours.
  DEVICE u64 needed(Phase phase) const { return phase == sending ? next - mask : next + 1; }

  // Has reports whether the next slot is ours, without waiting.
  DEVICE bool has(Phase phase) {
    if ((s64)(known - needed(phase)) < 0) known = load_acquire(seen);
    return (s64)(known - needed(phase)) >= 0;
  }

  DEVICE u64 slot(u64 count) const { return slots + (u64)((u32)count & mask) * slot_bytes; }
  DEVICE u64 header(u64 count) const { return headers + ((u32)count & mask) * header_bytes; }
  DEVICE u64 header() const { return header(count); }

  // Note is the address of the lines that are sent instead of a slot.
  DEVICE u64 note(u64 count) const {
    u32 before = ((mask + 1) * header_bytes + 127) & ~127u;
    return headers + before + (u64)((u32)count & mask) * note_bytes;
  }

  // Has_note reports whether a note of any message has arrived instead of the next slot.
  DEVICE bool has_note() const { return note_bytes && ahead(load_relaxed64(note(next) + 120), next + 1) == 0; }
};

// Wait returns when the peer's counter is at least n, or with a Stop.
static DEVICE void wait(const Comm &c, Port &p, u64 n, Phase phase, u64 bytes, Stop &stop) {
  u64 known = p.known;
#pragma unroll 1
  for (u32 i = 1; (s64)(known - n) < 0; i++) {
    known = load_acquire(p.seen);
    if (i % soon) continue;
    auto other = [&]() FORCED { return phase == receiving && p.has_note(); };
    if (give_up(c, i % polls == 0, {0, phase, p.peer, bytes, p.header(p.next)}, other, stop)) return;
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
  DEVICE bool of(const u64 *s, u64 n) const { return stamp[0] == s[0] && stamp[1] == s[1] && bytes == n; }
};

// Stamp writes the header of a slot that is to be sent.
static DEVICE void stamp(u64 header, const u64 *stamp, u64 bytes) {
  store_relaxed64(header, stamp[0]);
  store_relaxed64(header + 8, stamp[1]);
  store_relaxed64(header + 16, bytes);
}

// Post gives the slot to the peer, by the counter. A fence has to come before.
static DEVICE void post(Port &p) { store_relaxed64(p.post, ++p.count); }
