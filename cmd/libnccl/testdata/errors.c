// What goes wrong, by threads with a rank each and by processes, and communicators that do not block.
//
//	errors arguments
//	errors abort            a rank aborts while others wait for it
//	errors background       communicators that do not block
//	errors settings         set between communicators
//	errors driver           without RINGO_HOST, where there is no GPU
//	errors killed RANK SIZE FILE   rank 1 ends without goodbye
//	errors shrunk RANK SIZE FILE   rank 0 does, by which all met, and the others go on without it
#include <stdatomic.h>
#include "check.h"

enum { RANKS = 4 };
static const cudaStream_t stream;
static ncclUniqueId id;
static ncclComm_t comms[RANKS];
static int buffer[RANKS][1000];

// each runs f for every rank in a thread.
static void each(void *(*f)(void *))
{
	pthread_t threads[RANKS];
	for (intptr_t i = 0; i < RANKS; i++)
		CHECK(pthread_create(&threads[i], NULL, f, (void *)i) == 0);
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// device_communicators asks for what there is not.
static void device_communicators(ncclComm_t comm)
{
	struct {
		size_t size;
		unsigned magic, version;
		ncclDevCommRequirements_t wanted;
	} newer = {sizeof newer, NCCL_API_MAGIC, 22907, {0}};
	ncclDevCommRequirements_t wanted = {0};
	ncclDevResourceRequirements_t buffer = {.bufferSize = 1, .bufferAlign = 3};
	ncclLsaBarrierHandle_t barrier;
	ncclDevComm_t dev;
	char largest[248]; // of all versions
	WRONG(ncclDevCommCreate(comm, NULL, &dev), ncclInvalidArgument, "are null");
	WRONG(ncclDevCommCreate(comm, &wanted, &dev), ncclInvalidUsage, "on host memory");
	for (newer.version = 22902; newer.version < 23300; newer.version++)
		WRONG(ncclDevCommCreate(comm, (ncclDevCommRequirements_t *)&newer, (ncclDevComm_t *)largest), ncclInvalidUsage, "on host memory");
	wanted.lsaMultimem = 1;
	WRONG(ncclDevCommCreate(comm, &wanted, &dev), ncclInvalidArgument, "no multicast");
	wanted = (ncclDevCommRequirements_t){.ginForceEnable = 1};
	WRONG(ncclDevCommCreate(comm, &wanted, &dev), ncclInvalidArgument, "no GIN");
	wanted = (ncclDevCommRequirements_t){.resourceRequirementsList = &buffer};
	WRONG(ncclDevCommCreate(comm, &wanted, &dev), ncclInvalidArgument, "power of two");
	WRONG(ncclDevCommDestroy(comm, NULL), ncclInvalidArgument, "is null");
	WRONG(ncclLsaBarrierCreateRequirement(ncclTeamWorld(comm), -1, &barrier, &buffer), ncclInvalidArgument, "negative");
	OK(ncclLsaBarrierCreateRequirement((ncclTeam_t){8, 0, 1}, 5, &barrier, &buffer));
	CHECK(barrier.nBarriers == 5 && buffer.bufferSize == 220 && buffer.outBufferHandle == &barrier.bufHandle);
	CHECK(ncclTeamCft(comm, 0).nRanks == 0 && ncclTeamCftMultimem(comm).nRanks == 0);
	WRONG(ncclGetPeerDeviceLeInfo(NULL, 0, 0, NULL, NULL), ncclInvalidArgument, "no compute fabric");
}

// encryption is refused where the key is none; a communicator of one rank needs no connection.
static void encryption(void)
{
	ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
	ncclUniqueId id;
	ncclComm_t comm;
	config.mode = NCCL_ENCRYPTION_MODE_PSK;
	WRONG(ncclSetEncryption(&config), ncclInvalidArgument, "psk is null");
	config.psk = "short";
	WRONG(ncclSetEncryption(&config), ncclInvalidArgument, "5 bytes");
	config.magic = 0;
	WRONG(ncclSetEncryption(&config), ncclInvalidArgument, "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
	config.magic = NCCL_API_MAGIC, config.psk = "a key of a test, which has 32 bytes or more";
	OK(ncclSetEncryption(&config));
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRank(&comm, 1, id, 0));
	OK(ncclCommDestroy(comm));
	OK(ncclSetEncryption(NULL));
}

static void arguments(void)
{
	ncclComm_t comm, other;
	ncclUniqueId none = {{0}};
	int version, x[4];
	OK(ncclGetVersion(&version));
	CHECK(version == NCCL_VERSION_CODE);
	WRONG(ncclGetVersion(NULL), ncclInvalidArgument, "version is null");
	CHECK(!strcmp(ncclGetErrorString(ncclSuccess), "no error"));
	CHECK(strstr(ncclGetErrorString(ncclRemoteError), "remote process"));
	CHECK(!strcmp(ncclGetErrorString((ncclResult_t)99), "unknown result code"));

	WRONG(ncclCommInitRank(&comm, 2, none, 0), ncclInvalidArgument, "id: empty");
	CHECK(comm == NULL);
	OK(ncclGetUniqueId(&id));
	WRONG(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument, "rank 2 of 2");
	WRONG(ncclCommInitRank(NULL, 2, id, 0), ncclInvalidArgument, "comm is null");
	OK(ncclCommInitRank(&comm, 1, id, 0));
	OK(ncclCommInitAll(&other, 1, NULL));

	WRONG(ncclAllReduce(x, x, 4, (ncclDataType_t)12, ncclSum, comm, stream), ncclInvalidArgument, "data type 12");
	WRONG(ncclAllReduce(x, x, 4, ncclInt32, (ncclRedOp_t)5, comm, stream), ncclInvalidArgument, "operator 5 was not made");
	WRONG(ncclAllReduce(NULL, x, 4, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument, "send buffer is at 0");
	WRONG(ncclAllReduce(x, x, (size_t)-1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument, "count");
	WRONG(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, NULL, stream), ncclInvalidArgument, "the communicator is null");
	WRONG(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, (ncclComm_t)x, stream), ncclInvalidArgument, "is no communicator");
	WRONG(ncclBroadcast(x, x, 4, ncclInt32, 1, comm, stream), ncclInvalidArgument, "root 1");
	WRONG(ncclSend(x, 4, ncclInt32, -1, comm, stream), ncclInvalidArgument, "peer -1");
	WRONG(ncclGroupEnd(), ncclInvalidUsage, "without ncclGroupStart");
	OK(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, comm, stream));

	// A group with a wrong call is carried out not at all.
	x[0] = 1, x[1] = 2;
	OK(ncclGroupStart());
	OK(ncclBroadcast(x, x + 1, 1, ncclInt32, 0, comm, stream));
	WRONG(ncclBroadcast(x, x + 1, 1, ncclInt32, 9, comm, stream), ncclInvalidArgument, "root 9");
	WRONG(ncclGroupEnd(), ncclInvalidArgument, "root 9");
	CHECK(x[1] == 2);
	OK(ncclGroupStart());
	OK(ncclBroadcast(x, x + 1, 1, ncclInt32, 0, comm, stream));
	OK(ncclGroupEnd());
	CHECK(x[1] == 1);

	// A group that is simulated is not carried out.
	ncclSimInfo_t small = NCCL_SIM_INFO_INITIALIZER, large = NCCL_SIM_INFO_INITIALIZER, bad = {0};
	static char many[4 << 20];
	ncclComm_t pair[2];
	OK(ncclCommInitAll(pair, 2, NULL));
	for (int k = 0; k < 2; k++) {
		OK(ncclGroupStart());
		for (int i = 0; i < 2; i++) {
			OK(ncclAllReduce(many, many, k ? sizeof many : 8, ncclChar, ncclSum, pair[i], stream));
			OK(ncclSend(many, 1, ncclChar, 1 - i, pair[i], stream)); // nobody receives it
		}
		OK(ncclGroupSimulateEnd(k ? &large : &small));
	}
	OK(ncclGroupStart());
	WRONG(ncclGroupSimulateEnd(&bad), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
	CHECK(small.estimatedTime > 0 && large.estimatedTime > 10 * small.estimatedTime);
	WRONG(ncclGroupSimulateEnd(NULL), ncclInvalidUsage, "without ncclGroupStart");
	for (int i = 0; i < 2; i++)
		OK(ncclCommDestroy(pair[i]));

	// Parameters are the environment's.
	ncclParamHandle_t h;
	uint8_t small_int;
	const char *text, **keys;
	char room[8];
	int length;
	setenv("NCCL_MAX_CTAS", "17", 1);
	OK(ncclParamBind(&h, "NCCL_MAX_CTAS"));
	OK(ncclParamGetU8(h, &small_int));
	OK(ncclParamGetStr(h, &text));
	OK(ncclParamGet(h, room, sizeof room, &length));
	CHECK(small_int == 17 && !strcmp(text, "17") && !strcmp(room, "17") && length == 3);
	WRONG(ncclParamGet(h, room, 2, &length), ncclInvalidArgument, "does not fit");
	OK(ncclParamGetParameter("NCCL_ALGO", &text, &length));
	CHECK(*text == 0 && length == 0);
	WRONG(ncclParamBind(&h, "NCCL_FAST"), ncclInvalidArgument, "no parameter");
	OK(ncclParamGetAllParameterKeys(&keys, &length));
	CHECK(length > 10 && !strcmp(keys[0], "NCCL_ALGO"));
	unsetenv("NCCL_MAX_CTAS");

	// An ncclConfig_t is read by its size: old ones end early, new ones later.
	struct {
		ncclConfig_t known;
		int more[20];
	} config = {NCCL_CONFIG_INITIALIZER, {0}};
	config.known.size = sizeof config;
	config.known.version = 23200;
	OK(ncclGetUniqueId(&id));
	ncclComm_t third;
	OK(ncclCommInitRankConfig(&third, 1, id, 0, &config.known));
	OK(ncclCommDestroy(third));
	config.known.size = offsetof(ncclConfig_t, cgaClusterSize); // 2.14's
	config.known.maxCTAs = -5;                                   // is not in it
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRankConfig(&third, 1, id, 0, &config.known));
	OK(ncclCommDestroy(third));
	config.known.size = sizeof(ncclConfig_t);
	WRONG(ncclCommInitRankConfig(&third, 1, id, 0, &config.known), ncclInvalidArgument, "maxCTAs is -5");
	config.known.magic = 0;
	WRONG(ncclCommInitRankConfig(&third, 1, id, 0, &config.known), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");

	ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
	OK(ncclCommQueryProperties(comm, &properties));
	CHECK(properties.nRanks == 1 && properties.rank == 0 && !properties.deviceApiSupport && !properties.hostRmaSupport);
	properties.magic = 1;
	WRONG(ncclCommQueryProperties(comm, &properties), ncclInvalidArgument, "NCCL_COMM_PROPERTIES_INITIALIZER");
	WRONG(ncclCommSuspend(comm, 0), ncclInvalidArgument, "NCCL_SUSPEND_MEM");
	OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
	WRONG(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage, "ncclCommResume");
	OK(ncclCommResume(comm));
	WRONG(ncclCommResume(comm), ncclInvalidUsage, "not suspended");
	OK(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, comm, stream));
	uint64_t bytes;
	WRONG(ncclCommMemStats(comm, (ncclCommMemStat_t)9, &bytes), ncclInvalidArgument, "no figure 9");
	WRONG(ncclCommMemStats(comm, ncclStatGpuMemTotal, NULL), ncclInvalidArgument, "value is null");
	device_communicators(comm);
	encryption();
	WRONG(ncclBroadcast(x, x, 4, ncclInt32, 7, comm, stream), ncclInvalidArgument, "root 7");
	CHECK(!strcmp(ncclGetErrorString(ncclInvalidArgument), "invalid argument (ncclGetLastError or NCCL_DEBUG=WARN says which)"));
	OK(ncclCommDestroy(comm));
	WRONG(ncclCommDestroy(comm), ncclInvalidArgument, "it was destroyed");
	OK(ncclCommAbort(other));
	WRONG(ncclCommAbort(other), ncclInvalidArgument, "it was destroyed");
}

