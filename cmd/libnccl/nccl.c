//go:build linux

// The functions of nccl.h: each starts the Go half on first use, hands over its arguments with
// the state of the calling thread, and returns the Go half's result (go.go). The twins with the
// prefix pnccl are other names of the same functions.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "devcomm.h"
#include "ringo_norm.h"

static __thread thread_state thread;

// Go's runtime is started by a pointer in .init_array, on loading. libnccl.ld moves that pointer
// between these marks, so that start calls it with the first call: a process that loads the
// library and does not call it has no thread and no signal handler of Go's, and may fork.
typedef void (*initializer)(int, char **, char **);
extern initializer ringo_init_begin[] __attribute__((weak, visibility("hidden")));
extern initializer ringo_init_end[] __attribute__((weak, visibility("hidden")));

static int argc;
static char **argv, **envp;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t errors; // frees a thread's memory for sentences at the thread's end
static volatile int forked;
static int started; // by __atomic: another thread than the reader's may have started Go's runtime

__attribute__((constructor)) static void loaded(int count, char **arguments, char **environment)
{
	argc = count, argv = arguments, envp = environment;
}

char *thread_error(void)
{
	static char none[ERROR_BYTES] = "there is no memory";
	if (!thread.error && (thread.error = malloc(ERROR_BYTES)))
		pthread_setspecific(errors, thread.error);
	return thread.error ? thread.error : none;
}

const char *library_file(void)
{
	Dl_info info;
	return dladdr((void *)library_file, &info) ? info.dli_fname : "";
}

char **process_environment(void) { return environ; }

static void in_child(void) { forked = 1; }

// start starts Go's runtime. Go's threads inherit the signal mask of this thread, so that all signals are blocked
// meanwhile but those that Go needs: the program's signals are for the program's threads.
static void start(void)
{
	static const int needed[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG, SIGPROF};
	sigset_t others, before;
	sigfillset(&others);
	for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
		sigdelset(&others, needed[i]);
	pthread_atfork(NULL, NULL, in_child);
	pthread_key_create(&errors, free);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	for (initializer *f = ringo_init_begin; f < ringo_init_end; f++)
		(*f)(argc, argv, envp);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
}

// library_ready starts the Go half. The child of a fork cannot use it, since Go's threads are not in the child.
int library_ready(void)
{
	if (__builtin_expect(!__atomic_load_n(&started, __ATOMIC_ACQUIRE), 0))
		pthread_once(&once, start);
	if (__builtin_expect(!forked, 1))
		return 1;
	snprintf(thread_error(), ERROR_BYTES,
		 "invalid usage: the process was forked after its first call of NCCL: call it in the parent, or exec, or fork before that call");
	thread.failed = 1;
	return 0;
}

// FUNCTION defines a function that returns the Go half's result, and its twin.
#define ENDS(name, result) (ncclResult_t)(__builtin_expect((result) == ncclSuccess, 1) ? 0 : fails(#name, result, thread.failed))
#define TWIN(name) extern __typeof__(name) p##name __attribute__((alias(#name)));
#define FUNCTION(name, arguments, call)                   \
	ncclResult_t name arguments                       \
	{                                                 \
		int result_ = ncclInvalidUsage;           \
		if (library_ready())                      \
			result_ = (call);                 \
		return ENDS(name, result_);               \
	}                                                 \
	TWIN(name)

// REFUSED defines a function that always fails: this library does not have it.
#define REFUSED(name, arguments) FUNCTION(name, arguments, ringo_refuse(&thread, (char *)#name))

// The library
// ncclGetVersion leaves Go's runtime alone where the environment asks for no other version, for programs
// call it when they are loaded, and may fork afterwards. So does ncclGetLastError.
ncclResult_t ncclGetVersion(int *version)
{
	const char *other = getenv("RINGO_NCCL_VERSION");
	if (version && (!other || !*other)) {
		thread.failed = 0;
		*version = NCCL_VERSION_CODE;
		return ncclSuccess;
	}
	if (!library_ready())
		return ncclInvalidUsage;
	return (ncclResult_t)ringo_version(&thread, version);
}
TWIN(ncclGetVersion)
FUNCTION(ncclMemAlloc, (void **ptr, size_t size), ringo_alloc(&thread, (uintptr_t *)ptr, size))
FUNCTION(ncclMemFree, (void *ptr), ringo_free(&thread, (uintptr_t)ptr))

