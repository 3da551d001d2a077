// How the threads of a block move slices by loads and stores. The reader is a slice ahead of
// the movers. When the movers are done the poster, a warp, notifies the peers.
#pragma once
#include "turns.h"

static DEVICE u32 movers() { return threads() - 2 * warp; }

// The barriers of turn k. Ready is for all threads: it opens when the reader has written
// the turn. Moved is for movers and poster: the poster waits until the movers arrive.
static DEVICE u32 ready(u32 k) { return 1 + (k & 1); }
static DEVICE u32 moved(u32 k) { return 3 + (k & 1); }

static DEVICE void open_turns() {}

static DEVICE Turn &room(u32 k) { return turns[k % depth]; }

static DEVICE bool give(u32 k) {
  meet(ready(k), threads());
  return !turns[k % depth].last;
}

static DEVICE void leave(u32 k) { arrive(ready(k), threads()); }

static DEVICE void move_all(const Comm &, Scalar s, u32) {
  u32 k = 0;
#pragma unroll 1
  for (;; k++) {
    meet(ready(k), threads());
    const Turn &t = turns[k % depth];
    if (t.last) break;
    s.on = t.scaled;
    move(t.slice, s, movers());
    arrive(moved(k), threads() - warp);
  }
  arrive(moved(k), threads() - warp);
  arrive(ready(k + 1), threads());
}

// Post_all notifies the peers of each turn that is done.
static DEVICE void post_all(Comm c) {
  Stop stop = {};
  arrive(ready(0), threads());
  arrive(ready(1), threads());
#pragma unroll 1
  for (u32 k = 0;; k++) {
    meet(moved(k), threads() - warp);
    const Turn &t = turns[k % depth];
    if (t.last) return;
    if (thread() % warp == 0) post_turn(c, t, stop);
    arrive(ready(k), threads()); // the poster's part: turn k + 2 has the same barriers
  }
}
