// Does ONE lingering kernel of few blocks, which carries out consecutive all-reduces of a communicator, beat one kernel
// for each all-reduce when they run beside matrix products of cuBLAS? Two GPUs of one process, peer access, all-reduce
// out of place (in -> out).
//
//   nvcc -O3 -std=c++17 -gencode=arch=compute_90,code=sm_90 -o linger linger.cu -lcublas -lcuda -ldl
//   ./linger [-q] [-nccl /path/to/libnccl.so.2]        (or NCCL=/path; -q: 25 MiB and 16 blocks only)
// without a GPU: nvcc -DNO_CUBLAS ...; ringo emulate -g 2 -- ./linger -small
//
// Variants (all have the same inner loop, B blocks of 512 threads):
//   perop    a kernel for each all-reduce on the communication stream: no doorbell, no stream memory operation
//   whole    one kernel for the whole burst, whose length it knows. For each all-reduce the communication stream rings
//            by cuStreamWriteValue32 and waits by cuStreamWaitValue32(done >= n)
//   fused    the same, all rung at once, no wait between: the bound that doorbells that take no time would reach
//   starter  lingers for L us after an all-reduce; each all-reduce also queues a kernel on the lingering kernels'
//            stream, which returns at once if its all-reduce has been carried out. Stream order keeps two of them from
//            running at once
//   host     lingers for L us; a host thread sees in a pinned word that the kernel ended at n, and launches anew if
//            more was asked for
// A lingering kernel's stream waits for the first all-reduce's ring (cuStreamWaitValue32) before the kernel, so none
// holds multiprocessors before there is work. The bell is a counter that only grows, and one thread of one block
// decides whether to go on or to end at n. So a ring that comes while the kernel ends is the next kernel's: nothing is
// lost, and nothing runs twice.
#include <cuda_runtime.h>
#ifndef NO_CUBLAS
#include <cublas_v2.h>
#endif
#include <dlfcn.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

typedef unsigned u32;
typedef unsigned long long u64;

