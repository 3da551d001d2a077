// Every collective, over host memory: by processes, by threads with a rank each, and by one
// thread with all ranks.
//
//	collectives process RANK SIZE FILE   FILE is where the ranks meet
//	collectives threads SIZE
//	collectives all SIZE
#include "check.h"

enum { COUNT = 1000, RANKS = 8 };

// A rank is one's communicator with its buffers.
typedef struct {
	ncclComm_t comm;
	int rank, size;
	int *in, *out; // COUNT × RANKS each
	float *real;
} rank_t;

static rank_t new_rank(ncclComm_t comm)
{
	rank_t r = {.comm = comm};
	OK(ncclCommCount(comm, &r.size));
	OK(ncclCommUserRank(comm, &r.rank));
	int device = -1;
	OK(ncclCommCuDevice(comm, &device));
	CHECK(device == 0);
	r.in = malloc(sizeof(int) * COUNT * RANKS);
	r.out = malloc(sizeof(int) * COUNT * RANKS);
	r.real = malloc(sizeof(float) * COUNT);
	return r;
}

static void free_rank(rank_t *r)
{
	free(r->in), free(r->out), free(r->real);
	OK(ncclCommDestroy(r->comm));
}

// element is what rank has at i.
static int element(int rank, int i) { return 1000000 * (rank + 1) + i; }

static void fill(rank_t *r)
{
	for (int i = 0; i < COUNT * RANKS; i++)
		r->in[i] = element(r->rank, i), r->out[i] = -1;
}

// TOGETHER calls for each of the ranks of this thread, in a group if there are several.
#define TOGETHER(call)                                                   \
	do {                                                             \
		for (rank_t *r = ranks; r < ranks + n; r++)              \
			fill(r);                                         \
		if (n > 1)                                               \
			OK(ncclGroupStart());                            \
		for (rank_t *r = ranks; r < ranks + n; r++)              \
			OK(call);                                        \
		if (n > 1)                                               \
			OK(ncclGroupEnd());                              \
	} while (0)

// EACH wants an expression of rank r and index i to hold for all of them.
#define EACH(count, condition)                                                                            \
	for (rank_t *r = ranks; r < ranks + n; r++)                                                       \
		for (int i = 0; i < (count); i++)                                                         \
			if (!(condition))                                                                 \
				fail(__LINE__, "rank %d: %s: element %d is %d", r->rank, #condition, i, r->out[i])

static int sum(int size, int i)
{
	int s = 0;
	for (int k = 0; k < size; k++)
		s += element(k, i);
	return s;
}

// stream is any value: there are none on the host.
static const cudaStream_t stream = (cudaStream_t)(uintptr_t)0x1234;

static void collectives(rank_t *ranks, int n)
{
	int size = ranks->size, last = size - 1;
	TOGETHER(ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclSum, r->comm, stream));
	EACH(COUNT, r->out[i] == sum(size, i));
	TOGETHER(ncclAllReduce(r->in, r->in, COUNT, ncclInt32, ncclMax, r->comm, stream));
	EACH(COUNT, r->in[i] == element(last, i));
	TOGETHER(ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclMin, r->comm, stream));
	EACH(COUNT, r->out[i] == element(0, i));
	TOGETHER(ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclAvg, r->comm, stream));
	EACH(COUNT, r->out[i] == sum(size, i) / size);
	TOGETHER(pncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclProd, r->comm, stream));
	EACH(COUNT, i > 0 || r->out[i] != -1);
	TOGETHER(ncclReduce(r->in, r->rank == last ? r->out : NULL, COUNT, ncclInt32, ncclSum, last, r->comm, stream));
	EACH(COUNT, r->out[i] == (r->rank == last ? sum(size, i) : -1));
	TOGETHER(ncclBroadcast(r->rank == last ? r->in : NULL, r->out, COUNT, ncclInt32, last, r->comm, stream));
	EACH(COUNT, r->out[i] == element(last, i));
	TOGETHER(ncclBcast(r->in, COUNT, ncclInt32, 0, r->comm, stream));
	EACH(COUNT, r->in[i] == element(0, i));
	TOGETHER(ncclAllGather(r->in, r->out, COUNT, ncclInt32, r->comm, stream));
	EACH(COUNT * size, r->out[i] == element(i / COUNT, i % COUNT));
	TOGETHER(ncclReduceScatter(r->in, r->out, COUNT, ncclInt32, ncclSum, r->comm, stream));
	EACH(COUNT, r->out[i] == sum(size, r->rank * COUNT + i));
	TOGETHER(ncclAlltoAll(r->in, r->out, COUNT, ncclInt32, r->comm, stream));
	EACH(COUNT * size, r->out[i] == element(i / COUNT, r->rank * COUNT + i % COUNT));
	TOGETHER(ncclGather(r->in, r->rank == 0 ? r->out : NULL, COUNT, ncclInt32, 0, r->comm, stream));
	EACH(COUNT * size, r->out[i] == (r->rank == 0 ? element(i / COUNT, i % COUNT) : -1));
	TOGETHER(ncclScatter(r->rank == last ? r->in : NULL, r->out, COUNT, ncclInt32, last, r->comm, stream));
	EACH(COUNT, r->out[i] == element(last, r->rank * COUNT + i));
	TOGETHER(ncclAllReduceConfig(r->in, r->out, COUNT, ncclInt32, ncclSum, r->comm, stream, NULL));
	EACH(COUNT, r->out[i] == sum(size, i));
}

