// Launches kernels from C, for comparison with Go. Build:
//
//	gcc -O2 -shared -fPIC -o liblaunch.so launch.c -ldl

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

typedef int (*launch_kernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, void *stream, void **params, void **extra);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

// launch_loop launches a kernel n times, one block of 32 threads, with size
// bytes of parameters, and returns the nanoseconds of the loop: negative results
// are those of the driver, or -1000 if it cannot be found.
long launch_loop(void *function, void *stream, void *params, size_t size, long n) {
	static launch_kernel launch;
	if (!launch) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		if (!library || !(launch = (launch_kernel)dlsym(library, "cuLaunchKernel")))
			return -1000;
	}
	void *extra[] = {(void *)1, params, (void *)2, &size, (void *)0};
	double start = now();
	for (long i = 0; i < n; i++) {
		int result = launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra);
		if (result)
			return -result;
	}
	return now() - start;
}
