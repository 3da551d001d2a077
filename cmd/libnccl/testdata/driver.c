// What an all-reduce of 8 bytes asks of the driver, and what it costs its thread beside that.
//
//	driver IDLE CALLS   prints each function that was called for one all-reduce, and how often; the same for
//	                    16 in a group, in one buffer, and for one with a norm; then "ns", and the time of one, alone, in such a
//	                    group, and with a norm, while no function of the driver does anything
//
// IDLE is the library of idle.c, which RINGO_CUDA_LIBRARY names too. The GPUs are emulated.
#include <dlfcn.h>

#include "memory.h"
#include "ringo_norm.h"

enum { RANKS = 2, GROUP = 16, SOME = 960 };

static ncclComm_t comms[RANKS];
static cudaStream_t s[RANKS];
static float *at[RANKS];

static void alone(void) { OK(ncclAllReduce(at[0], at[0], 2, ncclFloat32, ncclMax, comms[0], s[0])); }

static void grouped(void)
{
	OK(ncclGroupStart());
	for (int i = 0; i < GROUP; i++)
		alone();
	OK(ncclGroupEnd());
}

static void with_norm(int rank)
{
	ringo_norm n = {
	    .size = sizeof n, .rows = 1, .row = 2, .type = ncclFloat32, .epsilon = 1e-6f, .in = at[rank], .weight = at[rank] + 2,
	    .residual = at[rank] + 4, .sum = at[rank] + 4, .normed = at[rank],
	};
	OK(ringo_all_reduce_norm(&n, comms[rank], s[rank]));
}

static void normed(void) { with_norm(0); }

// both has all ranks do as many all-reduces, in one group.
static void both(int n)
{
	OK(ncclGroupStart());
	for (int i = 0; i < n; i++)
		for (int r = 0; r < RANKS; r++)
			OK(ncclAllReduce(at[r], at[r], 2, ncclFloat32, ncclMax, comms[r], s[r]));
	OK(ncclGroupEnd());
}

// best is the least time of a call of f in some runs, in ns.
static double best(void (*f)(void), int each, int calls)
{
	double least = 1e18;
	for (int k = 0; k < calls; k += SOME) {
		struct timespec t0, t1;
		clock_gettime(CLOCK_MONOTONIC, &t0);
		for (int i = 0; i < SOME; i += each)
			f();
		clock_gettime(CLOCK_MONOTONIC, &t1);
		double ns = (t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec);
		if (ns < least)
			least = ns;
	}
	return least / SOME;
}

int main(int argc, char **argv)
{
	float x[6] = {1, 2, 1, 1};
	context c[RANKS];
	CHECK(argc == 3);
	int calls = atoi(argv[2]);
	void *lib = dlopen(argv[1], RTLD_NOW);
	CHECK(lib);
	int *idle = dlsym(lib, "idle");
	const char **names = dlsym(lib, "idle_names");
	unsigned long *counts = dlsym(lib, "idle_counts");
	OK(ncclCommInitAll(comms, RANKS, NULL));
	for (int r = 0; r < RANKS; r++) {
		c[r] = use_device(device_of(r));
		s[r] = new_stream(c[r]);
		at[r] = place(c[r], x, sizeof x);
		push(c[r], at[r], x, sizeof x, s[r]);
	}
	both(1), both(2); // load what is needed
	OK(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		with_norm(r);
	OK(ncclGroupEnd());
	for (int r = 0; r < RANKS; r++)
		pull(c[r], x, at[r], sizeof x, s[r]);
	*idle = 1;
	use_device(0);
	void (*const ways[])(void) = {alone, grouped, normed};
	for (int w = 0; w < 3; w++) {
		alone();
		for (int i = 0; names[i]; i++)
			counts[i] = 0;
		ways[w]();
		for (int i = 0; names[i]; i++)
			if (counts[i])
				printf("%s %lu\n", names[i], counts[i]);
	}
	printf("ns %.0f %.0f %.0f\n", best(alone, 1, calls), best(grouped, GROUP, calls), best(normed, 1, calls));
	fflush(stdout);
	for (int r = 0; r < RANKS; r++)
		unplace(c[r], at[r]);
	_exit(0); // ncclCommDestroy would wait for kernels that the emulated GPUs know nothing of
}
