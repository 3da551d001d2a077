// Every collective, over host memory or GPUs (see memory.h): by processes, by threads with a rank each,
// and by one thread with all ranks.
//
//	collectives process RANK SIZE FILE   FILE is where the ranks meet
//	collectives threads SIZE
//	collectives teams THREADS RANKS      as nccl-tests does with -t and -g: each thread has RANKS of the ranks
//	collectives all SIZE
#include "memory.h"

enum { RANKS = 8, BYTES = sizeof(int) * COUNT * RANKS };

// A rank is one's communicator with its buffers: in and out are the program's, from and to what
// calls are given, the same on the host.
typedef struct {
	ncclComm_t comm;
	int rank, size;
	context device;
	cudaStream_t stream;
	int *in, *out; // COUNT × RANKS each
	int *from, *to;
} rank_t;

static rank_t new_rank(ncclComm_t comm)
{
	rank_t r = {.comm = comm};
	int device = -1;
	OK(ncclCommCount(comm, &r.size));
	OK(ncclCommUserRank(comm, &r.rank));
	OK(ncclCommCuDevice(comm, &device));
	CHECK(device == device_of(r.rank));
	r.device = use_device(device_of(r.rank));
	r.stream = new_stream(r.device);
	r.in = malloc(BYTES);
	r.out = malloc(BYTES);
	r.from = place(r.device, r.in, BYTES);
	r.to = place(r.device, r.out, BYTES);
	return r;
}

static void free_rank(rank_t *r)
{
	OK(ncclCommDestroy(r->comm));
	unplace(r->device, r->from), unplace(r->device, r->to);
	free(r->in), free(r->out);
}

static void pushed(rank_t *r)
{
	push(r->device, r->from, r->in, BYTES, r->stream);
	push(r->device, r->to, r->out, BYTES, r->stream);
}

// pulled fails if the communicator has failed: a kernel that is stopped ends its stream well, and what
// is in the buffers then would look like a wrong result.
static void pulled(rank_t *r)
{
	ncclResult_t state;
	pull(r->device, r->in, r->from, BYTES, r->stream);
	pull(r->device, r->out, r->to, BYTES, r->stream);
	OK(ncclCommGetAsyncError(r->comm, &state));
	if (state != ncclSuccess)
		fail(__LINE__, "rank %d: state %d: %s", r->rank, state, ncclGetLastError(r->comm));
}

// element is what rank has at i.
static int element(int rank, int i) { return 1000000 * (rank + 1) + i; }

static void fill(rank_t *r)
{
	for (int i = 0; i < COUNT * RANKS; i++)
		r->in[i] = element(r->rank, i), r->out[i] = -1;
	pushed(r);
}

static void fill_all(rank_t *ranks, int n)
{
	for (rank_t *r = ranks; r < ranks + n; r++)
		fill(r);
}

static void pull_all(rank_t *ranks, int n)
{
	for (rank_t *r = ranks; r < ranks + n; r++)
		pulled(r);
}

