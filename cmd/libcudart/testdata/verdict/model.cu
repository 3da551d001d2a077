// CASE release: none
// CASE release_store: none
// CASE release_store_elsewhere: race
// CASE release_atomic_store: none
// CASE release_atomic_store_elsewhere: race
// CASE release_fence: none
// CASE release_fence_block: race
// CASE release_none: race
// CASE release_narrow_store: race
// CASE acquire_atomic: none
// CASE acquire_load: none
// CASE acquire_load_elsewhere: race
// CASE acquire_fence: none
// CASE acquire_none: race
// CASE acquire_narrow: race
// CASE lock: none
// CASE lock_relaxed: race
// CASE counter: none
// CASE counter_unfenced: race
// CASE counter_reset_early: some race
// CASE entry_sc: none
// CASE entry_acq_rel: some wrong
// CASE entry_release_acquire: some wrong
// CASE entry_shared: some wrong
// CASE entry_shared_sc: none
// CASE readers: some wrong
// CASE readers_sc: none
// CASE flag_shared: some wrong
// CASE flag_shared_release: none
#include "verdict.h"

#define LOAD(name, order)                                                                                     \
	static __device__ int name(const int *p) {                                                                \
		int v;                                                                                                \
		asm volatile("ld." order ".b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");                             \
		return v;                                                                                             \
	}
#define STORE(name, order)                                                                                    \
	static __device__ void name(int *p, int v) {                                                              \
		asm volatile("st." order ".b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");                               \
	}
#define ATOMIC(name, order, op)                                                                               \
	static __device__ int name(int *p, int v) {                                                               \
		int was;                                                                                              \
		asm volatile("atom." order "." op ".b32 %0, [%1], %2;" : "=r"(was) : "l"(p), "r"(v) : "memory");      \
		return was;                                                                                           \
	}
#define FENCE(name, order)                                                                                    \
	static __device__ void name() { asm volatile("fence." order ";" ::: "memory"); }
LOAD(loadRelaxed, "relaxed.gpu")
LOAD(loadAcquire, "acquire.gpu")
LOAD(loadNarrow, "acquire.cta")
STORE(storeRelaxed, "relaxed.gpu")
STORE(storeRelease, "release.gpu")
STORE(storeNarrow, "release.cta")
ATOMIC(exchangeRelease, "release.gpu", "exch")
ATOMIC(orAcquire, "acquire.gpu", "or")
ATOMIC(exchangeAcquire, "acquire.gpu", "exch")
ATOMIC(exchangeRelaxed, "relaxed.gpu", "exch")
FENCE(fence, "acq_rel.gpu")
FENCE(fenceNarrow, "acq_rel.cta")
FENCE(fenceSC, "sc.gpu")

enum Send { release, releaseStore, releaseElsewhere, atomicStore, atomicElsewhere, sendFence, sendNarrowFence, sendNone, sendNarrow };
enum Receive { acquire, atomicAcquire, loadThen, loadElsewhere, receiveFence, receiveNone, receiveNarrow };

// pass has a block store data and then a flag, for which another one waits.
__global__ void pass(int *data, int *flag, int *other, int *out, Send how, Receive then) {
	if (blockIdx.x == 0) {
		*data = 5;
		switch (how) {
		case release: storeRelease(flag, 2); break;
		case releaseStore: storeRelease(flag, 1); storeRelaxed(flag, 2); break;
		case releaseElsewhere: storeRelease(other, 1); storeRelaxed(flag, 2); break;
		case atomicStore: exchangeRelease(flag, 1); storeRelaxed(flag, 2); break;
		case atomicElsewhere: exchangeRelease(other, 1); storeRelaxed(flag, 2); break;
		case sendFence: fence(); storeRelaxed(flag, 2); break;
		case sendNarrowFence: fenceNarrow(); storeRelaxed(flag, 2); break;
		case sendNone: storeRelaxed(flag, 2); break;
		case sendNarrow: storeNarrow(flag, 1); storeRelaxed(flag, 2); break;
		}
		return;
	}
	switch (then) {
	case acquire: while (loadAcquire(flag) != 2); break;
	case atomicAcquire: while (orAcquire(flag, 0) != 2); break;
	case loadThen: while (loadRelaxed(flag) != 2); loadAcquire(flag); break;
	case loadElsewhere: while (loadRelaxed(flag) != 2); loadAcquire(other); break;
	case receiveFence: while (loadRelaxed(flag) != 2); fence(); break;
	case receiveNone: while (loadRelaxed(flag) != 2); break;
	case receiveNarrow: while (loadRelaxed(flag) != 2); loadNarrow(flag); break;
	}
	*out = *data;
}

// add has blocks add to a counter under a lock, which is given back by a release and a store, or by a store.
__global__ void add(int *n, int *lock, bool released) {
	while (exchangeAcquire(lock, 1));
	*n += 1;
	if (released)
		storeRelease(lock, 1);
	storeRelaxed(lock, 0);
}

// last has the last of some blocks sum what all have stored, and set the counter back by a plain store.
__global__ void last(int *part, unsigned *count, int *sum, bool fenced, bool early) {
	part[blockIdx.x] = 1;
	if (fenced)
		__threadfence();
	if (early && blockIdx.x == 0)
		*count = 0;
	if (atomicAdd(count, 1u) != gridDim.x - 1)
		return;
	if (fenced)
		__threadfence();
	int s = 0;
	for (int i = 0; i < gridDim.x; i++)
		s += part[i];
	*sum = s;
	*count = 0;
}

