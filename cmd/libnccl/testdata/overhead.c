// What calls cost their thread, on the host or on GPUs (see memory.h), where that is the time to queue them.
//
//	overhead CALLS [RANKS]   prints the nanoseconds of ncclGetVersion, of an all-reduce of 8 bytes
//	                         alone, and of one in groups of 16; ranks are threads
//
// With NVIDIA's library in LD_LIBRARY_PATH or LD_PRELOAD it measures that.
#include "memory.h"

enum { RANKS = 8, BATCH = 48 };

static ncclUniqueId id;
static int calls, ranks = 1;
static pthread_barrier_t all;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// done has what was queued done, so that queues do not fill.
static void done(context c, float *x, float *to, cudaStream_t s)
{
	pull(c, x, to, 8, s);
	pthread_barrier_wait(&all);
}

static void *rank(void *arg)
{
	int me = (int)(intptr_t)arg, version;
	ncclComm_t comm;
	context c = use_device(device_of(me));
	OK(ncclCommInitRank(&comm, ranks, id, me));
	cudaStream_t s = new_stream(c);
	float x[2] = {1, 2}, *from = place(c, x, 8);
	push(c, from, x, 8, s);
	double version_time = 0, alone = 0, grouped = 0;
	for (int i = -BATCH; i < calls; i += BATCH) {
		double t0 = now();
		for (int k = 0; k < BATCH; k++)
			OK(ncclGetVersion(&version));
		double t1 = now();
		for (int k = 0; k < BATCH; k++)
			OK(ncclAllReduce(from, from, 2, ncclFloat32, ncclMax, comm, s));
		double t2 = now();
		done(c, x, from, s);
		double t3 = now();
		for (int k = 0; k < BATCH; k += 16) {
			OK(ncclGroupStart());
			for (int j = 0; j < 16; j++)
				OK(ncclAllReduce(from, from, 2, ncclFloat32, ncclMax, comm, s));
			OK(ncclGroupEnd());
		}
		double t4 = now();
		done(c, x, from, s);
		if (i >= 0) // the first batch loads what is needed
			version_time += t1 - t0, alone += t2 - t1, grouped += t4 - t3;
	}
	int n = (calls + BATCH - 1) / BATCH * BATCH;
	if (me == 0)
		printf("%.0f %.0f %.0f\n", version_time / n * 1e9, alone / n * 1e9, grouped / n * 1e9);
	OK(ncclCommDestroy(comm));
	unplace(c, from);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[RANKS];
	CHECK(argc == 2 || argc == 3);
	calls = atoi(argv[1]);
	if (argc == 3)
		ranks = atoi(argv[2]);
	pthread_barrier_init(&all, NULL, ranks);
	use_device(0);
	OK(ncclGetUniqueId(&id));
	for (intptr_t i = 0; i < ranks; i++)
		CHECK(pthread_create(&threads[i], NULL, rank, (void *)i) == 0);
	for (int i = 0; i < ranks; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
