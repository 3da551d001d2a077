// What a watchdog does on GPUs, where a call only queues: it asks for the state of communicators and
// aborts them. Always with GPUS (see memory.h).
//
//	watched abort                   an operation that waits is ended by another thread
//	watched background              communicators that do not block
//	watched killed RANK SIZE FILE   rank 1 ends without goodbye while the others wait for it
//	watched leaves RANK SIZE FILE   rank 0 destroys its communicator and returns while the others have theirs
//	watched partner RANK SIZE FILE  rank 1 waits in vain and aborts, and rank 0, which waits for nothing, hears nothing of it
//	watched lengths RANK SIZE FILE  ranks broadcast different lengths and abort
//	watched departs RANK SIZE FILE  rank 1 destroys its communicator while rank 0 broadcasts, which needs nothing of it
//	watched returns RANK SIZE FILE  rank 0 returns from main, and the others are idle before they begin what needs it
#include "memory.h"

enum { RANKS = 2, MANY = 1 << 16, BYTES = COUNT * sizeof(int) };
static ncclUniqueId id;

// A rank is one's communicator, stream and buffer, whose elements are rank + 1.
typedef struct {
	ncclComm_t comm;
	context device;
	cudaStream_t stream;
	int rank, data[COUNT], *at;
} rank_t;

static void prepare(rank_t *r, int rank)
{
	r->rank = rank;
	r->device = use_device(device_of(rank));
	r->stream = new_stream(r->device);
	r->at = place(r->device, r->data, BYTES);
	for (int i = 0; i < COUNT; i++)
		r->data[i] = rank + 1;
	push(r->device, r->at, r->data, BYTES, r->stream);
}

static void reduce(rank_t *r)
{
	ncclResult_t result = ncclAllReduce(r->at, r->at, COUNT, ncclInt32, ncclSum, r->comm, r->stream);
	if (result != ncclSuccess && result != ncclInProgress)
		fail(__LINE__, "ncclAllReduce: %d: %s", result, ncclGetLastError(r->comm));
}

// fails waits until a communicator has failed with a result and words.
static void fails(ncclComm_t comm, ncclResult_t want, const char *words)
{
	ncclResult_t state = ncclSuccess;
	for (int i = 0; i < 30000 && (state == ncclSuccess || state == ncclInProgress); i++) {
		OK(ncclCommGetAsyncError(comm, &state));
		usleep(1000);
	}
	if (state != want || !strstr(ncclGetLastError(comm), words))
		fail(__LINE__, "state %d, want %d with \"%s\": %s", state, want, words, ncclGetLastError(comm));
}

// watchdog aborts rank 0's communicator, whose operation waits for rank 1's.
static void *watchdog(void *comm)
{
	ncclResult_t state;
	usleep(20000);
	OK(ncclCommGetAsyncError(comm, &state));
	CHECK(state == ncclSuccess);
	OK(ncclCommAbort(comm));
	return NULL;
}

static void aborted(void)
{
	ncclComm_t comms[RANKS];
	rank_t r[RANKS];
	pthread_t thread;
	int devices[RANKS] = {device_of(0), device_of(1)};
	OK(ncclCommInitAll(comms, RANKS, devices));
	for (int i = 0; i < RANKS; i++) {
		r[i].comm = comms[i];
		prepare(&r[i], i);
	}
	use_device(devices[0]);
	reduce(&r[0]);
	CHECK(pthread_create(&thread, NULL, watchdog, comms[0]) == 0);
	pull(r[0].device, r[0].data, r[0].at, BYTES, r[0].stream); // returns when the kernel has ended
	pthread_join(thread, NULL);
	ncclResult_t state;
	usleep(100000);
	OK(ncclCommGetAsyncError(comms[1], &state));
	CHECK(state == ncclSuccess); // it waits for nothing
	ncclResult_t got = ncclSuccess;
	for (int i = 0; i < 500 && got == ncclSuccess; i++) { // the news may be late on a busy machine
		got = ncclAllReduce(r[1].at, r[1].at, COUNT, ncclInt32, ncclSum, comms[1], r[1].stream);
		if (got == ncclSuccess)
			usleep(20000);
	}
	CHECK(got == ncclRemoteError);
	fails(comms[1], ncclRemoteError, "rank 0");
	OK(ncclCommAbort(comms[1]));
	for (int i = 0; i < RANKS; i++)
		unplace(r[i].device, r[i].at);
}

