// memory.c has memory, copies, sets and pools.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "driver.h"
#include "run.h"

enum { memoryType = 2, devicePointer = 3, hostPointer = 4, deviceOrdinal = 9 }; // CU_POINTER_ATTRIBUTE_
enum { typeHost = 1, typeDevice = 2 };

// kindOf is typeHost for pinned memory, typeDevice, and 0 for memory that the driver does not know.
static int kindOf(const void *p)
{
	unsigned kind = 0;
	return driver.cuPointerGetAttribute(&kind, memoryType, (word)p) ? 0 : (int)kind;
}

// A range is managed memory. It lies on the host, where kernels reach it too.
typedef struct range {
	char *p;
	size_t bytes;
	struct range *next;
} range;
static range *ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// managed is the bytes of the managed memory that has an address, 0 for other memory. With free it is forgotten if p is its beginning.
static size_t managed(const void *p, int free_)
{
	size_t bytes = 0;
	pthread_mutex_lock(&lock);
	for (range **at = &ranges; *at; at = &(*at)->next) {
		range *r = *at;
		if ((char *)p < r->p || (char *)p >= r->p + r->bytes)
			continue;
		bytes = r->bytes;
		if (free_ && p == r->p) {
			*at = r->next;
			free(r);
		}
		break;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	if (!p)
		return done(because(cudaErrorInvalidValue, "the pointer to the result is null"));
	*p = NULL;
	return RUN(bytes ? driver.cuMemAlloc_v2((word *)p, bytes) : 0);
}
cudaError_t cudaFree(void *p)
{
	if (!p)
		return RUN(driver.cuMemFree_v2(0)); // which makes a context: programs call it for that
	return BACK(managed(p, 1) ? driver.cuMemFreeHost(p) : driver.cuMemFree_v2((word)p));
}
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
	GIVEN(p);
	*p = NULL;
	return RUN(bytes ? driver.cuMemHostAlloc(p, bytes, flags) : 0);
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
cudaError_t cudaFreeHost(void *p) 
{
	WANT(!managed(p, 0), cudaErrorInvalidValue, "%p is managed memory, which cudaFree frees", p);
	return p ? BACK(driver.cuMemFreeHost(p)) : RUN(0);
}
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags) { return RUN(driver.cuMemHostRegister_v2(p, bytes, flags)); }
cudaError_t cudaHostUnregister(void *p) 
{
	GIVEN(p);
	return BACK(driver.cuMemHostUnregister(p));
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) 
{
	WANT(!flags, cudaErrorInvalidValue, "flags %#x: they have to be 0", flags);
	WANT(!managed(host, 0), cudaErrorInvalidValue, "%p is managed memory, whose address is the device's too", host);
	return RUN(driver.cuMemHostGetDevicePointer_v2((word *)device, host, flags));
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *p)
{
	GIVEN(flags);
	return RUN(driver.cuMemHostGetFlags(flags, p));
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
	GIVEN(p);
	WANT(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost, cudaErrorInvalidValue, "flags %#x, expected cudaMemAttachGlobal or cudaMemAttachHost", flags);
	range *r = malloc(sizeof *r);
	int result = r ? (int)cudaHostAlloc(p, bytes, cudaHostAllocPortable | cudaHostAllocMapped) : done(cudaErrorMemoryAllocation);
	if (result || !bytes) {
		free(r);
		return result;
	}
	pthread_mutex_lock(&lock);
	*r = (range){*p, bytes, ranges};
	ranges = r;
	pthread_mutex_unlock(&lock);
	return result;
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *p, size_t bytes, unsigned flags)
{
	size_t all = managed(p, 0);
	WANT(all && (!bytes || bytes == all), cudaErrorInvalidValue, "%zu bytes at %p are not the whole of managed memory", bytes, p);
	WANT(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle, cudaErrorInvalidValue, "flags %#x", flags);
	WANT(stream || flags != cudaMemAttachSingle, cudaErrorInvalidValue, "cudaMemAttachSingle wants a stream");
	return RUN(0);
}
#if CUDART_VERSION < 13000
cudaError_t cudaMemPrefetchAsync(const void *p, size_t bytes, int device, cudaStream_t stream)
{
	(void)p, (void)bytes, (void)device, (void)stream;
	return RUN(0);
}
cudaError_t cudaMemAdvise(const void *p, size_t bytes, int advice, int device)
{
	(void)p, (void)bytes, (void)advice, (void)device;
	return RUN(0);
}
#endif

