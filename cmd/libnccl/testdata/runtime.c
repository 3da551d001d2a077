// The device of a communicator where the thread has no context: device 0, or what a CUDA runtime says that it has chosen; and
// the memory of a context that the program has made itself.
//
//	runtime CUDART   CUDART is the library of cudart.c
#include <dlfcn.h>

#include "check.h"

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *), cuMemAlloc_v2(unsigned long long *, size_t), cuMemFree_v2(unsigned long long);

// chosen is the device of a communicator that the thread makes.
static int chosen(void)
{
	ncclComm_t comm;
	ncclUniqueId id;
	int device;
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRank(&comm, 1, id, 0));
	OK(ncclCommCuDevice(comm, &device));
	OK(ncclCommDestroy(comm));
	return device;
}

// own_context has a collective refuse memory that its kernels do not reach.
static void own_context(void)
{
	ncclComm_t comm;
	ncclUniqueId id;
	void *context;
	unsigned long long p;
	CHECK(!cuCtxCreate_v2(&context, 0, 1) && !cuMemAlloc_v2(&p, 64));
	OK(ncclGetUniqueId(&id));
	OK(ncclCommInitRank(&comm, 1, id, 0));
	WRONG(ncclAllReduce((void *)p, (void *)p, 16, ncclFloat32, ncclSum, comm, NULL), ncclInvalidArgument, "memory of another context");
	OK(ncclCommDestroy(comm));
	CHECK(!cuMemFree_v2(p) && !cuCtxDestroy_v2(context));
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	CHECK(chosen() == 0);
	void *runtime = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	CHECK(runtime);
	int (*set)(int) = (int (*)(int))dlsym(runtime, "cudaSetDevice");
	CHECK(set && !set(2));
	CHECK(chosen() == 2);
	void *context;
	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 1) && !cuCtxSetCurrent(context));
	CHECK(chosen() == 1); // a context is what the thread works on
	own_context();
	printf("ok\n");
	return 0;
}
