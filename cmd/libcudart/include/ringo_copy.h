/* ringo_copy.h copies from global to shared memory beside the thread, by cp.async. It is a part of cuda/pipeline and of
   cooperative_groups/memcpy_async.h. */
#ifndef RINGO_COPY_H
#define RINGO_COPY_H

#include "cuda_runtime.h"

#ifdef __CUDA__
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

/* A size in bytes of memory whose addresses are multiples of A. */
template <size_t A> struct aligned_size_t {
	size_t value;
	__host__ __device__ explicit aligned_size_t(size_t n) : value(n) {}
	__host__ __device__ operator size_t() const { return value; }
};
} // namespace cuda

#define RINGO_COPY(n, cache)                                                                                                    \
	RINGO_BODY(asm volatile("{ .reg .u64 s, g; cvta.to.shared.u64 s, %0; cvta.to.global.u64 g, %1; cp.async." cache         \
				".shared.global [s], [g], " #n "; }" ::"l"(to), "l"(from) : "memory");)
RINGO_D void ringo_copy16(void *to, const void *from) RINGO_COPY(16, "cg")
RINGO_D void ringo_copy8(void *to, const void *from) RINGO_COPY(8, "ca")
RINGO_D void ringo_copy4(void *to, const void *from) RINGO_COPY(4, "ca")
#undef RINGO_COPY
RINGO_D bool ringo_shared(const void *p)
RINGO_BODY(int is; asm("{ .reg .pred p; isspacep.shared p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(is) : "l"(p)); return is;)
RINGO_D bool ringo_global(const void *p)
RINGO_BODY(int is; asm("{ .reg .pred p; isspacep.global p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(is) : "l"(p)); return is;)
RINGO_D void ringo_copies_commit() RINGO_BODY(asm volatile("cp.async.commit_group;" ::: "memory");)
template <unsigned N> RINGO_D void ringo_copies_wait() RINGO_BODY(asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");)

/* The thread with a rank among several copies its part: pieces of A bytes, or of 16. */
template <size_t A> RINGO_D void ringo_copy(void *to, const void *from, size_t n, unsigned rank, unsigned threads)
{
	constexpr size_t piece = A >= 16 ? 16 : A;
	bool beside = A >= 4 && ringo_shared(to) && ringo_global(from);
	for (size_t i = rank * piece; i < n; i += threads * piece) {
		char *t = (char *)to + i;
		const char *f = (const char *)from + i;
		if (!beside)
			memcpy(t, f, piece);
		else if (piece == 16)
			ringo_copy16(t, f);
		else if (piece == 8)
			ringo_copy8(t, f);
		else
			ringo_copy4(t, f);
	}
}
#endif

#endif