[[noreturn]] static void die(const char *what, const char *why, int line)
{
	printf("ERROR line %d: %s: %s\n", line, what, why);
	fflush(stdout);
	_exit(3); // without destructors: a stream may wait for what does not come
}
#define C(x)                                                             \
	do {                                                             \
		cudaError_t e_ = (x);                                    \
		if (e_ != cudaSuccess)                                   \
			die(#x, cudaGetErrorString(e_), __LINE__);       \
	} while (0)

// ---------------------------------------------------------------- on the device

enum { MAXB = 64 };
struct Flag { u32 v; u32 pad[31]; };
struct Ctl { // of a GPU, in its memory
	Flag bell;    // all-reduces up to it are rung: written by the stream
	Flag go;      // block 0 to the others: 2n is "carry out n", 2n+1 is "ended at n"
	Flag done;    // all-reduces up to it have ended: the stream waits for it
	Flag came;    // blocks that have ended the present all-reduce
	Flag came2;   // a kernel's last one: in a fused burst blocks get ahead of each other, so came mixes all-reduces
	Flag err;     // a deadline has passed, here or there
	Flag kernels; // kernels that carried something
	Flag bad;     // wrong words
	Flag start[MAXB], end[MAXB]; // n to which the peer's block has come; n of which it has read and written all
};

enum { PLAIN = 0, RUNG = 1, STARTER = 2 };
struct Args {
	Ctl *me, *peer;
	const uint4 *in, *pin; // mine and the peer's
	uint4 *out, *pout;
	size_t off, lines;     // my part, in 16 bytes
	u32 first, last;
	long long linger;      // ns; negative: until last
	u64 deadline;          // ns
	int mode;
	u32 *ended, *hosterr;  // pinned
};

__device__ __forceinline__ u64 nowNs() { u64 v; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)); return v; }
__device__ __forceinline__ u32 ldSys(const u32 *p) { u32 v; asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ u32 ldGpu(const u32 *p) { u32 v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ void stSys(u32 *p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ void stGpu(u32 *p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ uint4 ld16(const uint4 *p)
{
	uint4 v;
	asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
	return v;
}
__device__ __forceinline__ void st16(uint4 *p, uint4 v)
{
	asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ float asFloat(u32 v) { return __uint_as_float(v); }
template <int F32> __device__ __forceinline__ u32 addWord(u32 a, u32 b)
{
	if (F32)
		return __float_as_uint(asFloat(a) + asFloat(b));
	float hi = asFloat(a & 0xffff0000u) + asFloat(b & 0xffff0000u), lo = asFloat(a << 16) + asFloat(b << 16);
	u32 d;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
	return d;
}
template <int F32> __device__ __forceinline__ uint4 addLine(uint4 a, uint4 b)
{
	uint4 r;
	r.x = addWord<F32>(a.x, b.x);
	r.y = addWord<F32>(a.y, b.y);
	r.z = addWord<F32>(a.z, b.z);
	r.w = addWord<F32>(a.w, b.w);
	return r;
}

__device__ __noinline__ int failed(const Args &a, u32 n, u32 code) // releases all who wait: kernels by err, streams by done
{
	atomicCAS_system(a.hosterr, 0u, code);
	atomicExch_system(&a.peer->err.v, code);
	atomicExch_system(&a.me->err.v, code);
	atomicExch_system(&a.peer->done.v, n + 0x40000000u);
	atomicExch_system(&a.me->done.v, n + 0x40000000u);
	return 0;
}
__device__ __forceinline__ int await(const Args &a, u32 *p, u32 value, u32 n, u32 code) // one thread: until *p >= value; 0: failed
{
	u64 t0 = nowNs();
	for (u32 k = 1; (int)(ldSys(p) - value) < 0; k++)
		if ((k & 63) == 0 && (ldSys(&a.me->err.v) || nowNs() - t0 > a.deadline))
			return failed(a, n, code);
	return 1;
}

// begin, in one thread of a block, returns 1 when this stream and the peer's have come to n, 0 if the kernel is to end.
__device__ __forceinline__ int begin(const Args &a, u32 n)
{
	u32 b = blockIdx.x;
	if (a.mode != PLAIN) {
		if (b == 0) { // decides for all
			u64 begun = nowNs(), t0 = begun;
			for (;;) {
				if ((int)(ldSys(&a.me->bell.v) - n) >= 0)
					break;
				u64 t = nowNs();
				if (n != a.first) {
					if ((int)(ldSys(&a.me->done.v) - (n - 1)) < 0)
						t0 = t; // others still work: the time to linger begins at the end
					else if (a.linger >= 0 && t - t0 >= (u64)a.linger) {
						stGpu(&a.me->go.v, 2 * (n - 1) + 1);
						stSys(a.ended, n - 1);
						return 0;
					}
				}
				if (t - begun > a.deadline || ldSys(&a.me->err.v))
					return failed(a, n, 1);
			}
			stGpu(&a.me->go.v, 2 * n);
		} else if (n == a.first) {
			if (!await(a, &a.me->go.v, 2 * n, n, 2)) // an older kernel's "ended at n-1" does not count
				return 0;
		} else {
			if (!await(a, &a.me->go.v, 2 * (n - 1) + 1, n, 3))
				return 0;
			if (ldGpu(&a.me->go.v) == 2 * (n - 1) + 1)
				return 0;
		}
	}
	stSys(&a.peer->start[b].v, n);
	return await(a, &a.me->start[b].v, n, n, 4);
}

template <int F32> __global__ void __launch_bounds__(512, 1) carry(Args a)
{
	__shared__ u32 verdict;
	const u32 b = blockIdx.x, t = threadIdx.x, T = blockDim.x;
	if (a.mode == STARTER) { // all blocks find the same: first ends only after all have taken part
		if (t == 0)
			verdict = (int)(ldSys(&a.me->done.v) - a.first) >= 0;
		__syncthreads();
		u32 v = verdict;
		__syncthreads();
		if (v)
			return;
	}
	if (b == 0 && t == 0)
		atomicAdd(&a.me->kernels.v, 1u);
	const size_t per = (a.lines + gridDim.x - 1) / gridDim.x;
	const size_t lo = a.off + (per * b < a.lines ? per * b : a.lines), hi = a.off + (per * (b + 1) < a.lines ? per * (b + 1) : a.lines);
	for (u32 n = a.first;; n++) {
		if (t == 0)
			verdict = begin(a, n);
		__syncthreads();
		if (!verdict)
			return;
		enum { U = 8 };
		size_t i = lo + t;
		for (; i + (size_t)(U - 1) * T < hi; i += (size_t)U * T) {
			uint4 x[U], y[U];
#pragma unroll
			for (int u = 0; u < U; u++)
				x[u] = ld16(a.pin + i + (size_t)u * T);
#pragma unroll
			for (int u = 0; u < U; u++)
				y[u] = ld16(a.in + i + (size_t)u * T);
#pragma unroll
			for (int u = 0; u < U; u++) {
				x[u] = addLine<F32>(x[u], y[u]);
				st16(a.pout + i + (size_t)u * T, x[u]);
				st16(a.out + i + (size_t)u * T, x[u]);
			}
		}
		for (; i < hi; i += T) {
			uint4 r = addLine<F32>(ld16(a.pin + i), ld16(a.in + i));
			st16(a.pout + i, r);
			st16(a.out + i, r);
		}
		__syncthreads();
		if (t == 0) {
			__threadfence_system();
			stSys(&a.peer->end[b].v, n);
			if (await(a, &a.me->end[b].v, n, n, 5) && a.mode != PLAIN) {
				__threadfence();
				u32 *came = n == a.last ? &a.me->came2.v : &a.me->came.v;
				if (atomicInc(came, gridDim.x - 1) == gridDim.x - 1) {
					__threadfence_system();
					stSys(&a.me->done.v, n);
				}
			}
		}
		if (n == a.last)
			return;
	}
}

__host__ __device__ inline u32 value(int f32, u32 n, u32 rank, size_t i)
{
	u32 h = (u32)i * 2654435761u ^ (n * 2 + rank + 1) * 0x9e3779b9u;
	h ^= h >> 15;
	h *= 0x85ebca6bu;
	h ^= h >> 13;
	return f32 ? (h & 0x807fffffu) | 0x3f000000u : (h & 0x80ff80ffu) | 0x3f003f00u;
}
__device__ __forceinline__ u32 roundBf16(float x) // to the nearest, without carry's instruction
{
	u32 v = __float_as_uint(x);
	return (v + 0x7fffu + (v >> 16 & 1)) >> 16;
}
__global__ void fill(u32 *p, size_t words, int f32, u32 n, u32 rank)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
		p[i] = value(f32, n, rank, i);
}
__global__ void check(const u32 *p, size_t words, int f32, u32 n, Ctl *ctl)
{
	u32 wrong = 0;
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x) {
		u32 x = value(f32, n, 0, i), y = value(f32, n, 1, i), want;
		if (f32)
			want = __float_as_uint(asFloat(x) + asFloat(y));
		else
			want = roundBf16(asFloat(x << 16) + asFloat(y << 16)) |
			       roundBf16(asFloat(x & 0xffff0000u) + asFloat(y & 0xffff0000u)) << 16;
		wrong += p[i] != want;
	}
	if (wrong)
		atomicAdd(&ctl->bad.v, wrong);
}
__global__ void delay(u64 ns, u64 most)
{
	u64 t0 = nowNs();
	for (u64 k = 0; nowNs() - t0 < ns && k < most; k++) {
	}
}
#ifdef NO_CUBLAS
__global__ void product(const float *x, const float *y, float *z, int n) // a stand-in: one persistent block a multiprocessor
{
	for (int tile = blockIdx.x; tile < n; tile += gridDim.x) {
		float s = 0;
		for (int k = 0; k < n; k++)
			s += x[k] * y[(k * 7 + threadIdx.x) % n];
		z[(size_t)tile * blockDim.x + threadIdx.x] = s;
	}
}
#endif

// ---------------------------------------------------------------- on the host

typedef int (*MemOp)(cudaStream_t, u64 address, u32 value, u32 flags);
static MemOp writeValue, waitValue; // cuStreamWriteValue32, cuStreamWaitValue32: flags 0 are "with a barrier" and "greater or equal"
static void memop(MemOp f, cudaStream_t s, u32 *p, u32 v)
{
	int r = f(s, (u64)(uintptr_t)p, v, 0);
	if (r)
		die("stream memory operation", std::to_string(r).c_str(), __LINE__);
}

struct Gpu {
	cudaStream_t comp, comm, kern;
	cudaEvent_t begun, compEnd, commEnd, mark, e0, e1;
	char *in, *out;
	Ctl *ctl;
	void *a, *b, *c;
	int sms;
#ifndef NO_CUBLAS
	cublasHandle_t blas;
#endif
	void *comm_; // NCCL's
	// of variant host
	std::mutex m;
	std::atomic<bool> running{false}; // written under the lock
	std::atomic<u32> first{0};
	u32 asked = 0;
} g[2];
static volatile u32 *pinned; // [0], [1]: ended; [2]: an error's code
static bool small = false;
static int N = 8192, threads = 512;
static u64 deadlineNs = 2000000000ull;
static u32 next_ = 1;
// fault is the Kind of burst of which GPU 1 leaves out the third all-reduce, or all if fused: ERROR must be the end.
static int fault = -1;
static std::atomic<long> heart{0};

enum Kind { PEROP, WHOLE, FUSED, START, HOST, NCCL };
static const char *names[] = {"perop", "whole", "fused", "starter", "host", "nccl"};
struct Config { Kind kind; int blocks; double us; size_t bytes; int f32; } cfg;

static int (*ncclReduce)(const void *, void *, size_t, int, int, void *, cudaStream_t);
static int (*ncclBegin)(), (*ncclEnd)();

#ifdef NO_CUBLAS
static int full = 0; // shared memory of a block that takes a multiprocessor whole
#endif
static void products(int d, int k)
{
	for (int i = 0; i < k; i++) {
#ifdef NO_CUBLAS
		product<<<g[d].sms, 64, full, g[d].comp>>>((float *)g[d].a, (float *)g[d].b, (float *)g[d].c, N);
		C(cudaGetLastError());
#else
		float al = 1, be = 0;
		cublasStatus_t r = cublasGemmEx(g[d].blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &al, g[d].a, CUDA_R_16BF, N, g[d].b, CUDA_R_16BF, N, &be,
						g[d].c, CUDA_R_16BF, N, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
		if (r != CUBLAS_STATUS_SUCCESS)
			die("cublasGemmEx", std::to_string((int)r).c_str(), __LINE__);
#endif
	}
}

static void launch(int d, cudaStream_t s, u32 first, u32 last, long long linger, int mode)
{
	size_t lines = cfg.bytes / 16, half = lines / 2;
	Args a;
	a.me = g[d].ctl, a.peer = g[1 - d].ctl;
	a.in = (uint4 *)g[d].in, a.pin = (uint4 *)g[1 - d].in;
	a.out = (uint4 *)g[d].out, a.pout = (uint4 *)g[1 - d].out;
	a.off = d ? half : 0, a.lines = d ? lines - half : half;
	a.first = first, a.last = last, a.linger = linger, a.deadline = deadlineNs, a.mode = mode;
	a.ended = (u32 *)pinned + d, a.hosterr = (u32 *)pinned + 2;
	// On emulated GPUs 2 KB of shared memory keep a block from a multiprocessor that a product has, as registers do on hardware.
	if (cfg.f32)
		carry<1><<<cfg.blocks, threads, small ? 2048 : 0, s>>>(a);
	else
		carry<0><<<cfg.blocks, threads, small ? 2048 : 0, s>>>(a);
	C(cudaGetLastError());
}
static const u32 never = 0x3fffffffu;
static long long lingerNs() { return (long long)(cfg.us * 1000); }

static void revive(int d, u32 n) // variant host, locked
{
	C(cudaSetDevice(d));
	g[d].first = n;
	g[d].running = true;
	memop(waitValue, g[d].kern, &g[d].ctl->bell.v, n);
	launch(d, g[d].kern, n, n + never, lingerNs(), RUNG);
}
static std::atomic<bool> stopWatch{false};
static void watch()
{
	while (!stopWatch) {
		for (int d = 0; d < 2; d++) {
			if (!g[d].running || (int)(pinned[d] - g[d].first) < 0)
				continue; // without the lock, which the thread that asks wants
			std::lock_guard<std::mutex> l(g[d].m);
			u32 e = pinned[d];
			if (g[d].running && (int)(e - g[d].first) >= 0) {
				g[d].running = false;
				if ((int)(g[d].asked - e) > 0)
					revive(d, e + 1);
			}
		}
		if (small)
			std::this_thread::yield();
	}
}

// ask queues all-reduce n, the r-th of a burst of k, on the communication stream of d.
static void ask(int d, u32 n, int r, int k)
{
	Gpu &x = g[d];
	C(cudaSetDevice(d));
	if (d == 1 && fault == (int)cfg.kind && (r == 2 || cfg.kind == FUSED))
		return;
	switch (cfg.kind) {
	case PEROP:
		launch(d, x.comm, n, n, -1, PLAIN);
		return;
	case NCCL:
		if (ncclReduce(x.in, x.out, cfg.bytes / (cfg.f32 ? 4 : 2), cfg.f32 ? 7 : 9, 0, x.comm_, x.comm))
			die("ncclAllReduce", "failed", __LINE__);
		return;
	case FUSED:
		if (r > 0)
			return;
		memop(writeValue, x.comm, &x.ctl->bell.v, n + k - 1);
		memop(waitValue, x.kern, &x.ctl->bell.v, n);
		launch(d, x.kern, n, n + k - 1, -1, RUNG);
		memop(waitValue, x.comm, &x.ctl->done.v, n + k - 1);
		return;
	case WHOLE:
		memop(writeValue, x.comm, &x.ctl->bell.v, n);
		if (r == 0) {
			memop(waitValue, x.kern, &x.ctl->bell.v, n);
			launch(d, x.kern, n, n + k - 1, -1, RUNG);
		}
		break;
	case START:
		memop(writeValue, x.comm, &x.ctl->bell.v, n);
		memop(waitValue, x.kern, &x.ctl->bell.v, n);
		launch(d, x.kern, n, n + never, lingerNs(), STARTER);
		break;
	case HOST: {
		memop(writeValue, x.comm, &x.ctl->bell.v, n);
		std::lock_guard<std::mutex> l(x.m);
		x.asked = n;
		if (!x.running)
			revive(d, n);
		break;
	}
	}
	memop(waitValue, x.comm, &x.ctl->done.v, n);
}
static void both(u32 n, int r, int k)
{
	if (cfg.kind == NCCL)
		ncclBegin();
	for (int d = 0; d < 2; d++)
		ask(d, n, r, k);
	if (cfg.kind == NCCL && ncclEnd())
		die("ncclGroupEnd", "failed", __LINE__);
}
static void burst(int k, bool mark = false)
{
	for (int r = 0; r < k; r++) {
		both(next_ + r, r, k);
		if (mark && (r == 1 || k == 1)) // oneProduct waits for mark; a fused burst's comes too late, at the end
			for (int d = 0; d < 2; d++) {
				C(cudaSetDevice(d));
				C(cudaEventRecord(g[d].mark, g[d].comm));
			}
	}
	next_ += k;
}
static void noError()
{
	heart++;
	if (pinned[2])
		die("a kernel's deadline passed, code", std::to_string(pinned[2]).c_str(), __LINE__);
}
static void ended()
{
	for (int d = 0; d < 2; d++) {
		C(cudaSetDevice(d));
		C(cudaStreamSynchronize(g[d].comp));
		C(cudaStreamSynchronize(g[d].comm));
	}
	noError();
}
static void drained() // lingering kernels too
{
	ended();
	for (int d = 0; d < 2; d++) {
		while (g[d].running && !pinned[2])
			std::this_thread::yield();
		C(cudaSetDevice(d));
		C(cudaStreamSynchronize(g[d].kern));
	}
	noError();
}
static double ms(std::chrono::steady_clock::time_point t0)
{
	return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count();
}
static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}
static int warm = 2, reps = 7;
struct Times { double all = 0, comp = 0, comm = 0, tail = 0; };
// timed is the end of all, the ends of GPU 0's streams, and in tail how much later lingering kernels end.
static Times timed(int gemms, int ops)
{
	std::vector<double> a, p, c, t;
	for (int i = -warm; i < reps; i++) {
		drained();
		auto t0 = std::chrono::steady_clock::now();
		for (int d = 0; d < 2; d++) {
			C(cudaSetDevice(d));
			C(cudaEventRecord(g[d].begun, g[d].comp));
			products(d, gemms);
			C(cudaEventRecord(g[d].compEnd, g[d].comp));
		}
		burst(ops);
		for (int d = 0; d < 2; d++) {
			C(cudaSetDevice(d));
			C(cudaEventRecord(g[d].commEnd, g[d].comm));
		}
		ended();
		double all = ms(t0);
		drained();
		double tail = ms(t0) - all;
		float x = 0, y = 0;
		C(cudaSetDevice(0));
		C(cudaEventElapsedTime(&x, g[0].begun, g[0].compEnd));
		C(cudaEventElapsedTime(&y, g[0].begun, g[0].commEnd));
		if (i >= 0)
			a.push_back(all), p.push_back(x), c.push_back(y), t.push_back(tail);
	}
	Times r;
	r.all = median(a), r.comp = median(p), r.comm = median(c), r.tail = median(t);
	return r;
}
// oneProduct is the time of a product of GPU 0 that begins while all-reduces run. They end margin ms after it.
static double oneProduct(int ops, double *margin)
{
	std::vector<double> v, w;
	for (int i = -warm; i < reps; i++) {
		drained();
		if (ops)
			burst(ops, true);
		for (int d = 0; d < 2; d++) {
			C(cudaSetDevice(d));
			C(cudaEventRecord(g[d].commEnd, g[d].comm));
			if (ops && cfg.kind != FUSED)
				C(cudaStreamWaitEvent(g[d].comp, g[d].mark, 0));
			delay<<<1, 1, 0, g[d].comp>>>(20000ull, small ? 20ull : 1000000ull); // the third one has begun
			C(cudaGetLastError());
			C(cudaEventRecord(g[d].e0, g[d].comp));
			products(d, 1);
			C(cudaEventRecord(g[d].e1, g[d].comp));
		}
		drained();
		float x = 0, y = 0;
		C(cudaSetDevice(0));
		C(cudaEventElapsedTime(&x, g[0].e0, g[0].e1));
		C(cudaEventElapsedTime(&y, g[0].e1, g[0].commEnd));
		if (i >= 0)
			v.push_back(x), w.push_back(y);
	}
	*margin = median(w);
	return median(v);
}
// verify writes fresh data on the communication stream before each all-reduce, which must ring after that, and checks
// the sums.
static void verify(int ops, bool pauses)
{
	size_t words = cfg.bytes / 4;
	int grid = (int)std::min<size_t>(512, (words + 255) / 256), wide = 256;
	if (small)
		grid = 2, wide = 64;
	drained();
	auto fresh = [&](u32 n) {
		for (int d = 0; d < 2; d++) {
			C(cudaSetDevice(d));
			fill<<<grid, wide, 0, g[d].comm>>>((u32 *)g[d].in, words, cfg.f32, n, d);
			C(cudaGetLastError());
		}
	};
	auto right = [&](u32 n) {
		for (int d = 0; d < 2; d++) {
			C(cudaSetDevice(d));
			check<<<grid, wide, 0, g[d].comm>>>((u32 *)g[d].out, words, cfg.f32, n, g[d].ctl);
			C(cudaGetLastError());
		}
	};
	if (cfg.kind == FUSED) {
		fresh(next_);
		u32 n = next_;
		burst(ops);
		right(n);
	} else {
		for (int r = 0; r < ops; r++) {
			fresh(next_ + r);
			both(next_ + r, r, ops);
			right(next_ + r);
			if (pauses && r % 3 == 1)
				usleep(small ? 20000 : 300);
		}
		next_ += ops;
	}
	drained();
	for (int d = 0; d < 2; d++) {
		u32 bad = 0;
		C(cudaSetDevice(d));
		C(cudaMemcpy(&bad, &g[d].ctl->bad.v, 4, cudaMemcpyDeviceToHost));
		if (bad) {
			printf("%s, %d blocks, linger %g us, %zu bytes, GPU %d: ", names[cfg.kind], cfg.blocks, cfg.us, cfg.bytes, d);
			die("wrong words", std::to_string(bad).c_str(), __LINE__);
		}
	}
}
static u32 carried() // kernels that carried something since the last call, GPU 0
{
	static u32 before = 0;
	u32 now = 0;
	C(cudaSetDevice(0));
	C(cudaMemcpy(&now, &g[0].ctl->kernels.v, 4, cudaMemcpyDeviceToHost));
	u32 r = now - before;
	before = now;
	return r;
}

static bool openNccl(std::string path)
{
	std::vector<std::string> paths;
	if (!path.empty())
		paths.push_back(path);
	else
		paths = {"libnccl.so.2", "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"};
	void *lib = nullptr;
	for (auto &p : paths)
		if (!lib)
			lib = dlopen(p.c_str(), RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("# no NCCL: %s\n", dlerror());
		return false;
	}
	auto init = (int (*)(void **, int, const int *))dlsym(lib, "ncclCommInitAll");
	auto version = (int (*)(int *))dlsym(lib, "ncclGetVersion");
	ncclReduce = (int (*)(const void *, void *, size_t, int, int, void *, cudaStream_t))dlsym(lib, "ncclAllReduce");
	ncclBegin = (int (*)())dlsym(lib, "ncclGroupStart");
	ncclEnd = (int (*)())dlsym(lib, "ncclGroupEnd");
	void *comms[2];
	int devices[2] = {0, 1}, v = 0, r = -1;
	if (!init || !ncclReduce || !ncclBegin || !ncclEnd || (r = init(comms, 2, devices))) {
		printf("# NCCL does not open: %d\n", r);
		return false;
	}
	if (version)
		version(&v);
	g[0].comm_ = comms[0], g[1].comm_ = comms[1];
	printf("# NCCL %d\n", v);
	return true;
}

int main(int argc, char **argv)
{
	auto t0 = std::chrono::steady_clock::now();
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);        // no module is loaded while a kernel waits
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);   // no stream waits behind another one
	setenv("NCCL_NVLS_ENABLE", "0", 1);
	bool quick = false;
	std::string nccl = getenv("NCCL") ? getenv("NCCL") : "";
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-q"))
			quick = true;
		else if (!strcmp(argv[i], "-small"))
			small = true;
		else if (!strcmp(argv[i], "-nccl") && i + 1 < argc)
			nccl = argv[++i];
		else if (!strcmp(argv[i], "-fault") && i + 1 < argc)
			fault = atoi(argv[++i]);
		else {
			fprintf(stderr, "usage: linger [-q] [-small] [-nccl PATH] [-fault 0..4]\n");
			return 2;
		}
	}
	printf("# prediction: products' blocks cannot slip in between two all-reduces, so a product runs on 132-B multiprocessors in one and a bit waves\n");
	fflush(stdout);
	std::thread([] { // ends the program if nothing goes on
		for (long last = -1;;) {
			std::this_thread::sleep_for(std::chrono::seconds(small ? 120 : 25));
			long now = heart;
			if (now == last)
				die("nothing goes on", "watchdog", __LINE__);
			last = now;
		}
	}).detach();

	struct Size { size_t bytes; int ops; };
	std::vector<Size> sizes = {{(size_t)25 << 20, 40}, {(size_t)64 << 20, 16}, {(size_t)256 << 20, 4}};
	std::vector<int> blocks = {16, 8, 32};
	std::vector<double> lingers = {0, 20, 100, 500};
	if (quick)
		sizes.resize(1), blocks.resize(1);
	if (small) {
		sizes = {{4096, 6}, {9008, 4}};
		blocks = {2, 4};
		lingers = {0, 5, 1000};
		N = 16, threads = 64, warm = 1, reps = 1;
		deadlineNs = fault < 0 ? 3000000000ull : 3000000ull;
	}
	size_t most = 0;
	for (auto &s : sizes)
		most = std::max(most, s.bytes);

	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!driver)
		die("libcuda.so.1", dlerror(), __LINE__);
	writeValue = (MemOp)dlsym(driver, "cuStreamWriteValue32_v2");
	waitValue = (MemOp)dlsym(driver, "cuStreamWaitValue32_v2");
	if (!writeValue || !waitValue)
		die("cuStreamWriteValue32_v2, cuStreamWaitValue32_v2", "not there", __LINE__);
	int count = 0;
	C(cudaGetDeviceCount(&count));
	if (count < 2)
		die("two GPUs are needed", std::to_string(count).c_str(), __LINE__);
	{
		void *p = nullptr;
		C(cudaSetDevice(0));
		C(cudaHostAlloc(&p, 256, cudaHostAllocPortable | cudaHostAllocMapped));
		memset(p, 0, 256);
		pinned = (volatile u32 *)p;
	}
	size_t matrix = small ? (size_t)64 * 64 * 4 : (size_t)2 * N * N;
	for (int d = 0; d < 2; d++) {
		Gpu &x = g[d];
		C(cudaSetDevice(d));
		C(cudaDeviceEnablePeerAccess(1 - d, 0));
		int least = 0, greatest = 0;
		C(cudaDeviceGetStreamPriorityRange(&least, &greatest));
		C(cudaDeviceGetAttribute(&x.sms, cudaDevAttrMultiProcessorCount, d));
		C(cudaStreamCreateWithPriority(&x.comp, cudaStreamNonBlocking, least));
		C(cudaStreamCreateWithPriority(&x.comm, cudaStreamNonBlocking, greatest));
		C(cudaStreamCreateWithPriority(&x.kern, cudaStreamNonBlocking, greatest));
		for (cudaEvent_t *e : {&x.begun, &x.compEnd, &x.commEnd, &x.e0, &x.e1})
			C(cudaEventCreateWithFlags(e, cudaEventDefault));
		C(cudaEventCreateWithFlags(&x.mark, cudaEventDisableTiming));
		C(cudaMalloc((void **)&x.in, most));
		C(cudaMalloc((void **)&x.out, most));
		C(cudaMalloc((void **)&x.ctl, sizeof(Ctl)));
		C(cudaMalloc(&x.a, matrix));
		C(cudaMalloc(&x.b, matrix));
		C(cudaMalloc(&x.c, matrix));
		C(cudaMemset(x.ctl, 0, sizeof(Ctl)));
		C(cudaMemset(x.out, 0, most));
		int grid = small ? 2 : 512, wide = small ? 64 : 256, f32 = 0;
#ifdef NO_CUBLAS
		f32 = 1;
#endif
		fill<<<grid, wide>>>((u32 *)x.in, most / 4, 0, 0u, d);
		fill<<<grid, wide>>>((u32 *)x.a, matrix / 4, f32, 1u, d);
		fill<<<grid, wide>>>((u32 *)x.b, matrix / 4, f32, 2u, d);
		check<<<1, 32>>>((u32 *)x.in, 0, 0, 0u, x.ctl);
		delay<<<1, 1>>>(0, 1);
		C(cudaGetLastError());
		C(cudaDeviceSynchronize());
#ifdef NO_CUBLAS
		C(cudaDeviceGetAttribute(&full, cudaDevAttrMaxSharedMemoryPerBlockOptin, d));
		C(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, full));
