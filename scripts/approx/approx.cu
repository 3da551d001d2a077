// approx.cu records what a GPU gives for PTX's approximate instructions, for mul24, mad24 and fns, and for recursion and
// malloc in kernels. See the script approx beside it.
//
//   approx numbers FOLDER    histograms.txt, samples.txt, *.delta
//   approx limit CASE        one line: what the runtime answers; each case in a process of its own, as faults stay
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <string>
#include <vector>

#define CHECK(call)                                                                                   \
	do {                                                                                              \
		cudaError_t error = (call);                                                                   \
		if (error) {                                                                                  \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error));   \
			exit(1);                                                                                  \
		}                                                                                             \
	} while (0)

static std::string folder;
static FILE *text(const char *name) { return fopen((folder + "/" + name).c_str(), "a"); }

// Each instruction of one float, with the exact function of a double.
#define UNARY(id, op, exact)                                                                     \
	struct id {                                                                                  \
		static const char *name() { return op; }                                                 \
		__device__ static float run(float a) { float d; asm(op " %0, %1;" : "=f"(d) : "f"(a)); return d; } \
		__device__ static double want(double x) { return exact; }                                \
	};
UNARY(Rcp, "rcp.approx.f32", 1 / x)
UNARY(RcpZ, "rcp.approx.ftz.f32", 1 / x)
UNARY(Sqrt, "sqrt.approx.f32", sqrt(x))
UNARY(SqrtZ, "sqrt.approx.ftz.f32", sqrt(x))
UNARY(Rsqrt, "rsqrt.approx.f32", 1 / sqrt(x))
UNARY(RsqrtZ, "rsqrt.approx.ftz.f32", 1 / sqrt(x))
UNARY(Ex2, "ex2.approx.f32", exp2(x))
UNARY(Ex2Z, "ex2.approx.ftz.f32", exp2(x))
UNARY(Lg2, "lg2.approx.f32", log2(x))
UNARY(Lg2Z, "lg2.approx.ftz.f32", log2(x))
UNARY(Sin, "sin.approx.f32", sin(x))
UNARY(SinZ, "sin.approx.ftz.f32", sin(x))
UNARY(Cos, "cos.approx.f32", cos(x))
UNARY(CosZ, "cos.approx.ftz.f32", cos(x))
UNARY(Tanh, "tanh.approx.f32", tanh(x))

__device__ int ordered(float v) { int b = __float_as_int(v); return b < 0 ? INT_MIN - b : b; }

enum { BUCKETS = 131, WORST = 7 }; // -65 or less, -64 … 64, 65 or more
struct Tally {
	unsigned long long n[BUCKETS + 3]; // then: where one is a NaN or infinite and the other is not, and all
	unsigned worst[WORST];             // bits of the largest error as a float, see note
};
struct Own { // of a block, and of a thread
	unsigned *n;
	float worst[WORST];
};

// note counts a result. The worst errors are relative (0), absolute (1), and absolute by the input: up to 2π (2), 100π (3),
// between 0.5 and 2 (4); relative outside of 0.5 to 2 (5); relative where input and exact result are normal (6).
__device__ void note(Own &t, double x, float got, double exact, bool ftz)
{
	float want = (float)exact;
	if (ftz && fabsf(want) < 0x1p-126f)
		want = copysignf(0, want);
	atomicAdd(&t.n[BUCKETS + 2], 1u);
	if (isnan(got) || isnan(want)) {
		if (isnan(got) != isnan(want))
			atomicAdd(&t.n[BUCKETS], 1u);
		return;
	}
	if (isinf(got) != isinf(want)) {
		atomicAdd(&t.n[BUCKETS + 1], 1u);
		return;
	}
	long long d = (long long)ordered(got) - ordered(want);
	d = d < -65 ? -65 : d > 65 ? 65 : d;
	atomicAdd(&t.n[d + 65], 1u);
	if (isinf(want))
		return;
	double err = fabs((double)got - exact), rel = exact != 0 ? err / fabs(exact) : 0, a = fabs(x);
	auto most = [&](int i, double e) { t.worst[i] = fmaxf(t.worst[i], (float)e); };
	most(0, rel), most(1, err);
	if (a <= 2 * M_PI)
		most(2, err);
	if (a <= 100 * M_PI)
		most(3, err);
	if (a > 0.5 && a < 2)
		most(4, err);
	else
		most(5, rel);
	if (a >= 0x1p-126 && fabs(exact) >= 0x1p-126)
		most(6, rel);
}

