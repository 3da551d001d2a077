// How a block moves slices by bulk copies, a tile at a time through a ring of tiles in shared
// memory. One thread of a warp does most of the work: the reader finds the next slice and
// waits until it can be moved, the loader has tiles loaded, and the storer has them stored
// and notifies the peers when a slice has arrived. The reader and the loader run ahead, over
// several slices. Where slices are combined there are more warps, the adders: a tile's two
// sources are loaded into the halves of its place, and the adders leave the result in the
// first one.
//
// What bulk copies cannot move, because it does not lie in multiples of 16 bytes, the storer's
// warp moves itself.
#pragma once
#include "async.h"
#include "turns.h"

#ifdef TYPE
constexpr bool sums = true;
constexpr u32 adders = 6; // warps
#else
constexpr bool sums = false;
constexpr u32 adders = 0;
#endif

constexpr u32 tiles = 8;    // in the ring
constexpr u32 unfinished = sums ? 6 : 4; // tiles whose stores are under way while others go on

// A Span is where a slice is stored.
struct Span {
  u64 at, n;
  DEVICE bool overlaps(u64 p, u64 bytes) const { return at < p + bytes && p < at + n; }
};

static SHARED Gate given[depth], done[depth]; // turns: by the reader; by all others
static SHARED Gate full[tiles];               // tiles that are only moved: loaded
static SHARED Gate parts[sums ? tiles : 1];   // tiles that are combined: loaded
static SHARED Gate summed[sums ? tiles : 1];  // the same: by the adders
static SHARED Gate empty[tiles];              // places of the ring: read
static SHARED Span spans[depth];              // the loader's: of turns
static SHARED u32 ends[depth];                // the storer's: tiles before the end of a turn

// A Ring is the rest of the block's shared memory behind its tables.
struct Ring {
  u32 at, tile;
  DEVICE explicit Ring(u32 tables) {
    u32 begin = (tables + 127) & ~127u;
    at = near(ports) + begin;
    tile = ((dynamic() - begin) / tiles) & ~31u;
  }
  DEVICE u32 of(u32 i) const { return at + i % tiles * tile; }
};

// Pair_of reports whether a slice has two sources, computed whether it is not only moved.
static DEVICE bool pair_of(const Slice &s) { return sums && s.recv && s.src; }
#ifdef TYPE
static DEVICE bool computed(const Slice &s, Scalar k) { return pair_of(s) || (OP::scales && k.on && s.src); }
#else
static DEVICE bool computed(const Slice &, Scalar) { return false; }
#endif

// Open_turns is called by all threads of the block, before a barrier.
static DEVICE void open_turns() {
  if (thread() != 0) return;
#pragma unroll 1
  for (u32 i = 0; i < depth; i++) given[i].make(1), done[i].make(2 + adders);
#pragma unroll 1
  for (u32 i = 0; i < tiles; i++) {
    full[i].make(1), empty[i].make(1);
    if (sums) parts[i].make(1), summed[i].make(adders);
  }
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
static DEVICE void load_all(const Ring ring, Scalar scalar) {
  u32 i = 0, r = 0; // tiles, and those of them that are combined
#pragma unroll 1
  for (u32 k = 0;; k++) {
    given[k % depth].await(k / depth);
    if (turns[k % depth].last) return;
    Slice s = turns[k % depth].slice;
    scalar.on = turns[k % depth].scaled;
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
    bool pair = pair_of(s), sum = computed(s, scalar);
    u32 tile = pair ? ring.tile / 2 : ring.tile;
#pragma unroll 1
    for (u64 at = 0; at < n; at += tile, i++, r += sum) {
      u32 bytes = n - at < tile ? n - at : tile;
      if (i >= tiles) empty[i % tiles].await(i / tiles - 1);
      Gate &gate = sum ? parts[r % tiles] : full[(i - r) % tiles];
      gate.expect(pair ? 2 * bytes : bytes);
      bulk_load(ring.of(i), from + at, bytes, gate);
      if (pair) bulk_load(ring.of(i) + tile, s.src + at, bytes, gate);
    }
  }
}

#ifdef TYPE

// Add combines n vectors of two sources that are step bytes apart in shared memory, or scales
// those of one.
template <int n> static DEVICE void add(u32 at, u32 other, bool pair, Scalar k, u32 step) {
  Vector<Word> v[n], w[n];
#pragma unroll
  for (int i = 0; i < n; i++) load_near(v[i], at + i * step);
  if (pair) {
#pragma unroll
    for (int i = 0; i < n; i++) load_near(w[i], other + i * step);
  }
#pragma unroll
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int j = 0; j < words; j++)
      v[i].word[j] = pair ? combined_word(v[i].word[j], contributed_word(w[i].word[j], k)) : contributed_word(v[i].word[j], k);
    store_near(v[i], at + i * step);
  }
}

