/* nccl.h declares what libnccl.so.2 of Ringo answers to: the interface of NCCL 2.28.9, and
 * the functions that later versions up to 2.32 have added. Programs that were compiled with
 * NVIDIA's header of one of these versions need no new compilation.
 *
 * Streams and buffers are CUDA's. With RINGO_HOST=1 in the environment buffers are host
 * memory, a stream may be any value, and a call has been carried out when it returns. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__CUDA__) || defined(__CUDACC__) /* programs that are compiled as CUDA expect its types of this header */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclNumResults = 8
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

/* Values from ncclNumOps on are operators that a communicator has made. */
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/* Where a scalar is: in the memory of a device, read when the operation runs, or in host
 * memory, read when the operator is made. */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_SIM_MAGIC 0x74685283

#define NCCL_WIN_DEFAULT 0
#define NCCL_WIN_COLL_SYMMETRIC 1
#define NCCL_WIN_STRICT_ORDERING 2
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0
#define NCCL_CTA_POLICY_EFFICIENCY 1
#define NCCL_CTA_POLICY_ZERO 2

#define NCCL_SHRINK_DEFAULT 0
#define NCCL_SHRINK_ABORT 1
#define NCCL_REVOKE_DEFAULT 0
#define NCCL_SUSPEND_MEM 1

/* How a communicator is made. Versions of NCCL add fields at the end, and size says how many
 * there are. Of those, blocking, minCTAs, maxCTAs, CTAPolicy and netName have an effect here. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                             \
	{                                                                                                   \
		sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT,             \
		    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                    \
		    NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                    \
		    NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                    \
		    NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                    \
		    NCCL_CONFIG_UNDEF_INT                                                                   \
	}

/* What ncclGroupSimulateEnd answers: how long the group would take, in microseconds. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                                           \
	{                                                                                                   \
		sizeof(ncclSimInfo_t), NCCL_SIM_MAGIC, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT                  \
	}

typedef enum {
	ncclStatGpuMemSuspend = 0,
	ncclStatGpuMemSuspended = 1,
	ncclStatGpuMemPersist = 2,
	ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
	int opCnt;
	int peer;
	int sigIdx;
	int ctx;
} ncclWaitSignalDesc_t;

/* Every function has a twin with the prefix pnccl, for tools that stand between a program
 * and the library. */
#define NCCL_FUNCTION(result, name, arguments) \
	result name arguments;                 \
	result p##name arguments;

/* The library */
NCCL_FUNCTION(ncclResult_t, ncclGetVersion, (int *version))
/* ncclGetErrorString is a few words for each result. The sentence with rank and remedy is ncclGetLastError's. */
NCCL_FUNCTION(const char *, ncclGetErrorString, (ncclResult_t result))
NCCL_FUNCTION(const char *, ncclGetLastError, (const ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclMemAlloc, (void **ptr, size_t size))
NCCL_FUNCTION(ncclResult_t, ncclMemFree, (void *ptr))
NCCL_FUNCTION(void, ncclResetDebugInit, (void))

/* Encryption of what goes over TCP, which the library does by TLS 1.3: for all communicators that are made afterwards, by a
 * key of 32 bytes or more that all processes give before they call anything else. Networks that carry data in clear are not
 * used then. NULL and NCCL_ENCRYPTION_MODE_NONE end it. */
enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 };
typedef struct ncclEncryptionConfig {
	size_t size;
	unsigned int magic, version;
	int mode;
	const char *psk;
} ncclEncryptionConfig_t;
#define NCCL_ENCRYPTION_CONFIG_INITIALIZER \
	{ \
		sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_ENCRYPTION_MODE_NONE, NULL \
	}
NCCL_FUNCTION(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t *config))