// The texts are short and stay, as NCCL's: programs print ncclGetLastError beside them.
const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
	    "no error",
	    "unhandled cuda error (ncclGetLastError or NCCL_DEBUG=WARN says which)",
	    "unhandled system error (ncclGetLastError or NCCL_DEBUG=WARN says which)",
	    "internal error (ncclGetLastError or NCCL_DEBUG=WARN says which)",
	    "invalid argument (ncclGetLastError or NCCL_DEBUG=WARN says which)",
	    "invalid usage (ncclGetLastError or NCCL_DEBUG=WARN says what is wrong)",
	    "remote process exited or there was a network error (ncclGetLastError or NCCL_DEBUG=WARN says which)",
	    "NCCL operation in progress",
	};
	return (unsigned)result < sizeof texts / sizeof *texts ? texts[result] : "unknown result code";
}
TWIN(ncclGetErrorString)

const char *ncclGetLastError(const ncclComm_t comm)
{
	if (!thread.failed && !__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		return "";
	if (!thread.failed && library_ready())
		ringo_last_error(&thread, (uintptr_t)comm);
	return thread_error();
}
TWIN(ncclGetLastError)

void ncclResetDebugInit(void) {}
TWIN(ncclResetDebugInit)
void ncclResetDebugInitInternal(void) {}

// Communicators
static void at_exit(void)
{
	static char bytes[64 << 10];
	stack_t stack;
	if (forked)
		return;
	// Python's faulthandler, which pytest uses, takes this thread's stack for signals away when it ends. Go ends a
	// process for a signal on a thread that has none.
	if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_DISABLE) {
		stack = (stack_t){.ss_sp = bytes, .ss_size = sizeof bytes};
		sigaltstack(&stack, NULL);
	}
	ringo_exit();
}

static void ask(void) { atexit(at_exit); }

// begins registers at_exit, which tells other ranks that this process leaves. It is called when the first
// communicator begins, after the CUDA driver was loaded, so that at_exit runs before the driver's end.
static void begins(void)
{
	static pthread_once_t asked = PTHREAD_ONCE_INIT;
	pthread_once(&asked, ask);
}

FUNCTION(ncclSetEncryption, (const ncclEncryptionConfig_t *config),
	 config && (config->magic != NCCL_API_MAGIC || config->size < sizeof *config)
	     ? ringo_wrong(&thread, (char *)"ncclSetEncryption: begin with NCCL_ENCRYPTION_CONFIG_INITIALIZER")
	     : ringo_encrypt(&thread, config ? config->mode : NCCL_ENCRYPTION_MODE_NONE, config ? (char *)config->psk : NULL))
FUNCTION(ncclGetUniqueId, (ncclUniqueId * id), ringo_unique_id(&thread, id))
FUNCTION(ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank),
	 (begins(), ringo_init_rank(&thread, (uintptr_t *)comm, nranks, rank, 1, &id, 0)))
FUNCTION(ncclCommInitRankConfig, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config),
	 (begins(), ringo_init_rank(&thread, (uintptr_t *)comm, nranks, rank, 1, &id, (uintptr_t)config)))
FUNCTION(ncclCommInitRankScalable, (ncclComm_t * comm, int nranks, int rank, int nId, ncclUniqueId *ids, ncclConfig_t *config),
	 (begins(), ringo_init_rank(&thread, (uintptr_t *)comm, nranks, rank, nId, ids, (uintptr_t)config)))
FUNCTION(ncclCommInitAll, (ncclComm_t * comms, int ndev, const int *devlist), (begins(), ringo_init_all(&thread, (uintptr_t *)comms, ndev, (int *)devlist)))
FUNCTION(ncclCommFinalize, (ncclComm_t comm), ringo_finalize(&thread, (uintptr_t)comm))
FUNCTION(ncclCommDestroy, (ncclComm_t comm), ringo_destroy(&thread, (uintptr_t)comm))
FUNCTION(ncclCommAbort, (ncclComm_t comm), ringo_abort(&thread, (uintptr_t)comm))
FUNCTION(ncclCommRevoke, (ncclComm_t comm, int flags), ringo_revoke(&thread, (uintptr_t)comm, flags))
FUNCTION(ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config),
	 ringo_split(&thread, (uintptr_t)comm, color, key, (uintptr_t *)newcomm, (uintptr_t)config))
