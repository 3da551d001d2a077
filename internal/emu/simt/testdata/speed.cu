// What the benchmarks run.
#include "cuda.h"

GLOBAL arithmetic(u32 *out, u32 n) {
	u32 x = gid(), y = 12345;
	float f = 1.0f;
	for (u32 i = 0; i < n; i++) {
		x = x * 1664525u + y;
		y ^= x >> 7;
		f = f * 0.999f + (float)(int)x;
		if (f > 1e9f) f -= 1e9f;
	}
	out[gid()] = x + y + (u32)(int)f;
}

struct __attribute__((aligned(16))) four { float x, y, z, w; };

GLOBAL add(float *a, float *b, float *c, u32 n) {
	for (u32 i = gid(); i < n; i += ntid() * nbid()) c[i] = a[i] + b[i];
}

GLOBAL add4(four *a, four *b, four *c, u32 n) {
	for (u32 i = gid(); i < n; i += ntid() * nbid()) {
		four p = a[i], q = b[i];
		c[i] = four{p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w};
	}
}
