//go:build linux

// Device communicators: structs that a program compiled with NCCL's headers passes to its kernels, which read the
// fields directly. nccl.h has the structs of 2.28.9; layouts describes those of later versions.
#include <stddef.h>
#include <string.h>

#include "devcomm.h"

// Sizes and offsets that such programs are compiled with.
#define SIZE(type, bytes) _Static_assert(sizeof(type) == bytes, #type);
#define AT(type, field, place) _Static_assert(offsetof(type, field) == place, #type "." #field);
SIZE(struct ncclDevComm, 200) AT(struct ncclDevComm, rank, 0) AT(struct ncclDevComm, nRanks, 4) AT(struct ncclDevComm, nRanks_rcp32, 8)
AT(struct ncclDevComm, lsaRank, 12) AT(struct ncclDevComm, lsaSize, 16) AT(struct ncclDevComm, lsaSize_rcp32, 20)
AT(struct ncclDevComm, windowTable, 24) AT(struct ncclDevComm, resourceWindow, 32) AT(struct ncclDevComm, resourceWindow_inlined, 40)
AT(struct ncclDevComm, lsaMultimem, 112) AT(struct ncclDevComm, lsaBarrier, 120) AT(struct ncclDevComm, railGinBarrier, 128)
AT(struct ncclDevComm, ginContextCount, 136) AT(struct ncclDevComm, ginTypes, 137) AT(struct ncclDevComm, ginHandles, 144)
AT(struct ncclDevComm, ginSignalBase, 176) AT(struct ncclDevComm, ginSignalCount, 180) AT(struct ncclDevComm, ginCounterBase, 184)
AT(struct ncclDevComm, ginCounterCount, 188) AT(struct ncclDevComm, ginSignalShadows, 192)
SIZE(struct ncclWindow_vidmem, 72) AT(struct ncclWindow_vidmem, winHost, 0) AT(struct ncclWindow_vidmem, lsaFlatBase, 8)
AT(struct ncclWindow_vidmem, lsaRank, 16) AT(struct ncclWindow_vidmem, worldRank, 20) AT(struct ncclWindow_vidmem, stride4G, 24)
AT(struct ncclWindow_vidmem, mcOffset4K, 28) AT(struct ncclWindow_vidmem, ginOffset4K, 32) AT(struct ncclWindow_vidmem, ginWins, 40)
SIZE(struct ncclDevCommRequirements, 56) AT(struct ncclDevCommRequirements, resourceRequirementsList, 0)
AT(struct ncclDevCommRequirements, teamRequirementsList, 8) AT(struct ncclDevCommRequirements, lsaMultimem, 16)
AT(struct ncclDevCommRequirements, barrierCount, 20) AT(struct ncclDevCommRequirements, lsaBarrierCount, 24)
AT(struct ncclDevCommRequirements, railGinBarrierCount, 28) AT(struct ncclDevCommRequirements, lsaLLA2ABlockCount, 32)
AT(struct ncclDevCommRequirements, lsaLLA2ASlotCount, 36) AT(struct ncclDevCommRequirements, ginForceEnable, 40)
AT(struct ncclDevCommRequirements, ginContextCount, 44) AT(struct ncclDevCommRequirements, ginSignalCount, 48)
AT(struct ncclDevCommRequirements, ginCounterCount, 52)
SIZE(struct ncclDevResourceRequirements, 56) AT(struct ncclDevResourceRequirements, next, 0) AT(struct ncclDevResourceRequirements, bufferSize, 8)
AT(struct ncclDevResourceRequirements, bufferAlign, 16) AT(struct ncclDevResourceRequirements, outBufferHandle, 24)
AT(struct ncclDevResourceRequirements, ginSignalCount, 32) AT(struct ncclDevResourceRequirements, ginCounterCount, 36)
AT(struct ncclDevResourceRequirements, outGinSignalStart, 40) AT(struct ncclDevResourceRequirements, outGinCounterStart, 48)
SIZE(struct ncclTeamRequirements, 32) AT(struct ncclTeamRequirements, next, 0) AT(struct ncclTeamRequirements, team, 8)
AT(struct ncclTeamRequirements, multimem, 20) AT(struct ncclTeamRequirements, outMultimemHandle, 24)
SIZE(struct ncclLsaBarrierHandle, 8) AT(struct ncclLsaBarrierHandle, bufHandle, 0) AT(struct ncclLsaBarrierHandle, nBarriers, 4)
SIZE(struct ncclGinBarrierHandle, 8) AT(struct ncclGinBarrierHandle, signal0, 0) AT(struct ncclGinBarrierHandle, bufHandle, 4)
SIZE(struct ncclLLA2AHandle, 8) AT(struct ncclLLA2AHandle, bufHandle, 0) AT(struct ncclLLA2AHandle, nSlots, 4)
SIZE(struct ncclMultimemHandle, 8)

