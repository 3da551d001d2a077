// Loops, structs as parameters, shared arrays, launch bounds.
#include "base.h"

struct Sources {
	const float *p[4];
	int n;
};

GLOBAL void BOUNDS(256, 2) sum(Sources s, float *out, u64 n) {
	for (u64 i = CTAID * NTID + TID; i < n; i += (u64)NCTAID * NTID) {
		float x = 0;
		for (int k = 0; k < s.n; k++)
			x += s.p[k][i];
		out[i] = x;
	}
}

GLOBAL void block_sum(const int *in, int *out, int n) {
	SHARED static int partial[256];
	int x = 0;
	for (int i = TID; i < n; i += NTID)
		x += in[i];
	partial[TID] = x;
	__syncthreads();
	for (int half = NTID / 2; half > 0; half /= 2) {
		if ((int)TID < half)
			partial[TID] += partial[TID + half];
		__syncthreads();
	}
	if (TID == 0)
		*out = partial[0];
}

extern SHARED char dynamic[];

GLOBAL void transpose(u64 *data) {
	u64 *tile = (u64 *)dynamic;
	tile[TID] = data[TID];
	__syncthreads();
	data[TID] = tile[NTID - 1 - TID];
}
