// Prints what a program takes from nccl.h into its code: numbers, sizes and offsets. It is
// compiled with our header and with NVIDIA's, where there is one.
#include <nccl.h>
#include <stddef.h>
#include <stdio.h>

#define NUMBER(name) printf("%s %lld\n", #name, (long long)(name));
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field));

int main(void)
{
	NUMBER(ncclSuccess) NUMBER(ncclUnhandledCudaError) NUMBER(ncclSystemError) NUMBER(ncclInternalError)
	NUMBER(ncclInvalidArgument) NUMBER(ncclInvalidUsage) NUMBER(ncclRemoteError) NUMBER(ncclInProgress)
	NUMBER(ncclInt8) NUMBER(ncclChar) NUMBER(ncclUint8) NUMBER(ncclInt32) NUMBER(ncclInt) NUMBER(ncclUint32)
	NUMBER(ncclInt64) NUMBER(ncclUint64) NUMBER(ncclFloat16) NUMBER(ncclHalf) NUMBER(ncclFloat32) NUMBER(ncclFloat)
	NUMBER(ncclFloat64) NUMBER(ncclDouble) NUMBER(ncclBfloat16) NUMBER(ncclFloat8e4m3) NUMBER(ncclFloat8e5m2)
	NUMBER(ncclSum) NUMBER(ncclProd) NUMBER(ncclMax) NUMBER(ncclMin) NUMBER(ncclAvg) NUMBER(ncclNumOps) NUMBER(ncclMaxRedOp)
	NUMBER(ncclScalarDevice) NUMBER(ncclScalarHostImmediate)
	NUMBER(NCCL_SPLIT_NOCOLOR) NUMBER(NCCL_CONFIG_UNDEF_INT) NUMBER(NCCL_UNIQUE_ID_BYTES)
	NUMBER(NCCL_WIN_DEFAULT) NUMBER(NCCL_WIN_COLL_SYMMETRIC) NUMBER(NCCL_CTA_POLICY_DEFAULT) NUMBER(NCCL_CTA_POLICY_EFFICIENCY)
	NUMBER(NCCL_SHRINK_DEFAULT) NUMBER(NCCL_SHRINK_ABORT)
	NUMBER(sizeof(ncclUniqueId)) NUMBER(sizeof(ncclResult_t)) NUMBER(sizeof(ncclDataType_t)) NUMBER(sizeof(ncclRedOp_t))
	FIELD(ncclConfig_t, size) FIELD(ncclConfig_t, magic) FIELD(ncclConfig_t, version) FIELD(ncclConfig_t, blocking)
	FIELD(ncclConfig_t, cgaClusterSize) FIELD(ncclConfig_t, minCTAs) FIELD(ncclConfig_t, maxCTAs) FIELD(ncclConfig_t, netName)
	FIELD(ncclConfig_t, splitShare) FIELD(ncclConfig_t, trafficClass) FIELD(ncclConfig_t, commName) FIELD(ncclConfig_t, collnetEnable)
	FIELD(ncclConfig_t, CTAPolicy) FIELD(ncclConfig_t, shrinkShare) FIELD(ncclConfig_t, nvlsCTAs)
	FIELD(ncclSimInfo_t, estimatedTime)
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
	NUMBER(config.magic) NUMBER(sim.magic) NUMBER(config.blocking) NUMBER(config.trafficClass)
	return 0;
}