FUNCTION(ncclCommShrink, (ncclComm_t comm, int *exclude, int count, ncclComm_t *newcomm, ncclConfig_t *config, int flags),
	 ringo_shrink(&thread, (uintptr_t)comm, exclude, count, (uintptr_t *)newcomm, (uintptr_t)config, flags))
FUNCTION(ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id), ringo_grow_id(&thread, (uintptr_t)comm, id))
FUNCTION(ncclCommGrow, (ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm, ncclConfig_t *config),
	 (begins(), ringo_grow(&thread, (uintptr_t)comm, nranks, (ncclUniqueId *)id, rank, (uintptr_t *)newcomm, (uintptr_t)config)))
FUNCTION(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error), ringo_async_error(&thread, (uintptr_t)comm, (int *)error))
FUNCTION(ncclCommCount, (const ncclComm_t comm, int *count), ringo_count(&thread, (uintptr_t)comm, count))
FUNCTION(ncclCommCuDevice, (const ncclComm_t comm, int *device), ringo_device(&thread, (uintptr_t)comm, device))
FUNCTION(ncclCommUserRank, (const ncclComm_t comm, int *rank), ringo_rank(&thread, (uintptr_t)comm, rank))
FUNCTION(ncclCommSuspend, (ncclComm_t comm, int flags), ringo_suspend(&thread, (uintptr_t)comm, flags))
FUNCTION(ncclCommResume, (ncclComm_t comm), ringo_resume(&thread, (uintptr_t)comm))
FUNCTION(ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value), ringo_mem_stats(&thread, (uintptr_t)comm, (int)stat, value))

// Memory
FUNCTION(ncclCommRegister, (const ncclComm_t comm, void *buff, size_t size, void **handle),
	 ringo_register(&thread, (uintptr_t)comm, (uintptr_t)buff, (uintptr_t *)handle))
FUNCTION(ncclCommDeregister, (const ncclComm_t comm, void *handle), ringo_deregister(&thread, (uintptr_t)comm, (uintptr_t)handle))
FUNCTION(ncclCommWindowRegister, (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags),
	 ringo_window_register(&thread, (uintptr_t)comm, (uintptr_t)buff, size, (uintptr_t *)win, flags))
FUNCTION(ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win), win ? ringo_deregister(&thread, (uintptr_t)comm, (uintptr_t)win) : ncclSuccess)
FUNCTION(ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void **ptr),
	 ringo_window_at(&thread, (uintptr_t)comm, (uintptr_t)win, (uintptr_t *)ptr))

// Operators
FUNCTION(ncclRedOpCreatePreMulSum, (ncclRedOp_t * op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm),
	 ringo_pre_mul_sum(&thread, (int *)op, (uintptr_t)scalar, type, residence, (uintptr_t)comm))
FUNCTION(ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), ringo_op_destroy(&thread, op, (uintptr_t)comm))

// COLLECTIVE defines a collective or a message, and if it has one its variant with hints.
#define COLLECTIVE(name, arguments, kind, send, recv, count, op, peer)                              \
	FUNCTION(name, arguments,                                                                   \
		 ringo_do(&thread, kind, (uintptr_t)(send), (uintptr_t)(recv), count, type, op, peer, \
			  (uintptr_t)comm, (uintptr_t)stream))
