// ringo_norm.h by processes: all rows at once, one by one, and in graphs, with the same bits.
//
//	norm process RANK SIZE FILE   FILE is where the ranks meet
#include <math.h>

#include "memory.h"
#include "ringo_norm.h"

enum { ROWS = 6, ROW = 40, ALL = ROWS * ROW, RANKS = 8 };

static float in[RANKS * ALL], sum[ALL], normed[ALL], scales[ROWS], again[ALL], weight[ROW], residual[ALL];
static signed char small[ALL];

// element is what a rank contributes: whole numbers, whose sums are exact.
static float element(int rank, int i) { return (float)((i * 7 + rank * 13) % 32 - 15); }

int main(int argc, char **argv)
{
	alarm(300);
	CHECK(argc == 5);
	int rank = atoi(argv[2]), size = atoi(argv[3]);
	context c = use_device(device_of(rank));
	ncclComm_t comm;
	OK(ncclCommInitRank(&comm, size, meet(argv[4], rank), rank));
	cudaStream_t s = new_stream(c);
	for (int i = 0; i < size * ALL; i++)
		in[i] = element(rank, i);
	for (int i = 0; i < ALL; i++)
		residual[i] = (float)(i % 5);
	for (int i = 0; i < ROW; i++)
		weight[i] = 1 + (float)i / 64;
#define ON_GPU(name) void *gpu_##name = place(c, name, sizeof name)
	ON_GPU(in);
	ON_GPU(sum);
	ON_GPU(normed);
	ON_GPU(small);
	ON_GPU(scales);
	ON_GPU(weight);
	ON_GPU(residual);
	ON_GPU(again);
	push(c, gpu_in, in, sizeof in, s);
	push(c, gpu_weight, weight, sizeof weight, s);
	push(c, gpu_residual, residual, sizeof residual, s);

	ringo_norm n = {
	    .size = sizeof n, .rows = ROWS, .row = ROW, .type = ncclFloat32, .epsilon = 1e-5f, .small_type = RINGO_SMALL_INT8, .in = gpu_in,
	    .residual = gpu_residual, .weight = gpu_weight, .sum = gpu_sum, .normed = gpu_normed, .small = gpu_small, .scales = gpu_scales,
	};
	for (int scatters = 0; scatters < 2; scatters++) {
		OK(scatters ? ringo_reduce_scatter_norm(&n, comm, s) : ringo_all_reduce_norm(&n, comm, s));
		pull(c, sum, gpu_sum, sizeof sum, s);
		pull(c, normed, gpu_normed, sizeof normed, s);
		pull(c, small, gpu_small, sizeof small, s);
		pull(c, scales, gpu_scales, sizeof scales, s);
		for (int row = 0; row < ROWS; row++) {
			double squares = 0, most = 0;
			for (int i = row * ROW; i < (row + 1) * ROW; i++) {
				float want = residual[i];
				for (int r = 0; r < size; r++)
					want += element(r, i + (scatters ? rank * ALL : 0));
				if (sum[i] != want)
					fail(__LINE__, "element %d: %g, want %g", i, sum[i], want);
				squares += (double)want * want;
			}
			for (int i = row * ROW; i < (row + 1) * ROW; i++) {
				double want = sum[i] / sqrt(squares / ROW + 1e-5) * weight[i % ROW];
				if (fabs(normed[i] - want) > 1e-5)
					fail(__LINE__, "element %d: %g, want %g", i, normed[i], want);
				most = fmax(most, fabs(normed[i]));
			}
			if (fabs(scales[row] - most / 127) > 1e-6)
				fail(__LINE__, "scale of row %d: %g, want %g", row, scales[row], most / 127);
			for (int i = row * ROW; i < (row + 1) * ROW; i++)
				if (fabs(small[i] * scales[row] - normed[i]) > scales[row] * 0.51)
					fail(__LINE__, "element %d: %d in 8 bits by %g, want %g", i, small[i], scales[row], normed[i]);
		}
		if (scatters)
			break;
		// One by one, in a group: the same bits.
		OK(ncclGroupStart());
		for (int row = 0; row < ROWS; row++) {
			ringo_norm one = n;
			one.rows = 1, one.small_type = RINGO_SMALL_NONE, one.small = NULL, one.scales = NULL, one.sum = NULL;
			one.in = (float *)gpu_in + row * ROW, one.residual = (float *)gpu_residual + row * ROW, one.normed = (float *)gpu_again + row * ROW;
			OK(ringo_all_reduce_norm(&one, comm, s));
		}
		OK(ncclGroupEnd());
		pull(c, again, gpu_again, sizeof again, s);
		CHECK(!memcmp(again, normed, sizeof normed));
#ifdef GPUS
		// In a graph that is launched twice.
		graph g;
		graph_exec e;
		ringo_norm whole = n;
		whole.normed = gpu_again, whole.sum = NULL;
		ON(c, cuStreamBeginCapture_v2(s, 1));
		OK(ringo_all_reduce_norm(&whole, comm, s));
		ON(c, cuStreamEndCapture(s, &g));
		ON(c, cuGraphInstantiateWithFlags(&e, g, 0));
		for (int i = 0; i < 2; i++) {
			memset(again, 0, sizeof again);
			push(c, gpu_again, again, sizeof again, s);
			ON(c, cuGraphLaunch(e, s));
			pull(c, again, gpu_again, sizeof again, s);
			CHECK(!memcmp(again, normed, sizeof normed));
		}
		ON(c, cuGraphExecDestroy(e));
		ON(c, cuGraphDestroy(g));
#endif
	}

	ringo_norm bad = n;
	bad.size = 8;
	WRONG(ringo_all_reduce_norm(&bad, comm, s), ncclInvalidArgument, "norm.size is 8");
	bad = n, bad.row = 3;
	WRONG(ringo_all_reduce_norm(&bad, comm, s), ncclInvalidArgument, "rows of 3 elements");
	bad = n, bad.small = NULL;
	WRONG(ringo_all_reduce_norm(&bad, comm, s), ncclInvalidArgument, "Norm.SmallOut is empty");
	bad = n, bad.type = ncclInt32;
	WRONG(ringo_all_reduce_norm(&bad, comm, s), ncclInvalidArgument, "rows of int32");
	bad = n, bad.rows = (size_t)-1;
	WRONG(ringo_all_reduce_norm(&bad, comm, s), ncclInvalidArgument, "there is no memory for them");
	WRONG(ringo_all_reduce_norm(NULL, comm, s), ncclInvalidArgument, "norm is null");
	WRONG(ringo_reduce_scatter_norm(&n, NULL, s), ncclInvalidArgument, "");

	void *all[] = {gpu_in, gpu_sum, gpu_normed, gpu_small, gpu_scales, gpu_weight, gpu_residual, gpu_again};
	OK(ncclCommDestroy(comm));
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		unplace(c, all[i]);
	puts("ok");
	return 0;
}
