// What kernels of other projects use of the headers: pairs of half and of bfloat16, memcpy and memset on the device, atomics of
// the system, the smaller of two, warps of a block; and what programs around them ask of the runtime.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "../../../examples/cuda/check.h"

extern "C" int cuArrayDestroy(void *); // one of cmd/libcuda/missing.c

template <typename T, typename Pair> __global__ void pairs(const Pair *a, const Pair *b, Pair *out)
{
	int i = threadIdx.x;
	Pair x = a[i], y = b[i], sum = __hadd2(x, y), product = __hmul2(x, y), all[4];
	all[0] = __hfma2(x, y, sum), all[1] = __hsub2(product, x), all[2] = __hmax2(x, y), all[3] = __hneg2(__hmin2(x, y));
	memcpy(out + 4 * i, all, sizeof all);
}

__global__ void rest(int *v, cooperative_groups::thread_block_tile<32> *)
{
	auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
	atomicSub_system(v, 2);
	if (threadIdx.x == 0) {
		memset(v + 1, 1, sizeof(int));
		v[2] = (int)umin(7u, 5u) + 10 * (int)umax(7u, 5u);
		v[3] = (int)warp.meta_group_size();
	}
	if (warp.thread_rank() == 0)
		atomicAdd(v + 4, (int)warp.meta_group_rank());
}

template <typename T, typename Pair> static void pairsOf(const char *name)
{
	enum { n = 32 };
	Pair *a, *b, *out;
	CHECK(cudaMallocManaged(&a, n * sizeof(Pair)));
	CHECK(cudaMallocManaged(&b, n * sizeof(Pair)));
	CHECK(cudaMallocManaged(&out, 4 * n * sizeof(Pair)));
	for (int i = 0; i < n; i++) // small whole numbers: all results are exact
		a[i] = {T(float(i % 5 - 2)), T(float(i % 3))}, b[i] = {T(float(3 - i % 4)), T(float(i % 7 - 3))};
	pairs<T, Pair><<<1, n>>>(a, b, out);
	CHECK(cudaDeviceSynchronize());
	int wrong = 0;
	for (int i = 0; i < n; i++)
		for (int half = 0; half < 2; half++) {
			float x = half ? float(a[i].y) : float(a[i].x), y = half ? float(b[i].y) : float(b[i].x);
			float want[] = {x * y + (x + y), x * y - x, x > y ? x : y, -(x < y ? x : y)};
			for (int k = 0; k < 4; k++)
				wrong += (half ? float(out[4 * i + k].y) : float(out[4 * i + k].x)) != want[k];
		}
	printf("%s: %d wrong\n", name, wrong);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(out));
}

int main()
{
	pairsOf<__half, __half2>("half");
	pairsOf<__nv_bfloat16, __nv_bfloat162>("bfloat16");

	int *v, host[5], zero[5] = {200, 0, 0, 0, 0}, back[5];
	CHECK(cudaMalloc(&v, sizeof host));
	CHECK(cudaMemcpy(v, zero, sizeof zero, cudaMemcpyHostToDevice));
	rest<<<1, 96>>>(v, nullptr);
	CHECK(cudaMemcpy(host, v, sizeof host, cudaMemcpyDeviceToHost));
	printf("rest: %d %#x %d %d %d\n", host[0], host[1], host[2], host[3], host[4]);

	void *start;
	if (cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)(v + 3)) != CUDA_SUCCESS || start != v)
		printf("wrong start\n");
	int managed = 0, pools = 0, cluster = 0;
	CHECK(cudaDeviceGetAttribute(&managed, (cudaDeviceAttr)83, 0));
	CHECK(cudaDeviceGetAttribute(&pools, (cudaDeviceAttr)115, 0));
	cudaLaunchConfig_t config = {};
	config.gridDim = 1, config.blockDim = 96;
	CHECK(cudaOccupancyMaxPotentialClusterSize(&cluster, rest, &config));

	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaMemcpy3DParms copy = {};
	copy.srcPtr = make_cudaPitchedPtr(v, sizeof back, 5, 1);
	copy.dstPtr = make_cudaPitchedPtr(back, sizeof back, 5, 1);
	copy.extent = make_cudaExtent(sizeof back, 1, 1);
	copy.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	void *found = nullptr;
	int procedure = cuGetProcAddress("cuArrayDestroy", &found, 12040, 0, nullptr);
	printf("missing: %d %d %d\n", procedure, found != nullptr, cuArrayDestroy(nullptr));
	printf("graph: %s; %d %d %d\n", memcmp(back, host, sizeof host) ? "wrong" : "right", managed, pools, cluster);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(v));
}