// TOGETHER calls for each of the ranks of this thread, in a group if there are several.
#define TOGETHER(call)                                                   \
	do {                                                             \
		fill_all(ranks, n);                                      \
		if (n > 1)                                               \
			OK(ncclGroupStart());                            \
		for (rank_t *r = ranks; r < ranks + n; r++)              \
			OK(call);                                        \
		if (n > 1)                                               \
			OK(ncclGroupEnd());                              \
		pull_all(ranks, n);                                      \
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

static void collectives(rank_t *ranks, int n)
{
	int size = ranks->size, last = size - 1;
	TOGETHER(ncclAllReduce(r->from, r->to, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
	EACH(COUNT, r->out[i] == sum(size, i));
	TOGETHER(ncclAllReduce(r->from, r->from, COUNT, ncclInt32, ncclMax, r->comm, r->stream));
	EACH(COUNT, r->in[i] == element(last, i));
	TOGETHER(ncclAllReduce(r->from, r->to, COUNT, ncclInt32, ncclMin, r->comm, r->stream));
	EACH(COUNT, r->out[i] == element(0, i));
	TOGETHER(ncclAllReduce(r->from, r->to, COUNT, ncclInt32, ncclAvg, r->comm, r->stream));
	EACH(COUNT, r->out[i] == sum(size, i) / size);
	TOGETHER(pncclAllReduce(r->from, r->to, COUNT, ncclInt32, ncclProd, r->comm, r->stream));
	EACH(COUNT, i > 0 || r->out[i] != -1);
	TOGETHER(ncclReduce(r->from, r->rank == last ? r->to : NULL, COUNT, ncclInt32, ncclSum, last, r->comm, r->stream));
	EACH(COUNT, r->out[i] == (r->rank == last ? sum(size, i) : -1));
	TOGETHER(ncclBroadcast(r->rank == last ? r->from : NULL, r->to, COUNT, ncclInt32, last, r->comm, r->stream));
	EACH(COUNT, r->out[i] == element(last, i));
	TOGETHER(ncclBcast(r->from, COUNT, ncclInt32, 0, r->comm, r->stream));
	EACH(COUNT, r->in[i] == element(0, i));
	TOGETHER(ncclAllGather(r->from, r->to, COUNT, ncclInt32, r->comm, r->stream));
	EACH(COUNT * size, r->out[i] == element(i / COUNT, i % COUNT));
	TOGETHER(ncclReduceScatter(r->from, r->to, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
	EACH(COUNT, r->out[i] == sum(size, r->rank * COUNT + i));
	TOGETHER(ncclAlltoAll(r->from, r->to, COUNT, ncclInt32, r->comm, r->stream));
	EACH(COUNT * size, r->out[i] == element(i / COUNT, r->rank * COUNT + i % COUNT));
	TOGETHER(ncclGather(r->from, r->rank == 0 ? r->to : NULL, COUNT, ncclInt32, 0, r->comm, r->stream));
	EACH(COUNT * size, r->out[i] == (r->rank == 0 ? element(i / COUNT, i % COUNT) : -1));
	TOGETHER(ncclScatter(r->rank == last ? r->from : NULL, r->to, COUNT, ncclInt32, last, r->comm, r->stream));
	EACH(COUNT, r->out[i] == element(last, r->rank * COUNT + i));
	TOGETHER(ncclAllReduceConfig(r->from, r->to, COUNT, ncclInt32, ncclSum, r->comm, r->stream, NULL));
	EACH(COUNT, r->out[i] == sum(size, i));
}

// zero calls everything with nothing to do, without buffers.
static void zero(rank_t *ranks, int n)
{
	TOGETHER(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, r->comm, r->stream));
	TOGETHER(ncclReduce(NULL, NULL, 0, ncclFloat16, ncclSum, 0, r->comm, r->stream));
	TOGETHER(ncclBroadcast(r->from, r->to, 0, ncclInt8, 0, r->comm, r->stream));
	TOGETHER(ncclAllGather(NULL, NULL, 0, ncclBfloat16, r->comm, r->stream));
	TOGETHER(ncclReduceScatter(NULL, NULL, 0, ncclFloat64, ncclAvg, r->comm, r->stream));
	TOGETHER(ncclAlltoAll(NULL, NULL, 0, ncclUint8, r->comm, r->stream));
	EACH(COUNT, r->out[i] == -1);
}

// types reduces ones of every type over four ranks: the sum is four.
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
	if (ranks->size != 4) // what the sums below are for
		return;
	for (unsigned k = 0; k < sizeof all / sizeof *all; k++) {
		CHECK((int)all[k].type == (int)k);
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				memcpy((char *)r->in + i * all[k].bytes, all[k].one, all[k].bytes);
		for (rank_t *r = ranks; r < ranks + n; r++)
			pushed(r);
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			OK(ncclAllReduce(r->from, r->to, COUNT, all[k].type, ncclSum, r->comm, r->stream));
		if (n > 1)
			OK(ncclGroupEnd());
		pull_all(ranks, n);
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				if (memcmp((char *)r->out + i * all[k].bytes, all[k].four, all[k].bytes))
					fail(__LINE__, "rank %d: type %d: element %d", r->rank, all[k].type, i);
	}
}

// scaled reduces with an operator of the communicator's, whose scalar is in host memory or in the
// device's, at the end of the buffer.
static void scaled(rank_t *ranks, int n)
{
	enum { AT = COUNT * RANKS - 1 };
	ncclRedOp_t ops[RANKS][2];
	float two = 2;
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclRedOpCreatePreMulSum(&ops[r->rank][0], &two, ncclFloat32, ncclScalarHostImmediate, r->comm));
		OK(ncclRedOpCreatePreMulSum(&ops[r->rank][1], r->from + AT, ncclFloat32, ncclScalarDevice, r->comm));
		CHECK(ops[r->rank][0] >= ncclNumOps && ops[r->rank][1] >= ncclNumOps && ops[r->rank][0] != ops[r->rank][1]);
	}
	two = 77; // it was read
	for (int k = 0; k < 2; k++) {
		for (rank_t *r = ranks; r < ranks + n; r++) {
			float *real = (float *)r->in;
			for (int i = 0; i < COUNT; i++)
				real[i] = i;
			real[AT] = 0.5;
			pushed(r);
		}
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			OK(ncclAllReduce(r->from, r->from, COUNT, ncclFloat32, ops[r->rank][k], r->comm, r->stream));
		if (n > 1)
			OK(ncclGroupEnd());
		pull_all(ranks, n);
		for (rank_t *r = ranks; r < ranks + n; r++)
			for (int i = 0; i < COUNT; i++)
				if (((float *)r->in)[i] != i * (k ? 0.5f : 2.0f) * r->size)
					fail(__LINE__, "rank %d: operator %d: element %d is %g", r->rank, k, i, ((float *)r->in)[i]);
	}
	for (rank_t *r = ranks; r < ranks + n; r++) {
		WRONG(ncclAllReduce(r->from, r->to, COUNT, ncclInt32, ops[r->rank][0], r->comm, r->stream), ncclInvalidArgument, "was made for float32");
		OK(ncclRedOpDestroy(ops[r->rank][0], r->comm));
		WRONG(ncclRedOpDestroy(ops[r->rank][0], r->comm), ncclInvalidArgument, "was destroyed");
		WRONG(ncclAllReduce(r->from, r->to, COUNT, ncclFloat32, ops[r->rank][0], r->comm, r->stream), ncclInvalidArgument, "was destroyed");
		WRONG(ncclRedOpDestroy(ncclAvg, r->comm), ncclInvalidArgument, "built in");
	}
}

// messages sends to all others and to the rank itself in a group within a group, and round a
// ring.
static void messages(rank_t *ranks, int n)
{
	fill_all(ranks, n);
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclGroupStart());
		for (int peer = 0; peer < r->size; peer++) {
			OK(ncclSend(r->from + peer * COUNT, COUNT, ncclInt32, peer, r->comm, r->stream));
			OK(ncclRecv(r->to + peer * COUNT, COUNT, ncclInt32, peer, r->comm, r->stream));
		}
		OK(ncclGroupEnd());
	}
	pull_all(ranks, n);
	for (rank_t *r = ranks; r < ranks + n; r++)
		CHECK(r->out[0] == -1); // the inner end carried nothing out
	OK(ncclGroupEnd());
	pull_all(ranks, n);
	EACH(COUNT * r->size, r->out[i] == element(i / COUNT, r->rank * COUNT + i % COUNT));

	fill_all(ranks, n);
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclSend(r->from, COUNT, ncclInt32, (r->rank + 1) % r->size, r->comm, r->stream));
		OK(ncclRecv(r->to, COUNT, ncclInt32, (r->rank + r->size - 1) % r->size, r->comm, r->stream));
		OK(ncclAllReduce(r->from, r->to + COUNT, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
		OK(ncclSend(r->from, 0, ncclInt32, r->rank, r->comm, r->stream));
		OK(ncclRecv(r->to, 0, ncclInt32, r->rank, r->comm, r->stream));
	}
	OK(ncclGroupEnd());
	pull_all(ranks, n);
	EACH(COUNT, r->out[i] == element((r->rank + r->size - 1) % r->size, i) && r->out[COUNT + i] == sum(r->size, i));
	OK(ncclGroupStart());
	OK(ncclGroupEnd()); // of nothing
}

