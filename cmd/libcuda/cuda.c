//go:build linux

// The driver's functions under their exported names. All arguments are integers and pointers, so a
// function hands its name and its arguments as words to the Go half (go.go).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <unwind.h>

#include "_cgo_export.h"

// self is the dlopen handle of this library.
static void *self(void)
{
	static void *library;
	Dl_info here;
	if (!library && dladdr((void *)self, &here))
		library = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return library;
}

// keep_stack gives the main thread a stack for signals if it has none: Python's faulthandler takes it away when it ends,
// and Go ends a process that has a signal on a thread without one.
static void keep_stack(void)
{
	static char bytes[64 << 10];
	stack_t stack;
	if (gettid() == getpid() && sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_DISABLE) {
		stack = (stack_t){.ss_sp = bytes, .ss_size = sizeof bytes};
		sigaltstack(&stack, NULL);
	}
}

// The addresses to which the call under way and its callers return, where it may make or launch something.
enum { CALLERS = 16 };
static __thread uintptr_t callers[CALLERS];
static __thread int depth;

static _Unwind_Reason_Code caller(struct _Unwind_Context *context, void *unused)
{
	(void)unused;
	if (depth == CALLERS)
		return _URC_END_OF_STACK;
	callers[depth++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static int makes(const char *name)
{
	static const char *const words[] = {"Create", "Alloc", "Launch", "Register", "Reserve", "Load", "Instantiate", "Clone", "Capture", "Open", "FreeAsync", "Memcpy"};
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(name, words[i]))
			return 1;
	return 0;
}

// ringo_cuda_callers are the addresses to which the call under way and its callers return outside of the emulated driver and runtime.
int ringo_cuda_callers(uintptr_t *to, int room)
{
	Dl_info here, there;
	int n = 0;
	dladdr((void *)self, &here);
	for (int i = 0; i < depth && n < room; i++) {
		const char *base;
		if (!dladdr((void *)callers[i], &there) || there.dli_fbase == here.dli_fbase)
			continue;
		base = strrchr(there.dli_fname, '/');
		if (strncmp(base ? base + 1 : there.dli_fname, "libcudart.so", 12))
			to[n++] = callers[i];
	}
	return n;
}

// ringo_cuda_sites asks what counts the calls of NCCL (cmd/libcudart/count), if it is loaded.
int ringo_cuda_sites(int of, const char **names, uintptr_t *sites, int room)
{
	int (*ask)(int, const char **, uintptr_t *, int) = (int (*)(int, const char **, uintptr_t *, int))dlsym(RTLD_DEFAULT, "ringo_nccl_sites");
	return ask ? ask(of, names, sites, room) : 0;
}

// ringo_cuda_file is the file of the code at an address, and where its first byte lies; NULL if it is not known.
const char *ringo_cuda_file(uintptr_t address, uintptr_t *base)
{
	Dl_info info, program;
	if (!dladdr((void *)address, &info))
		return NULL;
	*base = (uintptr_t)info.dli_fbase;
	if (dladdr((void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == info.dli_fbase)
		return "/proc/self/exe"; // argv[0] may be a name without a folder
	return info.dli_fname;
}

static int driver(const char *name, uintptr_t *words)
{
	keep_stack();
	depth = 0;
	if (makes(name))
		_Unwind_Backtrace(caller, NULL);
	return ringo_cuda((char *)name, words);
}

// At the end of the process the report is finished. Not in the child of a fork, where Go does not run.
static pid_t owner;
__attribute__((constructor)) static void begin(void) { owner = getpid(); }
__attribute__((destructor)) static void end(void)
{
	if (getpid() != owner)
		return;
	keep_stack();
	ringo_cuda_end();
}

#define F(name, parameters, ...)                       \
	int name parameters                            \
	{                                              \
		uintptr_t words[12] = {__VA_ARGS__};   \
		return driver(#name, words);   \
	}
#define F0(name) F(name, (void), 0)
#define F1(name) F(name, (uintptr_t a), a)
#define F2(name) F(name, (uintptr_t a, uintptr_t b), a, b)
#define F3(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c), a, b, c)
#define F4(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d), a, b, c, d)
#define F5(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e), a, b, c, d, e)
#define F6(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f), a, b, c, d, e, f)
#define F8(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h), a, b, c, d, e, f, g, h)
#define F10(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j), a, b, c, d, e, f, g, h, i, j)
#define F11(name) F(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k), a, b, c, d, e, f, g, h, i, j, k)

F1(cuDriverGetVersion) F2(cuStreamCreate) F2(cuModuleLoadData) F2(cuModuleLoadFatBinary)
F8(cuLibraryLoadData) F1(cuLibraryUnload) F2(cuLibraryGetModule) F3(cuLibraryGetKernel) F4(cuLibraryGetGlobal)
F2(cuKernelGetFunction) F4(cuKernelGetAttribute) F4(cuKernelSetAttribute)
 F1(cuDeviceGetCount) F2(cuDeviceGet)
F3(cuDeviceGetName) F2(cuDeviceGetUuid_v2) F3(cuDeviceGetPCIBusId) F2(cuDeviceTotalMem_v2)
F3(cuDeviceGetAttribute) F3(cuDeviceCanAccessPeer) F4(cuDeviceGetP2PAttribute) F2(cuDevicePrimaryCtxRetain)
F1(cuDevicePrimaryCtxRelease_v2) F3(cuDevicePrimaryCtxGetState) F1(cuCtxPushCurrent_v2)
F1(cuCtxPopCurrent_v2) F1(cuCtxGetCurrent) F1(cuCtxSetCurrent) F1(cuCtxGetDevice) F0(cuCtxSynchronize)
F1(cuDevicePrimaryCtxReset_v2) F2(cuCtxGetApiVersion) F3(cuDeviceComputeCapability) F3(cuCtxCreate_v2) F1(cuCtxDestroy_v2) F2(cuCtxEnablePeerAccess) F1(cuCtxDisablePeerAccess) F2(cuCtxGetStreamPriorityRange) F2(cuMemGetInfo_v2)
F2(cuMemAlloc_v2) F3(cuMemAllocAsync) F2(cuMemFreeAsync) F1(cuMemFree_v2) F3(cuMemGetAddressRange_v2) F3(cuMemHostAlloc) F2(cuMemAllocHost_v2) F1(cuMemFreeHost)
F3(cuMemHostRegister_v2) F1(cuMemHostUnregister) F3(cuMemHostGetDevicePointer_v2) F3(cuMemcpyHtoD_v2)
F3(cuMemcpyDtoH_v2) F3(cuMemcpyDtoD_v2) F3(cuMemcpy) F4(cuMemcpyAsync) F4(cuMemcpyHtoDAsync_v2) F4(cuMemcpyDtoHAsync_v2) F4(cuMemcpyDtoDAsync_v2) F5(cuMemcpyPeer) F6(cuMemcpyPeerAsync) F3(cuMemsetD8_v2)
F4(cuMemsetD8Async) F4(cuMemsetD32Async) F3(cuPointerGetAttribute) F3(cuPointerSetAttribute)
F3(cuMemGetAllocationGranularity) F4(cuMemCreate) F1(cuMemRelease) F5(cuMemAddressReserve)
F2(cuMemAddressFree) F5(cuMemMap) F2(cuMemUnmap) F4(cuMemSetAccess) F2(cuMemRetainAllocationHandle)
F4(cuMemExportToShareableHandle) F3(cuMemImportFromShareableHandle) F5(cuMemGetHandleForAddressRange)
F2(cuIpcGetMemHandle)
F1(cuIpcCloseMemHandle) F2(cuIpcGetEventHandle) F3(cuStreamCreateWithPriority) F1(cuStreamDestroy_v2)
F1(cuStreamSynchronize) F1(cuStreamQuery) F3(cuStreamWaitEvent) F2(cuStreamGetCtx) F2(cuStreamGetFlags)
F2(cuStreamGetPriority) F2(cuStreamGetId) F3(cuLaunchHostFunc) F4(cuStreamWriteValue32_v2)
F4(cuStreamWriteValue64_v2) F4(cuStreamWaitValue32_v2) F4(cuStreamWaitValue64_v2) F2(cuStreamBeginCapture_v2)
F2(cuStreamEndCapture) F2(cuStreamIsCapturing) F6(cuStreamGetCaptureInfo_v2)
F4(cuStreamUpdateCaptureDependencies) F1(cuThreadExchangeStreamCaptureMode) F2(cuEventCreate)
F1(cuEventDestroy_v2) F2(cuEventRecord) F3(cuEventRecordWithFlags) F1(cuEventQuery) F1(cuEventSynchronize)
F3(cuEventElapsedTime) F5(cuModuleLoadDataEx) F1(cuModuleUnload) F3(cuModuleGetFunction)
F4(cuModuleGetGlobal_v2) F3(cuFuncGetAttribute) F3(cuFuncSetAttribute) F4(cuFuncGetParamInfo)
F4(cuOccupancyMaxActiveBlocksPerMultiprocessor) F3(cuOccupancyMaxActiveClusters)
F3(cuOccupancyMaxPotentialClusterSize) F10(cuLaunchCooperativeKernel) F11(cuLaunchKernel) F4(cuLaunchKernelEx) F2(cuGraphCreate)
F1(cuGraphDestroy) F6(cuStreamBeginCaptureToGraph) F2(cuGraphClone) F5(cuGraphAddChildGraphNode)
F5(cuGraphConditionalHandleCreate) F6(cuGraphAddNode_v2) F3(cuGraphExecUpdate_v2) F3(cuGraphGetNodes)
F5(cuGraphAddEventRecordNode) F4(cuGraphAddDependencies) F4(cuGraphRemoveDependencies)
F3(cuGraphInstantiateWithFlags) F2(cuGraphUpload) F2(cuGraphLaunch) F1(cuGraphExecDestroy)
F5(cuUserObjectCreate) F2(cuUserObjectRetain) F2(cuUserObjectRelease) F4(cuGraphRetainUserObject)

// A handle is passed by value in C. The Go half gets the address of a copy.
typedef struct {
	char bytes[64];
} handle;

int cuIpcOpenMemHandle_v2(uintptr_t to, handle h, unsigned flags)
{
	uintptr_t words[12] = {to, (uintptr_t)&h, flags};
	return driver("cuIpcOpenMemHandle_v2", words);
}
int cuIpcOpenEventHandle(uintptr_t to, handle h)
{
	uintptr_t words[12] = {to, (uintptr_t)&h};
	return driver("cuIpcOpenEventHandle", words);
}

int cuInit(unsigned flags)
{
	int count;
	uintptr_t words[12] = {(uintptr_t)&count};
	return flags ? 1 : driver("cuDeviceGetCount", words);
}

// Where the functions of missing.c lie.
extern char __start_missing[], __stop_missing[];

// look finds a function of this library in the newest version that the library has; NULL if there is none.
static void *look(const char *name)
{
	static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
	char text[128];
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof text, "%s%s", name, versions[i]);
		char *f = dlsym(self(), text);
		if (f && (f < __start_missing || f >= __stop_missing))
			return f;
	}
	return NULL;
}

int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status)
{
	(void)version, (void)flags;
	*f = look(name);
	if (status)
		*status = *f ? 0 : 1; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
	return *f ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **f, int version, uint64_t flags) { return cuGetProcAddress_v2(name, f, version, flags, NULL); }

// NVIDIA's own runtime asks for the driver's private tables, which are not imitated.
int cuGetExportTable(const void **table, const void *id)
{
	static int said;
	(void)id;
	*table = NULL;
	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "emulated GPU: this program has NVIDIA's CUDA runtime in it: relink it with -cudart shared, and run it with libcudart.so of the emulated GPUs\n");
	return 500;
}

int cuGetErrorString(int result, const char **to)
{
	if (!to)
		return 1;
	*to = ringo_cuda_error(result);
	return *to ? 0 : 1;
}
int cuGetErrorName(int result, const char **to) { return cuGetErrorString(result, to); }