// zero calls everything with nothing to do, without buffers.
static void zero(rank_t *ranks, int n)
{
	TOGETHER(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, r->comm, stream));
	TOGETHER(ncclReduce(NULL, NULL, 0, ncclFloat16, ncclSum, 0, r->comm, stream));
	TOGETHER(ncclBroadcast(r->in, r->out, 0, ncclInt8, 0, r->comm, stream));
	TOGETHER(ncclAllGather(NULL, NULL, 0, ncclBfloat16, r->comm, stream));
	TOGETHER(ncclReduceScatter(NULL, NULL, 0, ncclFloat64, ncclAvg, r->comm, stream));
	TOGETHER(ncclAlltoAll(NULL, NULL, 0, ncclUint8, r->comm, stream));
	EACH(COUNT, r->out[i] == -1);
}

// types reduces ones of every type: the sum of size ones is size.
static void types(rank_t *ranks, int n)
{
	static const struct {
		ncclDataType_t type;
		int bytes;
		unsigned char one[8], four[8];
	} all[] = {
	    {ncclInt8, 1, {1}, {4}},
	    {ncclUint8, 1, {1}, {4}},
	    {ncclInt32, 4, {1}, {4}},
	    {ncclUint32, 4, {1}, {4}},
	    {ncclInt64, 8, {1}, {4}},
	    {ncclUint64, 8, {1}, {4}},
	    {ncclFloat16, 2, {0x00, 0x3c}, {0x00, 0x44}},
	    {ncclFloat32, 4, {0, 0, 0x80, 0x3f}, {0, 0, 0x80, 0x40}},
	    {ncclFloat64, 8, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {0, 0, 0, 0, 0, 0, 0x10, 0x40}},
	    {ncclBfloat16, 2, {0x80, 0x3f}, {0x80, 0x40}},
	    {ncclFloat8e4m3, 1, {0x38}, {0x48}},
	    {ncclFloat8e5m2, 1, {0x3c}, {0x44}},
	};
	CHECK(ranks->size == 4);
	for (unsigned k = 0; k < sizeof all / sizeof *all; k++) {
		CHECK((int)all[k].type == (int)k);
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				memcpy((char *)r->in + i * all[k].bytes, all[k].one, all[k].bytes);
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			OK(ncclAllReduce(r->in, r->out, COUNT, all[k].type, ncclSum, r->comm, stream));
		if (n > 1)
			OK(ncclGroupEnd());
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				if (memcmp((char *)r->out + i * all[k].bytes, all[k].four, all[k].bytes))
					fail(__LINE__, "rank %d: type %d: element %d", r->rank, all[k].type, i);
	}
}

