// How a block moves slices by bulk copies, a tile at a time through a ring of tiles in shared
// memory. The reader finds the next slice and waits until it can be moved, the loader begins
// the loads of its tiles, and the storers begin their stores, and notify the peers when the
// stores have arrived. Each runs ahead of the one named after it, by several slices. Where
// slices are combined there are the adders too: a tile's two sources are loaded into the halves
// of its place, and the adders leave the result in the first half. Where In does not begin as
// the other memory does, in 16 bytes, the adders also shift it.
//
// Stores take some time to arrive, a few microseconds to a peer, and only the thread that began
// them can wait for that; and so does the fence before a peer is notified. So the storers, a
// thread of a warp each, take turns: they begin their stores in order, wait and fence side by
// side, and notify in order.
//
// What bulk copies cannot move, because it does not lie in multiples of 16 bytes, the storer's
// warp moves itself.
#pragma once
#include "async.h"
#include "loose.h"
#include "turns.h"

#ifdef TYPE
constexpr bool sums = true;
constexpr u32 adders = 6, storers = 4; // warps
#else
constexpr bool sums = false;
constexpr u32 adders = 0, storers = 8;
#endif

// A thread takes 0.2 to 0.3 µs to have a tile loaded or stored, whatever its size.
constexpr u32 tiles = sums ? 4 : 6; // in the ring
constexpr u32 reading = 1; // tiles that stores still read when the next one begins

// A Span is where a slice is stored.
struct Span {
  u64 at, n;
  DEVICE bool overlaps(u64 p, u64 bytes) const { return at < p + bytes && p < at + n; }
};

// A Count is how many tiles there are before the end of a turn.
struct Count {
  u32 all, summed;
};

// Headers are those of a turn's slots.
struct Headers {
  u64 came, sent; // addresses, 0: no slot
};

static SHARED Gate given[depth], done[depth]; // turns: by the reader; by all others
static SHARED Gate begun[depth];              // turns whose stores have begun: the next storer's turn
static SHARED Gate landed[depth];             // turns whose stores have arrived, and those of all before
static SHARED Gate posted[depth];             // turns that the peers know to be done
static SHARED Gate full[tiles];               // tiles that are only moved: loaded
static SHARED Gate parts[sums ? tiles : 1];   // tiles that are combined: loaded
static SHARED Gate summed[sums ? tiles : 1];  // the same: combined by the adders
static SHARED Gate empty[tiles];              // places of the ring: read
static SHARED Count counts[depth];            // of turns that have begun
static SHARED Headers headers[depth];         // of turns
static SHARED u32 quiet;                      // no more turns are posted: one was wrong

// Pair_of reports whether a slice has two sources, shifted whether the adders shift In.
static DEVICE bool pair_of(const Slice &s) { return sums && s.recv && s.src; }
static DEVICE bool shifted(const Slice &s) { return sums && s.src & 15; }

// Whole is how much of a slice bulk copies move.
static DEVICE u64 whole(const Slice &s) {
  u64 at = sums ? s.recv | s.dst | s.send : s.all();
  return s.flag || at & 15 ? 0 : s.n & ~15ull;
}

// A Ring is the rest of the block's shared memory behind its tables.
struct Ring {
  u32 at, tile;
  DEVICE explicit Ring(u32 tables) {
    u32 begin = (tables + 127) & ~127u;
    at = near(ports) + begin;
    tile = ((dynamic() - begin) / tiles) & ~31u;
  }
  DEVICE u32 of(u32 i) const { return at + i % tiles * tile; }
  // Bytes is how much of a slice there is in a tile. What lies unlike takes a vector more.
  DEVICE u32 bytes(const Slice &s) const { return shifted(s) ? tile / 2 - 16 : pair_of(s) ? tile / 2 : tile; }
};

// Computed reports whether a slice is not only moved.
#ifdef TYPE
static DEVICE bool computed(const Slice &s, Scalar k) { return pair_of(s) || shifted(s) || (OP::scales && k.on && s.src); }
#else
static DEVICE bool computed(const Slice &, Scalar) { return false; }
#endif

