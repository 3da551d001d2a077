//go:build linux

// emulated.c tells ringo emulate what has failed, by libcuda.so.1 of the emulated GPUs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "nccl.h"
#include "thread.h"

// found is a function of that library, NULL if the program does not run on emulated GPUs.
static void *found(const char *name)
{
	void *library = getenv("RINGO_EMULATE_REPORT") ? dlopen("libcuda.so.1", RTLD_LAZY) : NULL; // which stays
	return library ? dlsym(library, name) : NULL;
}

int fails(const char *call, int result, int how)
{
	static const char *const names[] = {"", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError"};
	void (*tell)(const char *, const char *, int, const char *, int);
	if (result > 0 && result < (int)(sizeof names / sizeof *names) && how != WAS_ASKED &&
	    (tell = (void (*)(const char *, const char *, int, const char *, int))found("ringo_cuda_failed")))
		tell(call, names[result], result, thread_error(), how == COMM_FAILED);
	return result;
}

void comm_fails(const char *comm, const char *call, const char *why, int device)
{
	void (*tell)(const char *, const char *, const char *, int) =
	    (void (*)(const char *, const char *, const char *, int))found("ringo_cuda_comm_failed");
	if (tell)
		tell(comm, call, why, device);
}
