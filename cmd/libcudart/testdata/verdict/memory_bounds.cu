// CASE inside: none
// CASE next: out of bounds
// CASE previous: out of bounds
// CASE rounded: out of bounds
// CASE megabytes: out of bounds
// CASE pooled: out of bounds
// CASE freed: out of bounds
// CASE constant: out of bounds
// CASE global: out of bounds
// CASE shared: none
// CASE sharedNext: out of bounds
// CASE sharedBorder: out of bounds
// CASE sharedBefore: out of bounds
// CASE sharedAtomic: out of bounds
// CASE limits: none
// CASE local: out of bounds
// memory_bounds.cu uses memory beyond what was asked for.
#include "verdict.h"

static __global__ void put(char *p, long at) { p[at + threadIdx.x] = 1; }

__constant__ int constants[16];
__device__ int variable[16], neighbour[16];
static __global__ void read(int *to, int at) { to[threadIdx.x] = constants[at + threadIdx.x]; }
static __global__ void write(int at) {
	neighbour[threadIdx.x] = 1;
	variable[at + threadIdx.x] = 1;
}

// fill uses two static arrays and the dynamic one, the first and the second from an element on.
static __global__ void fill(int *to, int first, int second) {
	__shared__ int a[32], b[32];
	extern __shared__ int c[];
	int t = threadIdx.x;
	a[t] = b[t] = c[t] = t;
	__syncthreads();
	a[first + t] = 1;
	b[second + t] = 2;
	__syncthreads();
	to[t] = a[31 - t] + b[31 - t] + c[31 - t];
}

static __global__ void add(int *to, int at) {
	__shared__ int a[4], b[4];
	if (threadIdx.x < 4)
		a[threadIdx.x] = b[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(a + at, 1);
	__syncthreads();
	to[threadIdx.x] = a[threadIdx.x % 4] + b[threadIdx.x % 4];
}

// large has as much static shared memory as there is.
static __global__ void large(int *to) {
	__shared__ int a[4096], b[4096], c[4096];
	for (int i = threadIdx.x; i < 4096; i += 32)
		a[i] = b[i] = c[i] = i;
	__syncthreads();
	to[threadIdx.x] = a[4095 - threadIdx.x] + b[threadIdx.x] + c[threadIdx.x];
}

static __global__ void stack(int *to, int n) {
	int a[8], s = 0;
	for (int i = 0; i < n; i++)
		((volatile int *)a)[i] = i;
	for (int i = 0; i < 8; i++)
		s += a[(i * n) % 8];
	to[threadIdx.x] = s;
}

int main(int, char **argv) {
	int *to = device<int>(32);
	char *p = device<char>(100), *q = device<char>(100);
	if (is(argv, "inside"))
		put<<<1, 32>>>(p, 68);
	else if (is(argv, "next"))
		put<<<1, 32>>>(p, 69);
	else if (is(argv, "previous"))
		put<<<1, 32>>>(q, -1);
	else if (is(argv, "rounded")) // the driver gives 256 bytes
		put<<<1, 32>>>(p, 120);
	else if (is(argv, "megabytes"))
		put<<<1, 32>>>(p, 4 << 20);
	else if (is(argv, "pooled")) {
		char *a, *b;
		CHECK(cudaMallocAsync(&a, 100, 0));
		CHECK(cudaMallocAsync(&b, 100, 0));
		CHECK(cudaMemset(b, 0, 100));
		put<<<1, 32>>>(a, 512);
		cudaFreeAsync(a, 0);
		cudaFreeAsync(b, 0);
	} else if (is(argv, "freed")) { // other memory has been allocated since
		CHECK(cudaFree(p));
		p = device<char>(100);
		CHECK(cudaFree(p));
		char *other = device<char>(100);
		put<<<1, 32>>>(p, 0);
		cudaDeviceSynchronize();
		cudaFree(other);
		p = nullptr;
	} else if (is(argv, "constant"))
		read<<<1, 16>>>(to, 1);
	else if (is(argv, "global"))
		write<<<1, 16>>>(1);
	else if (is(argv, "shared")) {
		fill<<<1, 32, 128>>>(to, 0, 0);
		MUST(host(to, 3) == 3 + 28);
	} else if (is(argv, "sharedNext"))
		fill<<<1, 32, 128>>>(to, 1, 0);
	else if (is(argv, "sharedBorder"))
		fill<<<1, 32, 128>>>(to, 0, 1);
	else if (is(argv, "sharedBefore"))
		fill<<<1, 32, 128>>>(to, -1, 0);
	else if (is(argv, "sharedAtomic"))
		add<<<1, 8>>>(to, 4);
	else if (is(argv, "limits")) {
		large<<<1, 32>>>(to);
		MUST(host(to, 1) == 4094 + 2);
		cudaFuncAttributes attributes;
		CHECK(cudaFuncGetAttributes(&attributes, large));
		MUST(attributes.sharedSizeBytes == 3 * 4096 * 4);
		fill<<<1, 32, (48 << 10) - 256>>>(to, 0, 0);
		CHECK(cudaGetLastError());
	} else if (is(argv, "local"))
		stack<<<1, 32>>>(to, 100);
	cudaDeviceSynchronize();
	cudaFree(to);
	cudaFree(p);
	cudaFree(q);
}