// parts splits the communicators by parity, the last rank out, and shrinks the whole by rank 1.
static void parts(rank_t *ranks, int n)
{
	ncclComm_t part[RANKS];
	int size = ranks->size, last = size - 1;
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommSplit(r->comm, r->rank == last ? NCCL_SPLIT_NOCOLOR : r->rank % 2, -r->rank, &part[r->rank], NULL));
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		if (r->rank == last) {
			CHECK(part[r->rank] == NULL);
			continue;
		}
		int members, rank, want = 0, before = 0;
		for (int k = r->rank % 2; k < last; k += 2)
			want++, before += k > r->rank; // by key
		OK(ncclCommCount(part[r->rank], &members));
		OK(ncclCommUserRank(part[r->rank], &rank));
		CHECK(members == want && rank == before);
		r->in[0] = r->rank;
		pushed(r);
		OK(ncclAllReduce(r->from, r->to, 1, ncclInt32, ncclSum, part[r->rank], r->stream));
	}
	OK(ncclGroupEnd());
	pull_all(ranks, n);
	for (rank_t *r = ranks; r < ranks + n; r++) {
		int want = 0;
		if (r->rank == last)
			continue;
		for (int k = r->rank % 2; k < last; k += 2)
			want += k;
		CHECK(r->out[0] == want);
		OK(ncclCommDestroy(part[r->rank]));
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
			pushed(r);
			OK(ncclAllGather(r->from, r->to, 1, ncclInt32, few[r->rank], r->stream));
		}
	OK(ncclGroupEnd());
	pull_all(ranks, n);
	for (rank_t *r = ranks; r < ranks + n; r++)
		if (r->rank != 1) {
			for (int k = 0; k < size - 1; k++)
				CHECK(r->out[k] == (k ? k + 1 : 0));
			OK(ncclCommDestroy(few[r->rank]));
		}
}