#define COLLECTIVES(name, list, kind, send, recv, count, op, peer)                   \
	COLLECTIVE(name, (list), kind, send, recv, count, op, peer)                  \
	COLLECTIVE(name##Config, (list, const ncclCollConfig_t *config), kind, send, recv, count, op, peer)
#define LIST(...) __VA_ARGS__
#define END ncclComm_t comm, cudaStream_t stream

// ringo_norm.h
#define NORM(name, kind)                                                                                                            \
	ncclResult_t name(const ringo_norm *norm, END)                                                                              \
	{                                                                                                                           \
		if (!library_ready())                                                                                               \
			return ncclInvalidUsage;                                                                                    \
		return (ncclResult_t)go_norm(&thread, kind, (ringo_norm *)norm, (uintptr_t)comm, (uintptr_t)stream);                \
	}
NORM(ringo_all_reduce_norm, RINGO_ALL_REDUCE)
NORM(ringo_reduce_scatter_norm, RINGO_REDUCE_SCATTER)

COLLECTIVES(ncclAllReduce, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, END), RINGO_ALL_REDUCE, send, recv, count, op, 0)
COLLECTIVES(ncclReduce, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, END), RINGO_REDUCE, send, recv, count, op, root)
COLLECTIVES(ncclBroadcast, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, int root, END), RINGO_BROADCAST, send, recv, count, 0, root)
COLLECTIVE(ncclBcast, (void *buff, size_t count, ncclDataType_t type, int root, END), RINGO_BROADCAST, buff, buff, count, 0, root)
COLLECTIVES(ncclAllGather, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, END), RINGO_ALL_GATHER, send, recv, count, 0, 0)
COLLECTIVES(ncclReduceScatter, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, END), RINGO_REDUCE_SCATTER, send, recv, count, op, 0)
COLLECTIVES(ncclAlltoAll, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, END), RINGO_ALLTOALL, send, recv, count, 0, 0)
COLLECTIVES(ncclGather, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, int root, END), RINGO_GATHER, send, recv, count, 0, root)
COLLECTIVES(ncclScatter, LIST(const void *send, void *recv, size_t count, ncclDataType_t type, int root, END), RINGO_SCATTER, send, recv, count, 0, root)
COLLECTIVE(ncclSend, (const void *send, size_t count, ncclDataType_t type, int peer, END), RINGO_SEND, send, NULL, count, 0, peer)
COLLECTIVE(ncclRecv, (void *recv, size_t count, ncclDataType_t type, int peer, END), RINGO_RECV, NULL, recv, count, 0, peer)

// Groups
// Those within others are counted here, for each call of the Go half takes 0.1 µs.
static int begins_within(void)
{
	if (thread.depth++ == 0)
		return 0;
	thread.failed = 0;
	return 1;
}
static int ends_within(void)
{
	if (thread.depth <= 1)
		return 0;
	thread.depth--, thread.failed = 0;
	return 1;
}
static int ended(int result)
{
	thread.depth = thread.group != 0; // one that is open still was ended wrongly
	return result;
}
FUNCTION(ncclGroupStart, (void), begins_within() ? 0 : ringo_group_start(&thread))
FUNCTION(ncclGroupEnd, (void), ends_within() ? 0 : ended(ringo_group_end(&thread)))
FUNCTION(ncclGroupSimulateEnd, (ncclSimInfo_t * info), ends_within() ? 0 : ended(ringo_group_simulate_end(&thread, (uintptr_t)info)))

// One-sided messages
FUNCTION(ncclPutSignal, (const void *local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream),
	 ringo_put(&thread, &(put){(uintptr_t)local, count, type, peer, (uintptr_t)win, offset, signal, context, flags, 1, (uintptr_t)stream}, (uintptr_t)comm))
FUNCTION(ncclSignal, (int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream),
	 ringo_put(&thread, &(put){.peer = peer, .signal = signal, .context = context, .flags = flags, .stream = (uintptr_t)stream}, (uintptr_t)comm))
FUNCTION(ncclWaitSignal, (int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm, cudaStream_t stream),
	 ringo_wait(&thread, count, signals, (uintptr_t)comm, (uintptr_t)stream))

// Parameters. A handle is the number of a parameter plus one, so that none is null.
#define INTEGER(name, type, bits, sign) \
	FUNCTION(name, (ncclParamHandle_t h, type *out), ringo_param_int(&thread, (uintptr_t)h, bits, sign, (uintptr_t)out))
FUNCTION(ncclParamBind, (ncclParamHandle_t * out, const char *key), ringo_param_bind(&thread, (uintptr_t *)out, (char *)key))
INTEGER(ncclParamGetI8, int8_t, 8, 1)
INTEGER(ncclParamGetI16, int16_t, 16, 1)
INTEGER(ncclParamGetI32, int32_t, 32, 1)
INTEGER(ncclParamGetI64, int64_t, 64, 1)
INTEGER(ncclParamGetU8, uint8_t, 8, 0)
INTEGER(ncclParamGetU16, uint16_t, 16, 0)
INTEGER(ncclParamGetU32, uint32_t, 32, 0)
INTEGER(ncclParamGetU64, uint64_t, 64, 0)
FUNCTION(ncclParamGetStr, (ncclParamHandle_t h, const char **out), ringo_param_text(&thread, (uintptr_t)h, NULL, (char **)out, NULL))
FUNCTION(ncclParamGetParameter, (const char *key, const char **value, int *length), ringo_param_text(&thread, 0, (char *)key, (char **)value, length))
FUNCTION(ncclParamGetAllParameterKeys, (const char ***keys, int *count), ringo_param_keys(&thread, (char ***)keys, count))