// tally has each thread of the grid note numbers of its own below a limit.
template <class F> __device__ void tally(Tally *t, uint64_t limit, F each)
{
	__shared__ unsigned n[BUCKETS + 3];
	Own own = {n, {}};
	for (unsigned i = threadIdx.x; i < BUCKETS + 3; i += blockDim.x)
		n[i] = 0;
	__syncthreads();
	for (uint64_t u = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; u < limit; u += (uint64_t)gridDim.x * blockDim.x)
		each(own, u);
	__syncthreads();
	for (unsigned i = threadIdx.x; i < BUCKETS + 3; i += blockDim.x)
		atomicAdd(&t->n[i], (unsigned long long)n[i]);
	for (int i = 0; i < WORST; i++)
		atomicMax(&t->worst[i], __float_as_uint(own.worst[i]));
}

__device__ double flushed(float v, bool ftz) { return ftz && fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }

template <class Op> __global__ void all(Tally *t, bool ftz)
{
	tally(t, 1ull << 32, [=](Own &own, uint64_t u) {
		float a = __uint_as_float((unsigned)u);
		double in = flushed(a, ftz);
		note(own, in, Op::run(a), Op::want(in), ftz);
	});
}

static void print(const char *name, Tally *d)
{
	Tally t;
	CHECK(cudaMemcpy(&t, d, sizeof t, cudaMemcpyDeviceToHost));
	FILE *f = text("histograms.txt");
	fprintf(f, "%s all %llu nan %llu inf %llu worst", name, t.n[BUCKETS + 2], t.n[BUCKETS], t.n[BUCKETS + 1]);
	for (int i = 0; i < WORST; i++) {
		float e;
		memcpy(&e, &t.worst[i], 4);
		fprintf(f, " %.3f", e == 0 ? -999. : log2((double)e));
	}
	for (int i = 0; i < BUCKETS; i++)
		if (t.n[i])
			fprintf(f, " %d:%llu", i - 65, t.n[i]);
	fprintf(f, "\n");
	fclose(f);
	CHECK(cudaFree(d));
}

static Tally *empty()
{
	Tally *t;
	CHECK(cudaMalloc(&t, sizeof *t));
	CHECK(cudaMemset(t, 0, sizeof *t));
	return t;
}

template <class Op> void histogram()
{
	Tally *t = empty();
	all<Op><<<2048, 256>>>(t, strstr(Op::name(), "ftz"));
	print(Op::name(), t);
}

// mix is a generator of numbers that a test can repeat.
__host__ __device__ inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

