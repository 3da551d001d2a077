// The library as a guest in a process. It is opened at run time, so that the process can be looked at
// before and after.
//
//	manners LIBRARY COPY     COPY is the same library under another name
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

// The functions of one library.
typedef struct {
	void *handle;
	__typeof__(&ncclGetVersion) version;
	__typeof__(&ncclGetUniqueId) unique_id;
	__typeof__(&ncclCommInitRank) init;
	__typeof__(&ncclCommDestroy) destroy;
	__typeof__(&ncclAllReduce) all_reduce;
	__typeof__(&ncclGetLastError) last_error;
	__typeof__(&ncclGroupStart) group_start;
	__typeof__(&ncclGroupEnd) group_end;
} library;

static void *symbol(void *handle, const char *name)
{
	void *p = dlsym(handle, name);
	if (!p)
		fail(__LINE__, "%s: %s", name, dlerror());
	return p;
}

static library load(const char *file)
{
	library l = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
	if (!l.handle)
		fail(__LINE__, "%s", dlerror());
	l.version = symbol(l.handle, "ncclGetVersion");
	l.unique_id = symbol(l.handle, "ncclGetUniqueId");
	l.init = symbol(l.handle, "ncclCommInitRank");
	l.destroy = symbol(l.handle, "ncclCommDestroy");
	l.all_reduce = symbol(l.handle, "pncclAllReduce");
	l.last_error = symbol(l.handle, "ncclGetLastError");
	l.group_start = symbol(l.handle, "ncclGroupStart");
	l.group_end = symbol(l.handle, "ncclGroupEnd");
	return l;
}

static int threads(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void use(library *l)
{
	ncclUniqueId id;
	ncclComm_t comm;
	int x[2] = {4, 5}, y[2] = {0};
	CHECK(l->unique_id(&id) == ncclSuccess);
	CHECK(l->init(&comm, 1, id, 0) == ncclSuccess);
	CHECK(l->all_reduce(x, y, 2, ncclInt32, ncclSum, comm, NULL) == ncclSuccess);
	CHECK(y[0] == 4 && y[1] == 5);
	CHECK(l->destroy(comm) == ncclSuccess);
}

static volatile int caught;
static sigjmp_buf back;
static void on_signal(int number)
{
	caught = number;
	if (number == SIGSEGV)
		siglongjmp(back, 1);
}

// Signals that the runtime of Go needs. It passes on those that are not its own, but for a SIGURG,
// with which it stops its threads.
static int shared(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGPIPE || number == SIGURG;
}

int main(int argc, char **argv)
{
	alarm(120);
	CHECK(argc == 3);
	struct sigaction before[65], after;
	cpu_set_t cpus, cpus_after;
	struct sigaction mine = {.sa_handler = on_signal};
	CHECK(sigaction(SIGSEGV, &mine, NULL) == 0 && sigaction(SIGUSR1, &mine, NULL) == 0);
	for (int s = 1; s < 65; s++)
		sigaction(s, NULL, &before[s]);
	CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);

	double start = now();
	library l = load(argv[1]);
	double took = now() - start;
	printf("loaded in %.1f ms\n", took * 1000);
	CHECK(threads() == 1);
	for (int s = 1; s < 65; s++)
		if (sigaction(s, NULL, &after) == 0)
			CHECK(after.sa_handler == before[s].sa_handler);

	int v;
	CHECK(l.version(&v) == ncclSuccess && v == NCCL_VERSION_CODE && !*l.last_error(NULL));
	CHECK(threads() == 1);

	// A child of a fork before any other call may use the library, and so may the parent.
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		use(&l);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);

	fesetround(FE_UPWARD);
	use(&l);
	CHECK(fegetround() == FE_UPWARD);
	fesetround(FE_TONEAREST);
	for (int s = 1; s < 65; s++)
		if (sigaction(s, NULL, &after) == 0 && !shared(s))
			CHECK(after.sa_handler == before[s].sa_handler);
	CHECK(sched_getaffinity(0, sizeof cpus_after, &cpus_after) == 0 && CPU_EQUAL(&cpus, &cpus_after));
	CHECK(raise(SIGUSR1) == 0 && caught == SIGUSR1);
	sigset_t user;
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	CHECK(pthread_sigmask(SIG_BLOCK, &user, NULL) == 0);
	caught = 0;
	CHECK(threads() > 1 && kill(getpid(), SIGUSR1) == 0);
	usleep(20000);
	CHECK(caught == 0); // no thread of the library has taken it
	CHECK(pthread_sigmask(SIG_UNBLOCK, &user, NULL) == 0 && caught == SIGUSR1);
	if (sigsetjmp(back, 1) == 0)
		*(volatile int *)8 = 1;
	CHECK(caught == SIGSEGV);
	use(&l);

	// The child of a fork after the first call is told so; the parent goes on.
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		ncclUniqueId id;
		CHECK(l.unique_id(&id) == ncclInvalidUsage);
		CHECK(strstr(l.last_error(NULL), "forked"));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	use(&l);

	// Two of them in one process have nothing in common, and a group of the one is none of the other.
	library m = load(argv[2]);
	CHECK(m.handle != l.handle);
	CHECK(l.group_start() == ncclSuccess);
	use(&m);
	CHECK(m.group_end() == ncclInvalidUsage);
	CHECK(l.group_end() == ncclSuccess);
	use(&l);
	use(&m);
	puts("ok");
	return 0;
}
