// The reductions. Each says
//   of(a, b)      a ⊕ b of two Wides
//   finish(x, v)  the last step of an average of integers, where finishes<W>
//   selects       the result is one of the operands, or the NaN
//   scales        contributions are multiplied by a scalar
#pragma once
#include "base.h"

// Divide is x divided by a number of ranks, truncating toward zero. For
// 64 bits v is the divisor, otherwise its reciprocal ⌈2⁶⁴/divisor⌉.

template <class W> DEVICE W divide(W x, u64) { return x; } // floats are scaled instead
DEVICE s64 divide(s64 x, u64 v) { return x / (s64)v; }
DEVICE u64 divide(u64 x, u64 v) { return x / v; }
DEVICE u32 divide(u32 x, u64 v) { return __nvvm_mulhi_ull(v, x); }
DEVICE s32 divide(s32 x, u64 v) {
  u32 sign = x >> 31;
  return (divide(((u32)x ^ sign) - sign, v) ^ sign) - sign;
}

template <bool Selects, bool Scales> struct Op {
  static constexpr bool selects = Selects, scales = Scales;
  template <class W> static constexpr bool finishes = false;
  template <class W> static DEVICE W finish(W x, u64) { return x; }
};

struct sum : Op<false, false> {
  template <class W> static DEVICE W of(W a, W b) { return a + b; }
  template <class W> static constexpr bool finishes = (W)1 / 2 == 0; // of integers
  template <class W> static DEVICE W finish(W x, u64 v) { return divide(x, v); }
};

struct premulsum : Op<false, true> {
  template <class W> static DEVICE W of(W a, W b) { return a + b; }
};

struct prod : Op<false, false> {
  template <class W> static DEVICE W of(W a, W b) { return a * b; }
};

// min and max of floats prefer a number to a NaN, and −0 is below +0.

struct min : Op<true, false> {
  template <class W> static DEVICE W of(W a, W b) { return a < b ? a : b; }
  static DEVICE float of(float a, float b) {
    float r;
    asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
  }
  static DEVICE double of(double a, double b) {
    double r;
    asm("min.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
    return r;
  }
};

struct max : Op<true, false> {
  template <class W> static DEVICE W of(W a, W b) { return a > b ? a : b; }
  static DEVICE float of(float a, float b) {
    float r;
    asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
  }
  static DEVICE double of(double a, double b) {
    double r;
    asm("max.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
    return r;
  }
};

struct bitand : Op<false, false> {
  template <class W> static DEVICE W of(W a, W b) { return a & b; }
};

struct bitor : Op<false, false> {
  template <class W> static DEVICE W of(W a, W b) { return a | b; }
};

struct bitxor : Op<false, false> {
  template <class W> static DEVICE W of(W a, W b) { return a ^ b; }
};
