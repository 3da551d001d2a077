// CASE softmax: none
// CASE fast: prints ex2.approx.ftz.f32, lg2.approx.ftz.f32, sin.approx.ftz.f32 may differ
// CASE every: none
// CASE classes: none
// CASE tree: none
// CASE pointers: none
// CASE deep: out of bounds
// CASE deeper: none
// CASE nowhere: bad call
// CASE heap: none
// CASE full: none
// CASE behind: out of bounds
// CASE freed: out of bounds
// CASE twice: bad free
// CASE unwritten: read of unwritten memory
// CASE race: race
// CASE draws: none
// CASE integers: none
// CASE matrix: fails products of matrices by four warps: not emulated, expected mma.sync
// CASE others: fails kernel square
#include "verdict.h"
#include <cmath>

// softmax normalizes 32 values by exponentials.
__global__ void softmax(float *v) {
	float e = expf(v[threadIdx.x]), sum = e;
	for (int by = 16; by > 0; by /= 2)
		sum += __shfl_xor_sync(~0u, sum, by);
	v[threadIdx.x] = e / sum;
}

// fast uses the hardware's approximations.
__global__ void fast(float *v) {
	float x = 1 + threadIdx.x;
	v[threadIdx.x] = __sinf(x) * __sinf(x) + __expf(__logf(x));
}

// every has functions whose results are known without a table.
__global__ void every(double *v) {
	double x = 0.3 + threadIdx.x * 0.01, s, c, whole;
	float y = (float)x;
	int e;
	sincos(x, &s, &c);
	double bad = fabs(s * s + c * c - 1) + fabs(log(exp(x)) - x) + fabs(erf(x) + erfc(x) - 1) + fabs(cbrt(x) * cbrt(x) * cbrt(x) - x);
	bad += fabs(ldexp(frexp(x, &e), e) - x) + fabs(modf(x + 2, &whole) - x) + fabs(whole - 2) + fabs(erfinv(erf(x)) - x);
	bad += fabs(tan(atan(x)) - x) + fabs(sinh(asinh(x)) - x) + fabs(pow(x, 3.) - x * x * x) + fabs(exp2(log2(x)) - x);
	bad += fabs(tgamma(x + 1) - x * tgamma(x)) + fabs(lgamma(x) - log(tgamma(x))) + fabs(normcdf(x) + normcdf(-x) - 1);
	bad += fabs(hypot(3 * x, 4 * x) - 5 * x) + fabs(rsqrt(x) * sqrt(x) - 1) + fabs(sinpi(x) - sin(x * M_PI)) + fabs(fmod(5 + x, 1.) - x);
	bad += fabs(expm1(log1p(x)) - x) + fabs(exp10(log10(x)) - x) + fabs(acos(cos(x)) - x) + fabs(tanh(atanh(x)) - x);
	v[threadIdx.x] = bad;
	float b = fabsf(sinf(y) * sinf(y) + cosf(y) * cosf(y) - 1) + fabsf(logf(expf(y)) - y) + fabsf(powf(y, 2) - y * y);
	b += fabsf(tanhf(y) - sinhf(y) / coshf(y)) + fabsf(rsqrtf(y) * sqrtf(y) - 1) + fabsf(exp10f(log10f(y)) - y) + fabsf(erff(y) + erfcf(y) - 1);
	v[threadIdx.x + 32] = b * 1e-6;
}

// Shapes have virtual functions.
struct Shape {
	int side;
	__device__ Shape(int n) : side(n) {}
	__device__ virtual int area() const = 0;
	__device__ virtual ~Shape() {}
};
struct Square : Shape {
	using Shape::Shape;
	__device__ int area() const override { return side * side; }
};
struct Twice : Shape {
	Shape *of;
	__device__ Twice(Shape *s) : Shape(0), of(s) {}
	__device__ ~Twice() override { delete of; }
	__device__ int area() const override { return 2 * of->area(); }
};
__global__ void classes(int *v) {
	Shape *s = new Square(threadIdx.x);
	if (threadIdx.x % 2)
		s = new Twice(s);
	v[threadIdx.x] = s->area();
	delete s;
}

// A sum over a binary tree whose nodes lie in the stack; each level hands down the address of its own array.
__device__ __noinline__ int tree(int depth, const int *above) {
	int own[3] = {depth, above[1] + 1, above[2]};
	if (depth == 0)
		return own[1];
	int left = tree(depth - 1, own), right = tree(depth - 1, own);
	return left + right + own[0] - depth + own[2] - above[2];
}
__global__ void sum(int *v) {
	int root[3] = {0, 7, 0};
	v[threadIdx.x] = tree(threadIdx.x % 4, root);
}

// Functions by their addresses: from a table, from the host, by a choice.
typedef int (*Function)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ Function table[2] = {plus, times};
__constant__ Function chosen;
__device__ Function last = nullptr;
__global__ void pointers(int *v) {
	Function f = threadIdx.x % 3 ? plus : times;
	v[threadIdx.x] = f(threadIdx.x, 3) + table[threadIdx.x % 2](2, 5) * 100 + chosen(4, 4) * 10000;
}
__global__ void nowhere(int *v) { v[0] = last(1, 2); }

// descend takes some 300 bytes of stack a level.
__device__ __noinline__ int descend(int n, volatile int *v) {
	volatile int own[64];
	for (int i = 0; i < 64; i++)
		own[i] = n;
	return n == 0 ? v[0] : descend(n - 1, v) + own[n % 64] - n;
}
__global__ void deep(int *v, int n) { v[threadIdx.x] = descend(n, v + 64); }

