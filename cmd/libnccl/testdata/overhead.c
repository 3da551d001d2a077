// What a call costs beside its work: one rank reduces 8 bytes over and over.
//
//	overhead CALLS     prints the nanoseconds of a call, alone and in groups of 16
#include "check.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	int calls = atoi(argv[1]), version;
	ncclComm_t comm;
	float x[2] = {1, 2}, y[2];
	OK(ncclCommInitAll(&comm, 1, NULL));
	OK(ncclAllReduce(x, y, 2, ncclFloat32, ncclSum, comm, NULL));
	double start = now();
	for (int i = 0; i < calls; i++)
		OK(ncclGetVersion(&version));
	double crossing = now() - start;
	start = now();
	for (int i = 0; i < calls; i++)
		OK(ncclAllReduce(x, y, 2, ncclFloat32, ncclSum, comm, NULL));
	double alone = now() - start;
	start = now();
	for (int i = 0; i < calls; i += 16) {
		OK(ncclGroupStart());
		for (int k = 0; k < 16; k++)
			OK(ncclAllReduce(x, y, 2, ncclFloat32, ncclSum, comm, NULL));
		OK(ncclGroupEnd());
	}
	double grouped = now() - start;
	printf("%.0f %.0f %.0f\n", crossing / calls * 1e9, alone / calls * 1e9, grouped / calls * 1e9);
	OK(ncclCommDestroy(comm));
	return 0;
}
