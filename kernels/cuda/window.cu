// Collectives in windows, which are memory that all ranks have access to: a kernel
// reads and writes the ranks' own buffers, with no copy in between. With TYPE and OP
// it reduces; without, it only copies.
//
// Blocks wait for each other at gates: block b of a rank waits for block b of all
// other ranks before it touches their memory, and again before it ends. So a rank's
// memory is not read before the work that was queued ahead of its kernel is done, and
// its kernel does not end while others still read or write there. A gate's flag has
// an epoch, counted on the device for each block.
#include "comm.h"
#include "loose.h"

constexpr u32 most = 8; // ranks

// WindowArgs is engine/grid.windowArgs in Go.
struct WindowArgs {
  Comm comm;
  u64 gates[most];          // of each rank: a flag for each block and rank
  u64 from[most], to[most]; // addresses
  u64 bytes[most];          // of each move
  u64 epochs;               // gates that each block has passed
  u64 hash;                 // of the call without its number
  u64 scalar, value;        // as for combine
  u32 moves;                // copies: from[k] goes to to[k] on; a reduction has one or none
  u32 targets;              // of a move
  u32 tile;                 // bytes that a block moves at once
  u32 tiles;                // of the longest move
  u32 pass;                 // gates to pass
  u32 before;               // of them before the moves
  u32 part;                 // bit 0: the operation begins here; bit 1: it ends here
  u32 swap;                 // 1: the data at to[k] go to from[k] too
  u32 finish;               // 1: the result is divided
  u32 unused;
};

// Tell notifies all other ranks that this block is at a gate.
static DEVICE void tell(const WindowArgs &a, u64 flag) {
  u32 p = thread();
  if (p >= a.comm.ranks || p == a.comm.rank) return;
  fence();
  store_relaxed64(a.gates[p] + 8 * (block() * most + a.comm.rank), flag);
}

// Hear waits until all other ranks are at the gate; false if the block has to stop. A
// rank whose flag is ahead has passed this gate, with the same call.
static DEVICE bool hear(const WindowArgs &a, u64 flag, Stop &stop) {
  u32 p = thread(), odd = 0;
  if (p < a.comm.ranks && p != a.comm.rank) {
    u64 at = a.gates[a.comm.rank] + 8 * (block() * most + p);
#pragma unroll 1
    for (u32 i = 1; !stop.kind; i++) {
      u64 has = load_acquire(at);
      s64 by = ahead(has, flag);
      if (by > 0 || has == flag) break;
      if (i % soon) continue;
      // The sign boards give a better report than the flag: they get more chances.
      auto other = [&]() FORCED { return by == 0 && odd++ >= sign_chances(a.comm); };
      give_up(a.comm, i % polls == 0, {0, receiving, p, 0, 0}, other, stop);
    }
  }
  return !any(stop.kind);
}

#ifdef TYPE

#include "units.h"

template <class Unit> constexpr u32 batch = 4; // ranks whose memory is loaded at once
template <class U, class W> constexpr u32 batch<Loosely<U, W>> = 2; // of two vectors each
constexpr int unroll = 1; // vectors of each: more are no faster
constexpr int loose_unroll = 1;

// Some combines n units that are step bytes apart, in order of rank.
template <class Unit, int n> static DEVICE void some(const WindowArgs &a, Wide factor, u32, u64 at, u32 step) {
  constexpr u32 some = batch<Unit>;
  Unit now[some][n];
  Wide v[n][Unit::elements], w[Unit::elements];
#pragma unroll 1
  for (u32 p = 0; p < a.comm.ranks; p += some) {
#pragma unroll
    for (u32 s = 0; s < some; s++) {
      if (p + s >= a.comm.ranks) break;
#pragma unroll
      for (int i = 0; i < n; i++) now[s][i].load(a.from[p + s] + at + i * step);
    }
#pragma unroll
    for (u32 s = 0; s < some; s++) {
      if (p + s >= a.comm.ranks) break;
#pragma unroll
      for (int i = 0; i < n; i++) {
        now[s][i].unpack(w);
#pragma unroll
        for (int e = 0; e < Unit::elements; e++) {
          if (OP::scales) w[e] *= factor;
          v[i][e] = s || p ? OP::of(v[i][e], w[e]) : w[e];
        }
      }
    }
  }
  Unit r[n];
#pragma unroll
  for (int i = 0; i < n; i++) {
    r[i].pack(v[i]);
    if (OP::finishes<Wide> && a.finish) r[i].finish(a.value);
  }
#pragma unroll 1
  for (u32 q = 0; q < a.targets; q++) {
#pragma unroll
    for (int i = 0; i < n; i++) r[i].store(a.to[q] + at + i * step);
  }
}

#else

#include "reduction.h"

constexpr int unroll = 4, loose_unroll = 2;

template <int size> struct Plain {
  static constexpr int bytes = size;
  u32 v;
  DEVICE void load(u64 p) { v = Access<size>::load(p); }
  DEVICE void store(u64 p) const { Access<size>::store(p, v); }
};

using One = Plain<1>;
using Four = Plain<4>;
using Word = u32;
struct Many : Vector<u32> {
  static constexpr int bytes = 16;
};

// Some moves n units that are step bytes apart.
template <class Unit, int n> static DEVICE void some(const WindowArgs &a, Wide, u32 k, u64 at, u32 step) {
  Unit v[n], w[n];
#pragma unroll
  for (int i = 0; i < n; i++) v[i].load(a.from[k] + at + i * step);
  if (a.swap) {
#pragma unroll
    for (int i = 0; i < n; i++) w[i].load(a.to[k] + at + i * step);
#pragma unroll
    for (int i = 0; i < n; i++) w[i].store(a.from[k] + at + i * step);
  }
#pragma unroll 1
  for (u32 q = k; q < k + a.targets; q++) {
#pragma unroll
    for (int i = 0; i < n; i++) v[i].store(a.to[q] + at + i * step);
  }
}

