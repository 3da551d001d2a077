// dst = src[0] ⊕ src[1] ⊕ … from the left, for one data type TYPE and one
// reduction OP. Narrow floats are computed in float32 and rounded once, at the
// end. dst may be any of the sources; otherwise they do not overlap.
#include "base.h"
#include "ops.h"
#include "types.h"

#define PASTE(kernel, type, op) kernel##_##type##_##op
#define EXPAND(kernel, type, op) PASTE(kernel, type, op)
#define ENTRY(kernel) EXPAND(kernel, TYPE, OP)

// Args is kernels/device.args in Go.
struct Args {
  u64 dst, src[8]; // addresses, multiples of the element's size
  u64 count;       // elements
  u64 scalar;      // where the device keeps premulsum's scalar, an element; 0: it is in value
  u64 value;       // bits of the scalar (float32 for narrow floats), or see divide
  u32 k;           // sources, 1 to 8
  u32 scaled;      // bit s: src[s] is multiplied by the scalar
  u32 finish;      // 1: the result is divided
};

using Wide = TYPE::Wide;
using Word = TYPE::Word;
using Element = Access<TYPE::size>;
constexpr int per_word = TYPE::per_word;
constexpr int words = 16 / sizeof(Word);
constexpr int per_vector = 16 / TYPE::size;

static DEVICE Wide scalar(const Args &a) {
  if (!OP::scales) return 0;
  return a.scalar ? TYPE::widen(Element::load(a.scalar)) : TYPE::scalar(a.value);
}

// Scaled is x as ⊕ takes it.
static DEVICE Wide scaled(const Args &a, u32 s, Wide scalar, Wide x) {
  return OP::scales ? x * (a.scaled >> s & 1 ? scalar : (Wide)1) : x;
}

// Copies reports whether nothing is computed: a copy keeps the payload of NaNs.
static DEVICE bool copies(const Args &a) { return a.k == 1 && !(OP::scales && a.scaled & 1) && !a.finish; }

// One computes element i.
static DEVICE void one(const Args &a, Wide scalar, u64 i) {
  u64 at = i * TYPE::size;
  auto first = Element::load(a.src[0] + at);
  if (copies(a)) {
    Element::store(a.dst + at, first);
    return;
  }
  Wide v = scaled(a, 0, scalar, TYPE::widen(first));
#pragma unroll 1
  for (u32 s = 1; s < a.k; s++) v = OP::of(v, scaled(a, s, scalar, TYPE::widen(Element::load(a.src[s] + at))));
  if (a.finish) v = OP::finish(TYPE::wrapped(v), a.value);
  Element::store(a.dst + at, OP::selects ? TYPE::exact(v) : TYPE::narrow(v));
}

// Plain is the reference: a thread, an element.
KERNEL(1024, 1) void ENTRY(plain)(const Args a) {
  Wide v = scalar(a);
#pragma unroll 1
  for (u64 i = (u64)block() * threads() + thread(); i < a.count; i += (u64)blocks() * threads()) one(a, v, i);
}

// Some computes n vectors that are step bytes apart, the first at byte at. The
// loads from the next source are under way while this one's data are combined.
template <int n> static DEVICE void some(const Args &a, Wide scalar, u64 at, u32 step) {
  Vector<Word> now[n], next[n];
#pragma unroll
  for (int i = 0; i < n; i++) now[i].load(a.src[0] + at + i * step);
  if (copies(a)) {
#pragma unroll
    for (int i = 0; i < n; i++) now[i].store(a.dst + at + i * step);
    return;
  }
  if (a.k > 1) {
#pragma unroll
    for (int i = 0; i < n; i++) next[i].load(a.src[1] + at + i * step);
  }
  Wide v[n][words][per_word];
#pragma unroll
  for (int i = 0; i < n; i++)
#pragma unroll
    for (int w = 0; w < words; w++) {
      TYPE::unpack(now[i].word[w], v[i][w]);
#pragma unroll
      for (int e = 0; e < per_word; e++) v[i][w][e] = scaled(a, 0, scalar, v[i][w][e]);
    }
#pragma unroll 1
  for (u32 s = 1; s < a.k; s++) {
#pragma unroll
    for (int i = 0; i < n; i++) now[i] = next[i];
    if (s + 1 < a.k) {
#pragma unroll
      for (int i = 0; i < n; i++) next[i].load(a.src[s + 1] + at + i * step);
    }
#pragma unroll
    for (int i = 0; i < n; i++)
#pragma unroll
      for (int w = 0; w < words; w++) {
        Wide x[per_word];
        TYPE::unpack(now[i].word[w], x);
#pragma unroll
        for (int e = 0; e < per_word; e++) v[i][w][e] = OP::of(v[i][w][e], scaled(a, s, scalar, x[e]));
      }
  }
#pragma unroll
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int w = 0; w < words; w++) {
      if (a.finish) {
#pragma unroll
        for (int e = 0; e < per_word; e++) v[i][w][e] = OP::finish(TYPE::wrapped(v[i][w][e]), a.value);
      }
      now[i].word[w] = OP::selects ? TYPE::pack_exact(v[i][w]) : TYPE::pack(v[i][w]);
    }
    now[i].store(a.dst + at + i * step);
  }
}

// Combine handles 16 bytes at a time where dst and the sources lie alike, several
// vectors a thread as long as that leaves work for all blocks. Two vectors of two
// sources in each of 1024 threads are 64 KiB under way on a multiprocessor, enough
// for the memory of an H200; more would cost registers, and with them threads.
KERNEL(512, 2) void ENTRY(combine)(const Args a) {
  Wide v = scalar(a);
  u32 apart = 0;
#pragma unroll 1
  for (u32 s = 0; s < a.k; s++) apart |= a.src[s] ^ a.dst;
  u64 head = (-a.dst & 15) / TYPE::size; // elements before the first vector
  if (apart & 15 || head > a.count) head = a.count;
  u64 vectors = (a.count - head) / per_vector;

  u64 all = (u64)blocks() * threads(); // threads of the grid
  u64 start = head * TYPE::size, round = all * TYPE::unroll;
  u64 i = 0;
#pragma unroll 1
  for (; i + round <= vectors; i += round)
    some<TYPE::unroll>(a, v, start + 16 * (i + (u64)block() * threads() * TYPE::unroll + thread()), 16 * threads());
#pragma unroll 1
  for (i += (u64)block() * threads() + thread(); i < vectors; i += all) some<1>(a, v, start + 16 * i, 0);

  u64 middle = vectors * per_vector;
#pragma unroll 1
  for (i = (u64)block() * threads() + thread(); i < a.count - middle; i += all) one(a, v, i < head ? i : i + middle);
}
