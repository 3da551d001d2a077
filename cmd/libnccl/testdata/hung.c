// A job that stands still: all ranks have called the same, and then one does not call what the others wait in.
//
//	hung late VICTIM RANK SIZE FILE     the rank VICTIM reads its standard input to the end before it goes on
//	hung stopped VICTIM RANK SIZE FILE  it stops itself
//	hung killed VICTIM RANK SIZE FILE   it ends itself without goodbye, and the others are idle until their standard input ends
#include <signal.h>

#include "check.h"

enum { COUNT = 1000, CALLS = 3 };

static void reduce(ncclComm_t comm, int size)
{
	int data[COUNT];
	for (int i = 0; i < COUNT; i++)
		data[i] = i;
	OK(ncclAllReduce(data, data, COUNT, ncclInt32, ncclSum, comm, NULL));
	for (int i = 0; i < COUNT; i++)
		CHECK(data[i] == i * size);
}

// all_done has all ranks come out of what they have called: until then one that dies fails it.
static void all_done(const char *file, int rank, int size)
{
	char done[4096];
	snprintf(done, sizeof done, "%s.done%d", file, rank);
	fclose(fopen(done, "w"));
	for (int i = 0; i < size; i++) {
		snprintf(done, sizeof done, "%s.done%d", file, i);
		for (int n = 0; access(done, F_OK); n++) {
			CHECK(n < 30000);
			usleep(1000);
		}
	}
}

int main(int argc, char **argv)
{
	CHECK(argc == 6);
	int victim = atoi(argv[2]), rank = atoi(argv[3]), size = atoi(argv[4]), killed = !strcmp(argv[1], "killed");
	char c;
	ncclComm_t comm, half;
	ncclUniqueId id = meet(argv[5], rank);
	OK(ncclCommInitRank(&comm, size, id, rank));
	OK(ncclCommSplit(comm, rank % 2, rank, &half, NULL));
	for (int i = 0; i < CALLS; i++)
		reduce(comm, size);
	reduce(half, (size + 1 - rank % 2) / 2);
	all_done(argv[5], rank, size);
	if (rank == victim && killed)
		raise(SIGKILL);
	if (rank == victim && !strcmp(argv[1], "stopped"))
		raise(SIGSTOP);
	if (killed || (rank == victim && !strcmp(argv[1], "late")))
		while (read(0, &c, 1) > 0)
			;
	if (!killed) {
		reduce(comm, size);
		OK(ncclCommDestroy(half));
		OK(ncclCommDestroy(comm));
	}
	puts("ok");
	return 0;
}