enum Entry { entrySC, entryAcqRel, entryReleaseAcquire };

// enter has each of two threads say that it comes, and count itself if the other has not.
__device__ void enter(int *mine, int *other, int *in, Entry how) {
	switch (how) {
	case entrySC: storeRelaxed(mine, 1); fenceSC(); break;
	case entryAcqRel: storeRelaxed(mine, 1); fence(); break;
	case entryReleaseAcquire: storeRelease(mine, 1); break;
	}
	if ((how == entryReleaseAcquire ? loadAcquire(other) : loadRelaxed(other)) == 0)
		atomicAdd(in, 1);
}

__global__ void entry(int *flags, int *in, Entry how) {
	enter(flags + 32 * blockIdx.x, flags + 32 * (1 - blockIdx.x), in, how);
}

__global__ void entryShared(int *in, Entry how) {
	__shared__ int flags[64];
	flags[threadIdx.x] = 0;
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		enter(flags + threadIdx.x, flags + 32 - threadIdx.x, in, how);
}

// readers has two blocks read what two others store, each in another order.
__global__ void readers(int *x, int *y, int *saw, bool sc) {
	int *first = blockIdx.x == 2 ? x : y, *second = blockIdx.x == 2 ? y : x;
	if (blockIdx.x < 2) {
		storeRelaxed(blockIdx.x ? y : x, 1);
		return;
	}
	int a = loadRelaxed(first);
	if (sc)
		fenceSC();
	else
		fence();
	saw[blockIdx.x - 2] = a == 1 && loadRelaxed(second) == 0;
}

// flagShared has a warp pass a value to another one in shared memory.
__global__ void flagShared(int *lost, bool released) {
	__shared__ int box[64];
	box[threadIdx.x] = 0;
	__syncthreads();
	if (threadIdx.x == 0) {
		storeRelaxed(box, 1);
		if (released)
			storeNarrow(box + 32, 1);
		else
			storeRelaxed(box + 32, 1);
	} else if (threadIdx.x == 32) {
		while (!loadNarrow(box + 32));
		if (!loadRelaxed(box))
			*lost = 1;
	}
}

static bool pair(char **argv, int *v) {
	static const struct {
		const char *name;
		Send send;
		Receive receive;
	} all[] = {{"release", release, acquire}, {"release_store", releaseStore, acquire},
		{"release_store_elsewhere", releaseElsewhere, acquire}, {"release_atomic_store", atomicStore, acquire},
		{"release_atomic_store_elsewhere", atomicElsewhere, acquire}, {"release_fence", sendFence, acquire},
		{"release_fence_block", sendNarrowFence, acquire}, {"release_none", sendNone, acquire},
		{"release_narrow_store", sendNarrow, acquire}, {"acquire_atomic", releaseStore, atomicAcquire},
		{"acquire_load", releaseStore, loadThen}, {"acquire_load_elsewhere", releaseStore, loadElsewhere},
		{"acquire_fence", atomicStore, receiveFence}, {"acquire_none", release, receiveNone},
		{"acquire_narrow", release, receiveNarrow}};
	for (auto &c : all) {
		if (!is(argv, c.name))
			continue;
		pass<<<2, 1>>>(v, v + 32, v + 64, v + 96, c.send, c.receive);
		CHECK(cudaDeviceSynchronize());
		return true;
	}
	return false;
}

int main(int, char **argv) {
	int *v = device<int>(256);
	bool done = pair(argv, v);
	for (int round = 0; !done && round < 20; round++) {
		CHECK(cudaMemset(v, 0, 256 * sizeof(int)));
		if (is(argv, "lock") || is(argv, "lock_relaxed")) {
			add<<<4, 1>>>(v, v + 32, is(argv, "lock"));
			CHECK(cudaDeviceSynchronize());
			done = true;
		} else if (!strncmp(argv[1], "counter", 7)) {
			last<<<6, 1>>>(v, (unsigned *)v + 32, v + 64, !is(argv, "counter_unfenced"), is(argv, "counter_reset_early"));
			CHECK(cudaDeviceSynchronize());
			done = true;
		} else if (!strncmp(argv[1], "entry_shared", 12)) {
			entryShared<<<1, 64>>>(v, is(argv, "entry_shared") ? entryAcqRel : entrySC);
			MUST(host(v) < 2);
		} else if (!strncmp(argv[1], "entry", 5)) {
			entry<<<2, 1>>>(v, v + 96, is(argv, "entry_sc") ? entrySC : is(argv, "entry_acq_rel") ? entryAcqRel : entryReleaseAcquire);
			MUST(host(v + 96) < 2);
		} else if (!strncmp(argv[1], "readers", 7)) {
			readers<<<4, 1>>>(v, v + 32, v + 64, is(argv, "readers_sc"));
			MUST(!host(v + 64) || !host(v + 65));
		} else {
			flagShared<<<1, 64>>>(v, is(argv, "flag_shared_release"));
			MUST(!host(v));
		}
	}
	CHECK(cudaFree(v));
}
