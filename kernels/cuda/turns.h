// How a block moves slices through its queues. Its threads have three roles, so that
// waiting for peers, moving data and notifying peers overlap. The reader, a warp, finds
// the next slice, waits until it can be moved, and hands it to the movers; it is a slice
// ahead of them. When they are done the poster, a warp, notifies the peers.
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

static SHARED Turn turns[4]; // turn k is written when all are done with turn k - 4
extern SHARED Port ports[];

static DEVICE u32 movers() { return threads() - 2 * warp; }

// The barriers of turn k. Ready is for all threads: it opens when the reader has written
// the turn. Moved is for movers and poster: the poster waits until the movers arrive.
static DEVICE u32 ready(u32 k) { return 1 + (k & 1); }
static DEVICE u32 moved(u32 k) { return 3 + (k & 1); }

// Give starts turn k, which one thread of the reader has written. It reports whether
// the block goes on.
static DEVICE bool give(u32 k) {
  meet(ready(k), threads());
  return !turns[k & 3].last;
}

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
    turns[k & 3] = next;
  }
  return give(k);
}

// Post_all notifies the peers of each turn that is done. It stops after a slot that
// belongs to another call.
static DEVICE void post_all(Comm c) {
  Stop stop = {};
  arrive(ready(0), threads());
  arrive(ready(1), threads());
#pragma unroll 1
  for (u32 k = 0;; k++) {
    meet(moved(k), threads() - warp);
    const Turn &t = turns[k & 3];
    if (t.last) return;
    if (thread() % warp == 0 && !stop.kind && t.slice.flag) {
      if (t.send >= 0) ports[t.send].count++; // the flags of the lines notify the peer
      if (t.recv >= 0) fence(), post(ports[t.recv]);
    } else if (thread() % warp == 0 && !stop.kind) {
      c.stamp[0] = t.stamp[0];
      c.stamp[1] = t.stamp[1];
      Header got = {};
      if (t.recv >= 0) got.load(ports[t.recv].header()); // on its way while the fence waits
      if (t.send >= 0) stamp(ports[t.send].header(), c.stamp, t.slice.n);
      if (t.recv >= 0 || t.send >= 0) fence();
      if (t.recv >= 0 && !got.of(c.stamp, t.slice.n)) {
        const Port &p = ports[t.recv];
        stop = {mismatch, receiving, p.peer, t.slice.n, p.header()};
        report(c, stop);
      } else {
        if (t.send >= 0) post(ports[t.send]);
        if (t.recv >= 0) post(ports[t.recv]);
      }
    }
    arrive(ready(k), threads()); // for turn k + 2
  }
}