/* Communicators */
NCCL_FUNCTION(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id))
NCCL_FUNCTION(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank))
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankConfig, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclCommInitRankScalable, (ncclComm_t * comm, int nranks, int rank, int nId, ncclUniqueId *ids, ncclConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclCommInitAll, (ncclComm_t * comms, int ndev, const int *devlist))
NCCL_FUNCTION(ncclResult_t, ncclCommFinalize, (ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclCommDestroy, (ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclCommAbort, (ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int flags))
NCCL_FUNCTION(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclCommShrink, (ncclComm_t comm, int *exclude, int count, ncclComm_t *newcomm, ncclConfig_t *config, int flags))
NCCL_FUNCTION(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id))
NCCL_FUNCTION(ncclResult_t, ncclCommGrow, (ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm, ncclConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error))
NCCL_FUNCTION(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int *count))
NCCL_FUNCTION(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int *device))
NCCL_FUNCTION(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int *rank))
/* Suspend gives back the GPU memory of scratch and of queues between GPUs, most of what a communicator has;
 * ncclStatGpuMemSuspend says how much. All ranks call both, in a group where one thread has several. */
NCCL_FUNCTION(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags))
NCCL_FUNCTION(ncclResult_t, ncclCommResume, (ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value))

/*
 * Memory that collectives use where it is. ncclCommWindowDeregister is for one rank alone and does not wait:
 * the window is closed by the next ncclCommWindowRegister after all ranks have deregistered it, or with the
 * communicator. Free its memory only then; ncclMemFree waits for that itself.
 */
NCCL_FUNCTION(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void *buff, size_t size, void **handle))
NCCL_FUNCTION(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void *handle))
NCCL_FUNCTION(ncclResult_t, ncclCommWindowRegister, (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags))
NCCL_FUNCTION(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win))
NCCL_FUNCTION(ncclResult_t, ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void **ptr))

/* Operators */
NCCL_FUNCTION(ncclResult_t, ncclRedOpCreatePreMulSum, (ncclRedOp_t * op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))

