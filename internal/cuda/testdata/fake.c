// A library that looks like the CUDA driver as far as the tests of internal/cuda
// need it. Macros make it a stub, too old, without devices, or incomplete:
//   INIT     what cuInit gives
//   VERSION  what cuDriverGetVersion gives
//   PROC     0: no cuGetProcAddress, 1: only the first one, 2: both
//   EMPTY    nothing of a driver is in it
//   WITHOUT  one function is missing: cuEventQuery
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef VERSION
#define VERSION 13000
#endif
#ifndef PROC
#define PROC 2
#endif

typedef int result;
typedef struct { char bytes[64]; } ipc_handle;
typedef void (*host_fn)(void *);

// What the test looks at.
struct {
	uint64_t count;
	uint64_t grid[3], block[3], shared, stream, function;
	uint64_t cooperative, has_params;
	uint64_t size;
	unsigned char params[4096];
} fake_launch;

struct {
	uint64_t flags;
	ipc_handle handle;
} fake_ipc;

struct {
	uint64_t proc_calls;
	uint64_t capture_variant;
} fake_calls;

#ifndef EMPTY

result cuInit(unsigned flags) { return flags ? 1 : INIT; }
result cuDriverGetVersion(int *v) { *v = VERSION; return 0; }
result cuDeviceGetCount(int *n) { *n = 2; return 0; }
result cuDeviceGet(int *d, int i) {
	if (i < 0 || i > 1) return 101;
	*d = i;
	return 0;
}
result cuDeviceGetName(char *s, int n, int d) {
	strncpy(s, d ? "Fake One" : "Fake Zero", n);
	return 0;
}
result cuCtxGetDevice(int *d) { *d = 1; return 0; }
result cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
result cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 3u << 30; *total = 8ull << 30; return 0; }
result cuMemAlloc_v2(void **p, size_t n) {
	if (n == 0) return 1;
	if (n > 1 << 30) return 2;
	*p = malloc(n);
	return 0;
}
result cuMemFree_v2(void *p) { free(p); return 0; }
static char known[64];
result cuPointerGetAttribute(uint64_t *v, int attribute, char *p) {
	if (p < known || p >= known + sizeof known) return 1;
	switch (attribute) {
	case 2: *(unsigned *)v = 2; break;
	case 9: *(int *)v = 1; break;
	case 11: *v = (uint64_t)known; break;
	case 12: *v = sizeof known; break;
	default: return 1;
	}
	return 0;
}
result cuMemsetD8_v2(char *p, unsigned char v, size_t n) { return 1; }
result cuMemcpyDtoD_v2(char *d, char *s, size_t n) { return s == (char *)1 ? 716 : 1; }
char *fake_known(void) { return known; }
result cuMemcpyHtoD_v2(void *d, const void *s, size_t n) { memcpy(d, s, n); return 0; }
result cuMemcpyDtoH_v2(void *d, const void *s, size_t n) { memcpy(d, s, n); return 0; }
result cuStreamQuery(uint64_t s) { return s == 77 ? 600 : s == 78 ? 700 : 0; }
#ifndef WITHOUT
result cuEventQuery(uint64_t e) { return 0; }
#endif
result cuEventElapsedTime(float *ms, uint64_t a, uint64_t b) { *ms = 1.5f; return 0; }

result cuModuleLoadDataEx(uint64_t *m, const char *image, unsigned n, int *options, void **values) {
	if (strlen(image) == 4 && !strcmp(image, "good")) { *m = 5; return 0; }
	char *log = 0;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 5) log = values[i];
		if (options[i] == 6) size = (size_t)values[i];
	}
	if (log) strncpy(log, "ptxas fatal: line 7 is nonsense\n", size);
	return 218;
}

static result launch(uint64_t f, unsigned g[3], unsigned b[3], unsigned shared, uint64_t stream, void **params, void **extra) {
	fake_launch.count++;
	fake_launch.function = f;
	for (int i = 0; i < 3; i++) {
		fake_launch.grid[i] = g[i];
		fake_launch.block[i] = b[i];
	}
	fake_launch.shared = shared;
	fake_launch.stream = stream;
	fake_launch.has_params = params != 0;
	const void *p = 0;
	for (; extra && *extra; extra += 2) {
		if (*extra == (void *)1) p = extra[1];
		if (*extra == (void *)2) fake_launch.size = *(size_t *)extra[1];
	}
	if (p) memcpy(fake_launch.params, p, fake_launch.size);
	return b[0] > 1024 ? 1 : f == 9 ? 701 : 0;
}

result cuLaunchKernel(uint64_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, uint64_t stream, void **params, void **extra) {
	fake_launch.cooperative = 0;
	return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, params, extra);
}

struct config {
	unsigned grid[3], block[3], shared;
	uint64_t stream;
	struct { int id; char pad[4]; union { char pad[64]; int cooperative; } value; } *attrs;
	unsigned count;
};

result cuLaunchKernelEx(struct config *c, uint64_t f, void **params, void **extra) {
	if (c->count != 1 || c->attrs[0].id != 2) return 1;
	fake_launch.cooperative = c->attrs[0].value.cooperative;
	return launch(f, c->grid, c->block, c->shared, c->stream, params, extra);
}

// Kernel "twelve" has parameters of 8 and 4 bytes, and of all others it is not known.
result cuModuleGetFunction(uint64_t *f, uint64_t m, const char *name) {
	*f = strcmp(name, "twelve") ? 9 : 12;
	return 0;
}
result cuFuncGetParamInfo(uint64_t f, size_t i, size_t *offset, size_t *size) {
	if (f != 12) return 400;
	if (i > 1) return 1;
	*offset = 8 * i;
	*size = i ? 4 : 8;
	return 0;
}