static void *abort_or_wait(void *arg)
{
	int rank = (int)(intptr_t)arg;
	OK(ncclCommInitRank(&comms[rank], RANKS, id, rank));
	if (rank == 2) {
		usleep(20000);
		OK(ncclCommAbort(comms[rank]));
		return NULL;
	}
	double start = now();
	WRONG(ncclAllReduce(buffer[rank], buffer[rank], 1000, ncclInt32, ncclSum, comms[rank], stream), ncclRemoteError, "rank 2");
	CHECK(now() - start < 10);
	ncclResult_t state;
	OK(ncclCommGetAsyncError(comms[rank], &state));
	CHECK(state == ncclRemoteError);
	CHECK(strstr(ncclGetLastError(comms[rank]), "rank 2"));
	WRONG(ncclAllReduce(buffer[rank], buffer[rank], 1, ncclInt32, ncclSum, comms[rank], stream), ncclRemoteError, "has failed before");
	if (rank == 0)
		OK(ncclCommAbort(comms[rank]));
	else
		OK(ncclCommDestroy(comms[rank]));
	return NULL;
}

// waiting_rank's call is ended by another thread of its own process.
static ncclResult_t ended;
static atomic_int calling;
static void *waiting_rank(void *arg)
{
	(void)arg;
	calling = 1;
	ended = ncclRecv(buffer[0], 10, ncclInt32, 1, comms[0], stream);
	CHECK(strstr(ncclGetLastError(NULL), "ncclCommAbort"));
	return NULL;
}