// scaled reduces with an operator of the communicator's, whose scalar is of the host or of the
// device, which is the host too.
static void scaled(rank_t *ranks, int n)
{
	ncclRedOp_t ops[RANKS][2];
	float two = 2, half[RANKS];
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclRedOpCreatePreMulSum(&ops[r->rank][0], &two, ncclFloat32, ncclScalarHostImmediate, r->comm));
		half[r->rank] = 99;
		OK(ncclRedOpCreatePreMulSum(&ops[r->rank][1], &half[r->rank], ncclFloat32, ncclScalarDevice, r->comm));
		CHECK(ops[r->rank][0] >= ncclNumOps && ops[r->rank][1] >= ncclNumOps && ops[r->rank][0] != ops[r->rank][1]);
	}
	two = 77; // it was read
	for (int k = 0; k < 2; k++) {
		for (rank_t *r = ranks; r < ranks + n; r++) {
			half[r->rank] = 0.5;
			for (int i = 0; i < COUNT; i++)
				r->real[i] = i;
		}
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			OK(ncclAllReduce(r->real, r->real, COUNT, ncclFloat32, ops[r->rank][k], r->comm, stream));
		if (n > 1)
			OK(ncclGroupEnd());
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				if (r->real[i] != i * (k ? 0.5f : 2.0f) * r->size)
					fail(__LINE__, "rank %d: operator %d: element %d is %g", r->rank, k, i, r->real[i]);
	}
	for (rank_t *r = ranks; r < ranks + n; r++) {
		WRONG(ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ops[r->rank][0], r->comm, stream), ncclInvalidArgument, "was made for float32");
		OK(ncclRedOpDestroy(ops[r->rank][0], r->comm));
		WRONG(ncclRedOpDestroy(ops[r->rank][0], r->comm), ncclInvalidArgument, "was destroyed");
		WRONG(ncclAllReduce(r->real, r->real, COUNT, ncclFloat32, ops[r->rank][0], r->comm, stream), ncclInvalidArgument, "was destroyed");
		WRONG(ncclRedOpDestroy(ncclAvg, r->comm), ncclInvalidArgument, "built in");
	}
}

// messages sends to all others and to the rank itself in a group within a group, and round a
// ring.
static void messages(rank_t *ranks, int n)
{
	for (rank_t *r = ranks; r < ranks + n; r++)
		fill(r);
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclGroupStart());
		for (int peer = 0; peer < r->size; peer++) {
			OK(ncclSend(r->in + peer * COUNT, COUNT, ncclInt32, peer, r->comm, stream));
			OK(ncclRecv(r->out + peer * COUNT, COUNT, ncclInt32, peer, r->comm, stream));
		}
		OK(ncclGroupEnd());
	}
	for (rank_t *r = ranks; r < ranks + n; r++)
		CHECK(r->out[0] == -1); // the inner end carried nothing out
	OK(ncclGroupEnd());
	EACH(COUNT * r->size, r->out[i] == element(i / COUNT, r->rank * COUNT + i % COUNT));

	for (rank_t *r = ranks; r < ranks + n; r++)
		fill(r);
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclSend(r->in, COUNT, ncclInt32, (r->rank + 1) % r->size, r->comm, stream));
		OK(ncclRecv(r->out, COUNT, ncclInt32, (r->rank + r->size - 1) % r->size, r->comm, stream));
		OK(ncclAllReduce(r->in, r->out + COUNT, COUNT, ncclInt32, ncclSum, r->comm, stream));
		OK(ncclSend(r->in, 0, ncclInt32, r->rank, r->comm, stream));
		OK(ncclRecv(r->out, 0, ncclInt32, r->rank, r->comm, stream));
	}
	OK(ncclGroupEnd());
	EACH(COUNT, r->out[i] == element((r->rank + r->size - 1) % r->size, i) && r->out[COUNT + i] == sum(r->size, i));
	OK(ncclGroupStart());
	OK(ncclGroupEnd()); // of nothing
}

// parts splits the communicators by parity, the last rank out, and shrinks the whole by rank 1.
static void parts(rank_t *ranks, int n)
{
	ncclComm_t part[RANKS];
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommSplit(r->comm, r->rank == r->size - 1 ? NCCL_SPLIT_NOCOLOR : r->rank % 2, -r->rank, &part[r->rank], NULL));
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		if (r->rank == r->size - 1) {
			CHECK(part[r->rank] == NULL);
			continue;
		}
		int size, rank;
		OK(ncclCommCount(part[r->rank], &size));
		OK(ncclCommUserRank(part[r->rank], &rank));
		CHECK(size == (r->size - r->rank % 2) / 2); // 0 and 2 of four, and 1 alone
		CHECK(rank == size - 1 - r->rank / 2);      // by key
		r->in[0] = r->rank;
		OK(ncclAllReduce(r->in, r->out, 1, ncclInt32, ncclSum, part[r->rank], stream));
	}
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		if (part[r->rank]) {
			CHECK(r->out[0] == (r->rank % 2 ? 1 : 2));
			OK(ncclCommDestroy(part[r->rank]));
		}
	}

	ncclComm_t few[RANKS];
	int without[] = {1};
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		if (r->rank != 1)
			OK(ncclCommShrink(r->comm, without, 1, &few[r->rank], NULL, NCCL_SHRINK_DEFAULT));
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		if (r->rank != 1) {
			r->in[0] = r->rank;
			OK(ncclAllGather(r->in, r->out, 1, ncclInt32, few[r->rank], stream));
		}
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++)
		if (r->rank != 1) {
			CHECK(r->out[0] == 0 && r->out[1] == 2 && r->out[2] == 3);
			OK(ncclCommDestroy(few[r->rank]));
		}
}

