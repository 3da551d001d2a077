// How a block moves slices by bulk copies, a tile at a time through a ring of tiles in shared
// memory. It has three warps, and one thread of each does most of the work: the reader finds
// the next slice and waits until it can be moved, the loader has tiles loaded, and the storer
// has them stored and notifies the peers when a slice has arrived. The reader and the loader
// run ahead, over several slices.
//
// What bulk copies cannot move, because it does not lie in multiples of 16 bytes, the storer's
// warp moves itself.
#pragma once
#include "async.h"
#include "turns.h"

constexpr u32 tiles = 8;    // in the ring
constexpr u32 unfinished = 4; // tiles whose stores are under way while others go on

// A Span is where a slice is stored.
struct Span {
  u64 at, n;
  DEVICE bool overlaps(u64 p, u64 bytes) const { return at < p + bytes && p < at + n; }
};

static SHARED Gate given[depth], done[depth]; // turns: by the reader; by the loader and the storer
static SHARED Gate full[tiles], empty[tiles]; // tiles of the ring: loaded; read
static SHARED Span spans[depth];              // the loader's: of turns
static SHARED u32 ends[depth];                // the storer's: tiles before the end of a turn

// A Ring is the rest of the block's shared memory behind its tables.
struct Ring {
  u32 at, tile;
  DEVICE explicit Ring(u32 tables) {
    u32 begin = (tables + 127) & ~127u;
    at = near(ports) + begin;
    tile = ((dynamic() - begin) / tiles) & ~15u;
  }
  DEVICE u32 of(u32 i) const { return at + i % tiles * tile; }
};

// Open_turns is called by all threads of the block, before a barrier.
static DEVICE void open_turns() {
  if (thread() != 0) return;
  for (u32 i = 0; i < depth; i++) given[i].make(1), done[i].make(2);
  for (u32 i = 0; i < tiles; i++) full[i].make(1), empty[i].make(1);
  fence_proxies();
}

static DEVICE Turn &room(u32 k) {
  if (k >= depth) done[k % depth].await(k / depth - 1);
  return turns[k % depth];
}

static DEVICE bool give(u32 k) {
  if (thread() % warp == 0) {
    fence_proxies(); // what the peers have stored or read is the bulk copies' now
    given[k % depth].arrive();
  }
  syncwarp();
  return !turns[k % depth].last;
}

static DEVICE void leave(u32) {}

// Whole is how much of a slice bulk copies move.
static DEVICE u64 whole(const Slice &s) { return s.flag || s.all() & 15 ? 0 : s.n & ~15ull; }

// Load_all has the tiles of all turns loaded. A slice that is stored where an earlier one is
// read, or stored, waits until that one is done: bulk copies have no order.
static DEVICE void load_all(const Ring ring) {
  u32 i = 0; // tile
#pragma unroll 1
  for (u32 k = 0;; k++) {
    given[k % depth].await(k / depth);
    if (turns[k % depth].last) return;
    Slice s = turns[k % depth].slice;
#pragma unroll 1
    for (u32 j = k < depth ? 0 : k - depth + 1; j < k; j++) {
      const Span &x = spans[j % depth];
      if (!(s.src && x.overlaps(s.src, s.n)) && !(s.dst && x.overlaps(s.dst, s.n))) continue;
      done[j % depth].await(j / depth);
      fence_proxies();
    }
    spans[k % depth] = {s.dst, s.dst ? s.n : 0};
    done[k % depth].arrive();
    u64 from = s.recv ? s.recv : s.src, n = whole(s);
#pragma unroll 1
    for (u64 at = 0; at < n; at += ring.tile, i++) {
      u32 bytes = n - at < ring.tile ? n - at : ring.tile;
      if (i >= tiles) empty[i % tiles].await(i / tiles - 1);
      full[i % tiles].expect(bytes);
      bulk_load(ring.of(i), from + at, bytes, full[i % tiles]);
    }
  }
}

// A Storer is the state of the thread that has tiles stored.
struct Storer {
  Comm c;
  Ring ring;
  Stop stop;
  u32 i, read;   // tiles that are being stored, and whose places are free again
  u32 k, posted; // turns: the current one, and those that are done

  // Free gives back all places but those of the last n tiles.
  template <int n> DEVICE void free() {
#pragma unroll 1
    for (; read + n < i; read++) empty[read % tiles].arrive();
  }
  DEVICE void post() {
    post_turn(c, turns[posted % depth], stop);
    done[posted++ % depth].arrive();
  }
  // Settle waits for all stores and notifies the peers of all turns before the current one.
  DEVICE void settle() {
    stored<0>();
    free<0>();
#pragma unroll 1
    while (posted < k) post();
  }
  // Await waits for a gate. What has been stored meanwhile is not kept from the peers: they
  // may have to have it before the gate opens.
  DEVICE void await(Gate &gate, u32 phase) {
    if (posted < k && !gate.passed(phase)) settle();
    gate.await(phase);
  }
  DEVICE void store(const Slice &s, u64 n) {
#pragma unroll 1
    for (u64 at = 0; at < n; at += ring.tile) {
      u32 bytes = n - at < ring.tile ? n - at : ring.tile;
      await(full[i % tiles], i / tiles);
      if (s.dst) bulk_store(s.dst + at, ring.of(i), bytes);
      if (s.send) bulk_store(s.send + at, ring.of(i), bytes);
      commit();
      i++;
      sources_read<1>();
      free<1>();
      if (posted < k && i - ends[posted % depth] >= unfinished) {
        stored<unfinished>();
#pragma unroll 1
        while (posted < k && i - ends[posted % depth] >= unfinished) post();
      }
    }
    ends[k % depth] = i;
  }
};

static DEVICE void store_all(const Comm &c, const Ring ring) {
  Storer x = {c, ring, {}, 0, 0, 0, 0};
  bool first = thread() == 0;
#pragma unroll 1
  for (;; x.k++) {
    if (first) x.await(given[x.k % depth], x.k / depth);
    syncwarp();
    if (turns[x.k % depth].last) break;
    Slice s = turns[x.k % depth].slice;
    syncwarp(); // all have read the turn: the first thread may say that it is done
    u64 n = whole(s);
    if (first) x.store(s, n);
    if (n == s.n && !s.flag) continue;
    if (first) x.settle(); // its source may be among what is being stored
    syncwarp();
    rest(s, n);
    syncwarp();
  }
  if (first) x.settle();
}

// Movers are the storer's warp, which comes first, and the loader's.
static DEVICE u32 movers() { return 2 * warp; }

static DEVICE void move_all(const Comm &c, Scalar, u32 tables) {
  Ring ring(tables);
  if (thread() < warp) store_all(c, ring);
  if (thread() == warp) load_all(ring);
}

static DEVICE void post_all(const Comm &) {}
