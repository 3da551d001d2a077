// Bulk copies between global and shared memory, which hardware carries out beside the
// threads, and the barriers in shared memory that count them.
//
// Bulk copies belong to the async proxy: they see what a thread has stored or acquired only after a fence of proxies. A
// thread that has waited for a bulk copy sees what the copy has stored.
#pragma once
#include "comm.h"

// Near is the address of a variable in shared memory.
DEVICE u32 near(const void *p) {
  u64 a;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(p));
  return (u32)a;
}

// Dynamic is how much shared memory the launch asked for.
DEVICE u32 dynamic() {
  u32 n;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n));
  return n;
}

// A fence of proxies is for shared or for global memory; one for both takes longer.
DEVICE void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Vectors in shared memory.

DEVICE void load_near(Vector<u32> &v, u32 p) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "r"(p)
               : "memory");
}
DEVICE void load_near(Vector<u64> &v, u32 p) {
  asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(v.word[0]), "=l"(v.word[1]) : "r"(p) : "memory");
}
DEVICE void store_near(const Vector<u32> &v, u32 p) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}
DEVICE void store_near(const Vector<u64> &v, u32 p) {
  asm volatile("st.shared.v2.u64 [%0], {%1, %2};" ::"r"(p), "l"(v.word[0]), "l"(v.word[1]) : "memory");
}

// A Gate is a barrier that opens again and again: each time, a phase, when as many threads
// have arrived as it was made for, and the bytes that they expect.
struct Gate {
  u64 state;

  DEVICE void make(u32 arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(near(this)), "r"(arrivals) : "memory"); }
  // Drop is called before the gate is made again.
  DEVICE void drop() { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(near(this)) : "memory"); }
  DEVICE void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(near(this)) : "memory"); }
  DEVICE void expect(u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(near(this)), "r"(bytes) : "memory");
  }
  // Await waits until a phase, counted from 0, has ended: the current one or the one before.
  DEVICE void await(u32 phase) {
    u32 r;
#pragma unroll 1
    do {
      asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                   : "=r"(r)
                   : "r"(near(this)), "r"(phase & 1)
                   : "memory");
    } while (!r);
  }
};

// Bulk_load begins to load n bytes into shared memory; they arrive at the gate. All
// addresses and n are multiples of 16.
DEVICE void bulk_load(u32 to, u64 from, u32 n, Gate &gate) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(n),
               "r"(near(&gate))
               : "memory");
}

// Bulk_store begins to store n bytes from shared memory. Commit makes a group of a thread's
// stores since its last commit.
DEVICE void bulk_store(u64 to, u32 from, u32 n) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(n) : "memory");
}
DEVICE void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Sources_read waits until all but the last n groups of this thread have read their sources,
// stored until they have stored.
template <int n> DEVICE void sources_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory"); }
template <int n> DEVICE void stored() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory"); }