enum { UNIT = 128, GIN_CONTEXTS = 4 };

// A layout has the offsets of the fields of an ncclDevComm that are not 0. Each layout begins with a magic number and a version, or
// with neither; then come the ranks, the table of windows and the resource window, as in 2.28.9.
static const struct layout {
	unsigned since; // version
	int bytes;
	int ranks;               // 8 behind a magic number and a version
	int inlined, whole;      // the resource window's record, and how many of its bytes; 0 for the two fields that kernels read
	int barriers;            // lsaBarrier, and behind it railGinBarrier
	int implies_gin;         // whether barrierCount and railGinBarrierCount want networks
} layouts[] = {
    {0, 200, 0, 40, 72, 120, 0},
    {22907, 224, 0, 40, 72, 120, 1},
    {23000, 240, 8, 48, 64, 128, 1},
    {23100, 248, 8, 48, 0, 80, 1},
};

// Requirements of later versions go on behind those of 2.28.9.
struct later {
	int ginConnectionType;      // 2.29.7
	unsigned char ginExclusiveContexts;
	int ginQueueDepth;
	int ginTrafficClass;        // 2.30
	int worldGinBarrierCount;
	unsigned char ginStrongSignalsRequired, ginVaSignalsRequired;
	int ginCustomStride;        // 2.31
	int ginType;
	unsigned char useRuntimeVersion;
	int cftCaps, cftBarrierCount;
};
SIZE(struct later, 44) AT(struct later, worldGinBarrierCount, 16) AT(struct later, useRuntimeVersion, 32) AT(struct later, cftBarrierCount, 40)

// A barrier has two counts of its own and one of multicast, and a box for each rank.
void want_lsa_barriers(int ranks, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out)
{
	*out = (ncclDevResourceRequirements_t){
	    .bufferSize = ((size_t)ranks + 3) * barriers * sizeof(uint32_t), .bufferAlign = sizeof(uint32_t), .outBufferHandle = &handle->bufHandle};
	handle->nBarriers = barriers;
}

void want_gin_barriers(int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out)
{
	*out = (ncclDevResourceRequirements_t){
	    .bufferSize = (size_t)barriers * GIN_CONTEXTS * sizeof(uint32_t),
	    .bufferAlign = sizeof(uint32_t),
	    .outBufferHandle = &handle->bufHandle,
	    .ginSignalCount = barriers,
	    .outGinSignalStart = &handle->signal0,
	};
}

// A block has an epoch and two sets of slots, of 16 bytes each.
void want_ll(int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out)
{
	*out = (ncclDevResourceRequirements_t){
	    .bufferSize = (1 + 2 * (size_t)slots) * blocks * 16, .bufferAlign = 16, .outBufferHandle = &handle->bufHandle};
	handle->nSlots = slots;
}

static int most(int a, int b) { return a > b ? a : b; }
static size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// reciprocal is the factor by which kernels multiply to divide by n: 2^32/n, rounded down.
static uint32_t reciprocal(uint32_t n) { return UINT32_MAX / n + !(n & (n - 1)); }

static const struct layout *layout_of(unsigned version)
{
	const struct layout *l = &layouts[sizeof layouts / sizeof *layouts - 1];
	while (l->since > version)
		l--;
	return l;
}

