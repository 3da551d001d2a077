// How a block moves slices through its queues. Its threads have roles, so that waiting for
// peers, moving data and notifying peers overlap. The reader, a warp, finds the next slice,
// waits until it can be moved, and hands it over as a turn. The others move it and notify
// the peers: movers.h has threads load and store, bulk.h has hardware copy.
#pragma once
#include "queue.h"

// A Slice is the sources and destinations of a value v; 0 is none. With a flag, recv and
// send are notes.
struct Slice {
  u64 recv, src, dst, send, n, flag;
  DEVICE u64 all() const { return recv | src | dst | send; }
  template <class V> DEVICE void store(const V &v, u64 at) const {
    if (dst) v.store(dst + at);
    if (send) v.store(send + at);
  }
};

// A Turn is a slice on its way through a block.
struct Turn {
  Slice slice;
  u64 stamp[2];
  s16 recv, send; // ports, -1: nobody
  u32 scaled;
  u32 last; // there is no slice: the block ends
};

#ifdef BULK
constexpr u32 depth = 16;
extern SHARED __attribute__((aligned(128))) Port ports[];
#else
constexpr u32 depth = 4;
extern SHARED Port ports[];
#endif

static SHARED Turn turns[depth]; // turn k is written when all are done with turn k - depth

// Self is a thread's number among those that move a slice together by loads and stores.
#ifdef BULK
static DEVICE u32 self() { return thread() % warp; }
#else
static DEVICE u32 self() { return thread(); }
#endif

// Room waits until turn k can be written, by one thread of the reader.
static DEVICE Turn &room(u32 k);

// Give starts turn k, which is written. It reports whether the block goes on.
static DEVICE bool give(u32 k);

// Leave is called by the reader when k turns have been given, the last included.
static DEVICE void leave(u32 k);

// Hand waits for the slots of a turn and gives it.
static DEVICE bool hand(const Comm &c, u32 k, Turn next, Stop &stop) {
  if (thread() % warp == 0) {
    Port *recv = next.recv < 0 ? 0 : ports + next.recv, *send = next.send < 0 ? 0 : ports + next.send;
    if (send) {
      wait(c, *send, send->needed(sending), sending, next.slice.n, stop);
      next.slice.send = send->slot(send->next++);
    }
    if (recv && !stop.kind) {
      wait(c, *recv, recv->needed(receiving), receiving, next.slice.n, stop);
      next.slice.recv = recv->slot(recv->next++);
    }
    next.last |= stop.kind;
    room(k) = next;
  }
  return give(k);
}

// Mismatched reports a turn whose slot belongs to another call than c.
static DEVICE void mismatched(const Comm &c, const Turn &t, Stop &stop) {
  const Port &p = ports[t.recv];
  stop = {mismatch, receiving, p.peer, t.slice.n, p.header()};
  report(c, stop);
}

#ifndef BULK

// Post_turn notifies the peers of a turn that is done, unless there was a slot that belongs
// to another call.
static DEVICE void post_turn(Comm &c, const Turn &t, Stop &stop) {
  if (stop.kind) return;
  if (t.slice.flag) {
    if (t.send >= 0) ports[t.send].count++; // the flags of the lines notify the peer
    if (t.recv >= 0) fence(), post(ports[t.recv]);
    return;
  }
  c.stamp[0] = t.stamp[0];
  c.stamp[1] = t.stamp[1];
  Header got = {};
  if (t.recv >= 0) got.load(ports[t.recv].header()); // on its way while the fence waits
  if (t.send >= 0) stamp(ports[t.send].header(), c.stamp, t.slice.n);
  if (t.recv >= 0 || t.send >= 0) fence();
  if (t.recv >= 0 && !got.of(c.stamp, t.slice.n)) return mismatched(c, t, stop);
  if (t.send >= 0) post(ports[t.send]);
  if (t.recv >= 0) post(ports[t.recv]);
}

#endif