ncclResult_t ncclParamGet(ncclParamHandle_t h, void *out, int most, int *length)
{
	const char *text;
	int n;
	ncclResult_t r = ncclParamGetStr(h, &text);
	if (r != ncclSuccess)
		return r;
	n = (int)strlen(text) + 1;
	if (!out || most < n)
		return (ncclResult_t)ringo_wrong(&thread, (char *)"ncclParamGet: the value does not fit");
	memcpy(out, text, n);
	if (length)
		*length = n;
	return ncclSuccess;
}
TWIN(ncclParamGet)

void ncclParamDumpAll(void)
{
	const char **keys, *value;
	int count, length;
	if (ncclParamGetAllParameterKeys(&keys, &count) == ncclSuccess)
		for (int i = 0; i < count; i++)
			if (ncclParamGetParameter(keys[i], &value, &length) == ncclSuccess)
				printf("%s=%s\n", keys[i], value);
}
TWIN(ncclParamDumpAll)

// For programs whose kernels communicate themselves.
// A team is numbers only. There are three: all ranks; the ranks that have access to each other's windows, which are
// all or each alone; and the ranks with the same number in those.
static ncclTeam_t team(ncclComm_t comm, int lsa)
{
	ncclTeam_t t = {0, 0, 1};
	int kernels;
	if (!library_ready())
		return t;
	if (lsa)
		ringo_reach(&thread, (uintptr_t)comm, &t.nRanks, &t.rank, &kernels);
	else if (!ringo_count(&thread, (uintptr_t)comm, &t.nRanks))
		ringo_rank(&thread, (uintptr_t)comm, &t.rank);
	return t;
}
ncclTeam_t ncclTeamWorld(ncclComm_t comm) { return team(comm, 0); }
TWIN(ncclTeamWorld)
ncclTeam_t ncclTeamLsa(ncclComm_t comm) { return team(comm, 1); }
TWIN(ncclTeamLsa)
ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
	ncclTeam_t world = team(comm, 0), lsa = team(comm, 1);
	if (lsa.nRanks > 1) {
		world.nRanks /= lsa.nRanks;
		world.rank /= lsa.nRanks;
		world.stride = lsa.nRanks;
	}
	return world;
}
TWIN(ncclTeamRail)
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t t, int rank) { return team(comm, 0).rank + (rank - t.rank) * t.stride; }
TWIN(ncclTeamRankToWorld)
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t t, int rank) { return team(comm, 1).rank + (rank - t.rank) * t.stride; }
TWIN(ncclTeamRankToLsa)
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties)
{
	ncclCommProperties_t p = {0};
	ncclResult_t r;
	if (!library_ready())
		return ncclInvalidUsage;
	if (!properties || properties->magic != NCCL_API_MAGIC || properties->size < offsetof(ncclCommProperties_t, rank))
		return (ncclResult_t)ringo_wrong(&thread, (char *)"ncclCommQueryProperties: begin with NCCL_COMM_PROPERTIES_INITIALIZER");
	if ((r = ncclCommCount(comm, &p.nRanks)) || (r = ncclCommUserRank(comm, &p.rank)) || (r = ncclCommCuDevice(comm, &p.cudaDev)))
		return r;
	p.nvmlDev = p.cudaDev;
	ncclTeam_t lsa;
	int kernels;
	if ((r = (ncclResult_t)ringo_reach(&thread, (uintptr_t)comm, &lsa.nRanks, &lsa.rank, &kernels)))
		return r;
	p.nLsaTeams = p.nRanks / lsa.nRanks;
	p.deviceApiSupport = kernels;
	p.hostRmaSupport = p.nRanks > 1 && lsa.nRanks == p.nRanks; // a lone rank's windows have no effect
	p.size = properties->size < sizeof p ? properties->size : sizeof p;
	memcpy((char *)properties + offsetof(ncclCommProperties_t, rank), (char *)&p + offsetof(ncclCommProperties_t, rank),
	       p.size - offsetof(ncclCommProperties_t, rank));
	return ncclSuccess;
}
TWIN(ncclCommQueryProperties)
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out)
{
	const char *why = "ncclDevCommCreate: the requirements or the device communicator are null";
	int ranks, rank;
	ncclResult_t r;
	if (!library_ready())
		return ncclInvalidUsage;
	if ((r = ncclCommCount(comm, &ranks)) || (r = ncclCommUserRank(comm, &rank)))
		return r;
	unsigned version;
	size_t bytes = requirements && out ? plan(requirements, ranks, rank, out, &version, &why) : 0;
	if (!bytes)
		return (ncclResult_t)ringo_wrong(&thread, (char *)why);
	return (ncclResult_t)ringo_resource(&thread, (uintptr_t)comm, bytes, (uintptr_t)out, version);
}
TWIN(ncclDevCommCreate)
FUNCTION(ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t *devComm),
	 devComm ? ringo_end_resource(&thread, (uintptr_t)comm, window_of(devComm))
		 : ringo_wrong(&thread, (char *)"ncclDevCommDestroy: the device communicator is null"))
