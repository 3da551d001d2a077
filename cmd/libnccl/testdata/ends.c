// A rank that is told on standard input what to do, a line at a time, and says what came of it. The words are those of
// internal/test/programs, which starts it: a result is "well", or its number and the sentence of ncclGetLastError.
//
//	ends RANK SIZE FILE
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "memory.h"

enum { LARGE = 1 << 20, HUGE = 64 << 20 >> 2 * ON_GPUS }; // no queue takes HUGE bytes
static ncclComm_t comm;
static context device;
static cudaStream_t stream;
static int rank, size;
static char *host, *at; // LARGE bytes of zeros, and where operations have them
static sem_t on;	// the test has said so
static atomic_int over, closing;
static atomic_long doer; // the thread of the operation
static pthread_t threads[16];
static int begun; // threads

static void say(const char *word, ncclResult_t r, const char *why)
{
	char text[4096];
	snprintf(text, sizeof text, "%s", why);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	if (r == ncclSuccess)
		printf("%s well\n", word);
	else
		printf("%s %d %s\n", word, r, text);
}

// buffer is memory of so many zeros.
static char *buffer(size_t n)
{
	char *zeros = calloc(n, 1), *p;
	CHECK(zeros);
	p = place(device, zeros, n);
	push(device, p, zeros, n, stream);
	return p;
}

static ncclResult_t all_reduce(size_t n) { return ncclAllReduce(at, at, n / 4, ncclInt32, ncclSum, comm, stream); }

#ifdef GPUS
static graph_exec launch;

// capture captures an all-reduce.
static ncclResult_t capture(int waits)
{
	graph recorded;
	ncclResult_t r;
	CU(cuStreamBeginCapture_v2(stream, 1));
	if (waits) {
		puts("in");
		sem_wait(&on);
	}
	r = all_reduce(LARGE);
	int ended = cuStreamEndCapture(stream, &recorded);
	if (r != ncclSuccess)
		return r;
	CU(ended);
	CU(cuGraphInstantiateWithFlags(&launch, recorded, 0));
	CU(cuGraphLaunch(launch, stream));
	return r;
}
#endif

// messages are from rank to rank, between ranks 0 and 1.
static ncclResult_t message(int sends)
{
	if (rank > 1)
		return ncclSuccess;
	char *x = buffer(HUGE);
	return sends ? ncclSend(x, HUGE, ncclChar, 1 - rank, comm, stream) : ncclRecv(x, HUGE, ncclChar, 1 - rank, comm, stream);
}

// shrink leaves out rank 2.
static ncclResult_t shrink(void)
{
	int without = 2;
	ncclComm_t few;
	if (rank == 2)
		return ncclSuccess;
	ncclResult_t r = ncclCommShrink(comm, &without, 1, &few, NULL, NCCL_SHRINK_DEFAULT);
	return r == ncclSuccess ? ncclCommDestroy(few) : r;
}

static ncclResult_t split(void)
{
	ncclComm_t part;
	ncclResult_t r = ncclCommSplit(comm, 0, rank, &part, NULL);
	return r == ncclSuccess ? ncclCommDestroy(part) : r;
}

static ncclResult_t window(void)
{
	void *memory;
	ncclWindow_t win;
	OK(ncclMemAlloc(&memory, LARGE));
	ncclResult_t r = ncclCommWindowRegister(comm, memory, LARGE, &win, NCCL_WIN_COLL_SYMMETRIC);
	if (r == ncclSuccess)
		r = ncclCommWindowDeregister(comm, win);
	OK(ncclMemFree(memory));
	return r;
}

// operation carries out this rank's part of one.
static ncclResult_t operation(const char *name)
{
	if (!strcmp(name, "all to all"))
		return ncclAlltoAll(at, at + LARGE / 2, 1, ncclInt32, comm, stream);
	if (!strcmp(name, "ncclAllReduce, 8 B") || !strcmp(name, "first connection"))
		return all_reduce(8);
	if (!strcmp(name, "ncclAllReduce, 1 MiB"))
		return all_reduce(LARGE);
	if (!strcmp(name, "ncclRecv"))
		return message(rank == 1);
	if (!strcmp(name, "ncclSend"))
		return message(rank == 0);
	if (!strcmp(name, "ncclCommSplit"))
		return split();
	if (!strcmp(name, "ncclCommShrink"))
		return shrink();
	if (!strcmp(name, "ncclCommWindowRegister"))
		return window();
#ifdef GPUS
	if (!strcmp(name, "capture"))
		return capture(1);
	if (!strcmp(name, "graph")) // for "replay"
		return capture(0);
	if (!strcmp(name, "replay")) {
		CU(cuGraphLaunch(launch, stream));
		return ncclSuccess;
	}
#endif
	fail(__LINE__, "no operation is called \"%s\"", name);
}