enum { pitchUnit = 512 };
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
	GIVEN(pitch);
	*pitch = height ? (width + pitchUnit - 1) / pitchUnit * pitchUnit : 0;
	return cudaMalloc(p, *pitch * height);
}
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent e)
{
	GIVEN(p);
	p->xsize = e.width, p->ysize = e.height;
	return cudaMallocPitch(&p->ptr, &p->pitch, e.width, e.height * e.depth);
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) { return RUN(driver.cuMemGetInfo_v2(free, total)); }

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
	GIVEN(a);
	int result = entered(), kind = 0;
	memset(a, 0, sizeof *a);
	a->device = -2; // cudaInvalidDeviceId, of memory that the driver does not know
	if (!result)
		kind = kindOf(p);
	if (result || !kind) {
		a->hostPointer = (void *)p;
		return done(result);
	}
	a->type = managed(p, 0) ? cudaMemoryTypeManaged : (enum cudaMemoryType)kind;
	driver.cuPointerGetAttribute(&a->device, deviceOrdinal, (word)p);
	driver.cuPointerGetAttribute(&a->devicePointer, devicePointer, (word)p);
	if (kind == typeHost)
		driver.cuPointerGetAttribute(&a->hostPointer, hostPointer, (word)p);
	return 0;
}

// Handles of other processes
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *p) { return RUN(driver.cuIpcGetMemHandle(h, (word)p)); }
cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t h, unsigned flags)
{
	handle64 copy;
	WANT(flags & cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue, "flags %#x, expected cudaIpcMemLazyEnablePeerAccess", flags);
	memcpy(&copy, &h, sizeof copy);
	return RUN(driver.cuIpcOpenMemHandle_v2((word *)p, copy, flags));
}
cudaError_t cudaIpcCloseMemHandle(void *p) { return BACK(driver.cuIpcCloseMemHandle((word)p)); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *h, cudaEvent_t e)
{
	GIVEN(e);
	return RUN(driver.cuIpcGetEventHandle(h, (word)e));
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *e, cudaIpcEventHandle_t h)
{
	handle64 copy;
	memcpy(&copy, &h, sizeof copy);
	return RUN(driver.cuIpcOpenEventHandle((word *)e, copy));
}

// fits reports whether the ends of a copy are what its kind says.
static int fits(const void *to, const void *from, enum cudaMemcpyKind kind)
{
	if ((unsigned)kind > cudaMemcpyDefault)
		return because(cudaErrorInvalidMemcpyDirection, "there is no cudaMemcpyKind %d", kind);
	int wantTo = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	int wantFrom = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	if (!to || !from)
		return because(cudaErrorInvalidValue, "a copy %s a null pointer", to ? "from" : "to");
	if (kind == cudaMemcpyDefault)
		return 0;
	// An address tells whose it is. Pageable memory alone is no device's.
	if (wantTo && !kindOf(to))
		return because(cudaErrorInvalidValue, "the cudaMemcpyKind says that a device gets the bytes, and %p is not its memory", to);
	if (wantFrom && !kindOf(from))
		return because(cudaErrorInvalidValue, "the cudaMemcpyKind says that a device has the bytes, and %p is not its memory", from);
	return 0;
}

