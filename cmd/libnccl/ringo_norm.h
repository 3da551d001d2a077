/* ringo_norm.h is what libnccl.so.2 has for serving beside NCCL's interface: an all-reduce or a reduce-scatter of rows
 * (tokens), and what follows it in the same kernel: bias, residual, RMSNorm, and the row in 8 bits. A row's results have the same bits
 * in every batch, by every algorithm, in graphs and outside, and on every path between GPUs.
 *
 * A call is one of NCCL's: on a stream, in groups, captured into graphs, in the order of the communicator's other calls.
 * Errors are those of NCCL's calls, and ncclGetLastError has the sentence. The functions take communicators of this library alone.
 */
#ifndef RINGO_NORM_H
#define RINGO_NORM_H

#include <stddef.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { RINGO_SMALL_NONE = 0, RINGO_SMALL_FLOAT8_E4M3 = 1, RINGO_SMALL_INT8 = 2 } ringo_small;

/* Memory is the GPU's of the communicator, aligned to 8 bytes, and to 4 where elements have 8 bits. A null pointer is not there, or
 * not wanted. Set what is not used to 0. sum and normed may each be in (of a reduce-scatter this rank's rows there), or residual. */
typedef struct {
	size_t size;         /* sizeof(ringo_norm) */
	size_t rows;         /* of this rank's result; in of a reduce-scatter has as many for each rank */
	size_t row;          /* elements: whole words of 8 bytes, 64 KiB at most */
	ncclDataType_t type; /* ncclFloat16, ncclBfloat16 or ncclFloat32 */
	float epsilon;       /* is added to the mean of squares */
	int plus_one;        /* elements are multiplied by 1 + weight */
	ringo_small small_type;
	const void *in;       /* contributions; they are added in float32, in order of rank */
	const void *residual; /* [rows][row], added, the same on all ranks of an all-reduce */
	const void *bias;     /* [row], added */
	const void *weight;   /* [row] */
	void *sum;            /* [rows][row]: all that was added, rounded once: the new residual */
	void *normed;         /* [rows][row] */
	void *small;          /* [rows][row] bytes: normed / scale */
	const float *scale;   /* of all rows; null: each has its own, its greatest magnitude by 448 or 127, */
	float *scales;        /* [rows], which goes here */
} ringo_norm;

ncclResult_t ringo_all_reduce_norm(const ringo_norm *norm, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ringo_reduce_scatter_norm(const ringo_norm *norm, ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
