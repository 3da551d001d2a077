// What a network plugin and its host agree on, versions 8 to 11.
#include <stddef.h>
#include <stdint.h>

typedef int result;
enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { LOG_WARN = 2, LOG_INFO = 3 };
enum { HOST = 1, CUDA = 2, DMABUF = 4 };
enum { HANDLE_BYTES = 128, MAX_REQUESTS = 32, MAX_RECVS = 8 };

typedef void (*log_function)(int level, unsigned long flags, const char *file, int line, const char *format, ...);
typedef result (*profile_function)(void **handle, int kind, void *parent, int64_t id, void *data);
typedef struct device_handle device_handle;
typedef struct { int trafficClass; } config;
typedef struct { int ndevs; int devs[4]; } vdevice;

typedef struct {
	char *name, *pciPath;
	uint64_t guid;
	int ptrSupport, regIsGlobal, speed, port;
	float latency;
	int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
} properties8;

typedef struct {
	char *name, *pciPath;
	uint64_t guid;
	int ptrSupport, regIsGlobal, forceFlush, speed, port;
	float latency;
	int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
	vdevice vProps;
	size_t maxP2pBytes, maxCollBytes;
} properties9;
typedef properties9 properties10;

typedef struct {
	char *name, *pciPath;
	uint64_t guid;
	int ptrSupport, regIsGlobal, forceFlush, speed, port;
	float latency;
	int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
	vdevice vProps;
	size_t maxP2pBytes, maxCollBytes;
	int maxMultiRequestSize;
} properties11;

typedef struct {
	const char *name;
	result (*init)(log_function);
	result (*devices)(int *);
	result (*getProperties)(int, properties8 *);
	result (*listen)(int, void *handle, void **comm);
	result (*connect)(int, void *handle, void **comm, device_handle **);
	result (*accept)(void *listener, void **comm, device_handle **);
	result (*regMr)(void *comm, void *data, size_t, int kind, void **mr);
	result (*regMrDmaBuf)(void *comm, void *data, size_t, int kind, uint64_t offset, int fd, void **mr);
	result (*deregMr)(void *comm, void *mr);
	result (*isend)(void *comm, void *data, int, int tag, void *mr, void **request);
	result (*irecv)(void *comm, int n, void **data, int *sizes, int *tags, void **mrs, void **request);
	result (*iflush)(void *comm, int n, void **data, int *sizes, void **mrs, void **request);
	result (*test)(void *request, int *done, int *sizes);
	result (*closeSend)(void *comm);
	result (*closeRecv)(void *comm);
	result (*closeListen)(void *comm);
	result (*getDeviceMr)(void *comm, void *mr, void **);
	result (*irecvConsumed)(void *comm, int n, void *request);
} net8;

typedef struct {
	const char *name;
	result (*init)(log_function);
	result (*devices)(int *);
	result (*getProperties)(int, properties9 *);
	result (*listen)(int, void *handle, void **comm);
	result (*connect)(int, void *handle, void **comm, device_handle **);
	result (*accept)(void *listener, void **comm, device_handle **);
	result (*regMr)(void *comm, void *data, size_t, int kind, void **mr);
	result (*regMrDmaBuf)(void *comm, void *data, size_t, int kind, uint64_t offset, int fd, void **mr);
	result (*deregMr)(void *comm, void *mr);
	result (*isend)(void *comm, void *data, size_t, int tag, void *mr, void **request);
	result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mrs, void **request);
	result (*iflush)(void *comm, int n, void **data, int *sizes, void **mrs, void **request);
	result (*test)(void *request, int *done, int *sizes);
	result (*closeSend)(void *comm);
	result (*closeRecv)(void *comm);
	result (*closeListen)(void *comm);
	result (*getDeviceMr)(void *comm, void *mr, void **);
	result (*irecvConsumed)(void *comm, int n, void *request);
	result (*makeVDevice)(int *, vdevice *);
} net9;

typedef struct {
	const char *name;
	result (*init)(log_function, profile_function);
	result (*devices)(int *);
	result (*getProperties)(int, properties10 *);
	result (*listen)(int, void *handle, void **comm);
	result (*connect)(int, config *, void *handle, void **comm, device_handle **);
	result (*accept)(void *listener, void **comm, device_handle **);
	result (*regMr)(void *comm, void *data, size_t, int kind, void **mr);
	result (*regMrDmaBuf)(void *comm, void *data, size_t, int kind, uint64_t offset, int fd, void **mr);
	result (*deregMr)(void *comm, void *mr);
	result (*isend)(void *comm, void *data, size_t, int tag, void *mr, void *profile, void **request);
	result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mrs, void **profiles, void **request);
	result (*iflush)(void *comm, int n, void **data, int *sizes, void **mrs, void **request);
	result (*test)(void *request, int *done, int *sizes);
	result (*closeSend)(void *comm);
	result (*closeRecv)(void *comm);
	result (*closeListen)(void *comm);
	result (*getDeviceMr)(void *comm, void *mr, void **);
	result (*irecvConsumed)(void *comm, int n, void *request);
	result (*makeVDevice)(int *, vdevice *);
} net10;

typedef struct {
	const char *name;
	result (*init)(void **context, uint64_t id, config *, log_function, profile_function);
	result (*devices)(int *);
	result (*getProperties)(int, properties11 *);
	result (*listen)(void *context, int, void *handle, void **comm);
	result (*connect)(void *context, int, void *handle, void **comm, device_handle **);
	result (*accept)(void *listener, void **comm, device_handle **);
	result (*regMr)(void *comm, void *data, size_t, int kind, void **mr);
	result (*regMrDmaBuf)(void *comm, void *data, size_t, int kind, uint64_t offset, int fd, void **mr);
	result (*deregMr)(void *comm, void *mr);
	result (*isend)(void *comm, void *data, size_t, int tag, void *mr, void *profile, void **request);
	result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mrs, void **profiles, void **request);
	result (*iflush)(void *comm, int n, void **data, int *sizes, void **mrs, void **request);
	result (*test)(void *request, int *done, int *sizes);
	result (*closeSend)(void *comm);
	result (*closeRecv)(void *comm);
	result (*closeListen)(void *comm);
	result (*getDeviceMr)(void *comm, void *mr, void **);
	result (*irecvConsumed)(void *comm, int n, void *request);
	result (*makeVDevice)(int *, vdevice *);
	result (*finalize)(void *context);
	result (*setNetAttr)(void *context, void *attributes);
} net11;