// refusal is why there is no device communicator for what a program wants, NULL if there is one.
static const char *refusal(const ncclDevCommRequirements_t *wanted, const struct later *later, int implies_gin)
{
	int multimem = wanted->lsaMultimem;
	for (ncclTeamRequirements_t *t = wanted->teamRequirementsList; t; t = t->next)
		multimem |= t->multimem;
	if (multimem)
		return "there is no multicast memory: set lsaMultimem and multimem to false";
	int gin = wanted->ginForceEnable || wanted->ginSignalCount || wanted->ginCounterCount || later->ginConnectionType || later->worldGinBarrierCount;
	for (ncclDevResourceRequirements_t *r = wanted->resourceRequirementsList; r; r = r->next) {
		gin |= r->ginCounterCount != 0;
		if (r->bufferAlign & (r->bufferAlign - 1))
			return "bufferAlign is no power of two";
	}
	if (gin)
		return "there is nothing for kernels that use networks: ask for no GIN";
	if (implies_gin && (wanted->barrierCount || wanted->railGinBarrierCount))
		return "barrierCount and railGinBarrierCount ask for GIN, and there is nothing for kernels that use networks: ask for lsaBarrierCount";
	if (later->cftCaps || later->cftBarrierCount)
		return "there is no compute fabric: set cftCaps and cftBarrierCount to 0";
	if (later->useRuntimeVersion)
		return "kernels are compiled by one version of NCCL's headers, and this library has none: set useRuntimeVersion to false";
	return NULL;
}

size_t plan(const ncclDevCommRequirements_t *wanted, int ranks, int rank, void *out, unsigned *version, const char **why)
{
	// Since 2.29 the requirements begin with their size, a magic number and a version. No address has that number.
	struct {
		size_t size;
		unsigned magic, version;
	} begin;
	struct later later = {0};
	memcpy(&begin, wanted, sizeof begin);
	*version = 0;
	if (begin.magic == NCCL_API_MAGIC) {
		const size_t known = sizeof begin + sizeof *wanted;
		*version = begin.version;
		wanted = (const ncclDevCommRequirements_t *)((const char *)wanted + sizeof begin);
		if (begin.size > known)
			memcpy(&later, wanted + 1, begin.size - known < sizeof later ? begin.size - known : sizeof later);
	}
	const struct layout *l = layout_of(*version);
	if ((*why = refusal(wanted, &later, l->implies_gin)))
		return 0;

	memset(out, 0, l->bytes);
	if (l->ranks)
		memcpy(out, (unsigned[]){NCCL_API_MAGIC, *version}, 8);
	uint32_t numbers[] = {rank, ranks, reciprocal(ranks), rank, ranks, reciprocal(ranks)};
	memcpy((char *)out + l->ranks, numbers, sizeof numbers);
	struct {
		ncclLsaBarrierHandle_t lsa;
		ncclGinBarrierHandle_t rail;
	} barriers;
	ncclDevResourceRequirements_t lsa, rail;
	want_lsa_barriers(ranks, most(0, most(wanted->barrierCount, wanted->lsaBarrierCount)), &barriers.lsa, &lsa);
	want_gin_barriers(most(0, most(wanted->barrierCount, wanted->railGinBarrierCount)), &barriers.rail, &rail);
	lsa.next = wanted->resourceRequirementsList;
	rail.next = &lsa;
	size_t bytes = 0;
	int signals = 0;
	for (ncclDevResourceRequirements_t *r = &rail; r; r = r->next) {
		bytes = up(bytes, r->bufferAlign > UNIT ? r->bufferAlign : UNIT);
		if (r->outBufferHandle)
			*r->outBufferHandle = bytes / UNIT;
		if (r->outGinSignalStart)
			*r->outGinSignalStart = signals;
		signals += r->ginSignalCount;
		bytes += r->bufferSize;
	}
	memcpy((char *)out + l->barriers, &barriers, sizeof barriers);
	return up(bytes ? bytes : 1, UNIT);
}

void complete(void *out, unsigned version, uintptr_t window, uintptr_t table, const void *record)
{
	const struct layout *l = layout_of(version);
	const struct ncclWindow_vidmem *r = record;
	char *at = (char *)out + l->inlined;
	memcpy(at - 16, (uintptr_t[]){table, window}, 16);
	if (l->whole) {
		memcpy(at, r, l->whole);
	} else {
		memcpy(at, &r->lsaFlatBase, 8);
		memcpy(at + 8, &r->stride4G, 8); // and mcOffset4K
	}
}

uintptr_t window_of(const void *devcomm)
{
	uintptr_t window;
	unsigned begin[2];
	memcpy(begin, devcomm, sizeof begin);
	memcpy(&window, (const char *)devcomm + (begin[0] == NCCL_API_MAGIC ? 40 : 32), sizeof window);
	return window;
}
