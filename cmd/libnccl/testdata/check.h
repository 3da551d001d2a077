// check.h is what the test programs have in common.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"

// fail ends the program with a sentence.
static void __attribute__((noreturn, format(printf, 2, 3), unused)) fail(int line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "line %d: ", line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

#define CHECK(condition)                               \
	do {                                           \
		if (!(condition))                      \
			fail(__LINE__, "%s", #condition); \
	} while (0)

// OK wants a call to succeed.
#define OK(call)                                                                                                   \
	do {                                                                                                       \
		ncclResult_t r_ = (call);                                                                          \
		if (r_ != ncclSuccess)                                                                             \
			fail(__LINE__, "%s: %s: %s", #call, ncclGetErrorString(r_), ncclGetLastError(NULL));     \
	} while (0)

// WRONG wants a call to fail with a result and a sentence that has these words.
#define WRONG(call, result, words)                                                                                 \
	do {                                                                                                       \
		ncclResult_t r_ = (call);                                                                          \
		if (r_ != (result))                                                                                \
			fail(__LINE__, "%s: result %d, want %d", #call, r_, result);                             \
		if (!strstr(ncclGetLastError(NULL), words))                                                        \
			fail(__LINE__, "%s: \"%s\" does not say \"%s\"", #call, ncclGetLastError(NULL), words); \
	} while (0)

// poll waits until a communicator that does not block is well.
static void __attribute__((unused)) poll(ncclComm_t comm, int line)
{
	ncclResult_t state = ncclInProgress;
	for (int i = 0; i < 30000 && state == ncclInProgress; i++) {
		ncclResult_t r = ncclCommGetAsyncError(comm, &state);
		if (r != ncclSuccess)
			fail(line, "ncclCommGetAsyncError: %d: %s", r, ncclGetLastError(comm));
		usleep(1000);
	}
	if (state != ncclSuccess)
		fail(line, "state %d: %s", state, ncclGetLastError(comm));
}

// meet gives all processes one ID, by a file.
static ncclUniqueId __attribute__((unused)) meet(const char *file, int rank)
{
	ncclUniqueId id;
	char other[4096];
	FILE *f;
	if (rank == 0) {
		OK(ncclGetUniqueId(&id));
		snprintf(other, sizeof other, "%s.new", file);
		CHECK((f = fopen(other, "w")) != NULL);
		CHECK(fwrite(&id, sizeof id, 1, f) == 1 && fclose(f) == 0);
		CHECK(rename(other, file) == 0);
		return id;
	}
	for (int i = 0; (f = fopen(file, "r")) == NULL; i++) {
		CHECK(i < 30000);
		usleep(1000);
	}
	CHECK(fread(&id, sizeof id, 1, f) == 1);
	fclose(f);
	return id;
}