// memory reduces in what ncclMemAlloc gives and what is registered.
static void memory(rank_t *ranks, int n)
{
	enum { BIG = 10000 };
	void *buffer[RANKS];
	ncclWindow_t win[RANKS];
	void *handle[RANKS];
	for (rank_t *r = ranks; r < ranks + n; r++) {
		use_device(device_of(r->rank));
		OK(ncclMemAlloc(&buffer[r->rank], BIG));
		CHECK((uintptr_t)buffer[r->rank] % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
		OK(ncclCommRegister(r->comm, buffer[r->rank], BIG, &handle[r->rank]));
	}
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommWindowRegister(r->comm, buffer[r->rank], BIG, &win[r->rank], NCCL_WIN_COLL_SYMMETRIC));
	OK(ncclGroupEnd());
	fill_all(ranks, n);
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclAllReduce(r->from, buffer[r->rank], COUNT, ncclInt32, ncclSum, r->comm, r->stream));
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclAllReduce(buffer[r->rank], buffer[r->rank], COUNT, ncclInt32, ncclMax, r->comm, r->stream));
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		int got[COUNT];
		if (ON_GPUS)
			pull(r->device, got, buffer[r->rank], sizeof got, r->stream);
		else
			memcpy(got, buffer[r->rank], sizeof got);
		for (int i = 0; i < COUNT; i++)
			CHECK(got[i] == sum(r->size, i));
	}
	for (rank_t *r = ranks; r < ranks + n; r++) {
		void *at;
		OK(ncclWinGetUserPtr(r->comm, win[r->rank], &at));
		CHECK(at == buffer[r->rank]);
		WRONG(ncclCommWindowRegister(r->comm, (char *)at + 8, 100, &win[RANKS - 1], 0), ncclInvalidArgument, "multiple of 4096");
		OK(ncclCommWindowDeregister(r->comm, win[r->rank]));
		WRONG(ncclCommWindowDeregister(r->comm, win[r->rank]), ncclInvalidArgument, "no window");
		OK(ncclCommDeregister(r->comm, handle[r->rank]));
		OK(ncclMemFree(buffer[r->rank]));
		WRONG(ncclMemFree(buffer[r->rank]), ncclUnhandledCudaError, "was freed");
	}
}

