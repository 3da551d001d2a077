// start.c opens the driver, keeps each thread's last error, and knows the modules of the program: what
// clang and nvcc have a program register before main.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "driver.h"

enum { mostDevices = 64 };

struct driver driver;

static int opened = -1; // the result of opening
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static word primaries[mostDevices];
static __thread int last;
static __thread char reason[256]; // of the error under way, if the runtime has found it

static void opens(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "libcudart: %s: put the emulated GPUs' libcuda.so.1 (scripts/libcuda) into LD_LIBRARY_PATH, or start the program with ringo emulate\n", dlerror());
		opened = cudaErrorInsufficientDriver;
		return;
	}
#define D(name, parameters)                                                                                                  \
	if (!(driver.name = (int(*) parameters)dlsym(library, #name))) {                                                     \
		fprintf(stderr, "libcudart: libcuda.so.1 has no %s: it is older than this libcudart, build both anew\n", #name); \
		opened = cudaErrorInsufficientDriver;                                                                        \
		return;                                                                                                      \
	}
	DRIVER
#undef D
	driver.ringo_cuda_failed = (void (*)(const char *, const char *, int, const char *, int))dlsym(library, "ringo_cuda_failed");
	opened = driver.cuInit(0);
}

int ready(void)
{
	pthread_once(&once, opens);
	return opened;
}

int contextOf(int device, word *context)
{
	int result = ready();
	if (result)
		return result;
	if (device < 0 || device >= mostDevices)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	if (!primaries[device])
		result = driver.cuDevicePrimaryCtxRetain(&primaries[device], device);
	*context = primaries[device];
	pthread_mutex_unlock(&lock);
	return result;
}

int entered(void)
{
	word context = 0;
	int result = ready();
	if (!result)
		result = driver.cuCtxGetCurrent(&context);
	if (result || context)
		return result;
	result = contextOf(0, &context);
	return result ? result : driver.cuCtxSetCurrent(context);
}

int done(int result)
{
	if (result && result != cudaErrorNotReady) {
		last = result;
		if (driver.ringo_cuda_failed)
			driver.ringo_cuda_failed(NULL, cudaGetErrorName(result), result, *reason ? reason : NULL, 0);
	}
	*reason = 0;
	return result;
}

int because(int result, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	vsnprintf(reason, sizeof reason, format, words);
	va_end(words);
	return result;
}

cudaError_t cudaGetLastError(void)
{
	int result = last;
	last = 0;
	return result;
}
cudaError_t cudaPeekAtLastError(void) { return last; }

// A binary is one fat binary of the program, and its module on each device.
typedef struct binary {
	const void *image;
	word modules[mostDevices];
	struct binary *next;
} binary;

// A symbol is a kernel or a variable: what the host calls it, and its name in the module.
typedef struct symbol {
	const void *host;
	char *name;
	binary *of;
	int variable;
	struct symbol *next;
	word functions[mostDevices]; // of a kernel
} symbol;

enum { buckets = 1024 };
static symbol *symbols[buckets];
static binary *binaries;

static symbol **bucket(const void *host) { return &symbols[((uintptr_t)host >> 3) % buckets]; }

// A wrapper is what the compiler registers.
typedef struct {
	unsigned magic, version;
	const void *image;
	void *more;
} wrapper;

void **__cudaRegisterFatBinary(void *fat)
{
	const wrapper *w = fat;
	binary *b = calloc(1, sizeof *b);
	if (!b)
		abort();
	if (w->magic != 0x466243b1)
		fprintf(stderr, "libcudart: a fat binary with the mark %#x, which no known compiler makes; its kernels cannot be launched\n", w->magic);
	else
		b->image = w->image;
	pthread_mutex_lock(&lock);
	b->next = binaries;
	binaries = b;
	pthread_mutex_unlock(&lock);
	return (void **)b;
}

void __cudaRegisterFatBinaryEnd(void **fat) { (void)fat; }

void __cudaUnregisterFatBinary(void **fat)
{
	binary *b = (binary *)fat;
	pthread_mutex_lock(&lock);
	for (binary **at = &binaries; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			break;
		}
	for (int i = 0; i < buckets; i++)
		for (symbol **at = &symbols[i]; *at;) {
			symbol *s = *at;
			if (s->of == b) {
				*at = s->next;
				free(s->name);
				free(s);
			} else
				at = &s->next;
		}
	for (int d = 0; d < mostDevices; d++)
		if (b->modules[d])
			driver.cuModuleUnload(b->modules[d]);
	pthread_mutex_unlock(&lock);
	free(b);
}

static void add(void **fat, const void *host, const char *name, int variable)
{
	symbol *s = calloc(1, sizeof *s), **at = bucket(host);
	if (!s || !(s->name = strdup(name)))
		abort();
	s->host = host, s->of = (binary *)fat, s->variable = variable;
	pthread_mutex_lock(&lock);
	s->next = *at;
	*at = s;
	pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **fat, const char *host, char *device, const char *name, int limit, void *thread, void *block, void *blockDim, void *gridDim, int *warp)
{
	(void)device, (void)limit, (void)thread, (void)block, (void)blockDim, (void)gridDim, (void)warp;
	add(fat, host, name, 0);
}

void __cudaRegisterVar(void **fat, char *host, char *address, const char *name, int external, size_t size, int constant, int global)
{
	(void)address, (void)external, (void)size, (void)constant, (void)global;
	add(fat, host, name, 1);
}

char __cudaInitModule(void **fat) { return fat != NULL; }

void __cudaRegisterManagedVar(void **fat, void **host, char *address, const char *name, int external, size_t size, int constant, int global)
{
	(void)fat, (void)host, (void)address, (void)external, (void)size, (void)constant, (void)global;
	fprintf(stderr, "libcudart: variable %s is __managed__, which is not carried out: make it __device__, or call cudaMallocManaged\n", name);
}

// Textures and surfaces of modules: programs that have them fail where they use them.
void __cudaRegisterTexture(void **fat, const void *host, const void **address, const char *name, int dim, int norm, int external)
{
	(void)fat, (void)host, (void)address, (void)dim, (void)norm, (void)external;
	fprintf(stderr, "libcudart: texture %s: textures are not carried out\n", name);
}
void __cudaRegisterSurface(void **fat, const void *host, const void **address, const char *name, int dim, int external)
{
	(void)fat, (void)host, (void)address, (void)dim, (void)external;
	fprintf(stderr, "libcudart: surface %s: surfaces are not carried out\n", name);
}

// load gives the symbol behind a host address, its module loaded on the current device. The lock is held.
static int load(const void *host, int variable, int *device, symbol **found)
{
	int result = driver.cuCtxGetDevice(device);
	symbol *s = *bucket(host);
	while (s && !(s->host == host && s->variable == variable))
		s = s->next;
	if (result)
		return result;
	if (!s || !s->of->image)
		return variable ? cudaErrorInvalidSymbol : cudaErrorInvalidDeviceFunction;
	*found = s;
	word *module = &s->of->modules[*device];
	return *module ? 0 : driver.cuModuleLoadData(module, s->of->image);
}

int functionOf(const void *host, word *function)
{
	symbol *s;
	int device, result = entered();
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	result = load(host, 0, &device, &s);
	if (!result && !s->functions[device])
		result = driver.cuModuleGetFunction(&s->functions[device], s->of->modules[device], s->name);
	if (!result)
		*function = s->functions[device];
	pthread_mutex_unlock(&lock);
	return result == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : result;
}

int variableOf(const void *host, word *p, size_t *bytes)
{
	symbol *s;
	int device, result = entered();
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	result = load(host, 1, &device, &s);
	if (!result)
		result = driver.cuModuleGetGlobal_v2(p, bytes, s->of->modules[device], s->name);
	pthread_mutex_unlock(&lock);
	return result == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : result;
}

void forgetModules(int device)
{
	pthread_mutex_lock(&lock);
	for (binary *b = binaries; b; b = b->next)
		b->modules[device] = 0;
	for (int i = 0; i < buckets; i++)
		for (symbol *s = symbols[i]; s; s = s->next)
			s->functions[device] = 0;
	primaries[device] = 0;
	pthread_mutex_unlock(&lock);
}

// Launches with <<<>>> go by a stack of configurations a thread.
typedef struct {
	dim3 grid, block;
	size_t shared;
	void *stream;
} configuration;
static __thread configuration pushed[8];
static __thread int depth;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	if (depth == sizeof pushed / sizeof *pushed)
		return cudaErrorInvalidConfiguration;
	pushed[depth++] = (configuration){grid, block, shared, stream};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!depth)
		return cudaErrorMissingConfiguration;
	configuration c = pushed[--depth];
	*grid = c.grid, *block = c.block, *shared = c.shared, *(void **)stream = c.stream;
	return 0;
}
