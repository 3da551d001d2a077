package cuda

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
)

var (
	include = flag.String("cuda-include", "/usr/local/cuda/include",
		"folder of cuda.h, which the constants are compared with")
	rewrite = flag.Bool("rewrite", false, "write testdata/header.txt anew")
)

// headerNames are the names that cuda.h has for our constants; those of results
// are in results.
var headerNames = map[string]int{
	"CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK":                       int(AttrMaxThreadsPerBlock),
	"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK":                 int(AttrMaxSharedPerBlock),
	"CU_DEVICE_ATTRIBUTE_WARP_SIZE":                                   int(AttrWarpSize),
	"CU_DEVICE_ATTRIBUTE_CLOCK_RATE":                                  int(AttrClockRate),
	"CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT":                        int(AttrMultiprocessorCount),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_MODE":                                int(AttrComputeMode),
	"CU_DEVICE_ATTRIBUTE_PCI_BUS_ID":                                  int(AttrPCIBusID),
	"CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID":                               int(AttrPCIDeviceID),
	"CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE":                           int(AttrMemoryClockRate),
	"CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH":                     int(AttrGlobalMemoryBusWidth),
	"CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE":                               int(AttrL2CacheSize),
	"CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR":              int(AttrMaxThreadsPerMultiprocessor),
	"CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT":                          int(AttrAsyncEngineCount),
	"CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING":                          int(AttrUnifiedAddressing),
	"CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID":                               int(AttrPCIDomainID),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR":                    int(AttrComputeCapabilityMajor),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR":                    int(AttrComputeCapabilityMinor),
	"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR":        int(AttrMaxSharedPerMultiprocessor),
	"CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR":            int(AttrMaxRegistersPerMultiprocessor),
	"CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY":                              int(AttrManagedMemory),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED":                int(AttrComputePreemption),
	"CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH":                          int(AttrCooperativeLaunch),
	"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN":           int(AttrMaxSharedPerBlockOptin),
	"CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED":                     int(AttrHostRegisterSupported),
	"CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED":         int(AttrVirtualMemorySupported),
	"CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": int(AttrPosixFDSupported),
	"CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR":               int(AttrMaxBlocksPerMultiprocessor),
	"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED":                   int(AttrRDMASupported),
	"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED":     int(AttrRDMAVirtualMemorySupported),
	"CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING":             int(AttrRDMAWritesOrdering),
	"CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER":                        RDMAWritesOrderingOwner,
	"CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED":                           int(AttrDMABufSupported),
	"CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD":                             rangeDMABuf,
	"CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED":                      int(AttrMemoryPoolsSupported),
	"CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH":                              int(AttrClusterLaunch),
	"CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS":               int(AttrStreamValues64),
	"CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR":               int(AttrStreamWaitNOR),
	"CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED":                         int(AttrIPCEventSupported),
	"CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED":                         int(AttrMulticastSupported),
	"CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK":                        int(P2PPerformanceRank),
	"CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED":                        int(P2PAccessSupported),
	"CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED":                 int(P2PNativeAtomics),
	"CU_POINTER_ATTRIBUTE_CONTEXT":                                    int(PointerContext),
	"CU_POINTER_ATTRIBUTE_MEMORY_TYPE":                                int(PointerMemoryType),
	"CU_POINTER_ATTRIBUTE_SYNC_MEMOPS":                                int(PointerSyncMemops),
	"CU_POINTER_ATTRIBUTE_BUFFER_ID":                                  int(PointerBufferID),
	"CU_POINTER_ATTRIBUTE_IS_MANAGED":                                 int(PointerIsManaged),
	"CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL":                             int(PointerDeviceOrdinal),
	"CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE":                 int(PointerLegacyIPC),
	"CU_POINTER_ATTRIBUTE_RANGE_START_ADDR":                           int(PointerRangeStart),
	"CU_POINTER_ATTRIBUTE_RANGE_SIZE":                                 int(PointerRangeSize),
	"CU_MEMORYTYPE_HOST":                                              MemoryTypeHost,
	"CU_MEMORYTYPE_DEVICE":                                            MemoryTypeDevice,
	"CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK":                         int(FuncMaxThreadsPerBlock),
	"CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES":                             int(FuncSharedBytes),
	"CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES":                              int(FuncLocalBytes),
	"CU_FUNC_ATTRIBUTE_NUM_REGS":                                      int(FuncRegisters),
	"CU_FUNC_ATTRIBUTE_PTX_VERSION":                                   int(FuncPTXVersion),
	"CU_FUNC_ATTRIBUTE_BINARY_VERSION":                                int(FuncBinaryVersion),
	"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES":                 int(FuncMaxDynamicShared),
	"CU_MEMHOSTALLOC_PORTABLE":                                        int(HostAllocPortable),
	"CU_MEMHOSTALLOC_DEVICEMAP":                                       int(HostAllocMapped),
	"CU_MEMHOSTALLOC_WRITECOMBINED":                                   int(HostAllocWriteCombined),
	"CU_MEMHOSTREGISTER_PORTABLE":                                     int(HostRegisterPortable),
	"CU_MEMHOSTREGISTER_DEVICEMAP":                                    int(HostRegisterMapped),
	"CU_STREAM_DEFAULT":                                               int(StreamDefault),
	"CU_STREAM_NON_BLOCKING":                                          int(StreamNonBlocking),
	"(long)CU_STREAM_LEGACY":                                          int(StreamLegacy),
	"(long)CU_STREAM_PER_THREAD":                                      int(StreamPerThread),
	"CU_EVENT_DEFAULT":                                                int(EventDefault),
	"CU_EVENT_BLOCKING_SYNC":                                          int(EventBlockingSync),
	"CU_EVENT_DISABLE_TIMING":                                         int(EventDisableTiming),
	"CU_EVENT_INTERPROCESS":                                           int(EventInterprocess),
	"CU_STREAM_WAIT_VALUE_GEQ":                                        int(WaitGEQ),
	"CU_STREAM_WAIT_VALUE_EQ":                                         int(WaitEQ),
	"CU_STREAM_WAIT_VALUE_AND":                                        int(WaitAND),
	"CU_STREAM_WAIT_VALUE_NOR":                                        int(WaitNOR),
	"CU_STREAM_CAPTURE_MODE_GLOBAL":                                   int(CaptureGlobal),
	"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL":                             int(CaptureThreadLocal),
	"CU_STREAM_CAPTURE_MODE_RELAXED":                                  int(CaptureRelaxed),
	"CU_STREAM_CAPTURE_STATUS_NONE":                                   int(CaptureNone),
	"CU_STREAM_CAPTURE_STATUS_ACTIVE":                                 int(CaptureActive),
	"CU_STREAM_CAPTURE_STATUS_INVALIDATED":                            int(CaptureInvalidated),
	"CU_MEM_ALLOC_GRANULARITY_MINIMUM":                                int(GranularityMinimum),
	"CU_MEM_ALLOC_GRANULARITY_RECOMMENDED":                            int(GranularityRecommended),
	"CU_MEM_ALLOCATION_TYPE_PINNED":                                   allocationPinned,
	"CU_MEM_LOCATION_TYPE_DEVICE":                                     locationDevice,
	"CU_MEM_ACCESS_FLAGS_PROT_READWRITE":                              accessReadWrite,
	"CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR":                        handlePosixFD,
	"CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS":                              lazyEnablePeerAccess,
	"CU_GET_PROC_ADDRESS_LEGACY_STREAM":                               legacyStream,
	"CU_USER_OBJECT_NO_DESTRUCTOR_SYNC":                               noDestructorSync,
	"CU_GRAPH_USER_OBJECT_MOVE":                                       graphUserObjectMove,
	"CU_JIT_ERROR_LOG_BUFFER":                                         jitErrorLogBuffer,
	"CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES":                              jitErrorLogBytes,
	"CU_LAUNCH_ATTRIBUTE_COOPERATIVE":                                 launchAttributeCooperative,
	"(long)CU_LAUNCH_PARAM_END":                                       launchParamEnd,
	"(long)CU_LAUNCH_PARAM_BUFFER_POINTER":                            launchParamBufferPointer,
	"(long)CU_LAUNCH_PARAM_BUFFER_SIZE":                               launchParamBufferSize,
	"CU_COMPUTEMODE_EXCLUSIVE_PROCESS":                                computeModeExclusive,
	"CU_COMPUTEMODE_PROHIBITED":                                       computeModeProhibited,

	"CU_GRAPH_COND_TYPE_IF":                                  int(ConditionIf),
	"CU_GRAPH_COND_TYPE_WHILE":                               int(ConditionWhile),
	"CU_GRAPH_COND_ASSIGN_DEFAULT":                           int(ConditionAssignDefault),
	"CU_GRAPH_NODE_TYPE_CONDITIONAL":                         nodeConditional,
	"CU_GRAPH_EXEC_UPDATE_SUCCESS":                           int(UpdateSuccess),
	"CU_GRAPH_EXEC_UPDATE_ERROR":                             int(UpdateError),
	"CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED":            int(UpdateTopologyChanged),
	"CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED":           int(UpdateNodeTypeChanged),
	"CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED":            int(UpdateFunctionChanged),
	"CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED":          int(UpdateParametersChanged),
	"CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED":               int(UpdateNotSupported),
	"CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE": int(UpdateUnsupportedFunctionChange),
	"CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED":          int(UpdateAttributesChanged),
	"sizeof(CUgraphConditionalHandle)":                       int(unsafe.Sizeof(Condition(0))),
	"sizeof(CUgraphExecUpdateResultInfo)":                    int(unsafe.Sizeof(updateInfo{})),
	"offsetof(CUgraphExecUpdateResultInfo, errorNode)":       int(unsafe.Offsetof(updateInfo{}.node)),
	"offsetof(CUgraphExecUpdateResultInfo, errorFromNode)":   int(unsafe.Offsetof(updateInfo{}.from)),
	"sizeof(CUgraphNodeParams)":                              int(unsafe.Sizeof(nodeParams{})),
	"offsetof(CUgraphNodeParams, conditional)":               int(unsafe.Offsetof(nodeParams{}.condition)),
	"offsetof(CUgraphNodeParams, conditional.type)":          int(unsafe.Offsetof(nodeParams{}.how)),
	"offsetof(CUgraphNodeParams, conditional.size)":          int(unsafe.Offsetof(nodeParams{}.size)),
	"offsetof(CUgraphNodeParams, conditional.phGraph_out)":   int(unsafe.Offsetof(nodeParams{}.bodies)),
	"offsetof(CUgraphNodeParams, conditional.ctx)":           int(unsafe.Offsetof(nodeParams{}.ctx)),
	"offsetof(CUgraphNodeParams, reserved2)":                 int(unsafe.Offsetof(nodeParams{}.reserved2)),

	"sizeof(CUipcMemHandle)":                                         int(unsafe.Sizeof(IPCHandle{})),
	"sizeof(CUipcEventHandle)":                                       int(unsafe.Sizeof(IPCHandle{})),
	"sizeof(CUuuid)":                                                 16,
	"sizeof(CUdeviceptr)":                                            int(unsafe.Sizeof(uintptr(0))),
	"sizeof(CUdevice)":                                               int(unsafe.Sizeof(Device(0))),
	"sizeof(CUmemGenericAllocationHandle)":                           int(unsafe.Sizeof(MemHandle(0))),
	"sizeof(CUmemAllocationProp)":                                    int(unsafe.Sizeof(memAllocationProp{})),
	"offsetof(CUmemAllocationProp, requestedHandleTypes)":            int(unsafe.Offsetof(memAllocationProp{}.handleTypes)),
	"offsetof(CUmemAllocationProp, location)":                        int(unsafe.Offsetof(memAllocationProp{}.location)),
	"offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable)": int(unsafe.Offsetof(memAllocationProp{}.rdma)),
	"sizeof(CUmemLocation)":                                          int(unsafe.Sizeof(memLocation{})),
	"offsetof(CUmemLocation, id)":                                    int(unsafe.Offsetof(memLocation{}.id)),
	"sizeof(CUmemAccessDesc)":                                        int(unsafe.Sizeof(memAccessDesc{})),
	"offsetof(CUmemAccessDesc, flags)":                               int(unsafe.Offsetof(memAccessDesc{}.flags)),
	"sizeof(CUlaunchConfig)":                                         int(unsafe.Sizeof(launchConfig{})),
	"offsetof(CUlaunchConfig, blockDimX)":                            int(unsafe.Offsetof(launchConfig{}.block)),
	"offsetof(CUlaunchConfig, sharedMemBytes)":                       int(unsafe.Offsetof(launchConfig{}.shared)),
	"offsetof(CUlaunchConfig, hStream)":                              int(unsafe.Offsetof(launchConfig{}.stream)),
	"offsetof(CUlaunchConfig, attrs)":                                int(unsafe.Offsetof(launchConfig{}.attrs)),
	"offsetof(CUlaunchConfig, numAttrs)":                             int(unsafe.Offsetof(launchConfig{}.numAttrs)),
	"sizeof(CUlaunchAttribute)":                                      int(unsafe.Sizeof(launchAttribute{})),
	"offsetof(CUlaunchAttribute, value)":                             int(unsafe.Offsetof(launchAttribute{}.value)),
}