static int copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	int result = bytes ? fits(to, from, kind) : 0;
	return result || !bytes ? result : driver.cuMemcpy((word)to, (word)from, bytes);
}
static int copyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
	int result = bytes ? fits(to, from, kind) : 0;
	return result || !bytes ? result : driver.cuMemcpyAsync((word)to, (word)from, bytes, (word)s);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) { return RUN(copy(to, from, bytes, kind)); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) { return RUN(copyAsync(to, from, bytes, kind, s)); }
static int there(int device) { return !ready() && (unsigned)device < (unsigned)devices(); }
cudaError_t cudaMemcpyPeer(void *to, int toDevice, const void *from, int fromDevice, size_t bytes)
{
	WANT(!bytes || (there(toDevice) && there(fromDevice)), cudaErrorInvalidDevice, "devices %d and %d, of %d", toDevice, fromDevice, devices());
	return RUN(copy(to, from, bytes, cudaMemcpyDeviceToDevice));
}
cudaError_t cudaMemcpyPeerAsync(void *to, int toDevice, const void *from, int fromDevice, size_t bytes, cudaStream_t s)
{
	WANT(!bytes || (there(toDevice) && there(fromDevice)), cudaErrorInvalidDevice, "devices %d and %d, of %d", toDevice, fromDevice, devices());
	return RUN(copyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s));
}

// A box is the ends of a copy of rows in layers.
typedef struct {
	char *to;
	const char *from;
	size_t toPitch, fromPitch, toLayer, fromLayer, width, height, depth;
	enum cudaMemcpyKind kind;
} box;

static int copyBox(box b, int async, cudaStream_t s)
{
	if (b.height && (b.width > b.toPitch || b.width > b.fromPitch))
		return because(b.height > 1 ? cudaErrorInvalidPitchValue : cudaErrorInvalidValue, "rows of %zu bytes are %zu and %zu apart", b.width, b.toPitch, b.fromPitch);
	for (size_t z = 0; z < b.depth; z++)
		for (size_t y = 0; y < b.height; y++) {
			char *to = b.to + z * b.toLayer + y * b.toPitch;
			const char *from = b.from + z * b.fromLayer + y * b.fromPitch;
			int result = async ? copyAsync(to, from, b.width, b.kind, s) : copy(to, from, b.width, b.kind);
			if (result)
				return result;
		}
	return 0;
}

cudaError_t cudaMemcpy2D(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return RUN(copyBox((box){to, from, toPitch, fromPitch, 0, 0, width, height, 1, kind}, 0, 0));
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t s)
{
	return RUN(copyBox((box){to, from, toPitch, fromPitch, 0, 0, width, height, 1, kind}, 1, s));
}
static int copy3D(const struct cudaMemcpy3DParms *p, int async, cudaStream_t s)
{
	if (!p)
		return because(cudaErrorInvalidValue, "the parameters are null");
	if (p->extent.depth > 1 && (p->extent.height > p->srcPtr.ysize || p->extent.height > p->dstPtr.ysize))
		return because(cudaErrorInvalidPitchValue, "layers of %zu rows are %zu and %zu rows apart", p->extent.height, p->srcPtr.ysize, p->dstPtr.ysize);
	if (p->srcArray || p->dstArray)
		return because(cudaErrorNotSupported, "copies of arrays are not carried out on emulated GPUs");
	size_t toLayer = p->dstPtr.pitch * p->dstPtr.ysize, fromLayer = p->srcPtr.pitch * p->srcPtr.ysize;
	char *to = (char *)p->dstPtr.ptr + p->dstPos.z * toLayer + p->dstPos.y * p->dstPtr.pitch + p->dstPos.x;
	char *from = (char *)p->srcPtr.ptr + p->srcPos.z * fromLayer + p->srcPos.y * p->srcPtr.pitch + p->srcPos.x;
	return copyBox((box){to, from, p->dstPtr.pitch, p->srcPtr.pitch, toLayer, fromLayer, p->extent.width, p->extent.height, p->extent.depth, p->kind}, async, s);
}
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { return RUN(copy3D(p, 0, 0)); }
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) { return RUN(copy3D(p, 1, s)); }

