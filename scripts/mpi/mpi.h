// mpi.h is as much of MPI as nccl-tests uses, for the processes of one host, so that its programs run with one process
// a GPU where there is no MPI. Processes meet in a file of shared memory: RINGO_ROWS_FILE, with RINGO_ROWS_RANK and
// RINGO_ROWS_SIZE; without these a process is alone. It is for measuring: a process that waits spins.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int MPI_Comm, MPI_Datatype, MPI_Op;
enum { MPI_COMM_WORLD = 0 };
enum : MPI_Datatype { MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT64_T, MPI_DOUBLE };
enum : MPI_Op { MPI_SUM, MPI_MIN, MPI_MAX };
#define MPI_IN_PLACE ((void *)-1)

namespace rows {
constexpr int most = 16;
constexpr size_t room = 1 << 20; // bytes of a process
struct Shared {
	std::atomic<unsigned> arrived, round;
	char data[most][room];
};
inline Shared *shared;
inline int rank, size = 1;

inline void barrier()
{
	if (size == 1)
		return;
	unsigned now = shared->round.load();
	if (shared->arrived.fetch_add(1) + 1 == (unsigned)size) {
		shared->arrived.store(0);
		shared->round.fetch_add(1);
		return;
	}
	for (int i = 0; shared->round.load() == now; i++)
		if (i % 64 == 63)
			sched_yield();
}

inline size_t bytes(int n, MPI_Datatype t) { return n * (t == MPI_BYTE ? 1 : t == MPI_INT ? sizeof(int) : 8); }

// gather puts n bytes of each process into shared->data, where all may read them until done.
inline void gather(const void *mine, size_t n)
{
	if (n > room) {
		fprintf(stderr, "mpi.h: %zu bytes of a process: there is room for %zu\n", n, room);
		exit(1);
	}
	if (size > 1 && mine)
		memcpy(shared->data[rank], mine, n);
	barrier();
}
inline void done() { barrier(); }

template<typename T> inline void reduce(T *x, int n, MPI_Op op)
{
	gather(x, n * sizeof(T));
	for (int r = 0; size > 1 && r < size; r++)
		for (int i = 0; i < n; i++) {
			T y = ((T *)shared->data[r])[i];
			x[i] = r == 0 ? y : op == MPI_SUM ? x[i] + y : op == MPI_MIN ? (y < x[i] ? y : x[i]) : (y > x[i] ? y : x[i]);
		}
	done();
}
}

inline int MPI_Init(int *, char ***)
{
	const char *file = getenv("RINGO_ROWS_FILE"), *rank = getenv("RINGO_ROWS_RANK"), *size = getenv("RINGO_ROWS_SIZE");
	if (!file || !rank || !size)
		return 0;
	rows::rank = atoi(rank), rows::size = atoi(size);
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || rows::size > rows::most || ftruncate(fd, sizeof(rows::Shared)))
		return perror(file), exit(1), 1;
	void *at = mmap(nullptr, sizeof(rows::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return perror(file), exit(1), 1;
	rows::shared = (rows::Shared *)at;
	return 0;
}
inline int MPI_Finalize() { return rows::barrier(), 0; }
inline int MPI_Comm_size(MPI_Comm, int *n) { return *n = rows::size, 0; }
inline int MPI_Comm_rank(MPI_Comm, int *n) { return *n = rows::rank, 0; }
inline int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *to) { return *to = MPI_COMM_WORLD, 0; } // into one: NCCL_TESTS_SPLIT is not there
inline int MPI_Comm_free(MPI_Comm *) { return 0; }
inline int MPI_Barrier(MPI_Comm) { return rows::barrier(), 0; }
inline int MPI_Bcast(void *x, int n, MPI_Datatype t, int root, MPI_Comm)
{
	rows::gather(x, rows::bytes(n, t));
	if (rows::size > 1)
		memcpy(x, rows::shared->data[root], rows::bytes(n, t));
	return rows::done(), 0;
}
// MPI_Allgather and MPI_Allreduce are in place alone.
inline int MPI_Allgather(const void *, int, MPI_Datatype, void *to, int n, MPI_Datatype t, MPI_Comm)
{
	size_t each = rows::bytes(n, t);
	rows::gather((char *)to + rows::rank * each, each);
	for (int r = 0; rows::size > 1 && r < rows::size; r++)
		memcpy((char *)to + r * each, rows::shared->data[r], each);
	return rows::done(), 0;
}
inline int MPI_Allreduce(const void *, void *x, int n, MPI_Datatype t, MPI_Op op, MPI_Comm)
{
	switch (t) {
	case MPI_INT: return rows::reduce((int *)x, n, op), 0;
	case MPI_LONG: case MPI_LONG_LONG: case MPI_INT64_T: return rows::reduce((long long *)x, n, op), 0;
	case MPI_DOUBLE: return rows::reduce((double *)x, n, op), 0;
	}
	return 1;
}
inline int MPI_Gather(const void *from, int n, MPI_Datatype t, void *to, int, MPI_Datatype, int root, MPI_Comm)
{
	size_t each = rows::bytes(n, t);
	bool there = rows::rank == root && from == MPI_IN_PLACE;
	rows::gather(there ? (char *)to + root * each : from, each);
	for (int r = 0; rows::rank == root && r < rows::size; r++)
		if (rows::size > 1)
			memcpy((char *)to + r * each, rows::shared->data[r], each);
		else if (!there)
			memcpy(to, from, each);
	return rows::done(), 0;
}
