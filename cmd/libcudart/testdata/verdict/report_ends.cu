// CASE exits: none
// CASE execs: none
// CASE kernels: prints   1  add
// CASE left: prints was not looked for
// CASE race_exits: race
// CASE race_execs: race
// CASE race_aborts: race
// CASE race_faults: race
// CASE race_killed: race
// CASE race_ended: race
// CASE status: fails the program failed: exit status 3
// CASE call_killed: failed call
// CASE unused: prints no process of the program has called the GPU's driver
#include "verdict.h"
#include <csignal>
#include <unistd.h>

__global__ void add(int *p) { *p += 1; }

// The program ends in many ways, none of which lets the driver's library say what there was.
int main(int, char **argv) {
	if (is(argv, "unused"))
		return 0;
	int *p = device<int>(1);
	bool race = !strncmp(argv[1], "race", 4);
	add<<<race ? 2 : 1, 1>>>(p);
	CHECK(cudaDeviceSynchronize());
	if (is(argv, "call_killed"))
		cudaFree(p + 1);
	fflush(stdout);
	if (strstr(argv[1], "exec"))
		execl("/bin/true", "true", (char *)nullptr);
	if (is(argv, "race_aborts"))
		abort();
	if (is(argv, "race_faults"))
		raise(SIGSEGV);
	if (strstr(argv[1], "killed"))
		raise(SIGKILL);
	if (is(argv, "race_ended"))
		raise(SIGTERM);
	_exit(is(argv, "status") ? 3 : 0);
}