#ifdef GPUS
// twice is a kernel of the program's own, x[i] *= 2 for each of a block's threads.
static const char twice[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry twice(.param .u64 x, .param .u32 factor)\n{\n"
    "\t.reg .b64 %rd<4>;\n\t.reg .b32 %r<4>;\n"
    "\tld.param.u64 %rd1, [x];\n\tld.param.u32 %r3, [factor];\n\tmov.u32 %r1, %tid.x;\n"
    "\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n"
    "\tld.global.u32 %r2, [%rd3];\n\tmul.lo.s32 %r2, %r2, %r3;\n\tst.global.u32 [%rd3], %r2;\n\tret;\n}\n";

// captured has the program's own kernel and a collective in a graph of each rank, which is launched twice.
static void captured(rank_t *ranks, int n)
{
	graph_exec launch[RANKS];
	graph recorded[RANKS];
	fill_all(ranks, n);
	for (rank_t *r = ranks; r < ranks + n; r++) {
		module m;
		function f;
		use_device(device_of(r->rank));
		CU(cuModuleLoadData(&m, twice));
		CU(cuModuleGetFunction(&f, m, "twice"));
		address x = (address)r->from;
		int factor = 2;
		void *params[] = {&x, &factor};
		CU(cuStreamBeginCapture_v2(r->stream, 1));
		CU(cuLaunchKernel(f, 1, 1, 1, COUNT, 1, 1, 0, r->stream, params, NULL));
	}
	if (n > 1)
		OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclAllReduce(r->from, r->to, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
	if (n > 1)
		OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++)
		CU(cuStreamEndCapture(r->stream, &recorded[r->rank]));
	for (rank_t *r = ranks; r < ranks + n; r++)
		CU(cuGraphInstantiateWithFlags(&launch[r->rank], recorded[r->rank], 0));
	for (int k = 0; k < 2; k++)
		for (rank_t *r = ranks; r < ranks + n; r++)
			CU(cuGraphLaunch(launch[r->rank], r->stream));
	pull_all(ranks, n);
	EACH(COUNT, r->out[i] == 4 * sum(r->size, i));
	for (rank_t *r = ranks; r < ranks + n; r++) {
		CU(cuGraphExecDestroy(launch[r->rank]));
		CU(cuGraphDestroy(recorded[r->rank]));
	}
}
#endif

// give puts a rank's data into the next one's window, and waits for those of the one before.
static void give(rank_t *r, ncclWindow_t win)
{
	int next = (r->rank + 1) % r->size, before = (r->rank + r->size - 1) % r->size;
	ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = before};
	OK(ncclPutSignal(r->from, COUNT, ncclInt32, next, win, 400, 0, 0, 0, r->comm, r->stream));
	OK(ncclWaitSignal(1, &wait, r->comm, r->stream));
}

// free_again tells the rank before that its data have been taken, and waits for that word of the next one.
static void free_again(rank_t *r)
{
	int next = (r->rank + 1) % r->size, before = (r->rank + r->size - 1) % r->size;
	ncclWaitSignalDesc_t wait[] = {{.opCnt = 1, .peer = next}, {.opCnt = 0, .peer = r->rank}};
	OK(ncclSignal(before, 0, 0, 0, r->comm, r->stream));
	OK(ncclWaitSignal(2, wait, r->comm, r->stream));
}

static void signals(rank_t *ranks, int n)
{
	enum { BYTES = 2 * 4096 };
	void *buffer[RANKS];
	ncclWindow_t win[RANKS];
	for (rank_t *r = ranks; r < ranks + n; r++) {
		use_device(device_of(r->rank));
		OK(ncclMemAlloc(&buffer[r->rank], BYTES));
	}
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommWindowRegister(r->comm, buffer[r->rank], BYTES, &win[r->rank], NCCL_WIN_DEFAULT));
	OK(ncclGroupEnd());
	for (int round = 0; round < 3; round++) {
		fill_all(ranks, n);
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			give(r, win[r->rank]);
		if (n > 1)
			OK(ncclGroupEnd());
		for (rank_t *r = ranks; r < ranks + n; r++) {
			int got[COUNT];
			void *at = (char *)buffer[r->rank] + 400;
			if (ON_GPUS)
				pull(r->device, got, at, sizeof got, r->stream);
			else
				memcpy(got, at, sizeof got);
			for (int i = 0; i < COUNT; i++)
				CHECK(got[i] == element((r->rank + r->size - 1) % r->size, i));
		}
		if (n > 1)
			OK(ncclGroupStart());
		for (rank_t *r = ranks; r < ranks + n; r++)
			free_again(r);
		if (n > 1)
			OK(ncclGroupEnd());
	}
	for (rank_t *r = ranks; r < ranks + n; r++) {
		WRONG(ncclPutSignal(r->from, BYTES, ncclInt32, 0, win[r->rank], 0, 0, 0, 0, r->comm, r->stream), ncclInvalidArgument, "of a window of 8192 bytes");
		void *peer;
		int next = (r->rank + 1) % r->size;
		ncclTeam_t lsa = ncclTeamLsa(r->comm);
		ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
		CHECK(lsa.nRanks == (ON_GPUS ? r->size : 1) && lsa.rank == (ON_GPUS ? r->rank : 0));
		CHECK(ncclTeamRail(r->comm).nRanks * lsa.nRanks == r->size);
		CHECK(ncclTeamRankToLsa(r->comm, ncclTeamWorld(r->comm), r->rank) == lsa.rank);
		OK(ncclCommQueryProperties(r->comm, &properties));
		CHECK(properties.nLsaTeams == r->size / lsa.nRanks && properties.hostRmaSupport == ON_GPUS);
		OK(ncclGetPeerDevicePointer(win[r->rank], 8, r->rank, &peer));
		CHECK(peer == (char *)buffer[r->rank] + 8);
		OK(ncclGetLsaDevicePointer(win[r->rank], 8, lsa.rank, &peer));
		CHECK(peer == (char *)buffer[r->rank] + 8);
		OK(ncclGetPeerDevicePointer(win[r->rank], 400, next, &peer));
		CHECK(!peer == !ON_GPUS);
		if (peer) { // what the peer was given before is there
			int got;
			pull(r->device, &got, peer, sizeof got, r->stream);
			CHECK(got == element(r->rank, 0));
		}
		WRONG(ncclGetPeerDevicePointer(win[r->rank], BYTES, 0, &peer), ncclInvalidArgument, "offset 8192");
		WRONG(ncclGetLsaDevicePointer(win[r->rank], 0, lsa.nRanks, &peer), ncclInvalidArgument, "have access");
		WRONG(ncclSignal(0, 1, 0, 0, r->comm, r->stream), ncclInvalidArgument, "have to be 0");
		WRONG(ncclSignal(r->size, 0, 0, 0, r->comm, r->stream), ncclInvalidArgument, "peer");
		pull(r->device, r->in, r->from, sizeof(int), r->stream);
		OK(ncclCommWindowDeregister(r->comm, win[r->rank]));
		OK(ncclMemFree(buffer[r->rank]));
	}
}