static void *carry_out(void *name)
{
	if (ON_GPUS)
		use_device(device_of(rank));
	doer = syscall(SYS_gettid);
	ncclResult_t r = operation(name);
	if (r == ncclSuccess) { // what has failed on the GPU is known when the stream is done
		char first;
		pull(device, &first, at, 1, stream);
		OK(ncclCommGetAsyncError(comm, &r));
	}
	over = 1;
	say("done", r, r == ncclSuccess ? "" : ncclGetLastError(comm));
	return NULL;
}

// in says that the operation waits: its thread sleeps. One that polls for long is in it too.
static void in(void)
{
	char name[64], state = 'R';
	for (int i = 0; i < 100 && !over && state != 'S'; i++) {
		usleep(1000);
		snprintf(name, sizeof name, "/proc/self/task/%ld/stat", doer);
		FILE *f = doer ? fopen(name, "r") : NULL;
		if (f) {
			if (fscanf(f, "%*d %*s %c", &state) != 1)
				state = 'S'; // the thread has ended
			fclose(f);
		}
	}
	puts("in");
}

// watch waits until the communicator has failed.
static void *watch(void *unused)
{
	ncclResult_t r = ncclSuccess;
	while (!closing && r == ncclSuccess) {
		usleep(1000);
		OK(ncclCommGetAsyncError(comm, &r));
	}
	if (r != ncclSuccess)
		say("fell", r, ncclGetLastError(comm));
	return unused;
}

static void begin(void *(*f)(void *), char *argument)
{
	CHECK(begun < 16 && pthread_create(&threads[begun++], NULL, f, argument) == 0);
}

static void close_all(void)
{
	closing = 1;
	for (int i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	ncclResult_t r = comm ? ncclCommDestroy(comm) : ncclSuccess;
	unplace(device, at);
	say("closed", r, r == ncclSuccess ? "" : ncclGetLastError(NULL));
}

static void gone(void) { say("gone", ncclSuccess, ""); }

int main(int argc, char **argv)
{
	char line[256];
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	CHECK(argc == 4 && atexit(gone) == 0); // the last of what is called at the end
	rank = atoi(argv[1]), size = atoi(argv[2]);
	CHECK(sem_init(&on, 0, 0) == 0 && (host = calloc(LARGE, 1)));
	device = use_device(device_of(rank));
	stream = new_stream(device);
	at = place(device, host, LARGE);
	push(device, at, host, LARGE, stream);
	OK(ncclCommInitRank(&comm, size, meet(argv[3], rank), rank));
	say("open", ncclSuccess, "");
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "do ", 3)) {
			atomic_store(&over, 0);
			atomic_store(&doer, 0);
			begin(carry_out, strdup(line + 3));
			if (strcmp(line, "do capture") && strcmp(line, "do all to all") && strcmp(line, "do graph"))
				in();
		} else if (!strcmp(line, "on")) {
			sem_post(&on);
		} else if (!strcmp(line, "watch")) {
			begin(watch, NULL);
		} else if (!strcmp(line, "end ncclCommDestroy") || !strcmp(line, "end ncclCommAbort")) {
			ncclResult_t r = (line[12] == 'D' ? ncclCommDestroy : ncclCommAbort)(comm);
			comm = NULL;
			say("ended", r, r == ncclSuccess ? "" : ncclGetLastError(NULL));
		} else if (!strcmp(line, "end exit")) {
			exit(0);
		} else if (!strcmp(line, "end return")) {
			return 0;
		} else if (!strcmp(line, "close")) {
			close_all();
			return 0;
		} else {
			fail(__LINE__, "%s", line);
		}
	}
	_exit(5); // the test has ended
}