// Memory of malloc in kernels.
__global__ void heap(int *v, int n, int at) {
	int *p = (int *)malloc(n * sizeof *p);
	if (!p) {
		v[threadIdx.x] = -1;
		return;
	}
	for (int i = 0; i < n; i++)
		p[i] = i;
	v[threadIdx.x] = p[at];
	free(p);
}
__device__ int *kept;
__global__ void give(int what) {
	kept = (int *)malloc(40);
	if (what)
		kept[0] = 1;
	if (what == 2)
		free(kept);
}
__global__ void take(int *v, bool twice) {
	if (twice)
		free(kept);
	else
		v[blockIdx.x] = kept[0]++;
}

// draws is a Monte Carlo estimate of pi that touches no memory for long.
__global__ void draws(int *v) {
	unsigned x = threadIdx.x * 747796405u + 1, in = 0;
	for (int i = 0; i < 5000; i++) {
		x = x * 1664525u + 1013904223u;
		float a = (x >> 9) * 0x1p-23f;
		x = x * 1664525u + 1013904223u;
		float b = (x >> 9) * 0x1p-23f;
		in += a * a + b * b < 1;
	}
	v[threadIdx.x] = in;
}

// integers are what a few instructions give, against the same in C.
__global__ void integers(int *v) {
	unsigned a = 0x87654321u * (threadIdx.x + 1), b = 0x00fedcbau * (threadIdx.x + 3), d;
	int wrong = 0;
	long long s = (long long)((int)(a << 8) >> 8) * ((int)(b << 8) >> 8), u = (long long)(a & 0xffffff) * (b & 0xffffff);
	asm("mad24.lo.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(5));
	wrong += d != (unsigned)u + 5;
	asm("mad24.hi.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(5));
	wrong += d != (unsigned)(s >> 16) + 5;
	asm("mul24.hi.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
	wrong += d != (unsigned)(u >> 16);
	wrong += __mul24(a, b) != (int)s;
	int nth = 1 + threadIdx.x % 8, at = -1;
	for (int i = 3, seen = 0; i < 32 && at < 0; i++)
		if (a >> i & 1 && ++seen == nth)
			at = i;
	wrong += (int)__fns(a, 3, nth) != at;
	v[threadIdx.x] = wrong;
}

#ifdef __CUDA_ARCH__
#define WGMMA asm volatile("wgmma.fence.sync.aligned;")
#else
#define WGMMA
#endif
__global__ void square() { WGMMA; }

int main(int, char **argv) {
	int *v = device<int>(128);
	double *d = device<double>(64);
	Function f;
	if (is(argv, "softmax")) {
		softmax<<<1, 32>>>((float *)v);
		MUST(fabs(host((float *)v) - 1. / 32) < 1e-7);
	} else if (is(argv, "fast")) {
		fast<<<1, 32>>>((float *)v);
		for (int i = 0; i < 32; i++)
			MUST(fabs(host((float *)v, i) - sin(1. + i) * sin(1. + i) - 1 - i) < 1e-3);
	} else if (is(argv, "every")) {
		every<<<1, 32>>>(d);
		for (int i = 0; i < 64; i++)
			MUST(host(d, i) < 1e-13 + (i >= 32) * 1e-11);
	} else if (is(argv, "classes")) {
		classes<<<1, 32>>>(v);
		CHECK(cudaDeviceSynchronize());
	} else if (is(argv, "tree")) {
		sum<<<1, 32>>>(v);
		MUST(host(v, 0) == 8 && host(v, 3) == 8 * 11);
	} else if (is(argv, "pointers")) {
		CHECK(cudaMemcpyFromSymbol(&f, table, sizeof f, sizeof f));
		CHECK(cudaMemcpyToSymbol(chosen, &f, sizeof f));
		pointers<<<1, 32>>>(v);
		MUST(host(v, 0) == 160700 && host(v, 7) == 161010);
	} else if (is(argv, "nowhere")) {
		nowhere<<<1, 1>>>(v);
	} else if (is(argv, "deep")) {
		deep<<<1, 32>>>(v, 1000);
		MUST(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
		return 0;
	} else if (is(argv, "deeper")) {
		size_t n = 0;
		CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 64 << 10));
		CHECK(cudaDeviceGetLimit(&n, cudaLimitStackSize));
		MUST(n == 64 << 10);
		deep<<<1, 32>>>(v, 100);
	} else if (is(argv, "heap")) {
		heap<<<1, 32>>>(v, 10, 9);
		MUST(host(v, 5) == 9);
	} else if (is(argv, "full")) {
		heap<<<1, 1>>>(v, 4 << 20, 9); // 16 MiB of 8
		MUST(host(v) == -1);
	} else if (is(argv, "behind")) {
		heap<<<1, 1>>>(v, 10, 10);
	} else if (is(argv, "freed") || is(argv, "twice")) {
		give<<<1, 1>>>(2);
		take<<<1, 1>>>(v, is(argv, "twice"));
	} else if (is(argv, "unwritten")) {
		give<<<1, 1>>>(0);
		take<<<1, 1>>>(v, false);
	} else if (is(argv, "race")) {
		give<<<1, 1>>>(1);
		take<<<2, 1>>>(v, false);
	} else if (is(argv, "draws")) {
		draws<<<1, 64>>>(v);
		MUST(fabs(host(v) * 4 / 5000. - M_PI) < 0.2);
	} else if (is(argv, "integers")) {
		integers<<<1, 32>>>(v);
		for (int i = 0; i < 32; i++)
			MUST(host(v, i) == 0);
	} else {
		square<<<1, 1>>>();
		MUST(cudaGetLastError() != cudaSuccess);
		if (is(argv, "others")) {
			softmax<<<1, 32>>>((float *)v);
			CHECK(cudaDeviceSynchronize());
		}
	}
	cudaFree(d);
	cudaFree(v);
}