// suspended gives the memory of communicators back and takes it again.
static void suspended(rank_t *ranks, int n)
{
	uint64_t bytes[4];
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommSuspend(r->comm, NCCL_SUSPEND_MEM));
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		WRONG(ncclAllReduce(r->from, r->to, 1, ncclInt32, ncclSum, r->comm, r->stream), ncclInvalidUsage, "ncclCommResume");
		for (int k = 0; k < 4; k++)
			OK(ncclCommMemStats(r->comm, k, &bytes[k]));
		CHECK(bytes[ncclStatGpuMemSuspended] == 1);
		CHECK(bytes[ncclStatGpuMemTotal] == bytes[ncclStatGpuMemSuspend] + bytes[ncclStatGpuMemPersist]);
		CHECK(!ON_GPUS == !bytes[ncclStatGpuMemPersist]);
	}
	OK(ncclGroupStart());
	for (rank_t *r = ranks; r < ranks + n; r++)
		OK(ncclCommResume(r->comm));
	OK(ncclGroupEnd());
	for (rank_t *r = ranks; r < ranks + n; r++) {
		OK(ncclCommMemStats(r->comm, ncclStatGpuMemSuspended, bytes));
		CHECK(*bytes == 0);
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
	signals(ranks, n);
	suspended(ranks, n);
#ifdef GPUS
	captured(ranks, n);
#endif
	collectives(ranks, n); // the communicators are as they were
}