static DEVICE void add_all(const Ring ring, Scalar k) {
  constexpr int deep = TYPE::unroll;
  constexpr u32 width = adders * warp;
  u32 i = 0, r = 0, self = thread() - 2 * warp; // tiles, and those that are combined
#pragma unroll 1
  for (u32 t = 0;; t++) {
    given[t % depth].await(t / depth);
    if (turns[t % depth].last) return;
    Slice s = turns[t % depth].slice;
    k.on = turns[t % depth].scaled;
    syncwarp(); // all have read the turn
    if (thread() % warp == 0) done[t % depth].arrive();
    bool pair = pair_of(s);
    u32 n = whole(s), tile = pair ? ring.tile / 2 : ring.tile;
    if (!computed(s, k)) {
      i += (n + tile - 1) / tile;
      continue;
    }
#pragma unroll 1
    for (u32 at = 0; at < n; at += tile, i++, r++) {
      u32 vectors = (n - at < tile ? n - at : tile) / 16, here = ring.of(i), j = self;
      parts[r % tiles].await(r / tiles);
#pragma unroll 1
      for (; deep > 1 && j + (deep - 1) * width < vectors; j += deep * width)
        add<deep>(here + 16 * j, here + tile + 16 * j, pair, k, 16 * width);
#pragma unroll 1
      for (; j < vectors; j += width) add<1>(here + 16 * j, here + tile + 16 * j, pair, k, 0);
      fence_shared(); // the sums are the bulk copies' now
      syncwarp();
      if (thread() % warp == 0) summed[r % tiles].arrive();
    }
  }
}

#else

static DEVICE void add_all(const Ring, Scalar) {}

#endif

// A Storer is the state of the thread that has tiles stored.
struct Storer {
  Comm c;
  Ring ring;
  Stop stop;
  u32 i, read;   // tiles that are being stored, and whose places are free again
  u32 r;         // those of them that were combined
  u32 k, posted; // turns: the current one, and those that are done

  // Free gives back all places but those of the last n tiles.
  template <int n> DEVICE void free() {
#pragma unroll 1
    for (; read + n < i; read++) empty[read % tiles].arrive();
  }

  // Settle notifies the peers of turns before the current one: of all, when all has been
  // stored, or of those that are far enough behind.
  DEVICE void settle(bool all) {
    if (all) {
      stored<0>();
      free<0>();
    } else if (posted < k && i - ends[posted % depth] >= unfinished) {
      stored<unfinished>();
    }
#pragma unroll 1
    while (posted < k && (all || i - ends[posted % depth] >= unfinished)) {
      post_turn(c, turns[posted % depth], stop);
      done[posted++ % depth].arrive();
    }
  }

  // Turn waits for the current turn and has its tiles stored. What has been stored meanwhile
  // is not kept from the peers while it waits: they may have to have it before the gate opens.
  // It reports whether something is left for the warp, and then all before has been stored.
  DEVICE bool turn(Scalar scalar) {
    Gate *gate = &given[k % depth];
    u32 phase = k / depth, at = 0, n = 0, tile = ring.tile;
    bool known = false, sum = false, leaves = false;
    Slice s = {};
#pragma unroll 1
    for (;;) {
      bool over = known && at >= n, here = !over && gate->passed(phase);
      settle(over ? leaves : posted < k && !here);
      if (over) break;
      if (!here) gate->await(phase);
      if (known) {
        u32 bytes = n - at < tile ? n - at : tile;
        if (s.dst) bulk_store(s.dst + at, ring.of(i), bytes);
        if (s.send) bulk_store(s.send + at, ring.of(i), bytes);
        commit();
        i++, at += tile, r += sum;
        sources_read<1>();
        free<1>();
      } else if (known = true, turns[k % depth].last) {
        leaves = true;
      } else {
        s = turns[k % depth].slice, scalar.on = turns[k % depth].scaled;
        n = whole(s), leaves = n != s.n || s.flag, sum = computed(s, scalar);
        if (pair_of(s)) tile /= 2;
      }
      u32 among = sum ? r : i - r;
      gate = sum ? &summed[among % tiles] : &full[among % tiles];
      phase = among / tiles;
    }
    ends[k % depth] = i;
    return leaves;
  }
};

static DEVICE void store_all(const Comm &c, const Ring ring, Scalar k) {
  Storer x = {c, ring, {}, 0, 0, 0, 0, 0};
#pragma unroll 1
  for (;; x.k++) {
    bool leaves = thread() == 0 && x.turn(k);
    if (!vote(leaves)) continue;
    syncwarp(); // the turn is for all to read
    if (turns[x.k % depth].last) break;
    Slice s = turns[x.k % depth].slice;
    k.on = turns[x.k % depth].scaled;
    if (!sums && s.flag)
      move(s, k, warp);
    else
      rest(s, k, 0, whole(s), warp);
    syncwarp();
  }
}

// Movers are the storer's warp, which comes first, the loader's, and the adders.
static DEVICE u32 movers() { return (2 + adders) * warp; }

static DEVICE void move_all(const Comm &c, Scalar k, u32 tables) {
  Ring ring(tables);
  if (thread() < warp) store_all(c, ring, k);
  if (thread() == warp) load_all(ring, k);
  if (thread() >= 2 * warp) add_all(ring, k);
}

static DEVICE void post_all(const Comm &) {}
