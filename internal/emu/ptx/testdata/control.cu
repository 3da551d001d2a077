// Switches, functions that are not inlined, recursion, tables, the stack.
#include "base.h"

CONSTANT int table[5] = {1, -2, 300, 0, 0};
DEVICE double scale = 1.5;
DEVICE u32 counter;
DEVICE u32 *pointer = &counter;

struct Pair {
	long long a;
	int b;
};

DEVICE NOINLINE Pair twist(Pair p, int k) {
	Pair q = {p.b + k, (int)p.a - k};
	return q;
}

DEVICE NOINLINE int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

GLOBAL void branches(int *out, int op, int a, int b) {
	int x;
	switch (op) {
	case 0: x = a + b; break;
	case 1: x = a - b; out[1] = 7; break;
	case 2: x = a * b; break;
	case 3: x = a / b; out[2] = a; break;
	case 4: x = a % b; break;
	case 5: x = a & b; out[3] = b; break;
	case 6: x = table[a]; break;
	case 7: x = fibonacci(a); break;
	case 100: x = 3; break;
	case 1000: x = 5; break;
	default: x = -1;
	}
	*out = x;
}

GLOBAL void calls(Pair *p, double *d) {
	*p = twist(*p, TID);
	*d *= scale;
	*pointer += 1;
}

GLOBAL void stack(int *out, const int *in, int n) {
	int local[16];
	for (int i = 0; i < 16; i++)
		local[i] = in[i];
	for (int i = 0; i < n; i++)
		local[in[i] & 15] += i;
	for (int i = 0; i < 16; i++)
		out[i] = local[i];
}

GLOBAL void wide(__int128 *x, u64 *hi) {
	x[2] = x[0] + x[1];
	hi[0] = (u64)((unsigned __int128)hi[0] * hi[1] >> 64);
}
