// CASE forked: none
// CASE forked_kernel: none
// CASE fork_first: none
// CASE fork_uses_driver: none
// CASE forked_twice: none
// CASE fork_execs: none
// CASE destroyed_late: none
// CASE made_late: none
// CASE forgotten: leak
// CASE no_function: failed call
// CASE not_initialized: failed call
// CASE asserts: assertion
// CASE traps: bad instruction
// CASE misaligned: misaligned
// CASE beyond: out of bounds
// FLAGS -lcuda
// EMULATE -g 2 -allow *=cudaErrorInitializationError
#include "verdict.h"

#include <cassert>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int *p) { atomicAdd(p, 1); }
__global__ void fails(char *p, int how) {
	switch (how) {
	case 0: assert(p == nullptr); break;
	case 1: __trap(); break;
	case 2: *(int *)(p + 2) = 1; break;
	case 3: p[1 << 24] = 1; break;
	}
}

// An object of the program's whole life, which gives back when the process ends.
struct object {
	int *p = nullptr;
	cudaStream_t s = nullptr;
	cudaEvent_t e = nullptr;
	bool late = false;
	void make(bool later) {
		late = later;
		p = device<int>(16);
		CHECK(cudaStreamCreate(&s));
		CHECK(cudaEventCreate(&e));
		CHECK(cudaDeviceSynchronize());
		add<<<1, 1, 0, s>>>(p);
	}
	~object() {
		if (!p)
			return;
		cudaError_t want = late ? cudaSuccess : cudaErrorCudartUnloading;
		MUST(cudaStreamSynchronize(s) == want);
		MUST(cudaEventDestroy(e) == want);
		MUST(cudaStreamDestroy(s) == want);
		MUST(cudaFree(p) == want);
		MUST(late || cudaGetLastError() == want);
		fflush(stdout);
	}
};
static object early;

static void use() {
	int *p = device<int>(16);
	add<<<1, 32>>>(p);
	CHECK(cudaDeviceSynchronize());
	MUST(host(p) == 32);
	CHECK(cudaFree(p));
}

// refused wants each call in the child of a fork to be refused.
static void refused(int *p) {
	int n, *q;
	CUdeviceptr d;
	const char *text = nullptr;
	MUST(cudaGetDeviceCount(&n) == cudaSuccess); // known from before the fork
	MUST(cudaMalloc(&q, 64) == cudaErrorInitializationError);
	MUST(cudaMemset(p, 0, 4) == cudaErrorInitializationError);
	MUST(cudaFree(p) == cudaErrorInitializationError);
	MUST(cudaDeviceSynchronize() == cudaErrorInitializationError);
	MUST(cudaGetLastError() == cudaErrorInitializationError);
	add<<<1, 1>>>(p);
	MUST(cudaGetLastError() == cudaErrorInitializationError);
	MUST(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
	MUST(cuMemAlloc(&d, 64) == CUDA_ERROR_NOT_INITIALIZED);
	MUST(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED);
	MUST(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text) == CUDA_SUCCESS && !strcmp(text, "CUDA_ERROR_NOT_INITIALIZED"));
}

template <class F> static void child(F f) {
	fflush(stdout);
	pid_t k = fork();
	if (!k) {
		alarm(60);
		f();
		exit(0);
	}
	int status = -1;
	MUST(waitpid(k, &status, 0) == k && status == 0);
}

int main(int, char **argv) {
	if (is(argv, "execs"))
		use();
	else if (is(argv, "forked") || is(argv, "forked_kernel") || is(argv, "forked_twice")) {
		int *p = device<int>(16);
		add<<<1, 1>>>(p);
		if (!is(argv, "forked_kernel"))
			CHECK(cudaDeviceSynchronize());
		child([&] {
			refused(p);
			if (is(argv, "forked_twice"))
				child([&] { refused(p); });
		});
		CHECK(cudaDeviceSynchronize());
		MUST(host(p) == 1);
		CHECK(cudaFree(p));
	} else if (is(argv, "fork_first")) {
		child(use);
		use();
	} else if (is(argv, "fork_uses_driver")) {
		int version;
		CHECK(cudaRuntimeGetVersion(&version));
		child([] {
			CUdeviceptr p;
			CUcontext c;
			MUST(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS && cuCtxSetCurrent(c) == CUDA_SUCCESS);
			MUST(cuMemAlloc(&p, 64) == CUDA_SUCCESS && cuMemFree(p) == CUDA_SUCCESS);
		});
		use();
	} else if (is(argv, "fork_execs")) {
		use();
		child([] { execl("/proc/self/exe", "api", "execs", (char *)nullptr); });
	} else if (is(argv, "destroyed_late")) {
		early.make(false);
	} else if (is(argv, "made_late")) {
		use();
		static object later;
		later.make(true);
	} else if (is(argv, "forgotten")) {
		(new object)->make(true);
		CHECK(cudaDeviceSynchronize());
	} else if (is(argv, "no_function")) {
		cudaStream_t s;
		CHECK(cudaStreamCreate(&s));
		MUST(cudaLaunchHostFunc(s, nullptr, nullptr) == cudaErrorInvalidValue);
		MUST(cudaStreamAddCallback(s, nullptr, nullptr, 0) == cudaErrorInvalidValue);
		MUST(cuLaunchHostFunc(s, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
		CHECK(cudaStreamSynchronize(s));
		CHECK(cudaStreamDestroy(s));
	} else if (is(argv, "not_initialized")) {
		int n;
		CUdeviceptr p;
		MUST(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED);
		MUST(cuMemAlloc(&p, 64) == CUDA_ERROR_NOT_INITIALIZED);
		MUST(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&n) == CUDA_SUCCESS);
	} else {
		static const struct {
			const char *name;
			cudaError_t want;
		} ways[] = {{"asserts", cudaErrorAssert}, {"traps", cudaErrorLaunchFailure}, {"misaligned", cudaErrorMisalignedAddress}, {"beyond", cudaErrorIllegalAddress}};
		for (int how = 0; how < 4; how++) {
			if (!is(argv, ways[how].name))
				continue;
			char *p = device<char>(64);
			void *q;
			fails<<<1, 1>>>(p, how);
			for (int times = 0; times < 2; times++)
				MUST(cudaDeviceSynchronize() == ways[how].want);
			MUST(cudaMalloc(&q, 4) == ways[how].want && cudaMemset(p, 0, 4) == ways[how].want);
			CHECK(cudaDeviceReset());
		}
	}
	return 0;
}