#define BINARY(id, op)                                                                                                    \
	struct id {                                                                                                       \
		static const char *name() { return op; }                                                                  \
		__device__ static float run(float a, float b) { float d; asm(op " %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return d; } \
	};
BINARY(Div, "div.approx.f32")
BINARY(DivZ, "div.approx.ftz.f32")
BINARY(Full, "div.full.f32")
BINARY(FullZ, "div.full.ftz.f32")

template <class Op> __global__ void pairs(Tally *t, bool ftz)
{
	tally(t, 1ull << 30, [=](Own &own, uint64_t u) {
		uint64_t m = mix(u);
		float a = __uint_as_float((unsigned)m), b = __uint_as_float((unsigned)(m >> 32));
		if (fabsf(b) <= 0x1p126f) // beyond, results may be zero
			note(own, a, Op::run(a, b), flushed(a, ftz) / flushed(b, ftz), ftz);
	});
}
template <class Op> void quotients()
{
	Tally *t = empty();
	pairs<Op><<<2048, 256>>>(t, strstr(Op::name(), "ftz"));
	print(Op::name(), t);
}

// The differences from the rounded exact results, over a range of inputs, a byte each.
template <class Op> __global__ void differ(signed char *out, unsigned first, unsigned n, bool turns)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float a = __uint_as_float(first + i);
	double exact = Op::want(a);
	if (turns) { // as hardware reduces an angle: multiplied by 1/2π, rounded to zero
		float t = __fmul_rz(a, 0.15915493667125701904f);
		exact = Op::want(0.0) == 1 ? cospi(2.0 * t) : sinpi(2.0 * t);
	}
	long long d = (long long)ordered(Op::run(a)) - ordered((float)exact);
	out[i] = d < -128 ? -128 : d > 127 ? 127 : d;
}
template <class Op> void deltas(unsigned first, unsigned n, bool turns = false)
{
	signed char *d;
	std::vector<signed char> h(n);
	CHECK(cudaMalloc(&d, n));
	differ<Op><<<n / 256, 256>>>(d, first, n, turns);
	CHECK(cudaMemcpy(h.data(), d, n, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(d));
	char name[100];
	snprintf(name, sizeof name, "%s.%08x.delta", Op::name(), first);
	FILE *f = text(name);
	fwrite(h.data(), 1, n, f);
	fclose(f);
}

// A table of results as they are.
template <class T> void dump(const std::string &name, const T *d, size_t n)
{
	std::vector<T> h(n);
	CHECK(cudaMemcpy(h.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
	FILE *f = text((name + ".raw").c_str());
	fwrite(h.data(), sizeof(T), n, f);
	fclose(f);
}
__global__ void tanhs(unsigned *out) // every 64th input from 2^-12 to 16
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = __float_as_uint(Tanh::run(__uint_as_float(0x39800000 + 64 * i)));
}
#define HALVES(id, op)                                                                                                          \
	__global__ void id(uint16_t *out)                                                                                      \
	{                                                                                                                      \
		unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                            \
		asm(op " %0, %1;" : "=h"(out[i]) : "h"((uint16_t)i));                                                          \
	}                                                                                                                      \
	__global__ void id##x2(uint32_t *out)                                                                                  \
	{                                                                                                                      \
		unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                            \
		asm(op "x2 %0, %1;" : "=r"(out[i]) : "r"(i << 16 | (i * 40503 + 7 & 0xffff)));                                 \
	}
HALVES(ex2h, "ex2.approx.f16")
HALVES(ex2b, "ex2.approx.ftz.bf16")
HALVES(tanhh, "tanh.approx.f16")
HALVES(tanhb, "tanh.approx.bf16")
static void halves(const char *name, void (*one)(uint16_t *), void (*two)(uint32_t *))
{
	uint16_t *a;
	uint32_t *b;
	CHECK(cudaMalloc(&a, 2 << 16));
	CHECK(cudaMalloc(&b, 4 << 16));
	one<<<256, 256>>>(a);
	two<<<256, 256>>>(b);
	dump(name, a, 1 << 16);
	std::vector<uint16_t> x(1 << 16);
	std::vector<uint32_t> y(1 << 16);
	CHECK(cudaMemcpy(x.data(), a, 2 << 16, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(y.data(), b, 4 << 16, cudaMemcpyDeviceToHost));
	int other = 0;
	for (unsigned i = 0; i < 1 << 16; i++)
		other += y[i] != ((uint32_t)x[i] << 16 | x[(i * 40503 + 7) & 0xffff]);
	FILE *f = text("histograms.txt");
	fprintf(f, "%sx2 differs from %s in %d of 65536 pairs\n", name, name, other);
	fclose(f);
}
__global__ void wide(uint32_t *rcp, uint32_t *rsqrt, uint32_t *low)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x; // the upper words of 1 to 4
	double a = __hiloint2double(0x3ff00000 + i, 0x12345678), d, e, g;
	asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(d) : "d"(a));
	asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(e) : "d"(a));
	asm("rsqrt.approx.f64 %0, %1;" : "=d"(g) : "d"(a));
	rcp[i] = __double2hiint(d), rsqrt[i] = __double2hiint(e);
	if (__double2loint(d) || __double2loint(e))
		atomicAdd(low, 1);
	if (__double_as_longlong(g) != __double_as_longlong(e))
		atomicAdd(low + 1, 1);
}

// Samples: special values, numbers of all magnitudes, ordinary numbers.
static const unsigned special[] = {0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fffffff,
	0x40000000, 0x40490fdb, 0x40c90fdb, 0x42fc0000, 0x42fe0000, 0x43000000, 0x43150000, 0x43160000, 0x7e800000, 0x7e800001,
	0x7f000000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x3f000000, 0x3fc00000, 0x3e22f983, 0x49742400};
static float sample(int i)
{
	const int n = sizeof special / 4;
	unsigned b = i < 2 * n ? special[i / 2] | (unsigned)i % 2 << 31 : (unsigned)mix(i);
	if (i >= 2 * n && i % 2) // between 2^-16 and 2^16
		b = (b & 0x807fffff) | (111 + (unsigned)(mix(i) >> 32) % 32) << 23;
	float v;
	memcpy(&v, &b, 4);
	return v;
}
enum { SAMPLES = 4096 };
template <class Op> __global__ void one(const float *in, float *out) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = Op::run(in[i]); }
template <class Op> __global__ void two(const float *in, float *out) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = Op::run(in[i], in[(i * 37 + 11) % SAMPLES]); }
static float *samples()
{
	std::vector<float> h(SAMPLES);
	for (int i = 0; i < SAMPLES; i++)
		h[i] = sample(i);
	float *d;
	CHECK(cudaMalloc(&d, 4 * SAMPLES));
	CHECK(cudaMemcpy(d, h.data(), 4 * SAMPLES, cudaMemcpyHostToDevice));
	return d;
}
static void write(const char *name, float *in, float *out, bool pair)
{
	std::vector<unsigned> a(SAMPLES), d(SAMPLES);
	CHECK(cudaMemcpy(a.data(), in, 4 * SAMPLES, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(d.data(), out, 4 * SAMPLES, cudaMemcpyDeviceToHost));
	FILE *f = text("samples.txt");
	for (int i = 0; i < SAMPLES; i++)
		if (pair)
			fprintf(f, "%s %08x %08x %08x\n", name, a[i], a[(i * 37 + 11) % SAMPLES], d[i]);
		else
			fprintf(f, "%s %08x %08x\n", name, a[i], d[i]);
	fclose(f);
	CHECK(cudaFree(in));
	CHECK(cudaFree(out));
}
template <class Op> void some()
{
	float *in = samples(), *out = samples();
	one<Op><<<SAMPLES / 256, 256>>>(in, out);
	write(Op::name(), in, out, false);
}
template <class Op> void someTwo()
{
	float *in = samples(), *out = samples();
	two<Op><<<SAMPLES / 256, 256>>>(in, out);
	write(Op::name(), in, out, true);
}

__global__ void doubles(const double *in, double *rcp, double *rsqrt, double *plain)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(rcp[i]) : "d"(in[i]));
	asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(rsqrt[i]) : "d"(in[i]));
	asm("rsqrt.approx.f64 %0, %1;" : "=d"(plain[i]) : "d"(in[i]));
}
static void wideSamples()
{
	double *d[4];
	std::vector<uint64_t> h[4];
	const uint64_t edge[] = {0, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0x3ff0000000000001, 0x3fffffffffffffff,
		0x7fd0000000000000, 0x7fd0000000000001, 0x7fe0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff0000000000001,
		0x7ff8000000000000, 0x7fffffffffffffff, 0x0008000000000000};
	for (int k = 0; k < 4; k++) {
		h[k].resize(1024);
		CHECK(cudaMalloc(&d[k], 8192));
	}
	for (int i = 0; i < 1024; i++)
		h[0][i] = i < 32 ? edge[i / 2] | (uint64_t)(i % 2) << 63 : mix(i);
	CHECK(cudaMemcpy(d[0], h[0].data(), 8192, cudaMemcpyHostToDevice));
	doubles<<<4, 256>>>(d[0], d[1], d[2], d[3]);
	const char *names[] = {"", "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"};
	FILE *f = text("samples.txt");
	for (int k = 1; k < 4; k++) {
		CHECK(cudaMemcpy(h[k].data(), d[k], 8192, cudaMemcpyDeviceToHost));
		for (int i = 0; i < 1024; i++)
			fprintf(f, "%s %016llx %016llx\n", names[k], (unsigned long long)h[0][i], (unsigned long long)h[k][i]);
	}
	fclose(f);
}

