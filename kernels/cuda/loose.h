// Vectors that begin anywhere: the two aligned ones in which each lies are loaded, and shifted.
#pragma once
#include "base.h"

// Either is a, or b if which is 0. Of the same in C++ the compiler would make an index into the array of a and b.
DEVICE u32 either(u32 which, u32 a, u32 b) {
  u32 r;
  asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\tselp.b32 %0, %2, %3, p;\n\t}" : "=r"(r) : "r"(which), "r"(a), "r"(b));
  return r;
}

// A Loose is a vector that begins anywhere.
template <class Word> struct Loose {
  Vector<u32> low, high;
  u32 before; // bytes of low that come before the vector

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

// A Loosely is a unit of 16 bytes that is loaded from anywhere.
template <class Unit, class Word> struct Loosely : Unit {
  DEVICE void load(u64 p) {
    Loose<Word> l;
    l.load(p);
    (Vector<Word> &)*this = l.value();
  }
};

template <class Unit> constexpr bool loose = false;
template <class Unit, class Word> constexpr bool loose<Loosely<Unit, Word>> = true;

// Early reports whether the aligned load for the vector at byte head of a source at p would begin before the source.
DEVICE bool early(u64 p, u32 head) { return p && ((p + head) & 15) > head; }

// Loose_vectors is how many vectors there are in n bytes behind the first head, so that no
// load goes beyond a source.
DEVICE u64 loose_vectors(u64 n, u32 head) { return n < head + 32 ? 0 : (n - head - 16) / 16; }
