// The units that a thread combines at once: One element, or the Many in 16 bytes.
#pragma once
#include "reduction.h"

struct One {
  static constexpr int bytes = TYPE::size, elements = 1;
  TYPE::Bits v;
  DEVICE void load(u64 p) { v = Access<bytes>::load(p); }
  DEVICE void store(u64 p) const { Access<bytes>::store(p, v); }
  DEVICE void unpack(Wide *x) const { *x = TYPE::widen(v); }
  DEVICE void pack(const Wide *x) { v = OP::selects ? TYPE::exact(*x) : TYPE::narrow(*x); }
  DEVICE void finish(u64 value) { v = TYPE::narrow(OP::finish(TYPE::widen(v), value)); }
};

struct Many : Vector<Word> {
  static constexpr int bytes = 16, elements = bytes / TYPE::size;
  DEVICE void unpack(Wide *x) const {
#pragma unroll
    for (int w = 0; w < words; w++) TYPE::unpack(word[w], x + w * TYPE::per_word);
  }
  DEVICE void pack(const Wide *x) {
#pragma unroll
    for (int w = 0; w < words; w++, x += TYPE::per_word) word[w] = OP::selects ? TYPE::pack_exact(x) : TYPE::pack(x);
  }
  DEVICE void finish(u64 value) {
#pragma unroll
    for (Word &w : word) {
      Wide x[TYPE::per_word];
      TYPE::unpack(w, x);
#pragma unroll
      for (Wide &y : x) y = OP::finish(y, value);
      w = TYPE::pack(x);
    }
  }
};
