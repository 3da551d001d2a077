// What calls ask of the driver, and what they cost their thread beside that.
//
//	driver IDLE CALLS   for each case a line: its name, each function that was called and how often if more than once, and the ns
//	                    that it takes while no function of the driver does anything
//	driver IDLE CALLS time   the ns that a call takes as the driver is, and of them those within its functions
//
// IDLE is the library of idle.c, which RINGO_CUDA_LIBRARY names too. Rank 0's GPU is current on the
// thread, as a rank's own is; "both" are calls of two ranks that one thread makes in a group.
#include <dlfcn.h>

#include "memory.h"
#include "ringo_norm.h"

enum { RANKS = 2, BYTES = 1 << 20 };

static ncclComm_t comms[RANKS];
static cudaStream_t s[RANKS];
static char *at[RANKS], *windows[RANKS];

static int apart = 1; // calls of a group that are carried out have places of their own
static void all_reduce(int r)
{
	static int n[RANKS];
	char *from = at[r] + apart * 64 * (n[r]++ % 16);
	OK(ncclAllReduce(from, from + 4096, 2, ncclFloat32, ncclMax, comms[r], s[r]));
}
static void misaligned(int r) { OK(ncclAllReduce(at[r] + 3, at[r] + 4099, 1024, ncclInt8, ncclSum, comms[r], s[r])); }
static void pre_mul_sum(int r)
{
	ncclRedOp_t op;
	float scale = 2;
	OK(ncclRedOpCreatePreMulSum(&op, &scale, ncclFloat32, ncclScalarHostImmediate, comms[r]));
	OK(ncclAllReduce(at[r], at[r] + 4096, 256, ncclFloat32, op, comms[r], s[r]));
	OK(ncclRedOpDestroy(op, comms[r]));
}
static void registered(int r) { OK(ncclAllReduce(windows[r], windows[r] + 4096, 128, ncclFloat32, ncclSum, comms[r], s[r])); }
static void large(int r) { OK(ncclAllReduce(windows[r], windows[r], BYTES / 4, ncclFloat32, ncclSum, comms[r], s[r])); }
static void all_gather(int r) { OK(ncclAllGather(at[r], at[r] + 4096, 256, ncclFloat32, comms[r], s[r])); }
static void reduce_scatter(int r) { OK(ncclReduceScatter(at[r] + 4096, at[r], 256, ncclFloat32, ncclSum, comms[r], s[r])); }
static void reduce(int r) { OK(ncclReduce(at[r], at[r] + 4096, 256, ncclFloat32, ncclSum, 0, comms[r], s[r])); }
static void broadcast(int r) { OK(ncclBroadcast(at[r], at[r] + 4096, 256, ncclFloat32, 0, comms[r], s[r])); }
static void send_and_receive(int r)
{
	OK(ncclGroupStart());
	OK(ncclSend(at[r], 8192, ncclInt8, 1 - r, comms[r], s[r]));
	OK(ncclRecv(at[r] + 8192, 8192, ncclInt8, 1 - r, comms[r], s[r]));
	OK(ncclGroupEnd());
}

static void norm(int rank)
{
	float *x = (float *)at[rank];
	ringo_norm n = {
	    .size = sizeof n, .rows = 1, .row = 2, .type = ncclFloat32, .epsilon = 1e-6f, .in = x, .weight = x + 2, .residual = x + 4, .sum = x + 4, .normed = x,
	};
	OK(ringo_all_reduce_norm(&n, comms[rank], s[rank]));
}

static const struct {
	const char *name;
	void (*call)(int rank);
	int each, ranks; // in a group, if more than one
} cases[] = {
    {"all-reduce", all_reduce, 1, 1},
    {"all-reduce, both", all_reduce, 1, 2},
    {"all-reduce, 16", all_reduce, 16, 1},
    {"all-reduce, 16, both", all_reduce, 16, 2},
    {"misaligned", misaligned, 1, 1},
    {"norm", norm, 1, 1},
    {"PreMulSum", pre_mul_sum, 1, 1},
    {"PreMulSum, both", pre_mul_sum, 1, 2},
    {"registered", registered, 1, 1},
    {"registered, both", registered, 1, 2},
    {"registered, 1 MiB", large, 1, 1},
    {"all-gather", all_gather, 1, 1},
    {"reduce-scatter", reduce_scatter, 1, 1},
    {"reduce", reduce, 1, 1},
    {"broadcast", broadcast, 1, 1},
    {"send and receive", send_and_receive, 1, 1},
    {"send and receive, both", send_and_receive, 1, 2},
};
enum { CASES = sizeof cases / sizeof *cases };

static void carry_out(int k, int ranks)
{
	int grouped = ranks > 1 || cases[k].each > 1;
	if (grouped)
		OK(ncclGroupStart());
	for (int i = 0; i < cases[k].each; i++)
		for (int r = 0; r < ranks; r++)
			cases[k].call(r);
	if (grouped)
		OK(ncclGroupEnd());
}

