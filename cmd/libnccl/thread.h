// thread.h declares the state of a thread, which the C and the Go half of the library share. The
// state is small, since thread-local memory of a library with Go's runtime is scarce.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { ERROR_BYTES = 2048 };

// How a call has failed: as its communicator has, or as the program has asked for, by ncclCommAbort.
enum { NOT_FAILED, HAS_FAILED, COMM_FAILED, WAS_ASKED };

typedef struct {
	uintptr_t group; // handle of the open group, 0 for none
	int depth;       // of nested groups
	int failed;      // how the last call failed, NOT_FAILED if it did not
	char *error;     // ERROR_BYTES for the sentence of the last error, NULL before the first
} thread_state;

// A put holds the arguments of ncclPutSignal, or of ncclSignal, which puts nothing.
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

// thread_error is the calling thread's ERROR_BYTES for a sentence, which are freed at the thread's end.
char *thread_error(void);

// runtime_device is the calling thread's device in the CUDA runtime, -1 if the process has loaded no runtime that can be asked.
int runtime_device(void);

// library_file is where this library was loaded from.
const char *library_file(void);

// process_environment is the variables of the process, a null pointer at the end.
char **process_environment(void);

// fails tells ringo emulate, if it runs the program, that a call has failed. It is the result.
int fails(const char *call, int result, int how);

// comm_fails tells it that a communicator has failed, in a call and with a GPU, or -1.
void comm_fails(const char *comm, const char *call, const char *why, int device);

// library_ready starts the Go half. It returns 0 where that cannot be used; thread_error then holds the reason.
int library_ready(void);
