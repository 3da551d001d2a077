// CASE padding: none
// CASE words: none
// CASE bytes: none
// CASE gap: none
// CASE shared: none
// CASE shuffled: none
// CASE bits: none
// CASE packed: none
// CASE lanes: none
// CASE chosen: none
// CASE onDevice: none
// CASE overaligned: none
// CASE called: none
// CASE spare: none
// CASE copied: read of unwritten memory
// CASE tile: read of unwritten memory
// CASE branch: read of unwritten memory
// CASE index: read of unwritten memory
// CASE sum: read of unwritten memory
// CASE atomic: read of unwritten memory
// CASE element: read of unwritten memory
// CASE vote: read of unwritten memory
// CASE traveled: read of unwritten memory
// CASE passed: read of unwritten memory
// CASE host: read of unwritten memory
// CASE half: read of unwritten memory
// CASE later: read of unwritten memory
// CASE rows: read of unwritten memory
// memory_unwritten.cu moves bytes that nobody wrote, which is right, and uses them.
#include "verdict.h"

struct P {
	char c;
	int i;
	short s;
};
struct Gap {
	int i;
	double d;
};
struct Bits {
	unsigned a : 4, b : 12, c : 16;
};
struct alignas(64) Wide {
	int i;
};

static __global__ void fill(P *p) {
	P *q = p + threadIdx.x;
	q->c = 1, q->i = threadIdx.x, q->s = 3;
}
static __global__ void fill(Gap *p) { p[threadIdx.x].i = threadIdx.x, p[threadIdx.x].d = 2; }
static __global__ void fill(Wide *p) { p[threadIdx.x].i = threadIdx.x; }
template <class T> static __global__ void copy(const T *from, T *to) { to[threadIdx.x] = from[threadIdx.x]; }
template <class T> static __global__ void copyAll(const T *from, T *to, int n) {
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		to[i] = from[i];
}
template <class T> static __global__ void swap(const T *from, T *to) {
	__shared__ T tile[32];
	tile[threadIdx.x] = from[threadIdx.x];
	__syncthreads();
	to[threadIdx.x] = tile[threadIdx.x ^ 1];
}
static __global__ void rotate(const P *from, P *to) {
	union {
		P p;
		unsigned w[3];
	} u = {from[threadIdx.x]};
	for (int i = 0; i < 3; i++)
		u.w[i] = __shfl_sync(~0u, u.w[i], threadIdx.x + 1);
	to[threadIdx.x] = u.p;
}
static __global__ void bits(Bits *p, int *to) {
	p[threadIdx.x].a = threadIdx.x & 15;
	p[threadIdx.x].b = 7;
	to[threadIdx.x] = p[threadIdx.x].a == 3 ? p[threadIdx.x].b : 1;
}
static __global__ void pack(const unsigned char *from, unsigned *to) { // of each four bytes one was written
	unsigned v = ((const unsigned *)from)[threadIdx.x];
	to[threadIdx.x] = __byte_perm(v, 0, 0x4441) << 8 | (v >> 8 & 0xff);
}
static __global__ void one(unsigned char *p) { p[4 * threadIdx.x + 1] = threadIdx.x; }
static __global__ void three(float4 *p) { p[threadIdx.x].x = p[threadIdx.x].y = p[threadIdx.x].z = threadIdx.x; }
static __global__ void add(const float4 *from, float *to) {
	float4 v = from[threadIdx.x];
	to[threadIdx.x] = v.x + v.y + v.z;
}
static __global__ void some(int *p, int n) {
	if (threadIdx.x < n)
		p[threadIdx.x] = threadIdx.x;
}
static __global__ void choose(const int *from, int *to, int n) { // loads more than it uses
	int v = from[threadIdx.x] * 3;
	to[threadIdx.x] = threadIdx.x < n ? v : -1;
}
static __device__ __noinline__ P same(P p) { return p; }
static __global__ void call(const P *from, P *to) { to[threadIdx.x] = same(from[threadIdx.x]); }

static __global__ void tile(int *to) {
	__shared__ int t[64];
	if (threadIdx.x < 32)
		t[threadIdx.x] = 1;
	__syncthreads();
	to[threadIdx.x] = t[threadIdx.x];
}
static __global__ void branch(const int *from, int *to) {
	if (from[threadIdx.x] > 3)
		to[threadIdx.x] = 1;
}
static __global__ void index(const int *from, int *to) { to[32 * (from[threadIdx.x] & 1) + threadIdx.x] = 1; }
static __global__ void sum(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x] + 1; }
static __global__ void count(const int *from, int *to) { atomicAdd(to, from[threadIdx.x]); }
static __global__ void vote(const int *from, int *to) { to[threadIdx.x] = __any_sync(~0u, from[threadIdx.x]); }

