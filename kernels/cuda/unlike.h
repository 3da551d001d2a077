// Slices whose sources and destinations do not begin alike in 16 bytes. Stores of 16 bytes
// are aligned, to the peer too; loads take the two aligned vectors in which a source lies.
#pragma once
#include "turns.h"

// Either is a or b. The compiler would make an index of it for the array that they are in.
DEVICE u32 either(u32 which, u32 a, u32 b) {
  u32 r;
  asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\tselp.b32 %0, %2, %3, p;\n\t}" : "=r"(r) : "r"(which), "r"(a), "r"(b));
  return r;
}

// A Loose is a vector that begins anywhere.
template <class Word> struct Loose {
  Vector<u32> low, high;
  u32 before; // bytes of low

  DEVICE void load(u64 p) {
    before = p & 15;
    low.load(p - before);
    high = low;
    if (before) high.load(p - before + 16);
  }
  DEVICE Vector<Word> value() const {
    u32 w[8];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = low.word[i], w[4 + i] = high.word[i];
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = either(before & 8, w[i + 2], w[i]);
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = either(before & 4, w[i + 1], w[i]);
#pragma unroll
    for (int i = 0; i < 4; i++)
      asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(w[i]) : "r"(w[i]), "r"(w[i + 1]), "r"(before % 4 * 8));
    Vector<Word> v;
#pragma unroll
    for (int i = 0; i < Vector<Word>::words; i++) {
      if constexpr (sizeof(Word) == 4)
        v.word[i] = w[i];
      else
        v.word[i] = w[2 * i] | (u64)w[2 * i + 1] << 32;
    }
    return v;
  }
};

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
    auto early = [&](u64 p) FORCED { return p && ((p + head) & 15) > head; };
    if (early(t.recv) || early(t.src)) head += 16;
    u64 vectors = t.n < head + 32 ? 0 : (t.n - head - 16) / 16;
#pragma unroll 1
    for (u64 i = thread(); i < vectors; i += width) vector(t, head + 16 * i);
    rest(t, head, 16 * vectors);
  }
}
