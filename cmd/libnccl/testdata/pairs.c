// A rank of the jobs of TestPairs in internal/test/ctest: it makes the calls of PAIRS_SHAPES, rank 1 makes the mistake
// of PAIRS_MISTAKE, and all make the calls again. Rank 0 writes IDs into the folder PAIRS_MEET.
#include <signal.h>

#include "check.h"

enum { COUNT = 1000, MOST = 8 };
typedef enum { ALL_REDUCE, RING, UNEVEN } how;
static struct {
	ncclComm_t comm;
	how how;
} calls[MOST];
static int begun, rank, size;
static float in[4 * COUNT], out[4 * COUNT];

static void check(int line, ncclComm_t comm, ncclResult_t r)
{
	if (r == ncclSuccess)
		return;
	fprintf(stderr, "error: line %d: %s: %s\n", line, ncclGetErrorString(r), ncclGetLastError(comm));
	exit(1);
}
#define TRY(comm, call) check(__LINE__, comm, call)

// open_all gives a communicator of all ranks.
static ncclComm_t open_all(int number)
{
	char file[4000];
	ncclComm_t comm;
	snprintf(file, sizeof file, "%s/%d", getenv("PAIRS_MEET"), number);
	TRY(NULL, ncclCommInitRank(&comm, size, meet(file, rank), rank));
	return comm;
}

static void add(ncclComm_t comm, how how)
{
	CHECK(begun < MOST);
	calls[begun].comm = comm, calls[begun++].how = how;
}

static void call(ncclComm_t comm, how how, int more)
{
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	if (how == ALL_REDUCE) {
		TRY(comm, ncclAllReduce(in, out, COUNT + more, ncclFloat32, ncclSum, comm, NULL));
		return;
	}
	TRY(comm, ncclGroupStart());
	TRY(comm, ncclSend(in, (how == UNEVEN ? 100 * (rank + 1) : COUNT) + more, ncclFloat32, next, comm, NULL));
	TRY(comm, ncclRecv(out, how == UNEVEN ? 100 * (last + 1) : COUNT, ncclFloat32, last, comm, NULL));
	TRY(comm, ncclGroupEnd());
}

int main(void)
{
	char *mistake = "", *shapes = getenv("PAIRS_SHAPES");
	rank = atoi(getenv("RINGO_RANK")), size = atoi(getenv("RINGO_SIZE"));
	if (rank == 1)
		mistake = getenv("PAIRS_MISTAKE");
	ncclComm_t world = open_all(0), other = NULL, child = NULL;
	for (char *s = strtok(shapes, ","); s; s = strtok(NULL, ",")) {
		if (!strcmp(s, "several communicators")) {
			other = open_all(1);
			add(world, ALL_REDUCE);
			add(other, ALL_REDUCE);
		} else if (!strcmp(s, "a child of Split")) { // whose ranks are in the opposite order
			TRY(world, ncclCommSplit(world, 0, size - rank, &child, NULL));
			add(child, ALL_REDUCE);
		} else {
			add(world, !strcmp(s, "a group") ? RING : !strcmp(s, "v-variants") ? UNEVEN : ALL_REDUCE);
		}
	}
	for (int round = 0; round < 2; round++) {
		int more = 0;
		usleep(round * 300000); // the calls before have ended on all ranks
		if (round && !strcmp(mistake, "mismatch"))
			more = 1;
		if (round && !strcmp(mistake, "exit"))
			exit(0);
		if (round && !strcmp(mistake, "kill"))
			raise(SIGKILL);
		if (round && !strcmp(mistake, "stop"))
			raise(SIGSTOP);
		if (round && !strcmp(mistake, "hang"))
			sleep(3600);
		if (round && !strcmp(mistake, "raise"))
			abort();
		for (int i = 0; i < begun; i++)
			call(calls[i].comm, calls[i].how, i ? 0 : more);
	}
	call(world, ALL_REDUCE, 0); // nobody leaves before all are done
	for (int times = strcmp(mistake, "close twice") ? 1 : 2; times; times--) {
		if (other)
			TRY(other, ncclCommDestroy(other));
		if (child)
			TRY(child, ncclCommDestroy(child));
		TRY(world, ncclCommDestroy(world));
	}
	return 0;
}
