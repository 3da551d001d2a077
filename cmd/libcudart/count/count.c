// count.c counts a program's calls of NCCL for ringo emulate and ringo swap, which load it before all other libraries: each function
// is counted and handed on to whichever library the program has. When the process ends a line of JSON goes to the file of
// RINGO_EMULATE_REPORT, if it has loaded such a library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uintptr_t word;
// All arguments of these functions are words. More of them than a function takes do no harm in registers, which hold 6 on every machine;
// those on the stack have to be exact, as the compiler may write to the memory of arguments.
#define TAKES6 word a, word b, word c, word d, word e, word f
#define TAKES7 TAKES6, word g
#define TAKES8 TAKES7, word h
#define GIVES6 a, b, c, d, e, f
#define GIVES7 GIVES6, g
#define GIVES8 GIVES7, h

// The functions of NCCL 2.28.9, for a program may look whether a later one is there. A function takes so many words. The next
// numbers are of the arguments that count elements and say of which type, the letter is the communicator's argument; 0 where there are none.
#define NAMES                                                                                                    \
	N(ncclAllReduce, 7, 2, 3, f) N(ncclReduce, 8, 2, 3, g) N(ncclBroadcast, 7, 2, 3, f)                      \
	N(ncclBcast, 6, 1, 2, e) N(ncclAllGather, 6, 2, 3, e) N(ncclReduceScatter, 7, 2, 3, f)                   \
	N(ncclAlltoAll, 6, 2, 3, e) N(ncclGather, 7, 2, 3, f) N(ncclScatter, 7, 2, 3, f) N(ncclSend, 6, 1, 2, e) \
	N(ncclRecv, 6, 1, 2, e) N(ncclGroupStart, 6, 0, 0, 0) N(ncclGroupEnd, 6, 0, 0, 0)                        \
	N(ncclCommInitAll, 6, 0, 0, 0) N(ncclCommInitRankScalable, 6, 0, 0, 0) N(ncclCommSplit, 6, 0, 0, 0)      \
	N(ncclCommShrink, 6, 0, 0, 0) N(ncclCommFinalize, 6, 0, 0, 0) N(ncclCommDestroy, 6, 0, 0, 0)             \
	N(ncclCommAbort, 6, 0, 0, 0) N(ncclCommRevoke, 6, 0, 0, 0) N(ncclCommRegister, 6, 0, 0, 0)               \
	N(ncclCommWindowRegister, 6, 0, 0, 0) N(ncclMemAlloc, 6, 0, 0, 0) N(ncclMemFree, 6, 0, 0, 0)             \
	N(ncclRedOpCreatePreMulSum, 6, 0, 0, 0) N(ncclGroupSimulateEnd, 6, 0, 0, 0)                              \
	N(ncclDevCommCreate, 6, 0, 0, 0)

// An ID is handed over by value.
typedef struct {
	char bytes[128];
} unique_id;

enum {
#define N(name, words, count, type, comm) N_##name,
	NAMES N_ncclCommInitRank, N_ncclCommInitRankConfig, FUNCTIONS
#undef N
};
static const char *const names[] = {
#define N(name, words, count, type, comm) #name,
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

// The emulated driver (cmd/libcuda) asks where the program calls NCCL, to name what a kernel of NCCL's is for.
typedef struct {
	int n; // the function
	word at;
} site;

enum { SITES = 16, DEVICES = 64, GIVE_BACK = -1 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	long batch;
	int sites;
	site site[SITES];
} queued[DEVICES]; // by the last call or group on a device, guarded by lock as the rest
static struct made {
	void *what;
	site by;
} *made; // communicators and memory that the program has to give back
static int asked, things, room;
static long batches;		// calls and groups; by __atomic
static __thread site under_way; // this thread's
static __thread long batch;
static __thread int groups;

// enter begins a call that returns to at.
static void enter(int n, void *at)
{
	under_way = (site){n, (word)at};
	if (groups == 0)
		batch = __atomic_add_fetch(&batches, 1, __ATOMIC_RELAXED);
	groups += n == N_ncclGroupStart;
}

// queue notes that the call under way has the communicator's GPU do something.
static void queue(void *comm)
{
	int (*get)(void *, int *) = (int (*)(void *, int *))find("ncclCommCuDevice");
	int device = -1, i = 0;
	if (!__atomic_load_n(&asked, __ATOMIC_RELAXED) || !get || get(comm, &device) || device < 0 || device >= DEVICES)
		return;
	pthread_mutex_lock(&lock);
	if (queued[device].batch != batch)
		queued[device].batch = batch, queued[device].sites = 0;
	for (; i < queued[device].sites; i++)
		if (queued[device].site[i].n == under_way.n && queued[device].site[i].at == under_way.at)
			break;
	if (i == queued[device].sites && i < SITES)
		queued[device].site[queued[device].sites++] = under_way;
	pthread_mutex_unlock(&lock);
}

// make notes what the call under way has made; unmake forgets it.
static void make(void **list, int n)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n; i++) {
		if (things == room) {
			struct made *more = realloc(made, (2 * room + 16) * sizeof *made);
			if (!more)
				break;
			made = more, room = 2 * room + 16;
		}
		if (list[i])
			made[things++] = (struct made){list[i], under_way};
	}
	pthread_mutex_unlock(&lock);
}