result cuIpcOpenMemHandle_v2(uint64_t *p, ipc_handle h, unsigned flags) {
	fake_ipc.handle = h;
	fake_ipc.flags = flags;
	*p = 0x1234;
	return 0;
}
result cuIpcOpenEventHandle(uint64_t *e, ipc_handle h) {
	fake_ipc.handle = h;
	fake_ipc.flags = 0;
	*e = 0x5678;
	return 0;
}
result cuIpcGetMemHandle(ipc_handle *h, uint64_t p) {
	for (int i = 0; i < 64; i++) h->bytes[i] = (char)(p + i);
	return 0;
}

// Host functions run on a new thread of C; a stream above 100 captures.
struct call { host_fn f; void *arg; };
static void *run(void *p) {
	struct call c = *(struct call *)p;
	free(p);
	c.f(c.arg);
	return 0;
}
static void on_thread(host_fn f, void *arg, int join) {
	struct call *c = malloc(sizeof *c);
	*c = (struct call){f, arg};
	pthread_t t;
	pthread_create(&t, 0, run, c);
	if (join) pthread_join(t, 0); else pthread_detach(t);
}

static struct call captured;
result cuLaunchHostFunc(uint64_t s, host_fn f, void *arg) {
	if (s == 78) return 700;
	if (s > 100) captured = (struct call){f, arg};
	else on_thread(f, arg, 0);
	return 0;
}
result cuGraphLaunch(uint64_t x, uint64_t s) { on_thread(captured.f, captured.arg, 1); return 0; }

static struct { struct call destroy; int references; } object;
result cuUserObjectCreate(uint64_t *o, void *arg, host_fn destroy, unsigned references, unsigned flags) {
	if (flags != 1) return 1;
	object.destroy = (struct call){destroy, arg};
	object.references = references;
	*o = 1;
	return 0;
}
result cuUserObjectRelease(uint64_t o, unsigned n) {
	object.references -= n;
	if (object.references == 0) on_thread(object.destroy.f, object.destroy.arg, 1);
	return 0;
}
result cuGraphRetainUserObject(uint64_t g, uint64_t o, unsigned n, unsigned flags) { return flags == 1 ? 0 : 1; }
result cuGraphDestroy(uint64_t g) { return cuUserObjectRelease(1, 1); }

uint64_t fake_recorded[3]; // how often, and last which event on which stream
result cuEventRecord(uint64_t e, uint64_t s) {
	if (s == 99) return 400;
	fake_recorded[0]++, fake_recorded[1] = e, fake_recorded[2] = s;
	return 0;
}
result cuCtxGetCurrent(uint64_t *c) { *c = 9; return 0; }
result cuStreamIsCapturing(uint64_t s, int *status) {
	if (s == 99) return 400;
	*status = s > 100;
	return 0;
}
uint64_t fake_refused; // how often a stream that captures was asked for its ID
result cuStreamGetId(uint64_t s, uint64_t *id) {
	if (s > 100) return fake_refused++, 900;
	*id = s + 1000;
	return s == 98 ? 400 : 0;
}
static uint64_t nodes[3] = {31, 32, 33};
result cuStreamGetCaptureInfo(uint64_t s, int *status, uint64_t *id) {
	fake_calls.capture_variant = 1;
	return 0;
}
result cuStreamGetCaptureInfo_v2(uint64_t s, int *status, uint64_t *id, uint64_t *graph, const uint64_t **deps, size_t *n) {
	fake_calls.capture_variant = 2;
	*status = s > 100;
	if (s > 100) { *id = s; *graph = 900; *deps = nodes; *n = 3; }
	return 0;
}
result cuStreamGetCaptureInfo_v3(uint64_t s, int *status, uint64_t *id, uint64_t *graph, const uint64_t **deps, const void **edges, size_t *n) {
	fake_calls.capture_variant = 3;
	return 0;
}

// Each function with the version of CUDA that brought it.
static struct { const char *name; int since; void *f; } table[] = {
	{"cuDeviceGetCount", 2000, cuDeviceGetCount}, {"cuDeviceGet", 2000, cuDeviceGet}, {"cuCtxGetDevice", 2000, cuCtxGetDevice},
	{"cuMemAlloc", 3020, cuMemAlloc_v2}, {"cuLaunchKernel", 4000, cuLaunchKernel}, {"cuLaunchKernelEx", 11060, cuLaunchKernelEx},
	{"cuStreamGetCaptureInfo", 10010, cuStreamGetCaptureInfo}, {"cuStreamGetCaptureInfo", 11030, cuStreamGetCaptureInfo_v2},
	{"cuStreamGetCaptureInfo", 12030, cuStreamGetCaptureInfo_v3},
};

static void *find(const char *name, int version) {
	void *f = 0;
	fake_calls.proc_calls++;
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name) && table[i].since <= version) f = table[i].f;
	return f;
}
#if PROC >= 1
result cuGetProcAddress(const char *name, void **f, int version, uint64_t flags) {
	if (flags != 1 || version > VERSION) return 1;
	*f = find(name, version);
	return *f ? 0 : 500;
}
#endif
#if PROC >= 2
result cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status) {
	if (flags != 1 || version > VERSION) return 1;
	*f = find(name, version);
	*status = *f ? 0 : 1;
	return *f ? 0 : 500;
}
#endif

#endif // EMPTY