// best is the least time of a case in some runs, in ns.
static double best(int k, int calls)
{
	double least = 1e18;
	for (int n = 0; n < calls; n += 50) {
		struct timespec t0, t1;
		clock_gettime(CLOCK_MONOTONIC, &t0);
		for (int i = 0; i < 50; i++)
			carry_out(k, cases[k].ranks);
		clock_gettime(CLOCK_MONOTONIC, &t1);
		double ns = (t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec);
		if (ns < least)
			least = ns;
	}
	return least / 50;
}

// real prints what a case takes, of each rank if they are not grouped, as the driver is.
static void real(int k, context *c, int calls, const char **names, unsigned long *counts, unsigned long *ns)
{
	double each = 0;
	char x[8];
	int some = 0;
	for (int turn = 0; turn < 2; turn++) { // the first warms up
		each = 0, some = 0;
		for (int i = 0; names[i]; i++)
			counts[i] = ns[i] = 0;
		for (int n = 0; n < calls; n += 16) {
			for (int i = 0; i < 16; i++) {
				for (int r = 0; r < RANKS; r += cases[k].ranks) {
					CU(cuCtxSetCurrent(c[r]));
					struct timespec t0, t1;
					clock_gettime(CLOCK_MONOTONIC, &t0);
					if (cases[k].ranks > 1 || cases[k].each > 1)
						OK(ncclGroupStart());
					for (int j = 0; j < cases[k].each; j++)
						for (int q = r; q < r + cases[k].ranks; q++)
							cases[k].call(q);
					if (cases[k].ranks > 1 || cases[k].each > 1)
						OK(ncclGroupEnd());
					clock_gettime(CLOCK_MONOTONIC, &t1);
					each += (t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec);
					some++;
				}
			}
			for (int r = 0; r < RANKS; r++)
				pull(c[r], x, at[r], 8, s[r]);
		}
	}
	printf("%-24s %6.0f ns, of them", cases[k].name, each / some);
	double left = each;
	for (int i = 0; names[i]; i++)
		if (counts[i] && strcmp(names[i], "cuStreamSynchronize") && strcmp(names[i], "cuCtxSetCurrent")) {
			printf(" %s %.0f,", names[i], (double)ns[i] / some);
			left -= ns[i];
		}
	printf(" the rest %.0f\n", left / some);
}

int main(int argc, char **argv)
{
	char *host = calloc(1, BYTES);
	void *handles[RANKS];
	CHECK(argc == 3 || argc == 4);
	setvbuf(stdout, NULL, _IOLBF, 0);
	int calls = atoi(argv[2]);
	void *lib = dlopen(argv[1], RTLD_NOW);
	CHECK(lib);
	int *idle = dlsym(lib, "idle");
	const char **names = dlsym(lib, "idle_names");
	unsigned long *counts = dlsym(lib, "idle_counts"), *ns = dlsym(lib, "idle_ns");
	context c[RANKS];
	OK(ncclCommInitAll(comms, RANKS, NULL));
	for (int r = 0; r < RANKS; r++) {
		c[r] = use_device(device_of(r));
		s[r] = new_stream(c[r]);
		at[r] = place(c[r], host, BYTES);
		push(c[r], at[r], host, BYTES, s[r]);
		OK(ncclMemAlloc((void **)&windows[r], BYTES));
		push(c[r], windows[r], host, BYTES, s[r]);
	}
	OK(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		OK(ncclCommRegister(comms[r], windows[r], BYTES, &handles[r]));
	OK(ncclGroupEnd());
	for (int k = 0; k < CASES; k++) // load what is needed
		carry_out(k, RANKS);
	for (int r = 0; r < RANKS; r++)
		pull(c[r], host, at[r], 8, s[r]);
	for (int k = 0; k < CASES && argc == 4; k++)
		real(k, c, calls, names, counts, ns);
	if (argc == 4)
		_exit(fflush(stdout));
	*idle = 1, apart = 0;
	use_device(0);
	for (int k = 0; k < CASES; k++) {
		carry_out(k, cases[k].ranks);
		for (int i = 0; names[i]; i++)
			counts[i] = 0;
		carry_out(k, cases[k].ranks);
		printf("%s:", cases[k].name);
		for (int i = 0; names[i]; i++) {
			if (counts[i] > 1)
				printf(" %lu×%s", counts[i], names[i]);
			else if (counts[i])
				printf(" %s", names[i]);
		}
		printf(" ns %.0f\n", best(k, calls));
	}
	fflush(stdout);
	for (int r = 0; r < RANKS; r++)
		unplace(c[r], at[r]);
	_exit(0); // ncclCommDestroy would wait for kernels that the emulated GPUs know nothing of
}
