// Control flow: every thread writes one number, which flow_test.go computes too.
#include "cuda.h"

GLOBAL nested(u32 *out) {
	u32 t = tid(), r = 0;
	if (t & 1) {
		if (t & 2) {
			if (t % 3 == 0) r = out[t] * 7; else r = 1;
		} else {
			for (u32 i = 0; i < t; i++) r += i * i ^ t;
		}
	} else if (t % 5 == 0) {
		r = 1000 + t;
	}
	out[t] = r + t;
}

// collatz has a different trip count in each thread, break and continue.
GLOBAL collatz(u32 *out) {
	u32 n = tid() + 1, steps = 0, odd = 0;
	while (n != 1) {
		if (++steps > 100) break;
		if (n % 2 == 0) { n /= 2; continue; }
		n = 3 * n + 1;
		odd++;
	}
	out[tid()] = steps * 1000 + odd;
}

GLOBAL switches(u32 *out) {
	u32 t = tid(), r;
	switch (out[t] % 11) {
	case 0: r = t * 3; break;
	case 1: r = t ^ 77; break;
	case 2: r = t + 5; // falls through
	case 3: r = t << 2; break;
	case 4: out[t] = 4; return;
	case 5: r = t % 7; break;
	case 6: r = 1; for (u32 i = 0; i < t; i++) r = r * 5 + 1; break;
	case 8: r = t / 3; break;
	default: r = 99;
	}
	out[t] = r + 1;
}

GLOBAL early(u32 *out, u32 n) {
	if (tid() >= n) return;
	u32 s = 0;
	for (u32 i = 0; i < 100; i++) {
		s += out[tid()] + i;
		if (s > 500 + tid()) return;
	}
	out[tid()] = s;
}

struct pair { u32 a; u64 b; };

DEVICE NOINLINE u32 leaf(u32 x, int y) { return y < 0 ? x * 3 : x + y; }
DEVICE NOINLINE pair twice(u32 x) {
	pair p;
	p.a = leaf(x, -1);
	p.b = x & 4 ? leaf(p.a, 10) : (u64)x << 33;
	return p;
}

GLOBAL calls(u32 *out) {
	u32 t = tid(), r = 0;
	if (t & 1) {
		pair p = twice(t);
		r = p.a + (u32)(p.b >> 3);
	} else {
		for (u32 i = 0; i < t % 4; i++) r += leaf(r, i);
	}
	out[t] = r;
}

GLOBAL local(u32 *out, u32 turns) {
	u32 a[13];
	for (u32 i = 0; i < 13; i++) a[i] = i * tid();
	u32 k = tid();
	for (u32 i = 0; i < turns; i++) { k = (k * 5 + 1) % 13; a[k] += a[(k + 3) % 13]; }
	out[tid()] = a[k];
}

// unset reads an element of its array that it never wrote.
GLOBAL unset(u32 *out, u32 n) {
	u32 a[16];
	for (u32 i = 0; i < n; i++) a[i] = i;
	out[tid()] = a[(tid() * 7) % 16];
}

// overrun writes behind its array.
GLOBAL overrun(u32 *out, u32 n) {
	u32 a[16];
	for (u32 i = 0; i < n; i++) a[i] = i;
	out[tid()] = a[(tid() * 7) % n];
}
