// count.c counts a program's calls of NCCL for ringo emulate and ringo swap, which load it before all other libraries: each function
// is counted and handed on to whichever library the program has. When the process ends a line of JSON goes to the file of
// RINGO_EMULATE_REPORT, if it has loaded such a library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uintptr_t word;
// All arguments of these functions are words, and more words than a function takes do no harm.
typedef int function(word, word, word, word, word, word, word, word, word, word, word);

// The functions of NCCL 2.28.9, for a program may look whether a later one is there. The numbers are of the arguments that count elements
// and say of which type; 0 where there are none.
#define NAMES                                                                                                              \
	N(ncclAllReduce, 2, 3) N(ncclReduce, 2, 3) N(ncclBroadcast, 2, 3) N(ncclBcast, 1, 2) N(ncclAllGather, 2, 3)        \
	N(ncclReduceScatter, 2, 3) N(ncclAlltoAll, 2, 3) N(ncclGather, 2, 3) N(ncclScatter, 2, 3) N(ncclSend, 1, 2)       \
	N(ncclRecv, 1, 2) N(ncclGroupEnd, 0, 0) N(ncclCommInitAll, 0, 0) N(ncclCommInitRankScalable, 0, 0)                \
	N(ncclCommSplit, 0, 0) N(ncclCommShrink, 0, 0) N(ncclCommFinalize, 0, 0) N(ncclCommDestroy, 0, 0)                 \
	N(ncclCommAbort, 0, 0) N(ncclCommRevoke, 0, 0) N(ncclCommRegister, 0, 0) N(ncclCommWindowRegister, 0, 0)          \
	N(ncclMemAlloc, 0, 0) N(ncclRedOpCreatePreMulSum, 0, 0) N(ncclGroupSimulateEnd, 0, 0) N(ncclDevCommCreate, 0, 0)

// An ID is handed over by value.
typedef struct {
	char bytes[128];
} unique_id;

enum {
#define N(name, count, type) N_##name,
	NAMES N_ncclCommInitRank, N_ncclCommInitRankConfig, FUNCTIONS
#undef N
};
static const char *const names[] = {
#define N(name, count, type) #name,
    NAMES "ncclCommInitRank", "ncclCommInitRankConfig"
#undef N
};
static struct {
	void *real;
	long calls, bytes, ns, failed, missing;
} counts[FUNCTIONS]; // by __atomic

enum { INVALID_USAGE = 5, IN_PROGRESS = 7 };

static void *find(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (!f) {
		void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD); // a program that has opened it by itself
		f = library ? dlsym(library, name) : NULL;
	}
	return f;
}

static void *real(int n)
{
	void *f = __atomic_load_n(&counts[n].real, __ATOMIC_RELAXED);
	if (!f && (f = find(names[n])))
		__atomic_store_n(&counts[n].real, f, __ATOMIC_RELAXED);
	return f;
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

// note counts a call with its result.
static int note(int n, long begun, long bytes, int result)
{
	__atomic_add_fetch(&counts[n].calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&counts[n].bytes, result && result != IN_PROGRESS ? 0 : bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&counts[n].ns, now() - begun, __ATOMIC_RELAXED);
	if (result && result != IN_PROGRESS) {
		const char *(*last)(void *) = (const char *(*)(void *))find("ncclGetLastError");
		__atomic_add_fetch(&counts[n].failed, 1, __ATOMIC_RELAXED);
		if (!real(n) || (result == INVALID_USAGE && last && strstr(last(NULL), "unsupported")))
			__atomic_add_fetch(&counts[n].missing, 1, __ATOMIC_RELAXED);
	}
	return result;
}

static long bytes_of(word count, word type)
{
	static const char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	return type < sizeof sizes ? (long)count * sizes[type] : 0;
}

#define N(name, count, type)                                                                                         \
	int name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k)             \
	{                                                                                                            \
		word all[] = {a, b, c, d};                                                                           \
		function *next = (function *)real(N_##name);                                                         \
		long begun = now();                                                                                  \
		return note(N_##name, begun, (count) ? bytes_of(all[count], (uint32_t)all[type]) : 0,                \
			    next ? next(a, b, c, d, e, f, g, h, i, j, k) : INVALID_USAGE);                           \
	}
NAMES
#undef N

int ncclCommInitRank(void *comm, int size, unique_id id, int rank)
{
	int (*next)(void *, int, unique_id, int) = (int (*)(void *, int, unique_id, int))real(N_ncclCommInitRank);
	long begun = now();
	return note(N_ncclCommInitRank, begun, 0, next ? next(comm, size, id, rank) : INVALID_USAGE);
}

int ncclCommInitRankConfig(void *comm, int size, unique_id id, int rank, void *config)
{
	int (*next)(void *, int, unique_id, int, void *) = (int (*)(void *, int, unique_id, int, void *))real(N_ncclCommInitRankConfig);
	long begun = now();
	return note(N_ncclCommInitRankConfig, begun, 0, next ? next(comm, size, id, rank, config) : INVALID_USAGE);
}

// loaded keeps the path of the first library that is an NCCL.
static int loaded(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *base = strrchr(info->dlpi_name, '/');
	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, "libnccl.so", 10))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

// quoted is a text without what JSON would not have in a string.
static const char *quoted(const char *text, char *to, size_t room)
{
	size_t n = 0;
	for (; text && *text && n + 1 < room; text++)
		to[n++] = (unsigned char)*text < ' ' || *text == '"' || *text == '\\' ? '_' : *text;
	to[n] = 0;
	return to;
}

static pid_t owner; // the child of a fork has counted nothing
__attribute__((constructor)) static void begin(void) { owner = getpid(); }
__attribute__((destructor)) static void end(void)
{
	const char *name = getenv("RINGO_EMULATE_REPORT"), *path = NULL;
	char line[16384], a[4096], b[256];
	int n, some = 0, version = 0;
	if (getpid() != owner || !name)
		return;
	Dl_info info;
	for (int i = 0; i < FUNCTIONS && !path; i++) // which the calls went to
		if (counts[i].real && dladdr(counts[i].real, &info))
			path = info.dli_fname;
	if (!path && !dl_iterate_phdr(loaded, &path))
		return;
	int (*get)(int *) = (int (*)(int *))find("ncclGetVersion");
	if (get)
		get(&version);
	n = snprintf(line, sizeof line, "{\"process\":%d,\"program\":\"%s\",\"library\":\"%s\",\"version\":%d,\"nccl\":{", (int)getpid(),
		     quoted(program_invocation_short_name, b, sizeof b), quoted(path, a, sizeof a), version);
	for (int i = 0; i < FUNCTIONS; i++)
		if (counts[i].calls)
			n += snprintf(line + n, sizeof line - n, "%s\"%s\":%ld", some++ ? "," : "", names[i], counts[i].calls);
	n += snprintf(line + n, sizeof line - n, "},\"calls\":{");
	some = 0;
	for (int i = 0; i < FUNCTIONS; i++)
		if (counts[i].calls)
			n += snprintf(line + n, sizeof line - n, "%s\"%s\":{\"bytes\":%ld,\"ns\":%ld,\"failed\":%ld,\"missing\":%ld}", some++ ? "," : "",
				      names[i], counts[i].bytes, counts[i].ns, counts[i].failed, counts[i].missing);
	n += snprintf(line + n, sizeof line - n, "}}\n");
	int file = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (file >= 0) {
		if (write(file, line, n) != n)
			perror("ringo: the report");
		close(file);
	}
}