static ncclUniqueId shared;
static int shared_size;

static void *one_thread(void *rank)
{
	ncclComm_t comm;
	use_device(device_of((int)(intptr_t)rank));
	OK(ncclCommInitRank(&comm, shared_size, shared, (int)(intptr_t)rank));
	rank_t r = new_rank(comm);
	CHECK(r.rank == (int)(intptr_t)rank && r.size == shared_size);
	everything(&r, 1);
	OK(ncclCommFinalize(comm));
	WRONG(ncclAllReduce(r.from, r.to, 1, ncclInt32, ncclSum, comm, r.stream), ncclInvalidArgument, "was finalized");
	free_rank(&r);
	return NULL;
}

static int team_size;

static void *one_team(void *number)
{
	ncclComm_t comms[RANKS];
	rank_t ranks[RANKS];
	int first = (int)(intptr_t)number * team_size;
	OK(ncclGroupStart());
	for (int i = 0; i < team_size; i++) {
		use_device(device_of(first + i));
		OK(ncclCommInitRank(&comms[i], shared_size, shared, first + i));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < team_size; i++)
		ranks[i] = new_rank(comms[i]);
	everything(ranks, team_size);
	for (int i = 0; i < team_size; i++)
		free_rank(&ranks[i]);
	return NULL;
}

// in_threads runs f in n threads.
static void in_threads(int n, void *(*f)(void *))
{
	pthread_t threads[RANKS];
	OK(ncclGetUniqueId(&shared));
	for (intptr_t i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, f, (void *)i) == 0);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	alarm(300);
	CHECK(argc >= 3);
	if (!strcmp(argv[1], "process")) {
		ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
		ncclComm_t comm;
		int rank = atoi(argv[2]), size = atoi(argv[3]);
		config.maxCTAs = 8;
		use_device(device_of(rank));
		OK(ncclCommInitRankConfig(&comm, size, meet(argv[4], rank), rank, &config));
		rank_t r = new_rank(comm);
		everything(&r, 1);
		free_rank(&r);
	} else if (!strcmp(argv[1], "threads")) {
		shared_size = atoi(argv[2]);
		in_threads(shared_size, one_thread);
	} else if (!strcmp(argv[1], "teams")) {
		team_size = atoi(argv[3]);
		shared_size = atoi(argv[2]) * team_size;
		in_threads(atoi(argv[2]), one_team);
	} else if (!strcmp(argv[1], "all")) {
		ncclComm_t comms[RANKS];
		rank_t ranks[RANKS];
		int size = atoi(argv[2]);
		int devices[RANKS];
		for (int i = 0; i < size; i++)
			devices[i] = device_of(i);
		OK(ncclCommInitAll(comms, size, devices));
		for (int i = 0; i < size; i++)
			ranks[i] = new_rank(comms[i]);
		everything(ranks, size);
		for (int i = 0; i < size; i++)
			free_rank(&ranks[i]);
		// The same by one thread that makes all ranks in a group.
		ncclUniqueId id;
		OK(ncclGetUniqueId(&id));
		OK(ncclGroupStart());
		for (int i = 0; i < size; i++) {
			use_device(device_of(i));
			OK(ncclCommInitRank(&comms[i], size, id, i));
		}
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
