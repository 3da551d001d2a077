// Slices whose sources and destinations do not begin alike in 16 bytes. Stores of 16 bytes
// are aligned, to the peer too.
#pragma once
#include "loose.h"
#include "turns.h"

constexpr u32 between_passes = 5; // a barrier

// Unlike has vector(t, at) move 16 bytes from byte at on, and rest(t, head, middle) all but
// middle bytes after the first head. No load goes beyond a source. Where both destinations
// cannot be aligned there are two passes, one for each; since dst may be src, all threads
// are done with the first one before.
template <class V, class R> static DEVICE void unlike(const Slice &s, u32 width, V vector, R rest) {
  bool apart = s.dst && s.send && (s.dst ^ s.send) & 15;
#pragma unroll 1
  for (u32 pass = 0; pass <= apart; pass++) {
    Slice t = s;
    if (apart && pass) meet(between_passes, width);
    if (apart) (pass ? t.send : t.dst) = 0;
    u32 head = -(u32)(t.send ? t.send : t.dst) & 15;
    if (early(t.recv, head) || early(t.src, head)) head += 16;
    u64 vectors = loose_vectors(t.n, head);
#pragma unroll 1
    for (u64 i = thread(); i < vectors; i += width) vector(t, head + 16 * i);
    rest(t, head, 16 * vectors);
  }
}