static void unmake(void *what)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < things; i++)
		if (made[i].what == what) {
			made[i] = made[--things];
			break;
		}
	pthread_mutex_unlock(&lock);
}

// leave ends a call that has begun at a time.
static int leave(int n, long begun, long bytes, int result, word a, word b, word d)
{
	int done = result == 0 || result == IN_PROGRESS;
	if (done && (n == N_ncclCommSplit || n == N_ncclCommShrink))
		make((void **)d, 1);
	else if (done && (n == N_ncclMemAlloc || n == N_ncclCommInitRank || n == N_ncclCommInitRankConfig || n == N_ncclCommInitRankScalable))
		make((void **)a, 1);
	else if (done && n == N_ncclCommInitAll)
		make((void **)a, (int)b);
	else if (n == N_ncclCommDestroy || n == N_ncclCommAbort || n == N_ncclMemFree)
		unmake((void *)a);
	groups -= n == N_ncclGroupEnd && groups > 0;
	return note(n, begun, bytes, result);
}

// ringo_nccl_sites gives the sites of the last call or group on a device, or of the calls whose communicators and memory are still there.
int ringo_nccl_sites(int of, const char **functions, word *at, int max)
{
	int n = 0;
#define ADD(s) (functions[n] = names[(s).n], at[n++] = (s).at)
	__atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	for (int i = 0; of >= 0 && of < DEVICES && i < queued[of].sites && n < max; i++)
		ADD(queued[of].site[i]);
	for (int i = 0; of == GIVE_BACK && i < things && n < max; i++)
		ADD(made[i].by);
	pthread_mutex_unlock(&lock);
	return n;
}

#define N(name, words, count, type, comm)                                                                            \
	int name(TAKES##words)                                                                                       \
	{                                                                                                            \
		word all[] = {a, b, c, d};                                                                           \
		int (*next)(TAKES##words) = (int (*)(TAKES##words))real(N_##name);                                   \
		long begun = now();                                                                                  \
		enter(N_##name, __builtin_return_address(0));                                                        \
		if (comm)                                                                                            \
			queue((void *)(comm));                                                                       \
		return leave(N_##name, begun, (count) ? bytes_of(all[count], (uint32_t)all[type]) : 0,               \
			     next ? next(GIVES##words) : INVALID_USAGE, a, b, d);                                    \
	}
NAMES
#undef N

int ncclCommInitRank(void *comm, int size, unique_id id, int rank)
{
	int (*next)(void *, int, unique_id, int) = (int (*)(void *, int, unique_id, int))real(N_ncclCommInitRank);
	long begun = now();
	enter(N_ncclCommInitRank, __builtin_return_address(0));
	return leave(N_ncclCommInitRank, begun, 0, next ? next(comm, size, id, rank) : INVALID_USAGE, (word)comm, 0, 0);
}

int ncclCommInitRankConfig(void *comm, int size, unique_id id, int rank, void *config)
{
	int (*next)(void *, int, unique_id, int, void *) = (int (*)(void *, int, unique_id, int, void *))real(N_ncclCommInitRankConfig);
	long begun = now();
	enter(N_ncclCommInitRankConfig, __builtin_return_address(0));
	return leave(N_ncclCommInitRankConfig, begun, 0, next ? next(comm, size, id, rank, config) : INVALID_USAGE, (word)comm, 0, 0);
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
