// dst = src[0] ⊕ src[1] ⊕ … from the left, for one data type TYPE and one
// reduction OP. Narrow floats are computed in float32 and rounded once, at the
// end. dst may be any of the sources; otherwise they do not overlap.
#include "loose.h"
#include "units.h"

// CombineArgs is kernels/device.args in Go.
struct CombineArgs {
  u64 dst, src[8]; // addresses, multiples of the element's size
  u64 stride;      // bytes from source s to source s + 8
  u64 count;       // elements
  u64 scalar;      // where the device keeps premulsum's scalar, an element; 0: it is in value
  u64 value;       // bits of the scalar (float32 for narrow floats), or see divide
  u32 k;           // sources, 1 or more
  u32 scaled;      // bit s % 32: source s is multiplied by the scalar
  u32 finish;      // 1: the result is divided
};

static DEVICE u64 source(const CombineArgs &a, u32 s) { return a.src[s % 8] + s / 8 * a.stride; }

// Scaled is x of source s as an operand of ⊕: multiplied by the scalar if it has to be.
static DEVICE Wide scaled(const CombineArgs &a, u32 s, Wide scalar, Wide x) {
  return OP::scales ? x * (a.scaled >> s % 32 & 1 ? scalar : (Wide)1) : x;
}

static DEVICE bool finishes(const CombineArgs &a) { return OP::finishes<Wide> && a.finish; }

// Copies reports whether nothing is computed: a copy keeps the payload of NaNs.
static DEVICE bool copies(const CombineArgs &a) { return a.k == 1 && !(OP::scales && a.scaled & 1) && !finishes(a); }

// Plain is the reference: one element a thread.
KERNEL(1024, 1) void ENTRY(plain)(const CombineArgs a) {
  Wide factor = scalar(a);
#pragma unroll 1
  for (u64 i = (u64)block() * threads() + thread(); i < a.count; i += (u64)blocks() * threads()) {
    One x;
    Wide v, w;
    x.load(a.src[0] + i * TYPE::size);
    if (!copies(a)) {
      x.unpack(&v);
      v = scaled(a, 0, factor, v);
#pragma unroll 1
      for (u32 s = 1; s < a.k; s++) {
        x.load(source(a, s) + i * TYPE::size);
        x.unpack(&w);
        v = OP::of(v, scaled(a, s, factor, w));
      }
      x.pack(&v);
      if (finishes(a)) x.finish(a.value);
    }
    x.store(a.dst + i * TYPE::size);
  }
}

// Some computes n units that are step bytes apart, the first at byte at. The
// loads from the next source are under way while this one's data are combined.
template <class Unit, int n> static DEVICE void some(const CombineArgs &a, Wide factor, u64 at, u32 step) {
  Unit now[n], next[n];
  Wide v[n][Unit::elements], w[Unit::elements];
#pragma unroll
  for (int i = 0; i < n; i++) now[i].load(a.src[0] + at + i * step);
  if (!copies(a)) {
    if (a.k > 1) {
#pragma unroll
      for (int i = 0; i < n; i++) next[i].load(a.src[1] + at + i * step);
    }
#pragma unroll
    for (int i = 0; i < n; i++) {
      now[i].unpack(v[i]);
#pragma unroll
      for (Wide &x : v[i]) x = scaled(a, 0, factor, x);
    }
#pragma unroll 1
    for (u32 s = 1; s < a.k; s++) {
#pragma unroll
      for (int i = 0; i < n; i++) now[i] = next[i];
      if (s + 1 < a.k) {
#pragma unroll
        for (int i = 0; i < n; i++) next[i].load(source(a, s + 1) + at + i * step);
      }
#pragma unroll
      for (int i = 0; i < n; i++) {
        now[i].unpack(w);
#pragma unroll
        for (int e = 0; e < Unit::elements; e++) v[i][e] = OP::of(v[i][e], scaled(a, s, factor, w[e]));
      }
    }
#pragma unroll
    for (int i = 0; i < n; i++) now[i].pack(v[i]);
    if (finishes(a)) {
#pragma unroll
      for (int i = 0; i < n; i++) now[i].finish(a.value);
    }
  }
#pragma unroll
  for (int i = 0; i < n; i++) now[i].store(a.dst + at + i * step);
}

// Rounds computes units from byte at on, n in each thread, while there are enough for
// all threads. It returns how many units that were.
template <class Unit, int n> static DEVICE u64 rounds(const CombineArgs &a, Wide factor, u64 at, u64 units) {
  u64 round = (u64)blocks() * threads() * n, i = 0;
#pragma unroll 1
  for (; i + round <= units; i += round)
    some<Unit, n>(a, factor, at + Unit::bytes * (i + (u64)block() * threads() * n + thread()), Unit::bytes * threads());
  return i;
}

// Combine handles 16 bytes at a time. Where a source does not begin as dst does, each of its vectors is put together
// from two aligned ones.
//
// Two vectors of two sources in each of 1024 threads are 64 KiB under way on a multiprocessor, enough for the memory of
// an H200; more would cost registers, and so threads.
KERNEL(512, 2) void ENTRY(combine)(const CombineArgs a) {
  Wide factor = scalar(a);
  u64 self = (u64)block() * threads() + thread(), grid = (u64)blocks() * threads();
  u64 head = 0, middle; // elements before those done by vectors; elements done by vectors
  u32 apart = 0;
#pragma unroll 1
  for (u32 s = 0; s < a.k; s++) apart |= source(a, s) ^ a.dst;
  if (apart % 16 == 0) {
    head = (-a.dst & 15) / TYPE::size;
    if (head > a.count) head = a.count;
    u64 from = head * TYPE::size, vectors = (a.count - head) / Many::elements;
#pragma unroll 1
    for (u64 i = rounds<Many, TYPE::unroll>(a, factor, from, vectors) + self; i < vectors; i += grid)
      some<Many, 1>(a, factor, from + 16 * i, 0);
    middle = vectors * Many::elements;
  } else {
    u32 from = -a.dst & 15;
    bool before = false;
#pragma unroll 1
    for (u32 s = 0; s < a.k; s++) before |= early(source(a, s), from);
    if (before) from += 16;
    u64 vectors = loose_vectors(a.count * TYPE::size, from);
    head = from / TYPE::size;
#pragma unroll 1
    for (u64 i = self; i < vectors; i += grid) some<Loosely<Many, Word>, 1>(a, factor, from + 16 * i, 0);
    middle = vectors * Many::elements;
  }
#pragma unroll 1
  for (u64 i = self; i < a.count - middle; i += grid) some<One, 1>(a, factor, TYPE::size * (i < head ? i : i + middle), 0);
}