FUNCTION(ncclGetLsaDevicePointer, (ncclWindow_t win, size_t offset, int rank, void **out), ringo_peer_address(&thread, (uintptr_t)win, offset, rank, 1, (uintptr_t *)out))
FUNCTION(ncclGetLsaMultimemDevicePointer, (ncclWindow_t win, size_t offset, void **out), ringo_multimem(&thread, (uintptr_t)win, offset, (uintptr_t *)out))
FUNCTION(ncclGetMultimemDevicePointer, (ncclWindow_t win, size_t offset, ncclMultimemHandle_t multimem, void **out),
	 multimem.base ? ringo_multimem(&thread, (uintptr_t)win, offset, (uintptr_t *)out)
		       : ringo_wrong(&thread, (char *)"ncclGetMultimemDevicePointer: the multimem handle is empty"))
FUNCTION(ncclGetPeerDevicePointer, (ncclWindow_t win, size_t offset, int peer, void **out), ringo_peer_address(&thread, (uintptr_t)win, offset, peer, 0, (uintptr_t *)out))
// REQUIREMENT defines a function that fills in a requirement of kernels, after a check of its arguments.
#define REQUIREMENT(name, arguments, well, call)                                                                  \
	FUNCTION(name, arguments,                                                                                 \
		 handle && out && (well) ? (call, 0) : ringo_wrong(&thread, (char *)#name ": an argument is null or negative"))
REQUIREMENT(ncclLsaBarrierCreateRequirement, (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out),
	    team.nRanks > 0 && barriers >= 0, want_lsa_barriers(team.nRanks, barriers, handle, out))
REQUIREMENT(ncclGinBarrierCreateRequirement, (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out),
	    ((void)comm, (void)team, barriers >= 0), want_gin_barriers(barriers, handle, out))
REQUIREMENT(ncclLLA2ACreateRequirement, (int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out),
	    blocks >= 0 && slots >= 0, want_ll(blocks, slots, handle, out))
// NOFABRIC defines a function of NCCL's compute fabric, which no communicator has here.
#define NOFABRIC(name, arguments) FUNCTION(name, arguments, ringo_wrong(&thread, (char *)#name ": the communicator has no compute fabric"))
NOFABRIC(ncclCftBarrierCreateRequirement, (ncclTeam_t team, int barriers, ncclCftBarrierHandle_t *handle, ncclDevResourceRequirements_t *out))
NOFABRIC(ncclGetPeerDeviceLeInfo, (ncclWindow_t win, size_t offset, int peer, uint32_t *endpoint, size_t *at))
NOFABRIC(ncclGetCftDeviceLeInfo, (ncclWindow_t win, size_t offset, int peer, ncclTeam_t team, uint32_t *endpoint, size_t *at))
NOFABRIC(ncclGetMultimemDeviceLeInfo, (ncclWindow_t win, size_t offset, uint32_t *endpoint, size_t *at))
ncclTeam_t ncclTeamCft(ncclComm_t comm, int mode) { return (void)comm, (void)mode, (ncclTeam_t){0, 0, 1}; }
TWIN(ncclTeamCft)
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm) { return (void)comm, (ncclTeam_t){0, 0, 1}; }
TWIN(ncclTeamCftMultimem)
REFUSED(ncclGinOutboxCreateRequirement, (int blocks, int log2Size, ncclGinOutboxHandle_t *handle, ncclDevResourceRequirements_t *out))
REFUSED(ncclGinInboxA2ACreateRequirement, (ncclTeam_t peers, int blocks, int log2Size, ncclGinInboxA2AHandle_t *handle, ncclDevResourceRequirements_t *out))
int ncclLLA2ACalcSlots(int elements, int elementSize) { return elements * ((elementSize + 7) / 8); }
TWIN(ncclLLA2ACalcSlots)