// Open_turns is called by all threads of the block, before a barrier.
static DEVICE void open_turns() {
  u32 i = thread();
  if (i == 0) quiet = 0;
  if (i < depth) given[i].make(1), begun[i].make(1), landed[i].make(1), posted[i].make(1), done[i].make(2 + adders);
  if (i < tiles) {
    full[i].make(1), empty[i].make(1);
    if (sums) parts[i].make(1), summed[i].make(adders);
  }
  if (i < warp) fence_shared();
}

// Close_turns is called by all threads, between barriers, before open_turns is called again.
static DEVICE void close_turns() {
  u32 i = thread();
  if (i < depth) given[i].drop(), begun[i].drop(), landed[i].drop(), posted[i].drop(), done[i].drop();
  if (i < tiles) {
    full[i].drop(), empty[i].drop();
    if (sums) parts[i].drop(), summed[i].drop();
  }
}

static DEVICE Turn &room(u32 k) {
  if (k >= depth) done[k % depth].await(k / depth - 1);
  return turns[k % depth];
}

static DEVICE bool give(u32 k) {
  if (thread() % warp == 0) {
    const Turn &t = turns[k % depth];
    bool slots = !t.last && !t.slice.flag;
    auto header = [&](s16 port) FORCED { return slots && port >= 0 ? ports[port].header(ports[port].next - 1) : 0; };
    headers[k % depth] = {header(t.recv), header(t.send)};
    fence_global(); // bulk copies see what peers have stored, and may overwrite what peers have read
    given[k % depth].arrive();
  }
  syncwarp();
  return !turns[k % depth].last;
}

// Leave gives each storer a last turn.
static DEVICE void leave(u32 k) {
  if (self()) return;
#pragma unroll 1
  for (u32 end = k + storers - 1; k < end; k++) {
    room(k).last = 1;
    given[k % depth].arrive();
  }
}

// Within says which aligned vectors bulk copies load for n bytes at byte at of a source that
// begins anywhere and has all bytes: those in which the n bytes lie, but for vectors that the
// source does not hold whole. It counts bytes from the first vector in which the n bytes lie.
struct Within {
  u32 begin, end;
  DEVICE Within(u64 at, u32 n, u64 all) : begin(at ? 0 : 16), end(at + n < all ? n + 16 : n) {}
  DEVICE u32 bytes() const { return end - begin; }
};

// Load_tiles begins the loads of the tiles of turn k.
static DEVICE void load_tiles(const Ring &ring, const Slice &s, bool sum, u32 k, u32 &i, u32 &r) {
  done[k % depth].arrive();
  u64 first = s.recv ? s.recv : shifted(s) ? 0 : s.src, second = s.src & ~15ull, n = whole(s);
  bool both = pair_of(s) || shifted(s);
  u32 tile = ring.bytes(s);
#pragma unroll 1
  for (u64 at = 0; at < n; at += tile, i++, r += sum) {
    u32 bytes = n - at < tile ? n - at : tile;
    Within w(at, bytes, n);
    if (!shifted(s)) w.begin = 0, w.end = both ? bytes : 0;
    if (i >= tiles) empty[i % tiles].await(i / tiles - 1);
    Gate &gate = sum ? parts[r % tiles] : full[(i - r) % tiles];
    gate.expect((first ? bytes : 0) + w.bytes());
    if (first) bulk_load(ring.of(i), first + at, bytes, gate);
    if (w.bytes()) bulk_load(ring.of(i) + ring.tile / 2 + w.begin, second + at + w.begin, w.bytes(), gate);
  }
}

