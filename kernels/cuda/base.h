// Definitions that would otherwise come from CUDA's own headers, which are not needed.
#pragma once

using u8 = unsigned char;
using s8 = signed char;
using u16 = unsigned short;
using s16 = short;
using u32 = unsigned int;
using s32 = int;
using u64 = unsigned long long;
using s64 = long long;

#define GLOBAL __attribute__((address_space(1))) // of pointers into global memory
#define FORCED __attribute__((always_inline)) // inlines a lambda
#define DEVICE __attribute__((device, always_inline)) inline
#define KERNEL(threads, blocks) extern "C" __attribute__((global, launch_bounds(threads, blocks)))

// ENTRY(run) is the name of a kernel: run_float32_sum, or run_copy without TYPE.
#define PASTE(kernel, type, op) kernel##_##type##_##op
#define EXPAND(kernel, type, op) PASTE(kernel, type, op)
#define COPY(kernel) kernel##_copy
#ifdef TYPE
#define ENTRY(kernel) EXPAND(kernel, TYPE, OP)
#else
#define ENTRY(kernel) COPY(kernel)
#endif

DEVICE u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }

template <class To, class From> DEVICE To bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits keeps the size");
  return __builtin_bit_cast(To, x);
}

// Elements and vectors of 16 bytes in global memory, this device's or a peer's. The
// hint .cs says that they will not be read again soon. A thread's accesses happen
// in the order in which they are written here, since dst may be a source.

template <int size> struct Access;

template <> struct Access<1> {
  static DEVICE u8 load(u64 p) {
    u16 v;
    asm volatile("ld.global.u8 %0, [%1];" : "=h"(v) : "l"(p));
    return v;
  }
  static DEVICE void store(u64 p, u8 v) { asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "h"((u16)v) : "memory"); }
};

template <> struct Access<2> {
  static DEVICE u16 load(u64 p) {
    u16 v;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p));
    return v;
  }
  static DEVICE void store(u64 p, u16 v) { asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"(v) : "memory"); }
};

template <> struct Access<4> {
  static DEVICE u32 load(u64 p) {
    u32 v;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
  }
  static DEVICE void store(u64 p, u32 v) { asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
};

template <> struct Access<8> {
  static DEVICE u64 load(u64 p) {
    u64 v;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
  }
  static DEVICE void store(u64 p, u64 v) { asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
};

// A Vector is 16 bytes in words of 32 or 64 bits.
template <class Word> struct Vector;

template <> struct Vector<u32> {
  static constexpr int words = 4;
  u32 word[words];
  DEVICE void load(u64 p) {
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "l"(p));
  }
  DEVICE void store(u64 p) const {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                 "r"(word[3])
                 : "memory");
  }
};

template <> struct Vector<u64> {
  static constexpr int words = 2;
  u64 word[words];
  DEVICE void load(u64 p) {
    asm volatile("ld.global.cs.v2.u64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[1]) : "l"(p));
  }
  DEVICE void store(u64 p) const {
    asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(word[0]), "l"(word[1]) : "memory");
  }
};
