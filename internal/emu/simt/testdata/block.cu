// Blocks: shared memory, barriers, shuffles.
#include "cuda.h"

SHARED u32 part[32];
extern __attribute__((shared)) u32 dynamic[];

DEVICE u32 shflDown(u32 m, u32 v, u32 d) {
	u32 r; asm volatile("shfl.sync.down.b32 %0, %1, %2, 31, %3;" : "=r"(r) : "r"(v), "r"(d), "r"(m)); return r;
}

// sum adds up in of a block with shuffles, then with shared memory.
GLOBAL sum(u32 *in, u32 *out) {
	u32 v = in[gid()];
	for (u32 d = 16; d; d /= 2) v += shflDown(0xffffffff, v, d);
	if (tid() % 32 == 0) part[tid() / 32] = v;
	sync();
	if (tid() < 32) {
		v = tid() < ntid() / 32 ? part[tid()] : 0;
		for (u32 d = 16; d; d /= 2) v += shflDown(0xffffffff, v, d);
		if (tid() == 0) out[bid()] = v;
	}
}

// reverse uses dynamic shared memory.
GLOBAL reverse(u32 *data) {
	dynamic[tid()] = data[gid()];
	sync();
	data[gid()] = dynamic[ntid() - 1 - tid()];
}

// reverseRacy lacks the barrier.
GLOBAL reverseRacy(u32 *data) {
	dynamic[tid()] = data[gid()];
	data[gid()] = dynamic[ntid() - 1 - tid()];
}

// tree adds up with a barrier at each level.
GLOBAL tree(u32 *in, u32 *out) {
	dynamic[tid()] = in[gid()];
	for (u32 s = ntid() / 2; s; s /= 2) {
		sync();
		if (tid() < s) dynamic[tid()] += dynamic[tid() + s];
	}
	if (tid() == 0) out[bid()] = dynamic[0];
}

// pointers goes through generic addresses of shared, local and global memory.
GLOBAL pointers(u32 *data) {
	u32 mine[4] = {1, 2, 3, (u32)tid()};
	dynamic[tid()] = 100 + tid();
	u32 *p = tid() % 3 == 0 ? &mine[tid() % 4] : tid() % 3 == 1 ? &dynamic[tid()] : &data[tid()];
	asm volatile("" : "+l"(p));
	*p += 10;
	data[tid()] = *p + mine[3];
}

__attribute__((device)) u32 total;
__attribute__((constant)) u32 weights[4] = {1, 10, 100, 1000};

// variables uses those of the module.
GLOBAL variables() { asm volatile("red.global.add.u32 [%0], %1;" ::"l"(&total), "r"(weights[tid() % 4]) : "memory"); }