// memory registers what ncclMemAlloc gives.
static void memory(rank_t *ranks, int n)
{
	void *buffer[RANKS];
	ncclWindow_t win[RANKS];
	void *handle[RANKS];
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclMemAlloc(&buffer[r->rank], 10000));
		CHECK((uintptr_t)buffer[r->rank] % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
		memset(buffer[r->rank], 7, 10000);
		OK(ncclCommRegister(r->comm, buffer[r->rank], 10000, &handle[r->rank]));
	}
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommWindowRegister(r->comm, buffer[r->rank], 10000, &win[r->rank], NCCL_WIN_COLL_SYMMETRIC));
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		void *at;
		OK(ncclWinGetUserPtr(r->comm, win[r->rank], &at));
		CHECK(at == buffer[r->rank]);
		WRONG(ncclCommWindowRegister(r->comm, (char *)at + 8, 100, &win[RANKS - 1], 0), ncclInvalidArgument, "multiple of 4096");
		OK(ncclCommWindowDeregister(r->comm, win[r->rank]));
		WRONG(ncclCommWindowDeregister(r->comm, win[r->rank]), ncclInvalidArgument, "no window");
		OK(ncclCommDeregister(r->comm, handle[r->rank]));
		OK(ncclMemFree(buffer[r->rank]));
		WRONG(ncclMemFree(buffer[r->rank]), ncclInvalidArgument, "was freed");
	}
}

static void everything(rank_t *ranks, int n)
{
	collectives(ranks, n);
	zero(ranks, n);
	types(ranks, n);
	scaled(ranks, n);
	messages(ranks, n);
	parts(ranks, n);
	memory(ranks, n);
	collectives(ranks, n); // the communicators are as they were
}

static ncclUniqueId shared;
static int shared_size;

static void *one_thread(void *rank)
{
	ncclComm_t comm;
	OK(ncclCommInitRank(&comm, shared_size, shared, (int)(intptr_t)rank));
	rank_t r = new_rank(comm);
	CHECK(r.rank == (int)(intptr_t)rank && r.size == shared_size);
	everything(&r, 1);
	OK(ncclCommFinalize(comm));
	WRONG(ncclAllReduce(r.in, r.out, 1, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage, "was finalized");
	free_rank(&r);
	return NULL;
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc >= 3);
	if (!strcmp(argv[1], "process")) {
		ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
		ncclComm_t comm;
		int rank = atoi(argv[2]), size = atoi(argv[3]);
		config.maxCTAs = 8;
		OK(ncclCommInitRankConfig(&comm, size, meet(argv[4], rank), rank, &config));
		rank_t r = new_rank(comm);
		everything(&r, 1);
		free_rank(&r);
	} else if (!strcmp(argv[1], "threads")) {
		pthread_t threads[RANKS];
		shared_size = atoi(argv[2]);
		OK(ncclGetUniqueId(&shared));
		for (intptr_t i = 0; i < shared_size; i++)
			CHECK(pthread_create(&threads[i], NULL, one_thread, (void *)i) == 0);
		for (int i = 0; i < shared_size; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(argv[1], "all")) {
		ncclComm_t comms[RANKS];
		rank_t ranks[RANKS];
		int size = atoi(argv[2]);
		OK(ncclCommInitAll(comms, size, NULL));
		for (int i = 0; i < size; i++)
			ranks[i] = new_rank(comms[i]);
		everything(ranks, size);
		for (int i = 0; i < size; i++)
			free_rank(&ranks[i]);
		// The same by one thread that makes all ranks in a group.
		ncclUniqueId id;
		OK(ncclGetUniqueId(&id));
		OK(ncclGroupStart());
		for (int i = 0; i < size; i++)
			OK(ncclCommInitRank(&comms[i], size, id, i));
		OK(ncclGroupEnd());
		for (int i = 0; i < size; i++)
			ranks[i] = new_rank(comms[i]);
		collectives(ranks, size);
		for (int i = 0; i < size; i++)
			free_rank(&ranks[i]);
	}
	puts("ok");
	return 0;
}