static void *in_background(void *arg)
{
	rank_t r;
	ncclComm_t part;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	prepare(&r, (int)(intptr_t)arg);
	CHECK(ncclCommInitRankConfig(&r.comm, RANKS, id, r.rank, &config) == ncclInProgress);
	poll(r.comm, __LINE__);
	reduce(&r);
	poll(r.comm, __LINE__);
	CHECK(ncclCommSplit(r.comm, 0, -r.rank, &part, NULL) == ncclInProgress);
	poll(r.comm, __LINE__);
	poll(part, __LINE__);
	ncclComm_t whole = r.comm;
	r.comm = part;
	reduce(&r);
	poll(part, __LINE__);
	pull(r.device, r.data, r.at, BYTES, r.stream);
	for (int i = 0; i < COUNT; i++)
		CHECK(r.data[i] == 2 * 3);
	ncclResult_t result = ncclCommFinalize(part);
	CHECK(result == ncclSuccess || result == ncclInProgress);
	poll(part, __LINE__);
	OK(ncclCommDestroy(part));
	OK(ncclCommDestroy(whole));
	unplace(r.device, r.at);
	return NULL;
}

// wait_for waits until a file is there.
static void wait_for(const char *file)
{
	for (int i = 0; access(file, F_OK); i++) {
		CHECK(i < 4000);
		usleep(1000);
	}
}

// leaves has rank 0 destroy its communicator, the last of its process, and return from main, long before the
// others destroy theirs. That ends Destroy at once, and no other rank sees rank 0 die.
static void leaves(rank_t *r, const char *file)
{
	char left[4096];
	ncclResult_t state;
	snprintf(left, sizeof left, "%s.left", file);
	if (r->rank == 0) {
		OK(ncclCommDestroy(r->comm));
		fclose(fopen(left, "w"));
		return;
	}
	wait_for(left);
	usleep(300000); // rank 0 has returned from main
	OK(ncclCommGetAsyncError(r->comm, &state));
	if (state != ncclSuccess)
		fail(__LINE__, "state %d: %s", state, ncclGetLastError(r->comm));
	OK(ncclCommDestroy(r->comm));
}

// returns has rank 0 return from main without a word to the library. That is no error of a rank that waits for
// nothing; what needs rank 0 fails.
static void returns(rank_t *r, const char *file)
{
	char begun[4096];
	ncclResult_t state;
	snprintf(begun, sizeof begun, "%s.begun", file);
	if (r->rank == 0) {
		fclose(fopen(begun, "w"));
		return;
	}
	wait_for(begun);
	usleep(1500000); // rank 0 has gone
	OK(ncclCommGetAsyncError(r->comm, &state));
	if (state != ncclSuccess)
		fail(__LINE__, "state %d: %s", state, ncclGetLastError(r->comm));
	reduce(r);
	fails(r->comm, ncclRemoteError, "rank 0 has closed the communicator");
	OK(ncclCommAbort(r->comm));
}

// now is a time in seconds.
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

// over ends a communicator whose operations wait in vain. Soon all is over: the kernels too.
static void over(rank_t *r)
{
	double begun = now();
	OK(ncclCommAbort(r->comm));
	CU(cuStreamSynchronize(r->stream));
	fprintf(stderr, "over %.2f s after ncclCommAbort\n", now() - begun);
	CHECK(now() - begun < 10); // 0.4 where nothing else runs
}

// partner has rank 1 begin all that a program may begin alone, and abort, while rank 0 has nothing under way. Rank 0
// is well, and its communicator ends as any.
static void partner(rank_t *r, const char *file)
{
	char gone[4096];
	ncclResult_t state;
	snprintf(gone, sizeof gone, "%s.gone", file);
	if (r->rank == 1) {
		static int zeros[MANY];
		void *many = place(r->device, NULL, sizeof zeros);
		push(r->device, many, zeros, sizeof zeros, r->stream);
		for (int count = 1; count <= MANY; count *= 256)
			OK(ncclBroadcast(many, many, count, ncclInt32, 1, r->comm, r->stream));
		reduce(r);
		usleep(100000);
		over(r);
		unplace(r->device, many);
		fclose(fopen(gone, "w"));
		return;
	}
	wait_for(gone);
	for (int i = 0; i < 100; i++) {
		OK(ncclCommGetAsyncError(r->comm, &state));
		if (state != ncclSuccess)
			fail(__LINE__, "state %d: %s", state, ncclGetLastError(r->comm));
		usleep(10000);
	}
	OK(ncclCommFinalize(r->comm));
	OK(ncclCommGetAsyncError(r->comm, &state));
	CHECK(state == ncclSuccess);
	OK(ncclCommDestroy(r->comm));
}