#else
		if (cublasCreate(&x.blas) != CUBLAS_STATUS_SUCCESS || cublasSetStream(x.blas, x.comp) != CUBLAS_STATUS_SUCCESS)
			die("cublasCreate", "failed", __LINE__);
#endif
		products(d, small ? 1 : 10);
		C(cudaDeviceSynchronize());
		heart++;
	}
	bool haveNccl = (!small || !nccl.empty()) && openNccl(nccl);
	heart++;
	printf("# %s GPUs of %d multiprocessors; 6 products of %d^3 beside a burst; ms, medians of %d after %d; linger in us\n", small ? "emulated" : "two",
	       g[0].sms, N, reps, warm);
	std::thread watcher(watch);

	// Both types, small and odd sizes, pauses in which lingering kernels end, before anything is timed.
	for (int f32 = 0; f32 < 2; f32++)
		for (Kind k : {PEROP, WHOLE, FUSED, START, HOST})
			for (double us : lingers) {
				if (us > 0 && k != START && k != HOST)
					continue;
				cfg = Config{k, small ? 3 : 16, us, small ? (size_t)3120 : (size_t)1000016, f32};
				verify(6, true);
			}
	printf("# verified\n");
	fflush(stdout);
	carried();

	bool skipped = false;
	for (int B : blocks)
		for (auto &s : sizes) {
			std::vector<Config> all;
			if (haveNccl)
				all.push_back({NCCL, 0, 0, s.bytes, 0});
			for (Kind k : {PEROP, WHOLE, FUSED})
				all.push_back({k, B, 0, s.bytes, 0});
			for (double us : lingers)
				all.push_back({HOST, B, us, s.bytes, 0});
			for (double us : lingers)
				if (B == blocks[0] || us == 100)
					all.push_back({START, B, us, s.bytes, 0});
			double unused = 0, alone = 0, one = 0;
			cfg = all.back();
			alone = timed(6, 0).all;
			one = oneProduct(0, &unused);
			printf("%g MiB x%d, B=%d: 6 products alone %.2f, one %.3f\n", s.bytes / 1048576.0, s.ops, B, alone, one);
			for (auto &c : all) {
				if (!small && ms(t0) > 52000) {
					skipped = true;
					continue;
				}
				cfg = c;
				carried();
				Times comm = timed(0, s.ops);
				double runs = warm + reps, launches = carried() / runs;
				Times beside = timed(6, s.ops);
				double launches2 = carried() / runs, margin = 0, single = oneProduct(s.ops, &margin);
				verify(3, false);
				printf("  %-7s linger %3g: comm alone %6.2f (tail %5.2f), together %6.2f [products end %6.2f, comm ends %6.2f, tail %5.2f] ideal %5.2f; "
				       "one product beside %.3f%s; kernels %.1f alone %.1f together\n",
				       names[c.kind], c.us, comm.all, comm.tail, beside.all, beside.comp, beside.comm, beside.tail, std::max(alone, comm.all), single,
				       margin < 0 ? " (comm ended before it)" : "", launches, launches2);
				fflush(stdout);
			}
		}
	if (skipped)
		printf("# the rest is left out: time\n");
	drained();
	stopWatch = true;
	watcher.join();
	printf("# all values right; %.1f s\n", ms(t0) / 1000);
	fflush(stdout);
	if (!small)
		_exit(0);
	for (int d = 0; d < 2; d++) { // the emulator counts what is not given back
		Gpu &x = g[d];
		C(cudaSetDevice(d));
		for (void *p : {(void *)x.in, (void *)x.out, (void *)x.ctl, x.a, x.b, x.c})
			C(cudaFree(p));
		for (cudaEvent_t e : {x.begun, x.compEnd, x.commEnd, x.e0, x.e1, x.mark})
			C(cudaEventDestroy(e));
		for (cudaStream_t st : {x.comp, x.comm, x.kern})
			C(cudaStreamDestroy(st));
	}
	C(cudaFreeHost((void *)pinned));
	return 0;
}
