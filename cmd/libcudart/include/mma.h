/* mma.h is the products of matrices by tensor cores that a warp makes together (namespace nvcuda::wmma), by clang's
   builtins: halves, bfloat16, tf32, bytes and doubles. A fragment is what a thread has of a matrix. */
#ifndef RINGO_MMA_H
#define RINGO_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

#ifdef __CUDA__
namespace nvcuda {
namespace wmma {

struct row_major {
	static constexpr int column = 0;
};
struct col_major {
	static constexpr int column = 1;
};
enum layout_t { mem_row_major, mem_col_major };
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
namespace precision {
struct tf32 {};
} // namespace precision
RINGO_D float __float_to_tf32(float v) RINGO_BODY(int d; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(v)); return __builtin_bit_cast(float, d);)

/* What is stored of an element, and how many elements a thread has. Each half of a factor is with two threads. */
template <class T> struct ringo_element {
	typedef T type;
};
template <> struct ringo_element<precision::tf32> {
	typedef float type;
};
template <class Use, int M, int N, int K, class T> constexpr int ringo_count = M * N / 32;
template <int M, int N, int K, class T> constexpr int ringo_count<matrix_a, M, N, K, T> = M * K / 32;
template <int M, int N, int K, class T> constexpr int ringo_count<matrix_b, M, N, K, T> = K * N / 32;
template <int M, int N, int K> constexpr int ringo_count<matrix_a, M, N, K, __half> = 16;
template <int M, int N, int K> constexpr int ringo_count<matrix_b, M, N, K, __half> = 16;

template <class Use, int M, int N, int K, class T, class Layout = void> struct __align__(8) fragment {
	typedef T element_type;
	typedef typename ringo_element<T>::type storage_element_type;
	enum { num_elements = ringo_count<Use, M, N, K, T>, num_storage_elements = num_elements };
	storage_element_type x[num_elements];
};

template <class Use, int M, int N, int K, class T, class Layout, class V>
RINGO_D void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, const V &v)
{
	for (int i = 0; i < f.num_elements; i++)
		f.x[i] = v;
}

/* A factor's load has the layout in the fragment's type; an accumulator's loads and stores are told it. */
#define RINGO_FACTOR(use, M, N, K, T, word, load)                                                                               \
	template <class L>                                                                                                      \
	RINGO_D void load_matrix_sync(fragment<use, M, N, K, T, L> &f, const typename ringo_element<T>::type *p, unsigned step) \
	RINGO_BODY(load((word *)f.x, (const word *)p, step, L::column);)
#define RINGO_SUM(M, N, K, T, word, load, store)                                                                              \
	RINGO_D void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *p, unsigned step, layout_t layout)       \
	RINGO_BODY(if (layout == mem_row_major) load((word *)f.x, (const word *)p, step, 0);                                  \
		   else load((word *)f.x, (const word *)p, step, 1);)                                                         \
	RINGO_D void store_matrix_sync(T *p, const fragment<accumulator, M, N, K, T> &f, unsigned step, layout_t layout)      \
	RINGO_BODY(if (layout == mem_row_major) store((word *)p, (word *)f.x, step, 0);                                       \
		   else store((word *)p, (word *)f.x, step, 1);)
/* saturated is the builtin's last argument where the caller wants sums that stop at the ends of their range. */
#define RINGO_PRODUCT(M, N, K, D, T, C, d, ab, c, saturated, mma)                                                             \
	template <class LA, class LB>                                                                                         \
	RINGO_D void mma_sync(fragment<accumulator, M, N, K, D> &to, const fragment<matrix_a, M, N, K, T, LA> &x,             \
			      const fragment<matrix_b, M, N, K, T, LB> &y, const fragment<accumulator, M, N, K, C> &z, bool satf = false) \
	RINGO_BODY(if (satf) mma((d *)to.x, (const ab *)x.x, (const ab *)y.x, (const c *)z.x, 2 * LA::column + LB::column, saturated); \
		   else mma((d *)to.x, (const ab *)x.x, (const ab *)y.x, (const c *)z.x, 2 * LA::column + LB::column, 0);)

