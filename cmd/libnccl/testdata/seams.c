// What programs do at the seams of the interface on GPUs, and what they are answered, as by NCCL. Always with GPUS (see memory.h).
//
//	seams finalize   ncclCommFinalize waits for the GPU; a second one is an error
//	seams aborted    an ncclCommFinalize that waits in vain is ended by ncclCommAbort in another thread
//	seams reset      a device is reset between two communicators
//	seams forked     the child of a fork ends, and its parent goes on
//	seams beside     another library has opened peer access, and goes on with it when communicators have ended
//	seams memory     memory that is not the library's, or not this GPU's
#include <sys/wait.h>

#include "memory.h"

extern int cuStreamQuery(cudaStream_t), cuDevicePrimaryCtxReset_v2(int), cuMemAllocHost_v2(void **, size_t), cuMemFreeHost(void *), cuCtxEnablePeerAccess(context, unsigned);

enum { RANKS = 2, MANY = 1 << 16 };
typedef struct {
	ncclComm_t comm;
	context c;
	cudaStream_t s;
	int *at;
} rank_t;

static int ones[MANY];

static void open_all(rank_t r[RANKS])
{
	ncclComm_t comms[RANKS];
	OK(ncclCommInitAll(comms, RANKS, NULL));
	for (int i = 0; i < MANY; i++)
		ones[i] = 1;
	for (int i = 0; i < RANKS; i++) {
		r[i] = (rank_t){.comm = comms[i], .c = use_device(device_of(i))};
		r[i].s = new_stream(r[i].c);
		r[i].at = place(r[i].c, NULL, sizeof ones);
		push(r[i].c, r[i].at, ones, sizeof ones, r[i].s);
	}
}

static void sum(rank_t r[RANKS])
{
	OK(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		OK(ncclAllReduce(r[i].at, r[i].at, MANY, ncclInt32, ncclSum, r[i].comm, r[i].s));
	OK(ncclGroupEnd());
}

static void look(rank_t r[RANKS], int want)
{
	for (int i = 0; i < RANKS; i++) {
		int last;
		pull(r[i].c, &last, r[i].at + MANY - 1, sizeof last, r[i].s);
		CHECK(last == want);
	}
}

static void end(rank_t r[RANKS])
{
	for (int i = 0; i < RANKS; i++) {
		unplace(r[i].c, r[i].at);
		OK(ncclCommDestroy(r[i].comm));
	}
}

static void finalize(void)
{
	rank_t r[RANKS];
	open_all(r);
	sum(r);
	for (int i = 0; i < RANKS; i++) {
		OK(ncclCommFinalize(r[i].comm));
		ON(r[i].c, cuStreamQuery(r[i].s));
		CHECK(ncclCommFinalize(r[i].comm) == ncclInvalidArgument);
		CHECK(ncclAllReduce(r[i].at, r[i].at, 1, ncclInt32, ncclSum, r[i].comm, r[i].s) == ncclInvalidArgument);
	}
	look(r, RANKS);
	end(r);
	OK(ncclCommFinalize(NULL));
	OK(ncclCommDestroy(NULL));
	OK(ncclCommAbort(NULL));
}

static void *finalizes(void *comm)
{
	ncclCommFinalize(comm); // whatever it says
	return NULL;
}

static void aborted(void)
{
	rank_t r[RANKS];
	pthread_t thread;
	open_all(r);
	OK(ncclAllReduce(r[0].at, r[0].at, MANY, ncclInt32, ncclSum, r[0].comm, r[0].s)); // rank 1 does not come
	CHECK(pthread_create(&thread, NULL, finalizes, r[0].comm) == 0);
	usleep(100000);
	OK(ncclCommAbort(r[0].comm));
	CHECK(pthread_join(thread, NULL) == 0);
	ON(r[0].c, cuStreamSynchronize(r[0].s));
	OK(ncclCommDestroy(r[1].comm));
}

static void reset(void)
{
	rank_t r[RANKS];
	for (int round = 0; round < 2; round++) {
		open_all(r);
		sum(r);
		look(r, RANKS);
		end(r);
		for (int i = 0; i < RANKS; i++)
			CU(cuDevicePrimaryCtxReset_v2(i));
	}
}

static void forked(void)
{
	rank_t r[RANKS];
	int status;
	open_all(r);
	sum(r);
	look(r, RANKS);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		WRONG(ncclCommDestroy(r[0].comm), ncclInvalidUsage, "forked");
		exit(0); // and not _exit: what is to be done at the end of a process is not this one's
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	sum(r);
	look(r, RANKS * RANKS);
	end(r);
}

static void beside(void)
{
	enum { ALREADY = 704 };
	rank_t r[RANKS];
	context c[RANKS] = {use_device(device_of(0)), use_device(device_of(1))};
	for (int i = 0; i < RANKS; i++)
		ON(c[i], cuCtxEnablePeerAccess(c[1 - i], 0));
	for (int turn = 0; turn < 2; turn++) {
		open_all(r);
		sum(r);
		look(r, RANKS);
		end(r);
	}
	for (int i = 0; i < RANKS; i++)
		ON(c[i], cuCtxEnablePeerAccess(c[1 - i], 0) != ALREADY);
}

static void memory(void)
{
	rank_t r[RANKS];
	void *handle, *pinned, *mine;
	open_all(r);
	use_device(device_of(0));
	CHECK(!cuMemAllocHost_v2(&pinned, 4096));
	OK(ncclCommRegister(r[0].comm, ones, sizeof ones, &handle)); // no effect, as on any memory
	OK(ncclCommDeregister(r[0].comm, handle));
	OK(ncclCommDeregister(r[0].comm, NULL));
	WRONG(ncclMemFree(r[0].at), ncclUnhandledCudaError, "no memory of ncclMemAlloc");
	OK(ncclMemFree(NULL));
	OK(ncclMemAlloc(&mine, 0));
	CHECK(mine == NULL);
	WRONG(ncclAllReduce(ones, r[0].at, 1, ncclInt32, ncclSum, r[0].comm, r[0].s), ncclInvalidArgument, "no memory of a GPU");
	WRONG(ncclAllReduce(r[1].at, r[0].at, 1, ncclInt32, ncclSum, r[0].comm, r[0].s), ncclInvalidArgument, "device 1");
	memcpy(pinned, ones, 64);
	OK(ncclGroupStart()); // pinned host memory is as good as a GPU's
	OK(ncclAllReduce(pinned, pinned, 16, ncclInt32, ncclSum, r[0].comm, r[0].s));
	OK(ncclAllReduce(r[1].at, r[1].at, 16, ncclInt32, ncclSum, r[1].comm, r[1].s));
	OK(ncclGroupEnd());
	ON(r[0].c, cuStreamSynchronize(r[0].s));
	CHECK(((int *)pinned)[15] == RANKS);
	end(r);
	CHECK(!cuMemFreeHost(pinned));
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc == 2);
	if (!strcmp(argv[1], "finalize"))
		finalize();
	else if (!strcmp(argv[1], "aborted"))
		aborted();
	else if (!strcmp(argv[1], "reset"))
		reset();
	else if (!strcmp(argv[1], "forked"))
		forked();
	else if (!strcmp(argv[1], "beside"))
		beside();
	else
		memory();
	puts("ok");
	return 0;
}
