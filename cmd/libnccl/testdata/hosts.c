// A job of ringo.h's communicators that stands still: all ranks have called the same, and then one reads its standard input to the end before it
// calls what the others wait in.
//
//	hosts late VICTIM RANK SIZE FILE
#include "check.h"
#include "ringo.h"

enum { COUNT = 1000, CALLS = 3 };

// WELL wants a call of ringo.h to succeed.
#define WELL(call)                                                        \
	do {                                                              \
		char *error = NULL;                                       \
		int r_ = (call);                                          \
		if (r_ != RINGO_HOST_OK)                                  \
			fail(__LINE__, "%s: %d: %s", #call, r_, error); \
	} while (0)

static void reduce(ringo_host_comm comm, int size)
{
	int32_t data[COUNT];
	for (int i = 0; i < COUNT; i++)
		data[i] = i;
	ringo_host_call sum = {.kind = RINGO_HOST_ALL_REDUCE, .type = RINGO_HOST_INT32, .op = RINGO_HOST_SUM, .in = data, .out = data, .count = COUNT};
	WELL(ringo_host_do(comm, &sum, &error));
	for (int i = 0; i < COUNT; i++)
		CHECK(data[i] == i * size);
}

int main(int argc, char **argv)
{
	CHECK(argc == 6);
	int victim = atoi(argv[2]), rank = atoi(argv[3]), size = atoi(argv[4]);
	char c;
	ringo_host_comm comm;
	ncclUniqueId id = meet(argv[5], rank);
	WELL(ringo_host_open((const char *)&id, rank, size, 0, &comm, &error));
	for (int i = 0; i < CALLS; i++)
		reduce(comm, size);
	if (rank == victim)
		while (read(0, &c, 1) > 0)
			;
	reduce(comm, size);
	WELL(ringo_host_close(comm, &error));
	puts("ok");
	return 0;
}