// testdata/header.txt has the values that TestHeader has found in cuda.h, and cudaTypedefs.h's names of functions, for
// machines without these headers.
func TestHeaderText(t *testing.T) {
	var lines []string
	for expr, v := range headerNames {
		lines = append(lines, fmt.Sprintf("%s = %d", expr, v))
	}
	for r, x := range results {
		lines = append(lines, fmt.Sprintf("%s = %d", x.name, int(r)))
	}
	for _, s := range symbols {
		lines = append(lines, fmt.Sprintf("%s of %d is %s", s.name, s.since, s.export))
	}
	slices.Sort(lines)
	text := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "header.txt")
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want := must.Get(os.ReadFile(file))
	require.Equal(t, string(want), text)
}

// TestHeader compiles claims about cuda.h.
func TestHeader(t *testing.T) {
	gcc := need.Tool(t, "gcc")
	if _, err := os.Stat(filepath.Join(*include, "cuda.h")); err != nil {
		t.Skip("needs cuda.h, see -cuda-include: ", err)
	}
	var c strings.Builder
	c.WriteString("#include <stddef.h>\n#include <cuda.h>\n")
	header := must.Get(os.ReadFile(filepath.Join(*include, "cuda.h")))
	claims := 0
	claim := func(expr string, v int) {
		if strings.HasPrefix(expr, "CUDA_ERROR") && !strings.Contains(string(header), expr) {
			return // newer than this header
		}
		claims++
		fmt.Fprintf(&c, "_Static_assert((%s) == %d, \"%s is not %d\");\n", expr, v, expr, v)
	}
	for expr, v := range headerNames {
		claim(expr, v)
	}
	for r, x := range results {
		claim(x.name, int(r))
	}
	require.Greater(t, claims, 180)
	source := filepath.Join(t.TempDir(), "claims.c")
	require.NoError(t, os.WriteFile(source, []byte(c.String()), 0o644))
	out, err := exec.Command(gcc, "-fsyntax-only", "-I", *include, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Every result has a name of its own, and every function makes sense.
func TestTables(t *testing.T) {
	names := map[string]bool{}
	for r, x := range results {
		require.Regexp(t, `^CUDA_ERROR_[A-Z_]+$`, x.name)
		require.False(t, names[x.name], x.name)
		names[x.name] = true
		require.Equal(t, x.name, r.Error())
	}
	seen := map[string]bool{}
	for i, s := range symbols {
		require.True(t, strings.HasPrefix(s.name, "cu") && strings.HasPrefix(s.export, s.name), "symbol %d: %v", i, s)
		require.False(t, seen[s.name], s.name)
		require.GreaterOrEqual(t, s.since, 2000)
		seen[s.name] = true
	}
}
