// thread.h is what the C and the Go half of the library know in common: the state of a thread. It
// is small, for Go's runtime puts a library's thread-local memory where there is little room.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { ERROR_BYTES = 2048 };

typedef struct {
	uintptr_t group; // the group that it has open, 0 for none
	int depth;       // of groups within each other
	int failed;      // its last call did
	char *error;     // ERROR_BYTES for the sentence of its last error, NULL before the first
	int result;      // the last error that it heard of
	const char *why; // what ncclGetErrorString says of it, for ever; NULL for what it always says
} thread_state;

// A put is what ncclPutSignal is given, or ncclSignal, which puts nothing.
typedef struct {
	uintptr_t local;
	size_t count;
	int type, peer;
	uintptr_t window;
	size_t offset;
	int signal, context;
	unsigned int flags;
	int puts;
	uintptr_t stream;
} put;

// thread_error is the calling thread's room for a sentence, which ends with the thread.
char *thread_error(void);

// note_why has ncclGetErrorString say something of a result, in the calling thread and in those that
// have heard of no such error themselves.
void note_why(int result, const char *why);

// runtime_device is the calling thread's device as the CUDA runtime has it, -1 if the process has loaded none that can be asked.
int runtime_device(void);

// library_file is where this library was loaded from.
const char *library_file(void);

// library_ready starts the Go half, and is 0 where it cannot be used: then thread_error says why.
int library_ready(void);
