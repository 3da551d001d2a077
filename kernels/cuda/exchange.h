// What direct.cu and many.cu share: waiting for lines of all ranks, and combining them.
#pragma once
#include "direct.h"

// A warp polls its lines this often before it calls give_up. The warps of the grid take
// turns in asking the host, and tell the others: the answer takes some µs, and many more
// if all ask at once, and meanwhile a warp does not see its lines arrive.
constexpr u32 line_polls = 32;

// Missing finds out why a line does not arrive. All threads call it; those with the
// flag find the reason.
static DEVICE void missing(const DirectArgs &a, const Cell &l, u64 flag, bool asks, u32 want, const Pair *v, u32 &odd, Stop &stop) {
  u32 who = most;
  u64 has = 0;
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a)) break;
    if (who == most && want >> p & 1 && v[p].y != flag) who = p, has = v[p].y;
  }
  if (!l.last || who == most) return;
  // The sign boards give a better report than the flag: they get more chances.
  auto other = [&]() FORCED { return ahead(has, flag) == 0 && odd++ >= sign_chances(a.comm); };
  give_up(a.comm, asks, {0, receiving, who, 0, 0, !(a.from >> who & 1)}, other, stop);
}

// Unseal takes the digests away from a line of each other rank. All threads of the warp call
// it. The loop is not unrolled: its code would be half of a module.
static DEVICE void unseal(const DirectArgs &a, const Cell &l, Pair *v) {
#pragma unroll 1
  for (u32 p = 0; p < ranks(a); p++) {
    if (p == a.comm.rank) continue;
    Pair w = v[0];
#pragma unroll
    for (u32 q = 1; q < most; q++) {
      if (p == q) w = v[q];
    }
    u64 proof = digest(w);
#pragma unroll
    for (u32 q = 0; q < most; q++) {
      if (p == q && l.last) v[q].y -= proof;
    }
  }
}

// Receive waits for a line of each rank in want, but for empty ones of ranks that have left; false if the warp has to
// stop. hop is the distance of the hop's lines from those of the first. A thread's part of a line is loaded once a
// poll: the words whose flag is checked are the words that are used.
static DEVICE bool receive(const DirectArgs &a, const Cell &l, const Round &r, u32 hop, u32 want, Pair *v, Stop &stop) {
  u32 odd = 0;
  syncwarp(); // else some threads may load a line before it arrives, and those with the flag after
#pragma unroll 1
  for (u32 i = 1;; i++) {
    bool bad = false;
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      if (want >> p & 1) v[p] = load_line(a.recvs[p].lines + (hop + r.half + l.slot));
    }
    if (a.torn) unseal(a, l, v);
#pragma unroll
    for (u32 p = 0; p < most; p++) {
      if (p >= ranks(a)) break;
      bad |= (want >> p & 1) && v[p].y != r.flag;
    }
    if (!vote(bad && l.last)) return true;
    if (i % line_polls) continue;
    bool asks = (i / line_polls + (block() * threads() + thread()) / warp) % (blocks() * threads() / warp) == 0;
    missing(a, l, r.flag, asks, want, v, odd, stop);
    if (vote(stop.kind == departed)) { // its line would be empty: go on without
      want &= a.from | ~gone(a.comm);
      if (stop.kind == departed) stop.kind = 0;
    }
    if (vote(stop.kind)) return false;
  }
}

#ifdef TYPE

constexpr int per_word = TYPE::per_word, elements = 8 / TYPE::size;

static DEVICE void unpack(u64 w, Wide *x) {
#pragma unroll
  for (int i = 0; i < elements; i += per_word) TYPE::unpack(w >> (8 * i * TYPE::size), x + i);
}

template <bool exact> static DEVICE u64 pack(const Wide *x) {
  u64 w = 0;
#pragma unroll
  for (int i = 0; i < elements; i += per_word)
    w |= (u64)(exact ? TYPE::pack_exact(x + i) : TYPE::pack(x + i)) << (8 * i * TYPE::size);
  return w;
}

static DEVICE u64 finish(u64 w, u64 value) {
  Wide x[elements];
  unpack(w, x);
#pragma unroll
  for (Wide &y : x) y = OP::finish(y, value);
  return pack<false>(x);
}

// Early reports whether ranks have scalars of their own.
static DEVICE bool early(const DirectArgs &a) { return OP::scales && a.early; }

// Contribution is this rank's data as the others get it: where ranks have scalars of their own, multiplied by this
// rank's, and rounded.
static DEVICE Pair contribution(const DirectArgs &a, Wide factor, Pair v) {
  if (!early(a)) return v;
  Wide x[2][elements];
  unpack(v.x, x[0]);
  unpack(v.y, x[1]);
#pragma unroll
  for (int w = 0; w < 2; w++)
#pragma unroll
    for (Wide &y : x[w]) y *= factor;
  return {pack<false>(x[0]), pack<false>(x[1])};
}

// Combine combines the ranks' contributions in order of rank; ours is own and not in v.
static DEVICE Pair combine(const DirectArgs &a, Wide factor, const Pair *v, Pair own) {
  Wide sum[2][elements], x[2][elements];
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a)) break;
    unpack(p == a.comm.rank ? own.x : v[p].x, x[0]);
    unpack(p == a.comm.rank ? own.y : v[p].y, x[1]);
#pragma unroll
    for (int w = 0; w < 2; w++)
#pragma unroll
      for (int e = 0; e < elements; e++) {
        if (OP::scales) x[w][e] *= early(a) ? (Wide)1 : factor;
        sum[w][e] = p ? OP::of(sum[w][e], x[w][e]) : x[w][e];
      }
  }
  Pair r = {pack<OP::selects>(sum[0]), pack<OP::selects>(sum[1])};
  if (OP::finishes<Wide> && a.finish) r = {finish(r.x, a.value), finish(r.y, a.value)};
  return r;
}

#else

static DEVICE bool early(const DirectArgs &) { return false; }
static DEVICE Pair contribution(const DirectArgs &, Wide, Pair v) { return v; }

#endif
