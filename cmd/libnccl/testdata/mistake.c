// Two ranks of which rank 1 makes a mistake (commtest.Mistakes), on host memory or with GPUS on GPUs. The program heeds no result.
//
//	mistake MISTAKE [RANK SIZE FILE]   without RANK both are threads of the process
#include "memory.h"

enum { RANKS = 2, FLOATS = 100 };
static const char *mistake;
static ncclComm_t comms[RANKS];
static int is(const char *name) { return !strcmp(mistake, name); }

// tell prints what a rank is told by a result.
static void tell(int rank, ncclResult_t result)
{
	if (result != ncclSuccess)
		printf("rank %d is told: %s\n", rank, ncclGetLastError(NULL));
}

static void *make(void *arg)
{
	int rank = (int)(intptr_t)arg, wrong = rank == 1;
	float data[FLOATS] = {0};
	ncclComm_t comm = comms[rank];
	context c = use_device(device_of(rank));
	cudaStream_t stream = new_stream(c);
	void *x = place(c, data, sizeof data);
	push(c, x, data, sizeof data, stream);
	tell(rank, ncclAllReduce(x, x, FLOATS, ncclFloat, ncclSum, comm, stream));
	if (wrong && is("group"))
		tell(rank, ncclGroupStart());
	if (is("root"))
		tell(rank, ncclBroadcast(x, x, FLOATS, ncclFloat, rank, comm, stream));
	else if (!wrong || !is("call"))
		tell(rank, ncclAllReduce(x, x, wrong && is("count") ? FLOATS / 2 : FLOATS, wrong && is("type") ? ncclInt32 : ncclFloat,
					 wrong && is("operator") ? ncclMax : ncclSum, comm, stream));
	tell(rank, ncclAllReduce(x, x, 7, ncclFloat, ncclSum, comm, stream));
	pull(c, data, x, sizeof data, stream);
	tell(rank, ncclCommDestroy(comm));
	unplace(c, x);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[RANKS];
	alarm(120);
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(argc == 2 || argc == 5);
	mistake = argv[1];
	if (argc == 5) {
		intptr_t rank = atoi(argv[2]);
		use_device(device_of(rank));
		OK(ncclCommInitRank(&comms[rank], RANKS, meet(argv[4], rank), rank));
		make((void *)rank);
		return 0;
	}
	OK(ncclCommInitAll(comms, RANKS, NULL));
	for (intptr_t i = 0; i < RANKS; i++)
		CHECK(pthread_create(&threads[i], NULL, make, (void *)i) == 0);
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