// Integers: a, b and c give nine results.
__global__ void integers(const unsigned *in, unsigned *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *o = out + 9 * i;
#define TWO(k, op) asm(op " %0, %1, %2;" : "=r"(o[k]) : "r"(a), "r"(b))
#define THREE(k, op) asm(op " %0, %1, %2, %3;" : "=r"(o[k]) : "r"(a), "r"(b), "r"(c))
	TWO(0, "mul24.lo.u32"); TWO(1, "mul24.hi.u32"); TWO(2, "mul24.lo.s32"); TWO(3, "mul24.hi.s32");
	THREE(4, "mad24.lo.u32"); THREE(5, "mad24.hi.u32"); THREE(6, "mad24.lo.s32"); THREE(7, "mad24.hi.s32");
	unsigned base = b % 32, offset = (unsigned)((int)(c % 67) - 33);
	asm("fns.b32 %0, %1, %2, %3;" : "=r"(o[8]) : "r"(a), "r"(base), "r"(offset));
}
static void integerSamples()
{
	const int n = 1024;
	std::vector<unsigned> in(3 * n), out(9 * n);
	for (int i = 0; i < 3 * n; i++)
		in[i] = i % 5 == 0 ? (unsigned)mix(i) & (unsigned)(mix(i) >> 32) : i % 7 == 0 ? 0xffffffffu >> i % 32 : (unsigned)mix(i);
	unsigned *a, *b;
	CHECK(cudaMalloc(&a, 12 * n));
	CHECK(cudaMalloc(&b, 36 * n));
	CHECK(cudaMemcpy(a, in.data(), 12 * n, cudaMemcpyHostToDevice));
	integers<<<n / 256, 256>>>(a, b);
	CHECK(cudaMemcpy(out.data(), b, 36 * n, cudaMemcpyDeviceToHost));
	FILE *f = text("integers.txt");
	fprintf(f, "# a b c: mul24.lo.u32 .hi.u32 .lo.s32 .hi.s32, mad24 the same, fns.b32 of a, b %% 32, c %% 67 - 33\n");
	for (int i = 0; i < n; i++) {
		fprintf(f, "%08x %08x %08x:", in[3 * i], in[3 * i + 1], in[3 * i + 2]);
		for (int k = 0; k < 9; k++)
			fprintf(f, " %08x", out[9 * i + k]);
		fprintf(f, "\n");
	}
	fclose(f);
}

