// A libcuda.so.1 in front of the driver's or the emulator's, which counts the calls of the functions that an all-reduce
// needs and the time in them, and while idle is not 0 has them do nothing: what is left of a call's time is the library's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

int idle;

#define LIST(F)                                                                                      \
	F(cuCtxPushCurrent_v2) F(cuCtxPopCurrent_v2) F(cuCtxGetCurrent) F(cuCtxSetCurrent)           \
	F(cuStreamIsCapturing) F(cuStreamGetCaptureInfo_v2) F(cuStreamGetId)                        \
	F(cuStreamWaitEvent) F(cuEventRecord) F(cuLaunchKernel) F(cuLaunchKernelEx) F(cuMemcpyAsync) \
	F(cuPointerGetAttribute) F(cuPointerGetAttributes) F(cuThreadExchangeStreamCaptureMode)           \
	F(cuStreamSynchronize) F(cuEventQuery) F(cuMemcpyHtoD_v2)

#define NUMBER(name) N_##name,
enum { LIST(NUMBER) FUNCTIONS };

#define NAME(name) #name,
const char *idle_names[] = {LIST(NAME) NULL};
unsigned long idle_counts[FUNCTIONS], idle_ns[FUNCTIONS];

static unsigned long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

typedef uintptr_t word;
typedef int (*function)(word, word, word, word, word, word, word, word, word, word, word);

// answer is what a function answers that does nothing. The current context stays what it is.
static int answer(int n, word a, word b)
{
	static __thread word current;
	switch (n) {
	case N_cuCtxGetCurrent:
		if (!current)
			((int (*)(word *))dlsym(RTLD_NEXT, "cuCtxGetCurrent"))(&current);
		*(word *)a = current;
		break;
	case N_cuStreamIsCapturing:
		*(int *)b = 0;
		break;
	case N_cuStreamGetId:
		*(word *)b = 7;
		break;
	}
	return 0;
}

// A counted function has a name of this library alone, for the linker may take another library's of that name.
#define DEFINE(name)                                                                                             \
	static int counted_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k) \
	{                                                                                                        \
		static function next;                                                                            \
		__atomic_add_fetch(&idle_counts[N_##name], 1, __ATOMIC_RELAXED);                                 \
		if (idle)                                                                                        \
			return answer(N_##name, a, b);                                                           \
		if (!next)                                                                                       \
			next = (function)dlsym(RTLD_NEXT, #name);                                                \
		unsigned long began = now();                                                                     \
		int result = next(a, b, c, d, e, f, g, h, i, j, k);                                              \
		__atomic_add_fetch(&idle_ns[N_##name], now() - began, __ATOMIC_RELAXED);                         \
		return result;                                                                                   \
	}                                                                                                        \
	int name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k)         \
		__attribute__((alias("counted_" #name)));
LIST(DEFINE)

// A driver's functions are asked for by name and version: those that are counted are the ones above.
#define ADDRESS(name) (void *)counted_##name,
static void *const counted[] = {LIST(ADDRESS)};

int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status)
{
	typedef int (*get)(const char *, void **, int, uint64_t, int *);
	int result = ((get)dlsym(RTLD_NEXT, "cuGetProcAddress_v2"))(name, f, version, flags, status);
	size_t n = strlen(name);
	for (int i = 0; result == 0 && i < FUNCTIONS; i++)
		if (strncmp(idle_names[i], name, n) == 0 && (idle_names[i][n] == 0 || strcmp(idle_names[i] + n, "_v2") == 0))
			*f = counted[i];
	return result;
}