#define RINGO_HALF(M, N, K, shape)                                                                               \
	RINGO_FACTOR(matrix_a, M, N, K, __half, int, __hmma_##shape##_ld_a)                                      \
	RINGO_FACTOR(matrix_b, M, N, K, __half, int, __hmma_##shape##_ld_b)                                      \
	RINGO_SUM(M, N, K, __half, int, __hmma_##shape##_ld_c_f16, __hmma_##shape##_st_c_f16)                    \
	RINGO_SUM(M, N, K, float, float, __hmma_##shape##_ld_c_f32, __hmma_##shape##_st_c_f32)                   \
	RINGO_PRODUCT(M, N, K, __half, __half, __half, int, int, int, 0, __hmma_##shape##_mma_f16f16)            \
	RINGO_PRODUCT(M, N, K, float, __half, __half, float, int, int, 0, __hmma_##shape##_mma_f32f16)           \
	RINGO_PRODUCT(M, N, K, __half, __half, float, int, int, float, 0, __hmma_##shape##_mma_f16f32)           \
	RINGO_PRODUCT(M, N, K, float, __half, float, float, int, float, 0, __hmma_##shape##_mma_f32f32)
#define RINGO_BYTES(M, N, K, shape)                                                                              \
	RINGO_FACTOR(matrix_a, M, N, K, signed char, int, __imma_##shape##_ld_a_s8)                              \
	RINGO_FACTOR(matrix_b, M, N, K, signed char, int, __imma_##shape##_ld_b_s8)                              \
	RINGO_FACTOR(matrix_a, M, N, K, unsigned char, int, __imma_##shape##_ld_a_u8)                            \
	RINGO_FACTOR(matrix_b, M, N, K, unsigned char, int, __imma_##shape##_ld_b_u8)                            \
	RINGO_SUM(M, N, K, int, int, __imma_##shape##_ld_c, __imma_##shape##_st_c_i32)                           \
	RINGO_PRODUCT(M, N, K, int, signed char, int, int, int, int, 1, __imma_##shape##_mma_s8)                 \
	RINGO_PRODUCT(M, N, K, int, unsigned char, int, int, int, int, 1, __imma_##shape##_mma_u8)
#define RINGO_BFLOAT16(M, N, K, shape)                                                                           \
	RINGO_FACTOR(matrix_a, M, N, K, __nv_bfloat16, int, __mma_bf16_##shape##_ld_a)                           \
	RINGO_FACTOR(matrix_b, M, N, K, __nv_bfloat16, int, __mma_bf16_##shape##_ld_b)                           \
	RINGO_PRODUCT(M, N, K, float, __nv_bfloat16, float, float, int, float, 0, __mma_bf16_##shape##_mma_f32)
#define RINGO_SHAPE(M, N, K, shape) RINGO_HALF(M, N, K, shape) RINGO_BYTES(M, N, K, shape) RINGO_BFLOAT16(M, N, K, shape)
RINGO_SHAPE(16, 16, 16, m16n16k16)
RINGO_SHAPE(32, 8, 16, m32n8k16)
RINGO_SHAPE(8, 32, 16, m8n32k16)
RINGO_FACTOR(matrix_a, 16, 16, 8, precision::tf32, int, __mma_tf32_m16n16k8_ld_a)
RINGO_FACTOR(matrix_b, 16, 16, 8, precision::tf32, int, __mma_tf32_m16n16k8_ld_b)
RINGO_SUM(16, 16, 8, float, float, __mma_tf32_m16n16k8_ld_c, __mma_m16n16k8_st_c_f32)
RINGO_PRODUCT(16, 16, 8, float, precision::tf32, float, float, int, float, 0, __mma_tf32_m16n16k8_mma_f32)
RINGO_FACTOR(matrix_a, 8, 8, 4, double, double, __dmma_m8n8k4_ld_a)
RINGO_FACTOR(matrix_b, 8, 8, 4, double, double, __dmma_m8n8k4_ld_b)
RINGO_SUM(8, 8, 4, double, double, __dmma_m8n8k4_ld_c, __dmma_m8n8k4_st_c_f64)
RINGO_PRODUCT(8, 8, 4, double, double, double, double, double, double, 0, __dmma_m8n8k4_mma_f64)
#undef RINGO_FACTOR
#undef RINGO_SUM
#undef RINGO_PRODUCT
#undef RINGO_HALF
#undef RINGO_BYTES
#undef RINGO_BFLOAT16
#undef RINGO_SHAPE

} // namespace wmma
} // namespace nvcuda
#endif

#endif