static void numbers()
{
	integerSamples();
	some<Rcp>(), some<RcpZ>(), some<Sqrt>(), some<SqrtZ>(), some<Rsqrt>(), some<RsqrtZ>(), some<Ex2>(), some<Ex2Z>(), some<Lg2>();
	some<Lg2Z>(), some<Sin>(), some<SinZ>(), some<Cos>(), some<CosZ>(), some<Tanh>();
	someTwo<Div>(), someTwo<DivZ>(), someTwo<Full>(), someTwo<FullZ>();
	wideSamples();
	halves("ex2.approx.f16", ex2h, ex2hx2), halves("ex2.approx.ftz.bf16", ex2b, ex2bx2);
	halves("tanh.approx.f16", tanhh, tanhhx2), halves("tanh.approx.bf16", tanhb, tanhbx2);
	const unsigned octave = 1 << 23;
	deltas<RcpZ>(0x3f800000, octave);
	deltas<RsqrtZ>(0x3f800000, 2 * octave);
	deltas<SqrtZ>(0x3f800000, 2 * octave);
	for (unsigned first : {0x3f800000u, 0x3f000000u, 0x3d800000u, 0xbf800000u, 0xbf000000u})
		deltas<Ex2Z>(first, octave);
	for (unsigned first : {0x3f800000u, 0x3f000000u, 0x40000000u})
		deltas<Lg2Z>(first, octave);
	for (unsigned first : {0x3f800000u, 0x40000000u})
		deltas<SinZ>(first, octave, true);
	for (unsigned first : {0x3f000000u, 0x3f800000u})
		deltas<CosZ>(first, octave, true);
	uint32_t *a, *b, *low, words[2];
	CHECK(cudaMalloc(&a, 8 << 20));
	CHECK(cudaMalloc(&b, 8 << 20));
	CHECK(cudaMalloc(&low, 8));
	CHECK(cudaMemset(low, 0, 8));
	wide<<<(2 << 20) / 256, 256>>>(a, b, low);
	dump("rcp.approx.ftz.f64", a, 2 << 20);
	dump("rsqrt.approx.ftz.f64", b, 2 << 20);
	CHECK(cudaMemcpy(words, low, 8, cudaMemcpyDeviceToHost));
	FILE *f = text("histograms.txt");
	fprintf(f, "f64: lower words not zero in %u, rsqrt.approx.f64 differs from .ftz in %u of %u\n", words[0], words[1], 2 << 20);
	fclose(f);
	tanhs<<<(16 << 17) / 256, 256>>>(a);
	dump("tanh.approx.f32", a, 16 << 17);
	histogram<Rcp>(), histogram<RcpZ>(), histogram<Sqrt>(), histogram<SqrtZ>(), histogram<Rsqrt>(), histogram<RsqrtZ>();
	histogram<Ex2>(), histogram<Ex2Z>(), histogram<Lg2>(), histogram<Lg2Z>(), histogram<Sin>(), histogram<SinZ>(), histogram<Cos>();
	histogram<CosZ>(), histogram<Tanh>();
	quotients<Div>(), quotients<DivZ>(), quotients<Full>(), quotients<FullZ>();
}