int main(int, char **argv) {
	P *p, *q, h[32];
	Gap *g, *r, k[32];
	int *a, *b = device<int>(64), v[64];
	CHECK(cudaMalloc(&p, sizeof h));
	CHECK(cudaMalloc(&q, sizeof h));
	CHECK(cudaMalloc(&g, sizeof k));
	CHECK(cudaMalloc(&r, sizeof k));
	CHECK(cudaMalloc(&a, sizeof v));
	fill<<<1, 32>>>(p);
	fill<<<1, 32>>>(g);
	bool whole = true;
	if (is(argv, "padding"))
		copy<<<1, 32>>>(p, q);
	else if (is(argv, "words"))
		copyAll<<<1, 32>>>((int *)p, (int *)q, sizeof h / 4);
	else if (is(argv, "bytes"))
		copyAll<<<1, 32>>>((char *)p, (char *)q, sizeof h);
	else if (is(argv, "shared"))
		swap<<<1, 32>>>(p, q);
	else if (is(argv, "shuffled"))
		rotate<<<1, 32>>>(p, q);
	else if (is(argv, "called"))
		call<<<1, 32>>>(p, q);
	else if (is(argv, "onDevice"))
		CHECK(cudaMemcpy(q, p, sizeof h, cudaMemcpyDeviceToDevice));
	else
		whole = false;
	if (whole) {
		CHECK(cudaMemcpy(h, q, sizeof h, cudaMemcpyDeviceToHost));
		MUST(h[5].c == 1 && h[5].s == 3);
	}
	if (is(argv, "gap")) {
		copyAll<<<1, 32>>>((int *)g, (int *)r, sizeof k / 4);
		swap<<<1, 32>>>(r, g);
		CHECK(cudaMemcpy(k, g, sizeof k, cudaMemcpyDeviceToHost));
		MUST(k[4].i == 5 && k[4].d == 2);
	} else if (is(argv, "bits")) {
		bits<<<1, 32>>>((Bits *)a, b);
		MUST(host(b, 3) == 7);
	} else if (is(argv, "packed")) {
		one<<<1, 16>>>((unsigned char *)a);
		pack<<<1, 16>>>((unsigned char *)a, (unsigned *)b);
		CHECK(cudaMemcpy(v, b, 64, cudaMemcpyDeviceToHost));
		MUST((v[5] & 0xff) == 5);
	} else if (is(argv, "lanes")) {
		float4 *f;
		CHECK(cudaMalloc(&f, 512));
		three<<<1, 32>>>(f);
		swap<<<1, 32>>>(f, f);
		add<<<1, 32>>>(f, (float *)b);
		MUST(host((float *)b, 2) == 9);
		CHECK(cudaFree(f));
	} else if (is(argv, "chosen")) {
		some<<<1, 32>>>(a, 9);
		choose<<<1, 32>>>(a, b, 9);
		MUST(host(b, 8) == 24 && host(b, 9) == -1);
	} else if (is(argv, "overaligned")) {
		Wide *w, c[8];
		CHECK(cudaMalloc(&w, sizeof c));
		fill<<<1, 8>>>(w);
		CHECK(cudaMemcpy(c, w, sizeof c, cudaMemcpyDeviceToHost));
		MUST(c[7].i == 7);
		CHECK(cudaFree(w));
	} else if (is(argv, "spare")) { // is copied and not used
		CHECK(cudaMemcpy(b, a, 64, cudaMemcpyDeviceToDevice));
		some<<<1, 32>>>(b, 16);
		MUST(host(b, 3) == 3);
	} else if (is(argv, "copied"))
		copy<<<1, 32>>>(a, b);
	else if (is(argv, "tile"))
		tile<<<1, 64>>>(b);
	else if (is(argv, "branch"))
		branch<<<1, 32>>>(a, b);
	else if (is(argv, "index"))
		index<<<1, 32>>>(a, b);
	else if (is(argv, "sum"))
		sum<<<1, 32>>>(a, b);
	else if (is(argv, "atomic"))
		count<<<1, 32>>>(a, b);
	else if (is(argv, "element")) { // one of many
		some<<<1, 32>>>(a, 31);
		sum<<<1, 32>>>(a, b);
	} else if (is(argv, "vote")) {
		some<<<1, 32>>>(a, 31);
		vote<<<1, 32>>>(a, b);
	} else if (is(argv, "traveled")) { // through two copies
		some<<<1, 32>>>(a, 31);
		CHECK(cudaMemcpy(b, a, 128, cudaMemcpyDeviceToDevice));
		copy<<<1, 32>>>(b, a + 32);
		sum<<<1, 32>>>(a + 32, b);
	} else if (is(argv, "passed")) {
		some<<<1, 32>>>(a, 31);
		swap<<<1, 32>>>(a, b);
		branch<<<1, 32>>>(b, a);
	} else if (is(argv, "host"))
		CHECK(cudaMemcpy(v, a, 4, cudaMemcpyDeviceToHost));
	else if (is(argv, "half")) {
		some<<<1, 32>>>(a, 16);
		CHECK(cudaMemcpy(v, a, 128, cudaMemcpyDeviceToHost));
	} else if (is(argv, "later")) {
		CHECK(cudaMemcpyAsync(b, a, 128, cudaMemcpyDeviceToDevice, 0));
		CHECK(cudaMemcpyAsync(v, b, 128, cudaMemcpyDeviceToHost, 0));
	} else if (is(argv, "rows"))
		CHECK(cudaMemcpy2D(v, 8, a, 16, 8, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaDeviceSynchronize());
	void *all[] = {p, q, g, r, a, b};
	for (void *m : all)
		CHECK(cudaFree(m));
}
