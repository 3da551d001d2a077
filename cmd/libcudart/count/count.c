// count.c counts a program's calls of NCCL for ringo emulate, which loads it before all other libraries: each function
// is counted and handed on. When the process ends a line of JSON goes to the file of RINGO_EMULATE_REPORT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uintptr_t word;
// All arguments of these functions are words, and more words than a function takes do no harm.
typedef int function(word, word, word, word, word, word, word, word, word, word);

#define NAMES                                                                                                               \
	N(ncclAllReduce) N(ncclReduce) N(ncclBroadcast) N(ncclBcast) N(ncclAllGather) N(ncclReduceScatter) N(ncclAlltoAll) \
	N(ncclGather) N(ncclScatter) N(ncclSend) N(ncclRecv) N(ncclCommInitAll) N(ncclCommSplit) N(ncclCommDestroy) N(ncclCommAbort)

#define N(name) static long count_##name;
NAMES
#undef N

static function *next(const char *name)
{
	function *f = (function *)dlsym(RTLD_NEXT, name);
	if (!f) {
		void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD); // a program that has opened it by itself
		f = library ? (function *)dlsym(library, name) : NULL;
	}
	if (!f) {
		fprintf(stderr, "ringo emulate: no library has %s\n", name);
		abort();
	}
	return f;
}

#define N(name)                                                                                        \
	int name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j)       \
	{                                                                                              \
		static function *real;                                                                 \
		if (!real)                                                                             \
			real = next(#name);                                                            \
		__atomic_add_fetch(&count_##name, 1, __ATOMIC_RELAXED);                                \
		return real(a, b, c, d, e, f, g, h, i, j);                                             \
	}
NAMES
#undef N

static pid_t owner; // the child of a fork has counted nothing
__attribute__((constructor)) static void begin(void) { owner = getpid(); }
__attribute__((destructor)) static void end(void)
{
	if (getpid() != owner)
		return;
	char line[2048] = "";
	int n = snprintf(line, sizeof line, "{\"process\":%d,\"nccl\":{", (int)getpid()), some = 0;
	const char *name = getenv("RINGO_EMULATE_REPORT");
#define N(name)                                                                                                                \
	if (count_##name)                                                                                                      \
		n += snprintf(line + n, sizeof line - n, "%s\"" #name "\":%ld", some++ ? "," : "", count_##name);
	NAMES
#undef N
	n += snprintf(line + n, sizeof line - n, "}}\n");
	int file = name && some ? open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (file >= 0) {
		if (write(file, line, n) != n)
			perror("ringo emulate: the report");
		close(file);
	}
}
