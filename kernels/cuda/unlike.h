// Slices whose sources and destinations do not begin alike in 16 bytes. Stores of 16 bytes
// are aligned, to the peer too.
#pragma once
#include "loose.h"
#include "turns.h"

constexpr u32 between_passes = 5; // a barrier

template <int N> struct Times {
  static constexpr int n = N;
};

// Unlike moves a slice by two functions. vectors(Times<n>, t, at, step) moves n vectors that are step bytes apart, the
// first at byte at, where n is deep or 1. rest(t, head, middle) moves all bytes but the middle ones that follow the
// first head. No load goes beyond a source. Where both destinations cannot be aligned there are two passes, one for
// each; since dst may be src, no thread begins the second pass before all have ended the first.
template <int deep, class V, class R> static DEVICE void unlike(const Slice &s, u32 width, V vectors, R rest) {
  bool apart = s.dst && s.send && (s.dst ^ s.send) & 15;
#pragma unroll 1
  for (u32 pass = 0; pass <= apart; pass++) {
    Slice t = s;
    u32 mine = self();
    // A barrier to the compiler: what is worked out here takes no registers of other paths.
    asm volatile("" : "+l"(t.recv), "+l"(t.src), "+l"(t.dst), "+l"(t.send), "+l"(t.n), "+r"(mine));
    if (apart && pass) meet(between_passes, width);
    if (apart) (pass ? t.send : t.dst) = 0;
    u32 head = -(u32)(t.send ? t.send : t.dst) & 15;
    if (early(t.recv, head) || early(t.src, head)) head += 16;
    u64 count = loose_vectors(t.n, head), i = 0;
#pragma unroll 1
    for (; deep > 1 && i + deep * width <= count; i += deep * width) vectors(Times<deep>{}, t, head + 16 * (i + mine), 16 * width);
#pragma unroll 1
    for (i += mine; i < count; i += width) vectors(Times<1>{}, t, head + 16 * i, 0);
    rest(t, head, 16 * count);
  }
}
