#include <pthread.h>
#include <stdint.h>

#define A(i) (i + 1) * a##i
int64_t weigh(int64_t a0, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5, int64_t a6, int64_t a7,
	int64_t a8, int64_t a9, int64_t a10, int64_t a11) {
	return A(0) + A(1) + A(2) + A(3) + A(4) + A(5) + A(6) + A(7) + A(8) + A(9) + A(10) + A(11);
}

int minus_one(void) { return -1; }

void put(int64_t *out, int64_t v) { *out = v; }

int put_well(int64_t *out, int64_t v) { *out = v; return 0; }

int64_t aligned(void) {
	__attribute__((aligned(16))) char b[16];
	return (uintptr_t)__builtin_frame_address(0) % 16 + (uintptr_t)b % 16;
}

typedef void function(void *);
int64_t call_back(function *f, void *arg) {
	f(arg);
	return 7;
}

struct call { function *f; void *arg; };
static void *run(void *p) {
	struct call *c = p;
	c->f(c->arg);
	return 0;
}
int64_t call_on_thread(function *f, void *arg) {
	struct call c = {f, arg};
	pthread_t t;
	if (pthread_create(&t, 0, run, &c)) return -1;
	return pthread_join(t, 0);
}