static void abort_from_another_thread(void)
{
	pthread_t thread;
	OK(ncclCommInitAll(comms, 2, NULL));
	CHECK(pthread_create(&thread, NULL, waiting_rank, NULL) == 0);
	while (!calling)
		usleep(1000);
	usleep(100000); // for the call to wait
	OK(ncclCommAbort(comms[0]));
	pthread_join(thread, NULL);
	CHECK(ended != ncclSuccess && ended != ncclInProgress);
	OK(ncclCommDestroy(comms[1]));
}

// calls that are revoked leave communicators that can be destroyed.
static void revoked(void)
{
	ncclResult_t state;
	OK(ncclCommInitAll(comms, 2, NULL));
	WRONG(ncclCommRevoke(comms[0], 5), ncclInvalidArgument, "NCCL_REVOKE_DEFAULT");
	OK(ncclCommRevoke(comms[0], NCCL_REVOKE_DEFAULT));
	OK(ncclCommGetAsyncError(comms[0], &state));
	CHECK(state == ncclSuccess);
	CHECK(ncclAllReduce(buffer, buffer, 1, ncclInt32, ncclSum, comms[0], stream) != ncclSuccess);
	OK(ncclCommDestroy(comms[0]));
	OK(ncclCommDestroy(comms[1]));
}

