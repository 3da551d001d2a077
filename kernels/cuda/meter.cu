// What package bench/meter has a GPU do: tests of memory and of lines that go between GPUs, and
// work as of a matrix product.
#include "comm.h"

// A Pattern is bench/meter.patternArgs in Go: n vectors of 16 bytes at p, and what their words hold.
struct Pattern {
  u64 p, n, base, flip;
  u64 found; // where compare counts the words that differ, and keeps the first most of them
  u32 kind, most;

  // At is the word of 8 bytes at an address: the distance to base, a bit that walks, or 0, xored with flip.
  DEVICE u64 at(u64 address) const {
    u64 distance = address - base;
    u64 walking = 1ull << ((distance >> 3) + (distance >> 9) & 63);
    return (kind == 0 ? distance : kind == 1 ? walking : 0) ^ flip;
  }
};

// The memory at Pattern.found: a count, and at 64 the records.
struct Wrong {
  u64 address, want, got;
};

// Each calls f with the address of each vector; the launch's threads share them.
template <class F> DEVICE void each(const Pattern &a, F f) {
#pragma unroll 1
  for (u64 i = (u64)block() * threads() + thread(); i < a.n; i += (u64)blocks() * threads()) f(a.p + 16 * i);
}

// Words are a vector that no cache keeps, as volatile accesses are.
struct Words {
  u64 low, high;
  DEVICE void load(u64 p) { asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(p) : "memory"); }
  DEVICE void store(u64 p) const { asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(low), "l"(high) : "memory"); }
};

// Fill writes a pattern.
KERNEL(256, 1) void fill(const Pattern a) {
  each(a, [&](u64 p) FORCED { Vector<u64>{{a.at(p), a.at(p + 8)}}.store(p); });
}

static DEVICE void check(const Pattern &a, u64 address, u64 got) {
  u64 want = a.at(address);
  if (got == want) return;
  u32 i = add(a.found, 1);
  if (i >= a.most) return;
  u64 record = a.found + 64 + i * sizeof(Wrong);
  Access<8>::store(record, address);
  Access<8>::store(record + 8, want);
  Access<8>::store(record + 16, got);
}

// Compare reads what fill has written.
KERNEL(256, 1) void compare(const Pattern a) {
  each(a, [&](u64 p) FORCED {
    Words w;
    w.load(p);
    check(a, p, w.low);
    check(a, p + 8, w.high);
  });
}

// Chase follows a chain of addresses through memory, one load after the other.
KERNEL(1, 1) void chase(u64 p, u64 hops, u64 out) {
#pragma unroll 1
  for (; hops; hops--) asm volatile("ld.volatile.global.u64 %0, [%0];" : "+l"(p)::"memory");
  Access<8>::store(out, p);
}

// Store writes 1, 2, … rounds into every word of 4 lines of 128 bytes, each with one instruction of 8 threads.
KERNEL(32, 1) void store(u64 p, u32 rounds) {
  p += 16 * thread();
#pragma unroll 1
  for (u32 i = 1; i <= rounds; i++) Words{i, i}.store(p);
}

// Look reads the lines that store writes over and over, until they hold last. A word that is older than the last word
// of its line has been torn from it. At out are then how many were torn, how many values were seen, and an example: the
// line's last word and the older one.
KERNEL(32, 1) void look(u64 p, u64 out, u32 last, u32 looks) {
  u32 torn = 0, seen = 0, before = 0;
  p += 16 * thread();
#pragma unroll 1
  for (u32 i = 0; i < looks; i++) {
    Words w;
    w.load(p);
    u32 end = __nvvm_shfl_sync_idx_i32(-1, (u32)w.high, thread() | 7, 31);
    u32 least = (u32)w.low < (u32)w.high ? w.low : w.high;
    if (least < end) {
      torn++;
      asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(out + 8), "r"(end), "r"(least) : "memory");
    }
    seen += end != before;
    before = end;
    if (!vote(end < last)) break;
  }
  add(out, torn);
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(out + 4), "r"(seen) : "memory");
}

// Multiply's threads each have a square of products that they add up.
constexpr u32 side = 4;  // of the square
constexpr u32 depth = 8; // squares of a round

// From one square of a round to the next, in numbers of the tile. A thread's row and its column begin at most 4·15
// from the tile's beginning, so all reads end within the tile.
constexpr u32 row_step = 24, col_step = 20;

typedef float Side __attribute__((ext_vector_type(side)));

extern SHARED Side tile[]; // a number for each thread, from -0.875 to 0.875

// Multiply reads, in each round, depth times side numbers for its row and side for its column, adds the products of
// all pairs to its sums, and waits for its block once. In the end it stores the sum of its sums.
KERNEL(256, 1) void multiply(u64 sums, u32 rounds) {
  ((float *)tile)[thread()] = thread() % 8 * 0.25f - 0.875f;
  float sum[side][side] = {};
  const Side *row = tile + thread() / 16, *col = tile + thread() % 16;
  barrier();
#pragma unroll 1
  for (; rounds; rounds--) {
#pragma unroll
    for (u32 k = 0; k < depth; k++) {
      Side r = row[k * row_step / side], c = col[k * col_step / side];
#pragma unroll
      for (u32 i = 0; i < side * side; i++) sum[i / side][i % side] = __builtin_fmaf(r[i / side], c[i % side], sum[i / side][i % side]);
    }
    barrier();
  }
  float all = 0;
#pragma unroll
  for (u32 i = 0; i < side * side; i++) all += sum[i / side][i % side];
  Access<4>::store(sums + 4 * (block() * threads() + thread()), bits<u32>(all));
}
