// A program in C with NCCL's interface, on host memory: four ranks, which are threads, sum a vector.
//
//	scripts/libnccl
//	cc -Icmd/libnccl examples/libnccl/allreduce.c build/libnccl.so.2 -Wl,-rpath,$PWD/build -lpthread -o build/allreduce
//	RINGO_HOST=1 build/allreduce
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4, COUNT = 1 << 20 };

static ncclUniqueId id;

#define TRY(call)                                                                  \
	do {                                                                       \
		if ((call) != ncclSuccess) {                                       \
			fprintf(stderr, "%s: %s\n", #call, ncclGetLastError(NULL)); \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

static void *rank(void *arg)
{
	int me = (int)(long)arg;
	ncclComm_t comm;
	TRY(ncclCommInitRank(&comm, RANKS, id, me));
	float *x = malloc(COUNT * sizeof *x);
	for (int i = 0; i < COUNT; i++)
		x[i] = (float)(me + i % 10);
	TRY(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, comm, NULL));
	if (me == 0)
		printf("sums of %d ranks: %g %g %g …\n", RANKS, x[0], x[1], x[2]);
	free(x);
	TRY(ncclCommDestroy(comm));
	return NULL;
}

int main(void)
{
	pthread_t threads[RANKS];
	TRY(ncclGetUniqueId(&id));
	for (long i = 0; i < RANKS; i++)
		pthread_create(&threads[i], NULL, rank, (void *)i);
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