static void *in_background(void *arg)
{
	int rank = (int)(intptr_t)arg;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	ncclComm_t comm, part;
	CHECK(ncclCommInitRankConfig(&comm, RANKS, id, rank, &config) == ncclInProgress);
	CHECK(comm != NULL);
	if (rank == 0) // the others wait for this rank no longer than it takes to come
		WRONG(ncclAllReduce(buffer[rank], buffer[rank], 1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument, "not ready");
	poll(comm, __LINE__);
	int size;
	OK(ncclCommCount(comm, &size));
	CHECK(size == RANKS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++)
			buffer[rank][i] = rank + i;
		ncclResult_t r = ncclAllReduce(buffer[rank], buffer[rank], 1000, ncclInt32, ncclSum, comm, stream);
		CHECK(r == ncclInProgress || r == ncclSuccess);
		poll(comm, __LINE__);
		for (int i = 0; i < 1000; i++)
			CHECK(buffer[rank][i] == 6 + 4 * i);
	}
	int got = -1, mine = rank;
	OK(ncclGroupStart());
	OK(ncclSend(&mine, 1, ncclInt32, (rank + 1) % RANKS, comm, stream));
	OK(ncclRecv(&got, 1, ncclInt32, (rank + RANKS - 1) % RANKS, comm, stream));
	CHECK(ncclGroupEnd() == ncclInProgress);
	poll(comm, __LINE__);
	CHECK(got == (rank + RANKS - 1) % RANKS);

	CHECK(ncclCommSplit(comm, rank / 2, rank, &part, NULL) == ncclInProgress);
	poll(comm, __LINE__);
	poll(part, __LINE__);
	OK(ncclCommCount(part, &size));
	CHECK(size == 2);
	void *memory, *multimem = &memory;
	ncclWindow_t win[2];
	ncclMultimemHandle_t none = {NULL};
	OK(ncclMemAlloc(&memory, 2 * 4096));
	for (int i = 0; i < 2; i++) // waits, as PyTorch wants it
		OK(ncclCommWindowRegister(comm, (char *)memory + i * 4096, 4096, &win[i], NCCL_WIN_COLL_SYMMETRIC));
	OK(ncclGetLsaMultimemDevicePointer(win[1], 8, &multimem));
	CHECK(multimem == NULL);
	WRONG(ncclGetLsaMultimemDevicePointer(win[1], 4096, &multimem), ncclInvalidArgument, "offset 4096");
	WRONG(ncclGetMultimemDevicePointer(win[1], 8, none, &multimem), ncclInvalidArgument, "handle is empty");
	for (int i = 0; i < 2; i++)
		OK(ncclCommWindowDeregister(comm, win[i]));
	OK(ncclMemFree(memory));
	ncclResult_t r = ncclCommFinalize(part);
	CHECK(r == ncclSuccess || r == ncclInProgress);
	poll(part, __LINE__);
	OK(ncclCommDestroy(part));
	OK(ncclCommDestroy(comm));
	return NULL;
}