#endif

// The sources of a move are those from first_source to past_sources.
#ifdef TYPE
static DEVICE u32 first_source(u32) { return 0; }
static DEVICE u32 past_sources(const WindowArgs &a, u32) { return a.comm.ranks; }
#else
static DEVICE u32 first_source(u32 k) { return k; }
static DEVICE u32 past_sources(const WindowArgs &, u32 k) { return k + 1; }
#endif

// Units moves count units from byte at on, by all threads of the block.
template <class Unit, int n> static DEVICE void units(const WindowArgs &a, Wide factor, u32 k, u64 at, u32 count) {
  u32 round = threads() * n, i = thread();
  if (n > 1) {
#pragma unroll 1
    for (; i - thread() + round <= count; i += round) some<Unit, n>(a, factor, k, at + Unit::bytes * i, Unit::bytes * threads());
  }
#pragma unroll 1
  for (; i < count; i += threads()) some<Unit, 1>(a, factor, k, at + Unit::bytes * i, 0);
}

// Vectors moves what it can of n bytes of move k, from byte at on, 16 bytes at a time, which
// are stored at multiples of 16. It returns how much that is, and in head how much comes before.
template <class Unit> static DEVICE u32 vectors(const WindowArgs &a, Wide factor, u32 k, u64 at, u32 n, u32 &head) {
  u32 apart = 0, middle;
  head = -(u32)(a.to[k] + at) & 15;
#pragma unroll 1
  for (u32 q = k; q < k + a.targets; q++) apart |= (u32)(a.to[q] ^ a.to[k]) & 15;
  bool before = false;
#pragma unroll 1
  for (u32 p = first_source(k); p < past_sources(a, k); p++) {
    if (loose<Unit>)
      before |= early(a.from[p] + at, head);
    else
      apart |= (u32)(a.from[p] ^ a.to[k]) & 15;
  }
  if (apart || (loose<Unit> && a.swap)) return 0;
  if (loose<Unit>) {
    if (before) head += 16;
    middle = 16 * loose_vectors(n, head);
  } else {
    if (head > n) head = n;
    middle = (n - head) & ~15;
  }
  units<Unit, loose<Unit> ? loose_unroll : unroll>(a, factor, k, at + head, middle / 16);
  return middle;
}

// Move moves n bytes of move k, from byte at on.
template <class Unit> static DEVICE void move(const WindowArgs &a, Wide factor, u32 k, u64 at, u32 n) {
  u32 head, middle = vectors<Unit>(a, factor, k, at, n, head);
#ifndef TYPE
  u32 odd = a.from[k] | at;
#pragma unroll 1
  for (u32 q = k; q < k + a.targets; q++) odd |= a.to[q];
  if (middle == 0 && odd % 4 == 0) {
    middle = n & ~3, head = 0;
    units<Four, unroll>(a, factor, k, at, middle / 4);
  }
#endif
#pragma unroll 1
  for (u32 i = thread() * One::bytes; i < n - middle; i += threads() * One::bytes)
    some<One, 1>(a, factor, k, at + (i < head ? i : i + middle), 0);
}

// Move_all divides moves into tiles, which the blocks take in turns, so that all
// blocks are at the same move. A rank's first move is to the rank after it, so that
// no link gets more than others.
template <class Unit> static DEVICE void move_all(const WindowArgs &a) {
  Wide factor = scalar(a);
#pragma unroll 1
  for (u64 i = block(); i < (u64)a.moves * a.tiles; i += blocks()) {
    u32 k = a.moves == 1 ? 0 : i / a.tiles;
    u64 at = (i - (u64)k * a.tiles) * a.tile, bytes = a.bytes[k];
    if (at < bytes) move<Unit>(a, factor, k, at, bytes - at < a.tile ? bytes - at : a.tile);
  }
}

// Window is a kernel that moves by vectors of Unit.
template <class Unit> static DEVICE void window(const WindowArgs &a) {
  Stop stop = {};
  State state = look(a.comm);
  u64 epoch = Access<8>::load(a.epochs + 8 * block()), hash = hash_of(a.hash, first_number(a.comm, state));
  bool goes = !any(state.over);
  if (!goes && a.part & 1) begin(a.comm, state);
#pragma unroll 1
  for (u32 gate = 0; goes; gate++) {
    if (gate == a.before) move_all<Unit>(a);
    if (gate == a.pass) break;
    barrier(); // all threads are done with the work before the gate
    u64 flag = flag_of(hash, ++epoch);
    tell(a, flag);
    if (gate == 0 && a.part & 1) begin(a.comm, state); // while the flags are on their way
    goes = hear(a, flag, stop);
  }
  if (stop.kind) report(a.comm, stop);
  barrier();
  if (thread() != 0) return;
  Access<8>::store(a.epochs + 8 * block(), epoch);
  if (last(a.comm)) end(a.comm, look(a.comm), a.part & 2);
}

KERNEL(512, 2) void ENTRY(window)(const WindowArgs a) { window<Many>(a); }

// Loose is for moves whose sources do not begin as their targets do. It is a kernel of its own
// because it takes more registers.
KERNEL(512, 2) void ENTRY(loose)(const WindowArgs a) { window<Loosely<Many, Word>>(a); }
