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

// Load_word loads up to 8 bytes at p: left is how many bytes of the message there
// are from p on, and may be negative. p and left are multiples of unit: 8, 4 or 1.
static DEVICE u64 load_word(u64 p, s32 left, u32 unit) {
  u64 v = 0;
  if (unit == 8) return left > 0 ? Access<8>::load(p) : 0;
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left; i += unit)
    v |= (unit == 4 ? (u64)Access<4>::load(p + i) : (u64)Access<1>::load(p + i)) << (8 * i);
  return v;
}

static DEVICE void store_word(u64 p, s32 left, u32 unit, u64 v) {
  if (unit == 8) {
    if (left > 0) Access<8>::store(p, v);
    return;
  }
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left; i += unit) {
    if (unit == 4) Access<4>::store(p + i, v >> (8 * i));
    else Access<1>::store(p + i, v >> (8 * i));
  }
}
