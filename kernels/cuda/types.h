// The data types: how an element lies in memory and what ⊕ works on. Package
// kernels defines the meaning; float16.go there has the same conversions.
//
// Each type has
//   Bits                 an element in memory
//   Wide                 an element in arithmetic
//   Word                 32 or 64 bits that hold one or more elements
//   unroll               how many vectors of each source a thread loads at once
//   widen(Bits)          the element as a Wide, exact
//   narrow(Wide)         the result of arithmetic in memory: rounded to nearest
//                        even, every NaN with the one pattern
//   unpack(Word, Wide*)  widen for all elements of a word, the first in the low bits
//   pack(const Wide*)    narrow
//   exact, pack_exact    narrow and pack for what min and max selected
//   scalar(u64)          a scalar of a launch's arguments
#pragma once
#include "base.h"
#include "ops.h"

// Elementwise makes words of elements one by one.
template <class T, class B, class W, class Whole> struct Elementwise {
  using Bits = B;
  using Wide = W;
  using Word = Whole;
  static constexpr int size = sizeof(B), per_word = sizeof(Word) / sizeof(B);
  static constexpr int unroll = 2;

  static DEVICE B exact(W x) { return T::narrow(x); }
  static DEVICE void unpack(Word w, W *x) {
    for (int i = 0; i < per_word; i++) x[i] = T::widen(w >> (8 * size * i));
  }
  static DEVICE Word pack(const W *x) {
    Word w = 0;
    for (int i = 0; i < per_word; i++) w |= (Word)T::narrow(x[i]) << (8 * size * i);
    return w;
  }
  static DEVICE Word pack_exact(const W *x) { return T::pack(x); }
};

// Integers wrap (-fwrapv). S is the type in C++.
template <class S, class B, class W, class Whole>
struct Integer : Elementwise<Integer<S, B, W, Whole>, B, W, Whole> {
  static DEVICE W widen(B x) { return (S)x; }
  static DEVICE B narrow(W x) { return (B)x; }
  static DEVICE W scalar(u64 v) { return (S)v; }
};

using int8 = Integer<s8, u8, s32, u32>;
using uint8 = Integer<u8, u8, u32, u32>;
using int32 = Integer<s32, u32, s32, u32>;
using uint32 = Integer<u32, u32, u32, u32>;
using int64 = Integer<s64, u64, s64, u64>;
using uint64 = Integer<u64, u64, u64, u64>;

// float32's NaNs have the one pattern because arithmetic here gives no other.
struct float32 : Elementwise<float32, u32, float, u32> {
  static DEVICE float widen(u32 x) { return bits<float>(x); }
  static DEVICE u32 narrow(float x) { return bits<u32>(x); }
  static DEVICE float scalar(u64 v) { return bits<float>((u32)v); }
};

// float64's arithmetic lets payloads through.
struct float64 : Elementwise<float64, u64, double, u64> {
  static DEVICE double widen(u64 x) { return bits<double>(x); }
  static DEVICE u64 narrow(double x) { return x != x ? ~0ull >> 1 : bits<u64>(x); }
  static DEVICE double scalar(u64 v) { return bits<double>(v); }
};

// Narrow floats are computed in float32.
template <class T, class B> struct Narrow : Elementwise<T, B, float, u32> {
  static DEVICE float scalar(u64 v) { return float32::scalar(v); }
};

struct float16 : Narrow<float16, u16> {
  static DEVICE float widen(u16 x) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
    return f;
  }
  static DEVICE u16 narrow(float x) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
  }
};

struct bfloat16 : Narrow<bfloat16, u16> {
  static DEVICE float widen(u16 x) { return bits<float>((u32)x << 16); }
  static DEVICE u16 narrow(float x) {
    u32 b = bits<u32>(x);
    return x != x ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
  }
  static DEVICE void unpack(u32 w, float *x) {
    x[0] = bits<float>(w << 16);
    x[1] = bits<float>(w & 0xffff0000);
  }
#if SM >= 80
  static DEVICE u32 pack(const float *x) {
    u32 w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(x[1]), "f"(x[0]));
    return w;
  }
#endif
};

// Small8 is x in 8 bits: a sign, an exponent and M bits of mantissa, 2^Low
// being the smallest normal number, and Max the largest number: a larger x
// becomes Max.
template <int M, int Low> DEVICE u8 small8(float x, float Max) {
  constexpr u32 low = (127 + Low) << 23, up = (23 - M) << 23;
  float size = __builtin_fabsf(x);
  size = min::of(size, Max);
  u32 exponent = bits<u32>(size) & 0x7f800000;
  exponent = exponent > low ? exponent : low; // below are the denormals
  // Added to a number that is 2^(23-M) greater, size is rounded to M bits of
  // mantissa, which come to lie in the lowest bits, with the implicit one.
  u32 mantissa = bits<u32>(size + bits<float>(exponent + up)) - (exponent + up);
  u32 v = mantissa + ((exponent - low) >> (23 - M));
  return x != x ? 0x7f : v | (bits<u32>(x) >> 24 & 0x80);
}

struct float8e4m3 : Narrow<float8e4m3, u8> {
  static DEVICE float widen(u8 x) {
    // As a float32 its exponent is too small by 120, and 0x7f stands for 480.
    float f = bits<float>((u32)((s32)((u32)x << 24) >> 4) & 0x87f00000) * 0x1p120f;
    return (x & 0x7f) == 0x7f ? bits<float>(~0u >> 1) : f;
  }
  static DEVICE u8 narrow(float x) { return small8<3, -6>(x, 448); }
#if SM < 89
  static constexpr int unroll = 1; // arithmetic is the limit, not memory
#else
  static DEVICE void unpack(u32 w, float *x) { unpack2(w, x), unpack2(w >> 16, x + 2); }
  static DEVICE void unpack2(u16 w, float *x) {
    asm("{\n\t.reg .b32 h;\n\t.reg .b16 a, b;\n\t"
        "cvt.rn.f16x2.e4m3x2 h, %2;\n\tmov.b32 {a, b}, h;\n\t"
        "cvt.f32.f16 %0, a;\n\tcvt.f32.f16 %1, b;\n\t}"
        : "=f"(x[0]), "=f"(x[1])
        : "h"(w));
  }
  static DEVICE u32 pack(const float *x) { return pack2(x) | pack2(x + 2) << 16; }
  static DEVICE u32 pack2(const float *x) {
    u16 w;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(w) : "f"(x[1]), "f"(x[0]));
    return w;
  }
#endif
};

struct float8e5m2 : Narrow<float8e5m2, u8> {
  static DEVICE float widen(u8 x) { return float16::widen((u16)x << 8); }
  static DEVICE u8 narrow(float x) { return small8<2, -14>(x, 57344); }
  static DEVICE u8 exact(float x) { return float16::narrow(x) >> 8; } // keeps infinities
  static DEVICE u32 pack_exact(const float *x) {
    return exact(x[0]) | exact(x[1]) << 8 | exact(x[2]) << 16 | (u32)exact(x[3]) << 24;
  }
#if SM < 89
  static constexpr int unroll = 1;
#else
  static DEVICE u32 pack(const float *x) { return pack2(x) | pack2(x + 2) << 16; }
  static DEVICE u32 pack2(const float *x) {
    u16 w;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(w) : "f"(x[1]), "f"(x[0]));
    return w;
  }
#endif
};
