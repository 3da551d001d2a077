// Blocks and devices that talk to each other.
#include "cuda.h"

// count gives each thread a ticket.
GLOBAL count(u32 *counter, u32 *seen) { seen[atomicAdd(counter, 1)] = 1; }

// locked adds to a plain counter under a spin lock; the threads of a warp compete too.
GLOBAL locked(u32 *lock, u32 *counter) {
	while (atomicCAS(lock, 0, 1)) {}
	*counter += 1;
	storeRelease(lock, 0);
}

// send passes a number from block 0 to block 1, right.
GLOBAL send(u32 *data, u32 *flag, u32 *out) {
	if (bid() == 0) {
		*data = 42;
		storeRelease(flag, 1);
	} else {
		while (!loadAcquire(flag)) {}
		*out = *data;
	}
}

// sendFenced does it with fences.
GLOBAL sendFenced(u32 *data, u32 *flag, u32 *out) {
	if (bid() == 0) {
		*data = 42;
		fence();
		storeRelaxed(flag, 1);
	} else {
		while (!loadRelaxed(flag)) {}
		fence();
		*out = *data;
	}
}

// sendUnfenced forgets the writer's fence.
GLOBAL sendUnfenced(u32 *data, u32 *flag, u32 *out) {
	if (bid() == 0) {
		*data = 42;
		storeRelaxed(flag, 1);
	} else {
		while (!loadRelaxed(flag)) {}
		fence();
		*out = *data;
	}
}

// inWarp has one thread of a warp wait for another.
GLOBAL inWarp(u32 *data, u32 *flag, u32 *out) {
	if (tid() == 0) {
		while (!loadAcquire(flag)) {}
		*out = *data;
	} else if (tid() == 31) {
		*data = 42;
		storeRelease(flag, 1);
	}
}

// meet is a barrier of the whole grid: it needs all blocks resident.
GLOBAL meet(u32 *arrived, u32 *data, u32 *out) {
	if (tid() == 0) {
		data[bid()] = bid() + 1;
		fence();
		atomicAdd(arrived, 1);
		while (loadAcquire(arrived) < nbid()) {}
		u32 s = 0;
		for (int i = 0; i < nbid(); i++) s += data[i];
		out[bid()] = s;
	}
}

// ping and pong are of two devices.
GLOBAL ping(u32 *mine, u32 *theirs, u32 *data, u32 turns) {
	for (u32 i = 1; i <= turns; i++) {
		*data += i;
		storeReleaseSys(theirs, i);
		while (loadAcquireSys(mine) < i) {}
	}
}
GLOBAL pong(u32 *mine, u32 *theirs, u32 *data, u32 turns) {
	for (u32 i = 1; i <= turns; i++) {
		while (loadAcquireSys(mine) < i) {}
		*data *= 3;
		storeReleaseSys(theirs, i);
	}
}

// outside writes one element too many.
GLOBAL outside(u32 *data, u32 n) {
	if ((u32)gid() <= n) data[gid()] = 1;
}
