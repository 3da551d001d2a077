// What the programs of this folder share. Their first lines say what ringo emulate has to say of each case, which the
// first argument chooses: see verdict_test.go.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// CHECK wants a call of the runtime to succeed.
#define CHECK(call)                                                                            \
	do {                                                                                       \
		cudaError_t error = (call);                                                            \
		if (error)                                                                             \
			printf("WRONG %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error)); \
	} while (0)

// MUST wants a condition of the host to hold.
#define MUST(condition)                                                        \
	do {                                                                       \
		if (!(condition))                                                      \
			printf("WRONG %s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
	} while (0)

// device gives n elements of zeros on the current GPU.
template <class T> static T *device(int n) {
	T *p = nullptr;
	CHECK(cudaMalloc(&p, n * sizeof(T)));
	CHECK(cudaMemset(p, 0, n * sizeof(T)));
	return p;
}

// host gives element i of an array on a GPU.
template <class T> static T host(const T *p, int i = 0) {
	T v;
	CHECK(cudaMemcpy(&v, p + i, sizeof v, cudaMemcpyDeviceToHost));
	return v;
}

// is reports whether the first argument names a case.
static inline bool is(char **argv, const char *name) { return argv[1] && !strcmp(argv[1], name); }
