//go:build linux

// The driver's functions under their exported names. All arguments are integers and pointers, so a
// function hands its name and its arguments as words to the Go half (go.go).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <unwind.h>

#include "../../internal/late/late.h"
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

// runtime reports whether code is the runtime's, which says itself what has failed.
static int runtime(void *at)
{
	Dl_info info;
	const char *base = dladdr(at, &info) ? strrchr(info.dli_fname, '/') : NULL;
	return base && !strncmp(base + 1, "libcudart.so", 12);
}

// ringo_cuda_callers are the addresses to which the call under way and its callers return outside of the emulated driver and runtime.
int ringo_cuda_callers(uintptr_t *to, int room)
{
	Dl_info here, there;
	int n = 0;
	dladdr((void *)self, &here);
	for (int i = 0; i < depth && n < room; i++) {
		if (!dladdr((void *)callers[i], &there) || there.dli_fbase == here.dli_fbase)
			continue;
		if (!runtime((void *)callers[i]))
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

enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, NOT_READY = 600 }; // CUDA_ERROR_

static volatile int initialized; // by cuInit
static volatile int unloading;

static void unload(void) { unloading = 1; }

static void begin(void) { atexit(unload); } // destructors of objects older than the first call find no driver, as on hardware

// ready begins the Go half. It returns 0 in the child of a fork that came afterwards.
static int ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (!late_ready())
		return 0;
	pthread_once(&once, begin);
	return 1;
}

#define FORKED "the process was forked after its parent's first call of CUDA: call it in the parent, or exec, or fork before that call"

// forked says once why calls in the child of a fork fail.
static int forked(const char *name)
{
	static int said;
	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "emulated GPU: %s: " FORKED "\n", name);
	return NOT_INITIALIZED;
}

static int has(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return 1;
	return 0;
}

static int reporting; // to ringo emulate
__attribute__((constructor)) static void loaded(void) { reporting = getenv("RINGO_EMULATE_REPORT") != NULL; }

// lives reports whether there is a Go half that can be called.
static int lives(void) { return late_begun() && late_ready(); }