// An opening that never ends is ended by Abort.
static void abort_while_opening(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;
	ncclResult_t state;
	config.blocking = 0;
	OK(ncclGetUniqueId(&id));
	CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress);
	OK(ncclCommGetAsyncError(comm, &state));
	CHECK(state == ncclInProgress);
	OK(ncclCommAbort(comm));
}

// settings: RINGO_ALGO is "before" when the program begins.
static void settings(void)
{
	static const char *const wrong[][2] = {{"RINGO_ALGO", "nosuch"}, {"RINGO_JOIN_TIMEOUT", "soon"}, {"RINGO_HOST", "maybe"},
					       {"RINGO_SLOTS", "1"}, {"RINGO_SOCKET_FAMILY", "none"}, {"RINGO_TLS", "maybe"}};
	ncclComm_t comm;
	OK(ncclGetVersion(&(int){0}));
	WRONG(ncclGetUniqueId(&id), ncclInvalidArgument, "before");
	unsetenv("RINGO_ALGO");
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char *old = getenv(wrong[i][0]);
		OK(ncclGetUniqueId(&id));
		setenv(wrong[i][0], wrong[i][1], 1);
		WRONG(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument, wrong[i][1]);
		old ? setenv(wrong[i][0], !strcmp(wrong[i][0], "RINGO_HOST") ? "1" : "9s", 1) : unsetenv(wrong[i][0]);
		OK(ncclCommInitRank(&comm, 1, id, 0));
		OK(ncclCommDestroy(comm));
	}
	setenv("NCCL_RAS_ADDR", "later:1", 1);
	for (int i = 0; i < 2; i++) {
		OK(ncclCommInitAll(&comm, 1, NULL));
		OK(ncclCommDestroy(comm));
	}
	setenv("NCCL_DEBUG", "INFO", 1);
	OK(ncclCommInitAll(comms, 2, NULL));
	OK(ncclCommDestroy(comms[0]));
	OK(ncclCommDestroy(comms[1]));
}