// Variables
cudaError_t cudaGetSymbolAddress(void **p, const void *symbol)
{
	size_t bytes;
	return done(variableOf(symbol, (word *)p, &bytes));
}
cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
	word p;
	return done(variableOf(symbol, &p, bytes));
}
// place is bytes of a variable.
static int place(const void *symbol, size_t bytes, size_t offset, char **p, int wrong, enum cudaMemcpyKind kind)
{
	size_t size;
	int result = variableOf(symbol, (word *)p, &size);
	if (!bytes)
		return result;
	if (!result && ((int)kind == wrong || kind == cudaMemcpyHostToHost))
		return because(cudaErrorInvalidMemcpyDirection, "a variable is memory of a device");
	if (!result && (offset > size || bytes > size - offset))
		return because(cudaErrorInvalidValue, "%zu bytes from %zu on, of a variable of %zu", bytes, offset, size);
	*p += offset;
	return result;
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	char *p;
	int result = place(symbol, bytes, offset, &p, cudaMemcpyDeviceToHost, kind);
	return done(result ? result : copy(p, from, bytes, kind));
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	char *p;
	int result = place(symbol, bytes, offset, &p, cudaMemcpyHostToDevice, kind);
	return done(result ? result : copy(to, p, bytes, kind));
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s)
{
	char *p;
	int result = place(symbol, bytes, offset, &p, cudaMemcpyDeviceToHost, kind);
	return done(result ? result : copyAsync(p, from, bytes, kind, s));
}
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s)
{
	char *p;
	int result = place(symbol, bytes, offset, &p, cudaMemcpyHostToDevice, kind);
	return done(result ? result : copyAsync(to, p, bytes, kind, s));
}

// Sets
cudaError_t cudaMemset(void *p, int value, size_t bytes) { return RUN(bytes ? driver.cuMemsetD8_v2((word)p, value, bytes) : 0); }
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s) { return RUN(bytes ? driver.cuMemsetD8Async((word)p, value, bytes, (word)s) : 0); }
static int set2D(char *p, size_t pitch, int value, size_t width, size_t height, int async, cudaStream_t s)
{
	int result = 0;
	if (height > 1 && width > pitch)
		return because(cudaErrorInvalidValue, "rows of %zu bytes are %zu apart", width, pitch);
	for (size_t y = 0; !result && width && y < height; y++)
		result = async ? driver.cuMemsetD8Async((word)p + y * pitch, value, width, (word)s) : driver.cuMemsetD8_v2((word)p + y * pitch, value, width);
	return result;
}
cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height) { return RUN(set2D(p, pitch, value, width, height, 0, 0)); }
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t s) { return RUN(set2D(p, pitch, value, width, height, 1, s)); }

// Memory in the order of streams. There is one pool a device, which holds nothing back.
cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t s)
{
	if (!p)
		return done(cudaErrorInvalidValue);
	*p = NULL;
	return RUN(bytes ? driver.cuMemAllocAsync((word *)p, bytes, (word)s) : 0);
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { return p ? BACK(driver.cuMemFreeAsync((word)p, (word)s)) : RUN(0); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	GIVEN(pool);
	WANT(there(device), cudaErrorInvalidDevice, "there is no device %d", device);
	*pool = (cudaMemPool_t)(word)(device + 1);
	return OPENED(0);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	WANT(there(device), cudaErrorInvalidValue, "there is no device %d", device);
	return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s)
{
	(void)pool;
	return cudaMallocAsync(p, bytes, s);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	GIVEN(pool);
	(void)keep;
	return RUN(0);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	GIVEN(pool);
	GIVEN(value);
	WANT(attr >= cudaMemPoolReuseFollowEventDependencies && attr <= cudaMemPoolAttrUsedMemHigh, cudaErrorInvalidValue, "there is no attribute %d", attr);
	return RUN(0);
}
