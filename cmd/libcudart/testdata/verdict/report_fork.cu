// CASE calls: failed call
// CASE named: fails the process was forked after
// CASE execs: none
// CASE exits: none
// CASE quits: none
#include "verdict.h"
#include <sys/wait.h>
#include <unistd.h>

// The child of a fork may not use what its parent has begun.
int main(int, char **argv) {
	int *p = device<int>(4), status;
	pid_t child = fork();
	if (!child) {
		if (is(argv, "calls") || is(argv, "named")) {
			cudaMalloc(&p, 4);
			cudaMemset(p, 0, 4);
		}
		if (is(argv, "execs"))
			execl("/bin/true", "true", (char *)nullptr);
		if (is(argv, "exits"))
			exit(0);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(host(p) == 0);
	CHECK(cudaFree(p));
}