// Load_all begins the loads of all turns. A slice that reads or overwrites what an earlier
// one stores waits until that one is done: bulk copies have no order. Each thread of the warp
// knows where one of the last turns is stored.
static DEVICE void load_all(const Ring ring, Scalar scalar) {
  u32 i = 0, r = 0; // tiles, and those of them that are combined
  Span span = {0, 0};
#pragma unroll 1
  for (u32 k = 0;; k++) {
    if (self() == 0) given[k % depth].await(k / depth);
    syncwarp();
    if (turns[k % depth].last) return;
    Slice s = turns[k % depth].slice;
    scalar.on = turns[k % depth].scaled;
    if (self() == k % depth) span = {0, 0}; // turn k - depth is done
    bool waits = (s.src && span.overlaps(s.src, s.n)) || (s.dst && span.overlaps(s.dst, s.n));
    if (waits) done[self()].await(k / depth - (self() > k % depth));
    syncwarp(); // all have waited, and read the turn
    if (vote(waits)) fence_global();
    if (self() == k % depth && s.dst) span = {s.dst, s.n};
    if (self() == 0) load_tiles(ring, s, computed(s, scalar), k, i, r);
    syncwarp();
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

// Gathered is a vector that begins anywhere, by elements.
static DEVICE Vector<Word> gathered(u64 p) {
  Vector<Word> v;
#pragma unroll
  for (int i = 0; i < words; i++) {
    v.word[i] = 0;
#pragma unroll
    for (int e = 0; e < TYPE::per_word; e++, p += TYPE::size) v.word[i] |= (Word)Element::load(p) << (8 * TYPE::size * e);
  }
  return v;
}

// Add_shifted is add for vectors j, j + width … of a tile at byte at of a slice whose In is
// shifted. Bulk copies bring no vector that In does not hold whole.
static DEVICE void add_shifted(const Ring &ring, u32 here, const Slice &s, u64 at, u32 n, Scalar k, u32 j, u32 width) {
  Within w(at, n, whole(s));
#pragma unroll 1
  for (j *= 16; j < n; j += 16 * width) {
    Vector<Word> v, x;
    if (s.recv) load_near(v, here + j);
    if (j < w.begin || j + 32 > w.end) {
      x = gathered(s.src + at + j);
    } else {
      Loose<Word> l;
      l.before = s.src & 15;
      load_near(l.low, here + ring.tile / 2 + j);
      load_near(l.high, here + ring.tile / 2 + j + 16);
      x = l.value();
    }
#pragma unroll
    for (int i = 0; i < words; i++) {
      x.word[i] = contributed_word(x.word[i], k);
      if (s.recv) x.word[i] = combined_word(v.word[i], x.word[i]);
    }
    store_near(x, here + j);
  }
}

static DEVICE void add_all(const Ring ring, Scalar k) {
  constexpr int deep = TYPE::unroll;
  constexpr u32 width = adders * warp;
  u32 i = 0, r = 0, self = thread() - (storers + 1) * warp; // tiles, and those that are combined
#pragma unroll 1
  for (u32 t = 0;; t++) {
    given[t % depth].await(t / depth);
    if (turns[t % depth].last) return;
    Slice s = turns[t % depth].slice;
    k.on = turns[t % depth].scaled;
    syncwarp(); // all have read the turn
    if (thread() % warp == 0) done[t % depth].arrive();
    bool pair = pair_of(s);
    u32 n = whole(s), tile = ring.bytes(s);
    if (!computed(s, k)) {
      i += (n + tile - 1) / tile;
      continue;
    }
#pragma unroll 1
    for (u32 at = 0; at < n; at += tile, i++, r++) {
      u32 vectors = (n - at < tile ? n - at : tile) / 16, here = ring.of(i), j = self;
      parts[r % tiles].await(r / tiles);
      if (shifted(s)) {
        add_shifted(ring, here, s, at, 16 * vectors, k, j, width);
        j = vectors;
      }
#pragma unroll 1
      for (; deep > 1 && j + (deep - 1) * width < vectors; j += deep * width)
        add<deep>(here + 16 * j, here + tile + 16 * j, pair, k, 16 * width);
#pragma unroll 1
      for (; j < vectors; j += width) add<1>(here + 16 * j, here + tile + 16 * j, pair, k, 0);
      fence_shared(); // bulk copies see the sums
      syncwarp();
      if (thread() % warp == 0) summed[r % tiles].arrive();
    }
  }
}

#else

static DEVICE void add_all(const Ring, Scalar) {}

#endif

// Free gives back the places of tiles that have been read, up to tile end.
static DEVICE void free(u32 &read, u32 end) {
#pragma unroll 1
  for (; (s32)(end - read) > 0; read++) empty[read % tiles].arrive();
}

// Store_tiles begins to store the tiles of turn k, when those of earlier turns have begun, and
// returns how many tiles have been read by then.
static DEVICE u32 store_tiles(const Ring &ring, const Slice &s, bool sum, u32 k) {
  Count c = {0, 0};
  if (k > 0) {
    begun[(k - 1) % depth].await((k - 1) / depth);
    c = counts[(k - 1) % depth];
  }
  u32 n = whole(s), tile = ring.bytes(s), read = c.all;
#pragma unroll 1
  for (u32 at = 0; at < n; at += tile) {
    u32 among = sum ? c.summed : c.all - c.summed, bytes = n - at < tile ? n - at : tile;
    Gate &gate = sum ? summed[among % tiles] : full[among % tiles];
    gate.await(among / tiles);
    if (s.dst) bulk_store(s.dst + at, ring.of(c.all), bytes);
    if (s.send) bulk_store(s.send + at, ring.of(c.all), bytes);
    commit();
    c.all++, c.summed += sum;
    sources_read<reading>();
    free(read, c.all - reading);
  }
  counts[k % depth] = c;
  return read;
}

// Post_turn notifies the peers of turn k after earlier ones, when its stores have arrived. A peer
// that hears of turn k takes it that all before are done, so the fence is for those too. wrong: a
// slot of the turn belongs to another call, and from then on the peers are told nothing.
static DEVICE void post_turn(const Comm &comm, const Turn &t, bool wrong, u32 k) {
  if (k > 0) landed[(k - 1) % depth].await((k - 1) / depth);
  landed[k % depth].arrive();
  fence();
  if (k > 0) posted[(k - 1) % depth].await((k - 1) / depth);
  if (wrong && !quiet) {
    Stop stop = {};
    Comm c = comm;
    c.stamp[0] = t.stamp[0];
    c.stamp[1] = t.stamp[1];
    mismatched(c, t, stop);
    quiet = 1;
  }
  if (!quiet) {
    if (t.send >= 0 && t.slice.flag) ports[t.send].count++; // the flags of the lines notify the peer
    if (t.send >= 0 && !t.slice.flag) post(ports[t.send]);
    if (t.recv >= 0) post(ports[t.recv]);
  }
  posted[k % depth].arrive();
  done[k % depth].arrive();
}

// Store_all stores and posts the turns of this storer: k, k + storers and so on. When something is left for the warp to
// move, all earlier turns are done before, and no later one begins until the warp is done too.
static DEVICE void store_all(const Comm &c, const Ring ring, Scalar scalar, u32 k) {
  bool first = self() == 0;
#pragma unroll 1
  for (;; k += storers) {
    const Turn &t = turns[k % depth];
    const Headers &h = headers[k % depth];
    if (first) given[k % depth].await(k / depth);
    syncwarp();
    if (t.last) return;
    Slice s = t.slice;
    scalar.on = t.scaled;
    bool leaves = whole(s) != s.n || s.flag;
    syncwarp(); // all have read the turn
    Header got = {};
    if (first) {
      if (h.came) got.load(h.came);
      if (h.sent) stamp(h.sent, t.stamp, s.n); // long before the fence, which waits for it
      u32 read = store_tiles(ring, s, computed(s, scalar), k), all = counts[k % depth].all;
      if (!leaves) begun[k % depth].arrive();
      sources_read<0>();
      free(read, all);
      stored<0>();
      if (leaves && k > 0) done[(k - 1) % depth].await((k - 1) / depth);
    }
    if (leaves) {
      syncwarp();
#ifdef TYPE
      rest(s, scalar, 0, whole(s), warp);
#else
      if (s.flag)
        move_note(s, warp);
      else
        rest(s, scalar, 0, whole(s), warp);
#endif
      syncwarp();
      if (first) begun[k % depth].arrive();
    }
    if (first) post_turn(c, t, h.came && !got.of(t.stamp, s.n), k);
  }
}

// Movers are the storers, which come first, the loader, and the adders.
static DEVICE u32 movers() { return (storers + 1 + adders) * warp; }

static DEVICE void move_all(const Comm &c, Scalar k, u32 tables) {
  Ring ring(tables);
  u32 role = thread() / warp;
  if (role < storers) store_all(c, ring, k, role);
  if (role == storers) load_all(ring, k);
  if (role > storers) add_all(ring, k);
}

static DEVICE void post_all(const Comm &) {} // the storers do