// child_failed notes the first call that fails in the child of a fork, where there is no Go half.
static void child_failed(const char *call, const char *error, int result)
{
	static int told;
	char line[1024];
	if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	int n = snprintf(line, sizeof line, "{\"process\":%d,\"failed\":{\"call\":\"%s\",\"error\":\"%s\",\"result\":%d,\"text\":\"" FORKED "\"},\"times\":1,\"ended\":true}\n",
			 (int)getpid(), call ? call : "a call of the runtime", error ? error : "CUDA_ERROR_NOT_INITIALIZED", result);
	int file = open(getenv("RINGO_EMULATE_REPORT"), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (file < 0)
		return;
	if (write(file, line, n) != n)
		perror("emulated GPU: the report");
	close(file);
}

const char *ringo_cuda_entry(void);

// ringo_cuda_failed notes for the report of ringo emulate that a call of the program has failed. The runtime (call is NULL: the function
// that the program has called) and libnccl.so call it, too. why may be NULL: then it is what the driver's last call has said.
// follows says that an earlier failure, which is in the report, makes all calls fail.
void ringo_cuda_failed(const char *call, const char *error, int result, const char *why, int follows)
{
	if (!reporting || unloading)
		return;
	int well = ready();
	if (well)
		keep_stack();
	depth = 0;
	_Unwind_Backtrace(caller, NULL);
	if (!well)
		child_failed(call ? call : ringo_cuda_entry(), error, result);
	else
		ringo_cuda_note((char *)call, (char *)error, result, (char *)why, follows);
}

// ringo_cuda_comm_failed notes that a communicator of libnccl.so has failed.
void ringo_cuda_comm_failed(const char *comm, const char *call, const char *why, int device)
{
	if (reporting && lives())
		ringo_cuda_note_comm((char *)comm, (char *)call, (char *)why, device);
}

// ringo_cuda_entry is the runtime's function that the program has called.
const char *ringo_cuda_entry(void)
{
	Dl_info info;
	const char *name = NULL;
	for (int i = 0; i < depth; i++)
		if (runtime((void *)callers[i]) && dladdr((void *)callers[i], &info) && info.dli_sname)
			name = info.dli_sname;
		else if (name)
			break;
	return name;
}

// ringo_cuda_moves changes while anything moves on the GPUs of all processes of the program.
int ringo_cuda_moves(void) { return reporting && lives() ? ringo_cuda_count_moves() : 0; }

#define driver(name, words) carry(name, words, __builtin_return_address(0))
static int carry(const char *name, uintptr_t *words, void *at)
{
	static const char *const makes[] = {"Create", "Alloc", "Launch", "Register", "Reserve", "Load", "Instantiate", "Clone", "Capture", "Open", "Import", "Map", "Retain", "Release", "FreeAsync", "Memcpy", NULL};
	static const char *const gives[] = {"Destroy", "Free", "Release", "Unload", "Unmap", "Unregister", "Close", NULL};
	if (!ready()) {
		if (!runtime(at))
			ringo_cuda_failed(name, NULL, NOT_INITIALIZED, FORKED, 0);
		return forked(name);
	}
	if (!initialized) {
		ringo_cuda_failed(name, NULL, NOT_INITIALIZED, "cuInit has not been called: call it first", 0);
		return NOT_INITIALIZED;
	}
	// What destructors give back is no leak, even though they are told that it is too late.
	if (unloading && !has(name, gives))
		return DEINITIALIZED;
	keep_stack();
	depth = 0;
	if (has(name, makes))
		_Unwind_Backtrace(caller, NULL);
	int result = ringo_cuda((char *)name, words);
	if (unloading)
		return DEINITIALIZED;
	if (result && result != NOT_READY && reporting && !runtime(at))
		ringo_cuda_failed(name, NULL, result, NULL, 0);
	return result;
}

// At the end of the process the report is finished.
__attribute__((destructor)) static void end(void)
{
	if (!lives())
		return;
	keep_stack();
	ringo_cuda_end();
}

enum { ROOM = 12 }; // of words for arguments

#define P0 void
#define P1 uintptr_t a
#define P2 P1, uintptr_t b
#define P3 P2, uintptr_t c
#define P4 P3, uintptr_t d
#define P5 P4, uintptr_t e
#define P6 P5, uintptr_t f
#define P8 P6, uintptr_t g, uintptr_t h
#define P10 P8, uintptr_t i, uintptr_t j
#define P11 P10, uintptr_t k
#define A0 0
#define A1 a
#define A2 A1, b
#define A3 A2, c
#define A4 A3, d
#define A5 A4, e
#define A6 A5, f
#define A8 A6, g, h
#define A10 A8, i, j
#define A11 A10, k
#define F(n, name)                                     \
	int name(P##n)                                 \
	{                                              \
		uintptr_t words[ROOM] = {A##n};        \
		return driver(#name, words);           \
	}
#define F0(name) F(0, name)
#define F1(name) F(1, name)
#define F2(name) F(2, name)
#define F3(name) F(3, name)
#define F4(name) F(4, name)
#define F5(name) F(5, name)
#define F6(name) F(6, name)
#define F8(name) F(8, name)
#define F10(name) F(10, name)
#define F11(name) F(11, name)

F2(cuStreamCreate) F2(cuModuleLoad) F2(cuModuleLoadData) F2(cuModuleLoadFatBinary)
F8(cuLibraryLoadData) F1(cuLibraryUnload) F2(cuLibraryGetModule) F3(cuLibraryGetKernel) F4(cuLibraryGetGlobal)
F2(cuKernelGetFunction) F4(cuKernelGetAttribute) F4(cuKernelSetAttribute)
 F1(cuDeviceGetCount) F2(cuDeviceGet)
F3(cuDeviceGetName) F2(cuDeviceGetUuid_v2) F3(cuDeviceGetPCIBusId) F2(cuDeviceTotalMem_v2)
F3(cuDeviceGetAttribute) F3(cuDeviceCanAccessPeer) F4(cuDeviceGetP2PAttribute) F2(cuDevicePrimaryCtxRetain)
F1(cuDevicePrimaryCtxRelease_v2) F3(cuDevicePrimaryCtxGetState) F1(cuCtxPushCurrent_v2)
F1(cuCtxPopCurrent_v2) F1(cuCtxGetCurrent) F1(cuCtxSetCurrent) F1(cuCtxGetDevice) F0(cuCtxSynchronize)
F1(cuDevicePrimaryCtxReset_v2) F2(cuCtxGetApiVersion) F3(cuDeviceComputeCapability) F3(cuCtxCreate_v2) F1(cuCtxDestroy_v2) F2(cuCtxEnablePeerAccess) F1(cuCtxDisablePeerAccess) F2(cuCtxGetStreamPriorityRange) F2(cuCtxSetLimit) F2(cuCtxGetLimit) F2(cuMemGetInfo_v2)
F2(cuMemAlloc_v2) F3(cuMemAllocAsync) F2(cuMemFreeAsync) F1(cuMemFree_v2) F3(cuMemGetAddressRange_v2) F3(cuMemHostAlloc) F2(cuMemAllocHost_v2) F1(cuMemFreeHost)
F3(cuMemHostRegister_v2) F1(cuMemHostUnregister) F2(cuMemHostGetFlags) F3(cuMemHostGetDevicePointer_v2) F3(cuMemcpyHtoD_v2)
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
	uintptr_t words[ROOM] = {to, (uintptr_t)&h, flags};
	return driver("cuIpcOpenMemHandle_v2", words);
}
int cuIpcOpenEventHandle(uintptr_t to, handle h)
{
	uintptr_t words[ROOM] = {to, (uintptr_t)&h};
	return driver("cuIpcOpenEventHandle", words);
}

int cuDriverGetVersion(int *version)
{
	if (version)
		*version = 13000; // cudaemu's, which needs no Go, so that a program may fork afterwards
	return version ? 0 : 1;
}

int cuInit(unsigned flags)
{
	int count;
	uintptr_t words[ROOM] = {(uintptr_t)&count};
	if (!ready())
		return forked("cuInit");
	if (flags)
		return 1;
	initialized = 1;
	return driver("cuDeviceGetCount", words);
}

enum { PER_THREAD = 2, MEMORY_TYPE = 2, DEVICE = 2 }; // CU_STREAM_, CU_POINTER_ATTRIBUTE_, CU_MEMORYTYPE_

static int onDevice(uintptr_t p)
{
	unsigned type = 0;
	return !ringo_cuda((char *)"cuPointerGetAttribute", (uintptr_t[ROOM]){(uintptr_t)&type, MEMORY_TYPE, p}) && type == DEVICE;
}

// Twins for programs with per-thread default streams: the argument at a place is the stream, whose 0 is the thread's own.
#define Z(n, at, name)                                                      \
	int name##_ptsz(P##n)                                               \
	{                                                                   \
		uintptr_t words[ROOM] = {A##n};                             \
		words[at] = words[at] ? words[at] : PER_THREAD;             \
		return driver(#name, words);                                \
	}
Z(4, 3, cuMemcpyAsync) Z(4, 3, cuMemcpyHtoDAsync_v2) Z(4, 3, cuMemcpyDtoHAsync_v2) Z(4, 3, cuMemcpyDtoDAsync_v2)
Z(3, 2, cuMemAllocAsync) Z(2, 1, cuMemFreeAsync) Z(6, 5, cuMemcpyPeerAsync) Z(4, 3, cuMemsetD8Async) Z(4, 3, cuMemsetD32Async) Z(1, 0, cuStreamSynchronize) Z(1, 0, cuStreamQuery)
Z(3, 0, cuStreamWaitEvent) Z(2, 0, cuStreamGetCtx) Z(2, 0, cuStreamGetFlags) Z(2, 0, cuStreamGetPriority) Z(2, 0, cuStreamGetId)
Z(3, 0, cuLaunchHostFunc) Z(4, 0, cuStreamWriteValue32_v2) Z(4, 0, cuStreamWriteValue64_v2) Z(4, 0, cuStreamWaitValue32_v2)
Z(4, 0, cuStreamWaitValue64_v2) Z(2, 1, cuEventRecord) Z(3, 1, cuEventRecordWithFlags) Z(11, 8, cuLaunchKernel)
Z(10, 8, cuLaunchCooperativeKernel) Z(2, 0, cuStreamBeginCapture_v2) Z(6, 0, cuStreamBeginCaptureToGraph) Z(2, 0, cuStreamEndCapture)
Z(2, 0, cuStreamIsCapturing) Z(6, 0, cuStreamGetCaptureInfo_v2) Z(4, 0, cuStreamUpdateCaptureDependencies) Z(2, 1, cuGraphUpload)
Z(2, 1, cuGraphLaunch)

typedef struct { // CUlaunchConfig
	unsigned shape[7];
	uintptr_t stream, attributes;
	unsigned count;
} launch_config;

int cuLaunchKernelEx_ptsz(const launch_config *config, P3)
{
	launch_config own;
	if (config) {
		own = *config;
		own.stream = own.stream ? own.stream : PER_THREAD;
	}
	uintptr_t words[ROOM] = {config ? (uintptr_t)&own : 0, A3};
	return driver("cuLaunchKernelEx", words);
}

// What has no stream is its asynchronous kin on the thread's own, and waits for it unless it is a device's alone.
#define Y(n, name, async, waits)                                            \
	int name##_ptds(P##n)                                               \
	{                                                                   \
		uintptr_t words[ROOM] = {A##n, PER_THREAD}, own[ROOM] = {PER_THREAD}; \
		int result = driver(#async, words);                         \
		return result || !(waits) ? result : driver("cuStreamSynchronize", own); \
	}
Y(3, cuMemcpy, cuMemcpyAsync, !onDevice(a) || !onDevice(b)) Y(5, cuMemcpyPeer, cuMemcpyPeerAsync, 0)
Y(3, cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, 1) Y(3, cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, 1)
Y(3, cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, 0) Y(3, cuMemsetD8_v2, cuMemsetD8Async, !onDevice(a))

// Where the functions of missing.c lie.
extern char __start_missing[], __stop_missing[];

// look finds a function of this library in the newest version that the library has; NULL if there is none.
static void *look(const char *name, const char *twin)
{
	static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
	char text[128];
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof text, "%s%s%s", name, versions[i], twin);
		char *f = dlsym(self(), text);
		if (f && (f < __start_missing || f >= __stop_missing))
			return f;
	}
	return NULL;
}

int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status)
{
	(void)version;
	if (!f)
		return 1;
	*f = NULL;
	if (flags & 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */ && !(*f = look(name, "_ptsz")))
		*f = look(name, "_ptds");
	if (!*f)
		*f = look(name, "");
	if (status)
		*status = *f ? 0 : 1; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
	return 0;
}
int cuGetProcAddress(const char *name, void **f, int version, uint64_t flags)
{
	cuGetProcAddress_v2(name, f, version, flags, NULL);
	return *f ? 0 : 500;
}

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

static const struct {
	int result;
	const char *name;
} results[] = {
#define E(number, name) {number, #name},
#include "results.h"
#undef E
};

int cuGetErrorName(int result, const char **to)
{
	if (unloading)
		return DEINITIALIZED;
	if (!to)
		return 1;
	*to = NULL;
	for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
		if (results[i].result == result)
			*to = results[i].name;
	return *to ? 0 : 1;
}
int cuGetErrorString(int result, const char **to) { return cuGetErrorName(result, to); }
