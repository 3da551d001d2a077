// Lines of 128 bytes that groups of 8 threads store and load whole, and the words
// of 8 bytes of the caller's memory that go into them.
#pragma once
#include "comm.h"

constexpr u32 line_bytes = 128, line_data = 120;

// A Pair is a thread's 16 bytes of a line. The last thread's second word is the flag.
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

// Vote tells the threads of a warp whether x holds for any of them.
DEVICE bool vote(bool x) {
  u32 r;
  asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.any.pred q, p, -1;\n\tselp.u32 %0, 1, 0, q;\n\t}"
               : "=r"(r)
               : "r"((u32)x)
               : "memory");
  return r;
}

// Together has the threads of a warp go on with the same instruction.
DEVICE void together() { asm volatile("bar.warp.sync -1;" ::: "memory"); }

// Load_word is what there is of 8 bytes at p: left is how many bytes there are from
// there on, and may be negative. The address and left are multiples of unit: 8, 4
// or 1.
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
