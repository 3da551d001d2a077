// CASE barrier_part: bad instruction
// CASE barrier_whole_warps: none
// CASE barrier_ended: none
// CASE barrier_loop: bad instruction
// CASE barrier_two: bad instruction
// CASE shuffle: none
// CASE shuffle_half: none
// CASE shuffle_scan: none
// CASE shuffle_ended: bad instruction
// CASE shuffle_not_in_mask: bad instruction
// CASE shuffle_not_used: none
// CASE reduce: none
// CASE reduce_lockstep: some wrong
#include "verdict.h"

// part has threads below n come to a barrier.
__global__ void part(int *v, int n) {
	__shared__ int s[64];
	int t = threadIdx.x;
	s[t] = t;
	if (t < n)
		__syncthreads();
	v[t] = s[t];
}

// ended has threads from n on return early, as where the data are no multiple of the block.
__global__ void ended(int *v, int n) {
	__shared__ int s[64];
	int t = threadIdx.x;
	if (t >= n) {
		v[t] = -1;
		return;
	}
	s[t] = t;
	__syncthreads();
	v[t] = s[n - 1 - t];
}

// loop has threads come to a barrier as often as they have data.
__global__ void loop(int *v, int n) {
	int sum = 0;
	for (int i = threadIdx.x; i < n; i += 64) {
		sum += i;
		__syncthreads();
	}
	v[threadIdx.x] = sum;
}

__global__ void two(int *v) {
	if (threadIdx.x & 1) {
		__syncthreads();
		v[threadIdx.x] = 1;
	} else {
		__syncthreads();
		v[threadIdx.x] = 2;
	}
}

// sum adds up the numbers of the first n threads of a warp.
__global__ void sum(int *v, int n) {
	int t = threadIdx.x, s = t;
	if (t >= n)
		return;
	unsigned all = n == 32 ? ~0u : (1u << n) - 1;
	for (int o = 16; o; o /= 2)
		if (o < n)
			s += __shfl_down_sync(all, s, o);
	if (t == 0)
		*v = s;
}

// scan has each thread add up what those before it have, in each half of a warp.
__global__ void scan(int *v) {
	int t = threadIdx.x, lane = t % 16, s = 1;
	for (int o = 1; o < 16; o *= 2) {
		int more = __shfl_up_sync(t < 16 ? 0xffffu : 0xffff0000u, s, o);
		if (lane >= o)
			s += more;
	}
	v[t] = s;
}

// neighbour has each of the first n threads take the number of the next; who has none may keep its own.
__global__ void neighbour(int *v, int n, bool keeps) {
	int t = threadIdx.x;
	if (t >= n)
		return;
	int next = __shfl_down_sync((1u << n) - 1, t, 1);
	v[t] = keeps && t == n - 1 ? t : next;
}

__global__ void outside(int *v) {
	int t = threadIdx.x;
	if (t < 16)
		v[t] = __shfl_sync(0xffff, t, 20);
}

// reduce adds up 64 ones by a warp; without waits its threads have to go side by side.
__global__ void reduce(int *v, bool waits) {
	__shared__ int numbers[128];
	volatile int *s = numbers;
	int t = threadIdx.x;
	s[t] = 1;
	s[t + 64] = 0;
	__syncthreads();
	if (t >= 32)
		return;
	for (int o = 32; o; o /= 2) {
		int more = s[t + o];
		if (waits)
			__syncwarp();
		s[t] += more;
		if (waits)
			__syncwarp();
	}
	if (t == 0)
		*v = s[0];
}

int main(int, char **argv) {
	int *v = device<int>(64);
	if (is(argv, "barrier_part")) {
		part<<<1, 64>>>(v, 40);
	} else if (is(argv, "barrier_whole_warps")) {
		part<<<1, 64>>>(v, 32);
		MUST(host(v, 63) == 63);
	} else if (is(argv, "barrier_ended")) {
		ended<<<1, 64>>>(v, 40);
		MUST(host(v, 39) == 0 && host(v, 40) == -1);
	} else if (is(argv, "barrier_loop")) {
		loop<<<1, 64>>>(v, 100);
	} else if (is(argv, "barrier_two")) {
		two<<<1, 64>>>(v);
	} else if (is(argv, "shuffle")) {
		sum<<<1, 32>>>(v, 32);
		MUST(host(v) == 31 * 16);
	} else if (is(argv, "shuffle_half")) {
		sum<<<1, 32>>>(v, 16);
		MUST(host(v) == 15 * 8);
	} else if (is(argv, "shuffle_scan")) {
		scan<<<1, 32>>>(v);
		MUST(host(v, 31) == 16);
	} else if (is(argv, "shuffle_ended") || is(argv, "shuffle_not_used")) {
		neighbour<<<1, 32>>>(v, 20, is(argv, "shuffle_not_used"));
	} else if (is(argv, "shuffle_not_in_mask")) {
		outside<<<1, 32>>>(v);
	} else {
		for (int round = 0; round < 10; round++) {
			reduce<<<1, 64>>>(v, is(argv, "reduce"));
			MUST(host(v) == 64);
		}
	}
	cudaDeviceSynchronize();
	cudaFree(v);
}
