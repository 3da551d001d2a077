// What functions of the CUDA driver cost the thread that calls them, in ns, from C. Build and run on a machine with a GPU:
//
//	gcc -O2 -o calls calls.c -ldl -lpthread && ./calls
//
// A line is the median of batches of 48 calls, between which the GPU has nothing to do. The last one is with a thread for
// each of two GPUs at once.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uintptr_t word;
typedef int (*function)();

enum { BATCH = 48, BATCHES = 400 };

static void *lib;

static function find(const char *name)
{
	function f = (function)dlsym(lib, name);
	if (!f)
		printf("%s: not in this driver\n", name), exit(1);
	return f;
}

#define OK(call)                                                                      \
	do {                                                                          \
		int r_ = (call);                                                      \
		if (r_)                                                               \
			printf("line %d: %s: error %d\n", __LINE__, #call, r_), exit(1); \
	} while (0)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int up(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry small(.param .align 8 .b8 a[64]) { ret; }\n"
    ".visible .entry large(.param .align 8 .b8 a[720]) { ret; }\n";

struct attribute {
	unsigned id, pad;
	union {
		unsigned char bytes[64];
		struct {
			void *event;
			int flags, trigger;
		} programmatic;
	} value;
};

struct config {
	unsigned gx, gy, gz, bx, by, bz, shared;
	void *stream;
	struct attribute *attributes;
	unsigned count;
};

static pthread_barrier_t both;

// launches is the thread of one GPU: it launches and records as an all-reduce does.
static void *launches(void *gpu)
{
	void *context, *module, *small, *s, *e;
	unsigned char params[64] = {0};
	size_t size = sizeof params;
	void *extra[] = {(void *)1, params, (void *)2, &size, NULL};
	double times[BATCHES];
	int device, result = 0;
	OK(find("cuDeviceGet")(&device, (int)(intptr_t)gpu));
	OK(find("cuDevicePrimaryCtxRetain")(&context, device));
	OK(find("cuCtxSetCurrent")(context));
	OK(find("cuModuleLoadData")(&module, text));
	OK(find("cuModuleGetFunction")(&small, module, "small"));
	OK(find("cuStreamCreate")(&s, 1));
	OK(find("cuEventCreate")(&e, 2));
	function launch = find("cuLaunchKernel"), record = find("cuEventRecord"), synchronize = find("cuStreamSynchronize");
	for (int b = 0; b < BATCHES; b++) {
		pthread_barrier_wait(&both);
		double start = now();
		for (int i = 0; i < BATCH; i++)
			result |= launch(small, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra) | record(e, s);
		times[b] = (now() - start) / BATCH;
		OK(synchronize(s));
	}
	OK(result);
	qsort(times, BATCHES, sizeof *times, up);
	if (!gpu)
		printf("%-60s %6.0f\n", "cuLaunchKernel + cuEventRecord, two threads", times[BATCHES / 2]);
	return NULL;
}

int main(void)
{
	void *context, *module, *small, *large, *s, *other, *e, *pe;
	int device, status;
	unsigned long long id, host_device;
	unsigned char params[720] = {0};
	size_t size = 64, size_large = sizeof params;
	volatile unsigned long long *host;
	if (!(lib = dlopen("libcuda.so.1", RTLD_NOW)))
		return printf("%s\n", dlerror()), 1;
	OK(find("cuInit")(0));
	OK(find("cuDeviceGet")(&device, 0));
	OK(find("cuDevicePrimaryCtxRetain")(&context, device));
	OK(find("cuCtxSetCurrent")(context));
	OK(find("cuModuleLoadData")(&module, text));
	OK(find("cuModuleGetFunction")(&small, module, "small"));
	OK(find("cuModuleGetFunction")(&large, module, "large"));
	OK(find("cuStreamCreate")(&s, 1));
	OK(find("cuStreamCreate")(&other, 1));
	OK(find("cuEventCreate")(&e, 2));
	OK(find("cuEventCreate")(&pe, 2));
	OK(find("cuMemHostAlloc")((void **)&host, (size_t)4096, 2));
	OK(find("cuMemHostGetDevicePointer_v2")(&host_device, (void *)host, 0));
	*host = 1;

	function launch = find("cuLaunchKernel"), launch_ex = find("cuLaunchKernelEx"), record = find("cuEventRecord"), wait = find("cuStreamWaitEvent"),
		 capturing = find("cuStreamIsCapturing"), stream_id = find("cuStreamGetId"), push = find("cuCtxPushCurrent_v2"), pop = find("cuCtxPopCurrent_v2"),
		 current = find("cuCtxGetCurrent"), info = find("cuStreamGetCaptureInfo_v2"), query = find("cuEventQuery"), write = find("cuStreamWriteValue64_v2"),
		 wait_value = find("cuStreamWaitValue64_v2"), synchronize = find("cuStreamSynchronize");
	void *extra[] = {(void *)1, params, (void *)2, &size, NULL}, *extra_large[] = {(void *)1, params, (void *)2, &size_large, NULL};
	void *pointers[] = {params};
	struct attribute programmatic = {.id = 7, .value.programmatic = {pe, 0, 0}};
	struct config plain = {1, 1, 1, 32, 1, 1, 0, s, NULL, 0}, with_event = {1, 1, 1, 32, 1, 1, 0, s, &programmatic, 1};
	double times[BATCHES];
	int result;
	void *was;

#define LAUNCH launch(small, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra)
#define MEASURE(what, ...)                                                     \
	do {                                                                   \
		result = 0;                                                    \
		for (int b = 0; b < BATCHES && !result; b++) {                 \
			double start = now();                                  \
			for (int i = 0; i < BATCH; i++)                        \
				result |= (__VA_ARGS__);                       \
			times[b] = (now() - start) / BATCH;                    \
			OK(synchronize(s));                                    \
			OK(synchronize(other));                                \
		}                                                              \
		qsort(times, BATCHES, sizeof *times, up);                      \
		if (result)                                                    \
			printf("%-60s error %d\n", what, result);              \
		else                                                           \
			printf("%-60s %6.0f\n", what, times[BATCHES / 2]);     \
	} while (0)

	MEASURE("cuLaunchKernel, 64 bytes", LAUNCH);
	MEASURE("cuLaunchKernel, 720 bytes", launch(large, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra_large));
	MEASURE("cuLaunchKernel, 720 bytes by pointers", launch(large, 1, 1, 1, 32, 1, 1, 0, s, pointers, NULL));
	MEASURE("cuLaunchKernelEx, 64 bytes", launch_ex(&plain, small, NULL, extra));
	MEASURE("cuLaunchKernel + cuEventRecord", LAUNCH | record(e, s));
	MEASURE("cuLaunchKernel + cuEventRecord before it", record(e, s) | LAUNCH);
	MEASURE("cuLaunchKernel + cuStreamWriteValue64", LAUNCH | write(s, host_device, 1ull, 0));
	MEASURE("cuLaunchKernelEx with programmatic event", launch_ex(&with_event, small, NULL, extra));
	MEASURE("cuLaunchKernel + cuStreamWaitValue64 (is there)", wait_value(s, host_device, 1ull, 0) | LAUNCH);
	MEASURE("cuEventRecord on another stream + cuStreamWaitEvent + launch", record(e, other) | wait(s, e, 0) | LAUNCH);
	MEASURE("cuEventRecord alone", record(e, s));
	MEASURE("cuEventQuery", (query(e), 0));
	MEASURE("cuStreamIsCapturing", capturing(s, &status));
	MEASURE("cuStreamGetCaptureInfo", info(s, &status, &id, NULL, NULL, NULL));
	MEASURE("cuStreamGetId", stream_id(s, &id));
	MEASURE("cuCtxGetCurrent", current(&was));
	MEASURE("cuCtxPushCurrent + cuCtxPopCurrent", push(context) | pop(&was));

	int gpus;
	OK(find("cuDeviceGetCount")(&gpus));
	if (gpus > 1) {
		pthread_t other_gpu;
		pthread_barrier_init(&both, NULL, 2);
		pthread_create(&other_gpu, NULL, launches, (void *)1);
		launches(NULL);
		pthread_join(other_gpu, NULL);
	}
	return 0;
}
