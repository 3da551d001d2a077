// What calls cost their thread, on the host or on GPUs (see memory.h).
//
//	overhead CALLS [RANKS] [team]   for each case a line: nanoseconds of the caller's thread to queue a call, and from
//	                                the first of 48 until all are done, a call
//
// Ranks are threads, or with "team" one thread has them all and calls in groups, as nccl-tests does with -t and with -g.
// A call of "group" and "one buffer" is one of 16 in a group. With NVIDIA's library in LD_LIBRARY_PATH or LD_PRELOAD it measures that.
#include "memory.h"

enum { RANKS = 8, BATCH = 48, EACH = 16, BYTES = 1 << 20 };

static ncclUniqueId id;
static int calls, ranks = 1, threads = 1;
static pthread_barrier_t all;

// A member is a rank with its memory.
typedef struct {
	int rank;
	context c;
	ncclComm_t comm;
	cudaStream_t s;
	char *from, *to;
} member;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void version(member *m)
{
	int v;
	(void)m;
	OK(ncclGetVersion(&v));
}
static void all_reduce(member *m) { OK(ncclAllReduce(m->from, m->to, 2, ncclFloat32, ncclMax, m->comm, m->s)); }
static void in_place(member *m) { OK(ncclAllReduce(m->to, m->to, 2, ncclFloat32, ncclMax, m->comm, m->s)); }
static void misaligned(member *m) { OK(ncclAllReduce(m->from + 3, m->to + 3, 1024, ncclInt8, ncclSum, m->comm, m->s)); }
static void pre_mul_sum(member *m)
{
	ncclRedOp_t op;
	float scale = 2;
	OK(ncclRedOpCreatePreMulSum(&op, &scale, ncclFloat32, ncclScalarHostImmediate, m->comm));
	OK(ncclAllReduce(m->from, m->to, 256, ncclFloat32, op, m->comm, m->s));
	OK(ncclRedOpDestroy(op, m->comm));
}
static void reduce_scatter(member *m) { OK(ncclReduceScatter(m->from, m->to, 256, ncclFloat32, ncclSum, m->comm, m->s)); }
static void all_gather(member *m) { OK(ncclAllGather(m->from, m->to, 256, ncclFloat32, m->comm, m->s)); }
static void reduce(member *m) { OK(ncclReduce(m->from, m->to, 256, ncclFloat32, ncclSum, 0, m->comm, m->s)); }
static void broadcast(member *m) { OK(ncclBroadcast(m->from, m->to, 256, ncclFloat32, 0, m->comm, m->s)); }
static void send_and_receive(member *m)
{
	OK(ncclGroupStart());
	OK(ncclSend(m->from, 8192, ncclInt8, (m->rank + 1) % ranks, m->comm, m->s));
	OK(ncclRecv(m->to, 8192, ncclInt8, (m->rank + ranks - 1) % ranks, m->comm, m->s));
	OK(ncclGroupEnd());
}

static const struct {
	const char *name;
	void (*queue)(member *);
	int each; // in a group
} cases[] = {
    {"ncclGetVersion", version, 1},
    {"all-reduce", all_reduce, 1},
    {"all-reduce 1 KiB misaligned", misaligned, 1},
    {"all-reduce 1 KiB PreMulSum", pre_mul_sum, 1},
    {"reduce-scatter", reduce_scatter, 1},
    {"all-gather", all_gather, 1},
    {"reduce", reduce, 1},
    {"broadcast", broadcast, 1},
    {"send and receive 8 KiB", send_and_receive, 1},
    {"one buffer", all_reduce, EACH},
    {"one buffer in place", in_place, EACH},
};

// batch queues BATCH calls of each member.
static void batch(member *m, int n, int which)
{
	int each = cases[which].each, grouped = n > 1 || each > 1;
	for (int k = 0; k < BATCH; k += each) {
		if (grouped)
			OK(ncclGroupStart());
		for (int j = 0; j < each; j++)
			for (int i = 0; i < n; i++)
				cases[which].queue(&m[i]);
		if (grouped)
			OK(ncclGroupEnd());
	}
}

// done has what was queued done, so that queues do not fill.
static void done(member *m, int n)
{
	char x[8];
	for (int i = 0; i < n; i++)
		pull(m[i].c, x, m[i].to, 8, m[i].s);
}

static void *thread(void *arg)
{
	int first = (int)(intptr_t)arg, n = ranks / threads;
	member m[RANKS];
	char *host = malloc(2 * RANKS * BYTES);
	memset(host, 0, 2 * RANKS * BYTES);
	OK(ncclGroupStart());
	for (int i = 0; i < n; i++) {
		m[i].rank = first * n + i;
		m[i].c = use_device(device_of(m[i].rank));
		OK(ncclCommInitRank(&m[i].comm, ranks, id, m[i].rank));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < n; i++) {
		m[i].s = new_stream(m[i].c);
		m[i].from = place(m[i].c, host + 2 * i * BYTES, BYTES), m[i].to = place(m[i].c, host + (2 * i + 1) * BYTES, BYTES);
		push(m[i].c, m[i].from, host + 2 * i * BYTES, BYTES, m[i].s);
		push(m[i].c, m[i].to, host + (2 * i + 1) * BYTES, BYTES, m[i].s);
	}
	for (unsigned which = 0; which < sizeof cases / sizeof *cases; which++) {
		if (cases[which].queue == send_and_receive && ranks == 1)
			continue;
		double queued = 0, ended = 0;
		for (int i = -BATCH; i < calls; i += BATCH) {
			pthread_barrier_wait(&all);
			double t0 = now();
			batch(m, n, which);
			double t1 = now();
			done(m, n);
			double t2 = now();
			if (i >= 0) // the first batch loads what is needed
				queued += t1 - t0, ended += t2 - t0;
		}
		int k = (calls + BATCH - 1) / BATCH * BATCH;
		if (first == 0)
			printf("%-28s %7.0f %7.0f\n", cases[which].name, queued / k * 1e9, ended / k * 1e9);
	}
	pthread_barrier_wait(&all);
	for (int i = 0; i < n; i++) {
		OK(ncclCommDestroy(m[i].comm));
		unplace(m[i].c, m[i].from);
		unplace(m[i].c, m[i].to);
	}
	free(host);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t list[RANKS];
	CHECK(argc >= 2 && argc <= 4);
	calls = atoi(argv[1]);
	if (argc > 2)
		ranks = atoi(argv[2]);
	CHECK(ranks >= 1 && ranks <= RANKS);
	threads = argc > 3 ? 1 : ranks;
	pthread_barrier_init(&all, NULL, threads);
	use_device(0);
	OK(ncclGetUniqueId(&id));
	for (intptr_t i = 0; i < threads; i++)
		CHECK(pthread_create(&list[i], NULL, thread, (void *)i) == 0);
	for (int i = 0; i < threads; i++)
		pthread_join(list[i], NULL);
	return 0;
}
