//go:build linux

// Device communicators: what programs that were compiled with the headers of NCCL 2.28.9 take into their
// kernels, which read these structs themselves.
#include <stddef.h>
#include <string.h>

#include "devcomm.h"

// What such programs rely on.
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

enum { UNIT = 128, GIN_CONTEXTS = 4, FIRST_OTHER_LAYOUT = 22907 };

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

// reciprocal is what kernels multiply by to divide by n: 2^32/n, rounded up where n is a power of two.
static uint32_t reciprocal(uint32_t n) { return UINT32_MAX / n + !(n & (n - 1)); }

size_t plan(const ncclDevCommRequirements_t *wanted, int ranks, int rank, ncclDevComm_t *out, const char **why)
{
	// Since 2.29 the requirements begin with their size, a magic number and a version. No address has that number.
	struct {
		size_t size;
		unsigned magic, version;
	} begin;
	memcpy(&begin, wanted, sizeof begin);
	if (begin.magic == NCCL_API_MAGIC) {
		if (begin.version >= FIRST_OTHER_LAYOUT)
			return *why = "the program was compiled with NCCL 2.29.7 or newer, whose kernels want other structs than 2.28.9's", 0;
		wanted = (const ncclDevCommRequirements_t *)((const char *)wanted + sizeof begin);
	}
	int multimem = wanted->lsaMultimem;
	for (ncclTeamRequirements_t *t = wanted->teamRequirementsList; t; t = t->next)
		multimem |= t->multimem;
	if (multimem)
		return *why = "there is no multicast memory: set lsaMultimem and multimem to false", 0;
	int gin = wanted->ginForceEnable || wanted->ginSignalCount || wanted->ginCounterCount;
	for (ncclDevResourceRequirements_t *r = wanted->resourceRequirementsList; r; r = r->next) {
		gin |= r->ginCounterCount != 0;
		if (r->bufferAlign & (r->bufferAlign - 1))
			return *why = "bufferAlign is no power of two", 0;
	}
	if (gin)
		return *why = "there is nothing for kernels that use networks: ask for no GIN", 0;

	memset(out, 0, sizeof *out);
	out->rank = out->lsaRank = rank;
	out->nRanks = out->lsaSize = ranks;
	out->nRanks_rcp32 = out->lsaSize_rcp32 = reciprocal(ranks);
	ncclDevResourceRequirements_t lsa, rail;
	want_lsa_barriers(ranks, most(0, most(wanted->barrierCount, wanted->lsaBarrierCount)), &out->lsaBarrier, &lsa);
	want_gin_barriers(most(0, most(wanted->barrierCount, wanted->railGinBarrierCount)), &out->railGinBarrier, &rail);
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
	return up(bytes ? bytes : 1, UNIT);
}
