// Lines of 128 bytes: 120 of data and a flag. A group of 8 neighbouring threads
// stores a line with one instruction, 16 bytes each, and loads it with one; the
// hardware moves aligned lines as a whole, between GPUs too. The data are words of
// 8 bytes of the caller's memory.
#pragma once
#include "comm.h"

constexpr u32 line_bytes = 128, line_data = 120;

// A Pair is a thread's 16 bytes of a line. The second word of the group's last
// thread is the flag.
struct Pair {
  u64 x, y;
};

DEVICE void store_line(u64 p, Pair v) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.x), "l"(v.y) : "memory");
}

DEVICE Pair load_line(u64 p) {
  Pair v;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
  return v;
}

// Load_word loads up to 8 bytes at p: left is how many bytes of the message there are from
// p on, and may be negative. p and left are multiples of size. Loads that wait for none of
// the others are all under way at once, but for a few bytes at a message's ends.
template <int size> static DEVICE u64 load_word(u64 p, s32 left) {
  u64 v = 0;
  if (left >= 8 && !(p & 7)) return Access<8>::load(p);
  if (left >= 8 && !(p & 3)) {
    u32 low = Access<4>::load(p), high = Access<4>::load(p + 4);
    return (u64)high << 32 | low;
  }
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left;) {
    bool four = i <= 4 && left - i >= 4 && !((p + i) & 3);
    v |= (four ? (u64)Access<4>::load(p + i) : (u64)Access<size>::load(p + i)) << (8 * i);
    i += four ? 4 : size;
  }
  return v;
}

template <int size> static DEVICE void store_word(u64 p, s32 left, u64 v) {
  if (left >= 8 && !(p & 7)) return Access<8>::store(p, v);
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left;) {
    bool four = i <= 4 && left - i >= 4 && !((p + i) & 3);
    if (four) Access<4>::store(p + i, v >> (8 * i));
    else Access<size>::store(p + i, v >> (8 * i));
    i += four ? 4 : size;
  }
}
