// The device of a communicator where the thread has no context: device 0, or what a CUDA runtime says that it has chosen.
//
//	runtime CUDART   CUDART is the library of cudart.c
#include <dlfcn.h>

#include "check.h"

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);

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
	printf("ok\n");
	return 0;
}