// Limits: what a thread may use of stack and heap.
__device__ __noinline__ int deep(int n, volatile int *o)
{
	volatile int own[64];
	for (int i = 0; i < 64; i++)
		own[i] = n + i;
	if (n == 0)
		return *o;
	int r = deep(n - 1, o);
	return r + own[(n + r) % 64 & 63];
}
__global__ void descend(int *o, int n) { o[threadIdx.x] = deep(n, o); }
__global__ void large(int *o, int n)
{
	volatile int own[20000];
	for (int i = 0; i < 20000; i++)
		own[(i * 7919 + n) % 20000] = i;
	o[threadIdx.x] = own[n];
}
typedef int (*Function)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ Function table[2] = {twice, nullptr};
__global__ void callThrough(int *o, int which) { o[threadIdx.x] = table[which](21); }
__global__ void take(char **p, size_t n, int times) // allocates until there is nothing left
{
	int i = 0;
	for (; i < times && (p[i] = (char *)malloc(n)); i++)
		;
	p[times] = (char *)(size_t)i;
}
__global__ void give(char **p, int times, int offset)
{
	for (int i = 0; i < times; i++)
		free(p[i] + offset);
}
__global__ void touch(char **p, int n) { p[0][n] = 1; }

static const char *last(int *d)
{
	cudaError_t e = cudaGetLastError();
	if (!e)
		e = cudaDeviceSynchronize();
	return cudaGetErrorName(e);
}
static int limit(int argc, char **argv)
{
	std::string what = argv[0];
	long a = argc > 1 ? atol(argv[1]) : 0, b = argc > 2 ? atol(argv[2]) : 0;
	int *d;
	CHECK(cudaMalloc(&d, 1 << 16));
	CHECK(cudaMemset(d, 0, 1 << 16));
	char **p;
	CHECK(cudaMalloc(&p, 8 << 20));
	size_t stack, heap;
	if (what == "defaults") {
		CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
		CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
		cudaFuncAttributes f, g;
		CHECK(cudaFuncGetAttributes(&f, descend));
		CHECK(cudaFuncGetAttributes(&g, large));
		printf("stack %zu heap %zu local of a recursive kernel %zu, of 80000 bytes %zu\n", stack, heap, f.localSizeBytes, g.localSizeBytes);
	} else if (what == "set") {
		const char *r = cudaGetErrorName(cudaDeviceSetLimit(cudaLimitStackSize, a));
		CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
		printf("%s, then %zu\n", r, stack);
	} else if (what == "heap") {
		const char *r = cudaGetErrorName(cudaDeviceSetLimit(cudaLimitMallocHeapSize, a));
		CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
		printf("%s, then %zu", r, heap);
		take<<<1, 1>>>(p, 1 << 20, 1000);
		const char *s = last(d);
		char *n;
		CHECK(cudaMemcpy(&n, p + 1000, 8, cudaMemcpyDeviceToHost));
		r = cudaGetErrorName(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * a));
		CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
		printf("; %s, %zu pieces of 1 MiB; set again: %s, then %zu\n", s, (size_t)n, r, heap);
	} else if (what == "deep") {
		CHECK(cudaDeviceSetLimit(cudaLimitStackSize, a));
		descend<<<1, 32>>>(d, b);
		printf("%s\n", last(d));
	} else if (what == "large") {
		CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
		large<<<1, 32>>>(d, 5);
		const char *r = last(d);
		CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
		printf("%s, then stack %zu\n", r, stack);
	} else if (what == "call") {
		callThrough<<<1, 1>>>(d, a);
		const char *r = last(d);
		int v = 0;
		cudaMemcpy(&v, d, 4, cudaMemcpyDeviceToHost);
		printf("%s %d\n", r, v);
	} else if (what == "malloc") { // of a bytes each
		take<<<1, 1>>>(p, a, 100000);
		const char *r = last(d);
		std::vector<char *> h(100001);
		CHECK(cudaMemcpy(h.data(), p, 8 * h.size(), cudaMemcpyDeviceToHost));
		printf("%s: %zu pieces; addresses", r, (size_t)h[100000]);
		for (int i = 0; i < 4; i++)
			printf(" %p", h[i]);
		printf("; all aligned to");
		size_t bits = 0;
		for (size_t i = 0; i < (size_t)h[100000]; i++)
			bits |= (size_t)h[i];
		printf(" %zu\n", bits & -bits);
	} else if (what == "free") { // a times, at offset b
		take<<<1, 1>>>(p, 100, 1);
		CHECK(cudaDeviceSynchronize());
		for (int i = 0; i < a; i++)
			give<<<1, 1>>>(p, 1, b);
		printf("%s\n", last(d));
	} else if (what == "wild") {
		CHECK(cudaMemcpy(p, &d, 8, cudaMemcpyHostToDevice)); // free of cudaMalloc's memory
		give<<<1, 1>>>(p, 1, 0);
		printf("free in a kernel of cudaMalloc's memory: %s", last(d));
		printf("\n");
	} else if (what == "host") {
		take<<<1, 1>>>(p, 100, 1);
		CHECK(cudaDeviceSynchronize());
		char *h, buffer[100];
		CHECK(cudaMemcpy(&h, p, 8, cudaMemcpyDeviceToHost));
		printf("cudaMemcpy from it: %s, ", cudaGetErrorName(cudaMemcpy(buffer, h, 100, cudaMemcpyDeviceToHost)));
		printf("cudaFree: %s\n", cudaGetErrorName(cudaFree(h)));
	} else if (what == "use") { // after free, or a bytes beyond
		take<<<1, 1>>>(p, 100, 1);
		if (!a)
			give<<<1, 1>>>(p, 1, 0);
		touch<<<1, 1>>>(p, a);
		printf("%s\n", last(d));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "numbers")) {
		folder = argv[2];
		numbers();
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "limit"))
		return limit(argc - 2, argv + 2);
	fprintf(stderr, "usage: approx numbers FOLDER | approx limit CASE [A [B]]\n");
	return 2;
}
