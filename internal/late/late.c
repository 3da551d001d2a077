//go:build linux

#include "late.h"

#include <pthread.h>
#include <signal.h>

typedef void (*initializer)(int, char **, char **);
extern initializer ringo_init_begin[] __attribute__((weak, visibility("hidden")));
extern initializer ringo_init_end[] __attribute__((weak, visibility("hidden")));

static int argc;
static char **argv, **envp;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int forked;
static int begun; // by __atomic: another thread than the reader's may have begun Go's runtime

__attribute__((constructor)) static void loaded(int count, char **arguments, char **environment)
{
	argc = count, argv = arguments, envp = environment;
}

static void in_child(void) { forked = 1; }

// begin begins Go's runtime. Go's threads inherit the signal mask of this thread, so that all signals are blocked
// meanwhile but those that Go needs: the program's signals are for the program's threads.
static void begin(void)
{
	static const int needed[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG, SIGPROF};
	sigset_t others, before;
	sigfillset(&others);
	for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
		sigdelset(&others, needed[i]);
	pthread_atfork(NULL, NULL, in_child);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	for (initializer *f = ringo_init_begin; f < ringo_init_end; f++)
		(*f)(argc, argv, envp);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
}

int late_begun(void) { return __atomic_load_n(&begun, __ATOMIC_ACQUIRE); }

int late_ready(void)
{
	if (__builtin_expect(!late_begun(), 0))
		pthread_once(&once, begin);
	return __builtin_expect(!forked, 1);
}