static void driver(void)
{
	ncclComm_t comm;
	void *p;
	OK(ncclGetUniqueId(&id));
	WRONG(ncclCommInitRank(&comm, 1, id, 0), ncclUnhandledCudaError, "RINGO_HOST=1");
	WRONG(ncclCommInitAll(&comm, 1, NULL), ncclUnhandledCudaError, "no CUDA");
	WRONG(ncclMemAlloc(&p, 100), ncclUnhandledCudaError, "no CUDA");
}

// over reduces on a communicator of so many ranks.
static void over(ncclComm_t comm, int ranks)
{
	int size, one = 1;
	OK(ncclCommCount(comm, &size));
	CHECK(size == ranks);
	OK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, stream));
	CHECK(one == ranks);
}

static void shrunk(int rank, int size, const char *file)
{
	ncclComm_t whole, part, left, fewer;
	int x, without[] = {0};
	OK(ncclCommInitRank(&whole, size, meet(file, rank), rank));
	OK(ncclCommSplit(whole, 0, rank, &part, NULL));
	over(part, size);
	if (rank == 0) { // ends when it has heard of all others that they are done
		for (int peer = 1; peer < size; peer++)
			OK(ncclRecv(&x, 1, ncclInt32, peer, part, stream));
		puts("ok");
		fflush(stdout);
		_exit(0);
	}
	OK(ncclSend(&x, 1, ncclInt32, 0, part, stream));
	WRONG(ncclAllReduce(buffer, buffer, 10, ncclInt32, ncclSum, part, stream), ncclRemoteError, "rank 0");
	WRONG(ncclCommShrink(part, &rank, 1, &left, NULL, NCCL_SHRINK_ABORT), ncclInvalidArgument, "only ranks that stay");
	ncclComm_t *of[] = {&part, &whole}; // of a part, and of the communicator that all made together
	for (int k = 0; k < 2; k++) {
		OK(ncclCommShrink(*of[k], without, 1, &left, NULL, NCCL_SHRINK_ABORT));
		over(left, size - 1);
		OK(ncclCommDestroy(*of[k])); // is not held up by the rank that is gone
		if (rank != 1) { // this one leaves the others well
			OK(ncclCommShrink(left, without, 1, &fewer, NULL, NCCL_SHRINK_DEFAULT));
			over(fewer, size - 2);
			OK(ncclCommDestroy(fewer));
		}
		OK(ncclCommDestroy(left));
	}
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc >= 2);
	if (!strcmp(argv[1], "arguments")) {
		arguments();
	} else if (!strcmp(argv[1], "abort")) {
		OK(ncclGetUniqueId(&id));
		each(abort_or_wait);
		abort_from_another_thread();
		revoked();
	} else if (!strcmp(argv[1], "background")) {
		OK(ncclGetUniqueId(&id));
		each(in_background);
		abort_while_opening();
	} else if (!strcmp(argv[1], "settings")) {
		settings();
	} else if (!strcmp(argv[1], "driver")) {
		driver();
	} else if (!strcmp(argv[1], "shrunk")) {
		shrunk(atoi(argv[2]), atoi(argv[3]), argv[4]);
	} else if (!strcmp(argv[1], "killed")) {
		int rank = atoi(argv[2]), size = atoi(argv[3]);
		ncclComm_t comm;
		OK(ncclCommInitRank(&comm, size, meet(argv[4], rank), rank));
		OK(ncclAllReduce(buffer, buffer, 10, ncclInt32, ncclSum, comm, stream));
		if (rank == 1) { // ends when it has heard of all others that they are done
			for (int peer = 0; peer < size; peer++)
				if (peer != rank)
					OK(ncclRecv(buffer, 1, ncclInt32, peer, comm, stream));
			puts("ok");
			fflush(stdout);
			_exit(0);
		}
		OK(ncclSend(buffer, 1, ncclInt32, 1, comm, stream));
		WRONG(ncclAllReduce(buffer, buffer, 10, ncclInt32, ncclSum, comm, stream), ncclRemoteError, "rank 1");
		OK(ncclCommAbort(comm));
	} else {
		fail(__LINE__, "%s?", argv[1]);
	}
	puts("ok");
	return 0;
}