// lengths has ranks broadcast different lengths. Whether that ends is not promised; that it ends with ncclCommAbort is.
static void lengths(rank_t *r)
{
	OK(ncclBroadcast(r->at, r->at, r->rank == 1 ? 8 : COUNT, ncclInt32, 0, r->comm, r->stream));
	ncclResult_t result = ncclBroadcast(r->at, r->at, COUNT, ncclInt32, 0, r->comm, r->stream);
	CHECK(result == ncclSuccess || result == ncclInvalidUsage);
	usleep(300000);
	over(r);
}

// departs has rank 0 broadcast, with and without a copy, and finalize while rank 1 leaves. The root has all it needs.
static void departs(rank_t *r)
{
	if (r->rank == 1) {
		OK(ncclCommDestroy(r->comm));
		return;
	}
	static int zeros[COUNT];
	ncclResult_t state;
	int *copy = place(r->device, NULL, BYTES), got[COUNT];
	push(r->device, copy, zeros, BYTES, r->stream);
	OK(ncclBroadcast(r->at, copy, COUNT, ncclInt32, 0, r->comm, r->stream));
	OK(ncclBroadcast(r->at, r->at, 2, ncclInt32, 0, r->comm, r->stream));
	OK(ncclCommFinalize(r->comm));
	OK(ncclCommGetAsyncError(r->comm, &state));
	if (state != ncclSuccess)
		fail(__LINE__, "state %d: %s", state, ncclGetLastError(r->comm));
	pull(r->device, got, copy, BYTES, r->stream);
	for (int i = 0; i < COUNT; i++)
		CHECK(got[i] == 3); // the sum of the all-reduce
	OK(ncclCommDestroy(r->comm));
	unplace(r->device, copy);
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc >= 2);
	if (!strcmp(argv[1], "abort")) {
		aborted();
	} else if (!strcmp(argv[1], "background")) {
		pthread_t threads[RANKS];
		OK(ncclGetUniqueId(&id));
		for (intptr_t i = 0; i < RANKS; i++)
			CHECK(pthread_create(&threads[i], NULL, in_background, (void *)i) == 0);
		for (int i = 0; i < RANKS; i++)
			pthread_join(threads[i], NULL);
	} else {
		rank_t r;
		int rank = atoi(argv[2]), size = atoi(argv[3]);
		prepare(&r, rank);
		OK(ncclCommInitRank(&r.comm, size, meet(argv[4], rank), rank));
		reduce(&r);
		pull(r.device, r.data, r.at, BYTES, r.stream);
		CHECK(r.data[0] == size * (size + 1) / 2);
		if (!strcmp(argv[1], "leaves")) {
			leaves(&r, argv[4]);
			unplace(r.device, r.at);
			puts("ok");
			return 0;
		}
		if (!strcmp(argv[1], "returns")) {
			returns(&r, argv[4]);
			puts("ok");
			return 0;
		}
		if (!strcmp(argv[1], "partner")) {
			partner(&r, argv[4]);
			unplace(r.device, r.at);
			puts("ok");
			return 0;
		}
		if (!strcmp(argv[1], "lengths") || !strcmp(argv[1], "departs")) {
			(argv[1][0] == 'l' ? lengths : departs)(&r);
			unplace(r.device, r.at);
			puts("ok");
			return 0;
		}
		if (rank == 1) {
			puts("ok");
			fflush(stdout);
			usleep(100000); // the others are in the next call
			_exit(0);
		}
		reduce(&r);
		fails(r.comm, ncclRemoteError, "rank 1");
		pull(r.device, r.data, r.at, BYTES, r.stream); // the kernel has ended
		WRONG(ncclAllReduce(r.at, r.at, COUNT, ncclInt32, ncclSum, r.comm, r.stream), ncclRemoteError, "rank 1");
		OK(ncclCommAbort(r.comm));
		unplace(r.device, r.at);
	}
	puts("ok");
	return 0;
}
