// Lines of 128 bytes: 120 of data and a flag. A group of 8 neighbouring threads
// stores a line with one instruction, 16 bytes each, and loads it with one; the
// hardware moves aligned lines as a whole, over NVLink too. The data are words of
// 8 bytes of the caller's memory.
//
// Over PCIe, to a peer's memory or the host's, a line may arrive in parts, of 8 bytes or
// more, in any order. There a line proves itself: its last word is the flag plus a digest of
// its data. The receiver takes the digest of the very registers that it will use away from
// the last word that it loaded with them, so what is left is the flag only if all words
// belong together. With some words of an earlier line, or a flag that is late, the
// difference is as good as random: that it is the flag has a chance of 1 in 2^64. A stale
// word that is equal to the new one is no fault. So there is no fence and no second trip.
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

// Mixed is w spread over 64 bits, a different way for each odd number, such that different w
// give different values. Sums of such values are alike by chance only: where bits of several
// words change together, as signs do, simpler products cancel each other. The number is added
// first: multiplied alone, a 3 in the first word and a 1 in the second have the same value.
static DEVICE u64 mixed(u64 w, u64 odd) {
  w += odd;
  w = (w ^ w >> 32) * odd;
  w = (w ^ w >> 29) * 0xd6e8feb86659fd93;
  return w ^ w >> 32;
}

template <u32 distance> static DEVICE u64 across(u64 v) {
  u32 low, high;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(low) : "r"((u32)v), "n"(distance) : "memory");
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(high) : "r"((u32)(v >> 32)), "n"(distance) : "memory");
  return (u64)high << 32 | low;
}

// Digest is the digest of the 15 words of data of a line. Each thread of the line's group gives
// its Pair, and gets the digest. All threads of the warp call it.
static DEVICE u64 digest(Pair v) {
  u64 odd = (thread() % 8 * 4 + 1) * 0x9e3779b97f4a7c15, sum = mixed(v.x, odd);
  if (thread() % 8 != 7) sum += mixed(v.y, odd + 2 * 0x9e3779b97f4a7c15);
  sum += across<4>(sum);
  sum += across<2>(sum);
  return sum + across<1>(sum);
}

// Load_word loads up to 8 bytes at p: left is how many bytes of the message there are from
// p on, and may be negative. p and left are multiples of size. No load waits for another one,
// but for a few bytes at a message's ends.
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
