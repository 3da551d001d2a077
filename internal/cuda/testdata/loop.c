// The same launches as LaunchKernel's, from C, to compare with.
#include <stddef.h>
#include <time.h>

typedef int launch_kernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, void *stream, void **params, void **extra);

long loop(launch_kernel *launch, void *f, void *stream, void *params, size_t size, long n) {
	void *extra[] = {(void *)1, params, (void *)2, &size, 0};
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++)
		if (launch(f, 1, 1, 1, 32, 1, 1, 0, stream, 0, extra)) return -1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
}