/* Collectives */
NCCL_FUNCTION(ncclResult_t, ncclReduce, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclBcast, (void *buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclBroadcast, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclAllReduce, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclReduceScatter, (const void *send, void *recv, size_t recvcount, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclAllGather, (const void *send, void *recv, size_t sendcount, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclAlltoAll, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclGather, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclScatter, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclSend, (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclRecv, (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream))

/* Groups */
NCCL_FUNCTION(ncclResult_t, ncclGroupStart, (void))
NCCL_FUNCTION(ncclResult_t, ncclGroupEnd, (void))
NCCL_FUNCTION(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * info))

/*
 * One-sided messages into windows of ncclCommWindowRegister. A put signals when its data is there; each signal
 * is waited for once, in the order of its sender. signal, context and flags have to be 0. In a group the waits
 * come last. The communicator's operations follow each other, so do not queue a wait ahead of a put that
 * the peer needs first. GPUs have to reach each other's memory. On host memory ncclWaitSignal waits itself.
 */
NCCL_FUNCTION(ncclResult_t, ncclPutSignal, (const void *local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclSignal, (int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ncclResult_t, ncclWaitSignal, (int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm, cudaStream_t stream))

/* Parameters */
NCCL_FUNCTION(ncclResult_t, ncclParamBind, (ncclParamHandle_t * out, const char *key))
NCCL_FUNCTION(ncclResult_t, ncclParamGetI8, (ncclParamHandle_t h, int8_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetI16, (ncclParamHandle_t h, int16_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetI32, (ncclParamHandle_t h, int32_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetI64, (ncclParamHandle_t h, int64_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetU8, (ncclParamHandle_t h, uint8_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetU16, (ncclParamHandle_t h, uint16_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetU32, (ncclParamHandle_t h, uint32_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetU64, (ncclParamHandle_t h, uint64_t *out))
NCCL_FUNCTION(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t h, const char **out))
NCCL_FUNCTION(ncclResult_t, ncclParamGet, (ncclParamHandle_t h, void *out, int most, int *length))
NCCL_FUNCTION(ncclResult_t, ncclParamGetParameter, (const char *key, const char **value, int *length))
NCCL_FUNCTION(ncclResult_t, ncclParamGetAllParameterKeys, (const char ***keys, int *count))
NCCL_FUNCTION(void, ncclParamDumpAll, (void))

/* What follows is NCCL's interface for kernels that communicate themselves, as of NCCL 2.28.9. Where all GPUs
 * reach each other's memory, a window of ncclMemAlloc's memory is the address of an ncclWindow_vidmem for
 * kernels, and ncclDevCommCreate gives an ncclDevComm, with barriers of ranks. There is no multicast
 * and nothing for networks. ncclCommQueryProperties, which is of a newer version, says that there is
 * nothing: newer ones lay the structs out otherwise. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int rank;
	int nRanks;
	int cudaDev;
	int nvmlDev;
	unsigned char deviceApiSupport; /* a bool, as is the next */
	unsigned char multimemSupport;
	int ginType;
	int nLsaTeams;
	unsigned char hostRmaSupport;
	int railedGinType;
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                            \
	{                                                                           \
		sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

typedef struct ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;
typedef struct ncclMultimemHandle {
	void *base;
} ncclMultimemHandle_t;
typedef struct ncclTeam {
	int nRanks, rank, stride;
} ncclTeam_t;
typedef uint32_t ncclDevResourceHandle_t; /* a place in the resource window, in units of 128 bytes */
typedef struct ncclLsaBarrierHandle {
	ncclDevResourceHandle_t bufHandle;
	int nBarriers;
} ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle {
	uint32_t signal0;
	ncclDevResourceHandle_t bufHandle;
} ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle {
	ncclDevResourceHandle_t bufHandle;
	uint32_t nSlots;
} ncclLLA2AHandle_t;

/* A window for kernels: offset o of rank r's part is at lsaFlatBase + r * stride4G * 2^32 + o. */
struct ncclWindow_vidmem {
	void *winHost;
	char *lsaFlatBase;
	int lsaRank, worldRank;
	uint32_t stride4G, mcOffset4K, ginOffset4K;
	void *ginWins[4];
};

/* What a program wants of a device communicator. The lists end with NULL. */
typedef struct ncclDevResourceRequirements {
	struct ncclDevResourceRequirements *next;
	size_t bufferSize, bufferAlign;
	ncclDevResourceHandle_t *outBufferHandle; /* is set by ncclDevCommCreate, unless NULL */
	int ginSignalCount, ginCounterCount;
	uint32_t *outGinSignalStart, *outGinCounterStart;
} ncclDevResourceRequirements_t;
typedef struct ncclTeamRequirements {
	struct ncclTeamRequirements *next;
	ncclTeam_t team;
	unsigned char multimem; /* a bool, as lsaMultimem and ginForceEnable */
	ncclMultimemHandle_t *outMultimemHandle;
} ncclTeamRequirements_t;
typedef struct ncclDevCommRequirements {
	ncclDevResourceRequirements_t *resourceRequirementsList;
	ncclTeamRequirements_t *teamRequirementsList;
	unsigned char lsaMultimem;
	int barrierCount, lsaBarrierCount, railGinBarrierCount;
	int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
	unsigned char ginForceEnable;
	int ginContextCount, ginSignalCount, ginCounterCount;
} ncclDevCommRequirements_t;

/* A device communicator, which kernels have as a parameter. */
typedef struct ncclDevComm {
	int rank, nRanks;
	uint32_t nRanks_rcp32;
	int lsaRank, lsaSize;
	uint32_t lsaSize_rcp32;
	void *windowTable; /* 32 times address, length and ncclWindow_t, and where the next is */
	ncclWindow_t resourceWindow;
	struct ncclWindow_vidmem resourceWindow_inlined;
	ncclMultimemHandle_t lsaMultimem;
	ncclLsaBarrierHandle_t lsaBarrier;
	ncclGinBarrierHandle_t railGinBarrier;
	uint8_t ginContextCount, ginTypes[4];
	void *ginHandles[4];
	uint32_t ginSignalBase;
	int ginSignalCount;
	uint32_t ginCounterBase;
	int ginCounterCount;
	uint64_t *ginSignalShadows;
} ncclDevComm_t;

NCCL_FUNCTION(ncclTeam_t, ncclTeamWorld, (ncclComm_t comm))
NCCL_FUNCTION(ncclTeam_t, ncclTeamLsa, (ncclComm_t comm))
NCCL_FUNCTION(ncclTeam_t, ncclTeamRail, (ncclComm_t comm))
NCCL_FUNCTION(int, ncclTeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank))
NCCL_FUNCTION(int, ncclTeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank))
NCCL_FUNCTION(ncclResult_t, ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t *properties))
NCCL_FUNCTION(ncclResult_t, ncclDevCommCreate, (ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out))
NCCL_FUNCTION(ncclResult_t, ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t *devComm))
NCCL_FUNCTION(ncclResult_t, ncclGetLsaDevicePointer, (ncclWindow_t win, size_t offset, int rank, void **out))
NCCL_FUNCTION(ncclResult_t, ncclGetLsaMultimemDevicePointer, (ncclWindow_t win, size_t offset, void **out))
NCCL_FUNCTION(ncclResult_t, ncclGetMultimemDevicePointer, (ncclWindow_t win, size_t offset, ncclMultimemHandle_t multimem, void **out))
NCCL_FUNCTION(ncclResult_t, ncclGetPeerDevicePointer, (ncclWindow_t win, size_t offset, int peer, void **out))
NCCL_FUNCTION(ncclResult_t, ncclLsaBarrierCreateRequirement, (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out))
NCCL_FUNCTION(ncclResult_t, ncclGinBarrierCreateRequirement, (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out))
NCCL_FUNCTION(ncclResult_t, ncclGinOutboxCreateRequirement, (int blocks, int log2Size, ncclGinOutboxHandle_t *handle, ncclDevResourceRequirements_t *out))
NCCL_FUNCTION(ncclResult_t, ncclGinInboxA2ACreateRequirement, (ncclTeam_t peers, int blocks, int log2Size, ncclGinInboxA2AHandle_t *handle, ncclDevResourceRequirements_t *out))
/* Of the compute fabric, which there is not: empty teams, and ncclInvalidArgument. */
typedef struct ncclCftBarrierHandle ncclCftBarrierHandle_t;
NCCL_FUNCTION(ncclTeam_t, ncclTeamCft, (ncclComm_t comm, int mode))
NCCL_FUNCTION(ncclTeam_t, ncclTeamCftMultimem, (ncclComm_t comm))
NCCL_FUNCTION(ncclResult_t, ncclCftBarrierCreateRequirement, (ncclTeam_t team, int barriers, ncclCftBarrierHandle_t *handle, ncclDevResourceRequirements_t *out))
NCCL_FUNCTION(ncclResult_t, ncclGetPeerDeviceLeInfo, (ncclWindow_t win, size_t offset, int peer, uint32_t *endpoint, size_t *at))
NCCL_FUNCTION(ncclResult_t, ncclGetCftDeviceLeInfo, (ncclWindow_t win, size_t offset, int peer, ncclTeam_t team, uint32_t *endpoint, size_t *at))
NCCL_FUNCTION(ncclResult_t, ncclGetMultimemDeviceLeInfo, (ncclWindow_t win, size_t offset, uint32_t *endpoint, size_t *at))
NCCL_FUNCTION(int, ncclLLA2ACalcSlots, (int elements, int elementSize))
NCCL_FUNCTION(ncclResult_t, ncclLLA2ACreateRequirement, (int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out))

/* Collectives with hints for one call, which have no effect here */
typedef struct ncclCollConfig ncclCollConfig_t;
NCCL_FUNCTION(ncclResult_t, ncclAllReduceConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclBroadcastConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclReduceConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclAllGatherConfig, (const void *send, void *recv, size_t sendcount, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclReduceScatterConfig, (const void *send, void *recv, size_t recvcount, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclAlltoAllConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclGatherConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))
NCCL_FUNCTION(ncclResult_t, ncclScatterConfig, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config))

#ifdef __cplusplus
}
#endif

#endif
