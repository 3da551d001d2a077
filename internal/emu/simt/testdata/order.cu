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
GLOBAL send(u32 *flag, u32 *data, u32 *out) {
	if (bid() == 0) {
		*data = 42;
		storeRelease(flag, 1);
	} else {
		while (!loadAcquire(flag)) {}
		*out = *data;
	}
}

// sendFenced does it with fences.
GLOBAL sendFenced(u32 *flag, u32 *data, u32 *out) {
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
GLOBAL sendUnfenced(u32 *flag, u32 *data, u32 *out) {
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
GLOBAL inWarp(u32 *flag, u32 *data, u32 *out) {
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

// Where each of up to 8 devices receives: for every sender n lines of two words, each with a flag.
struct uint4 { u32 x, y, z, w; };
struct boxes { uint4 *of[8]; };

// oneShot adds up the in of all devices: everyone sends its words, with flags among them, to everyone.
template <bool half> DEVICE void all(u32 *in, u32 *out, const boxes &to, int rank, int ranks, int n, u32 epoch) {
	for (int i = gid(); i < n; i += ntid() * nbid()) {
		u32 a = in[2 * i], b = in[2 * i + 1];
		for (int r = 0; r < ranks; r++)
			asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(to.of[r] + rank * n + i), "r"(a), "r"(b), "r"(epoch) : "memory");
		a = b = 0;
		for (int r = 0; r < ranks; r++) {
			u32 x, y, f, g;
			do
				asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(f), "=r"(y), "=r"(g) : "l"(to.of[rank] + r * n + i) : "memory");
			while (f != epoch || !half && g != epoch);
			a += x;
			b += y;
		}
		out[2 * i] = a;
		out[2 * i + 1] = b;
	}
}
GLOBAL oneShot(u32 *in, u32 *out, boxes to, int rank, int ranks, int n, u32 epoch) { all<false>(in, out, to, rank, ranks, n, epoch); }

// oneShotHalf looks at one of the two flags only: 16 bytes do not arrive together.
GLOBAL oneShotHalf(u32 *in, u32 *out, boxes to, int rank, int ranks, int n, u32 epoch) { all<true>(in, out, to, rank, ranks, n, epoch); }

// meetAgain is a barrier of the grid that goes wrong now and then: the last to
// come sets the counter back, maybe before the others have seen it.
GLOBAL meetAgain(u32 *arrived, u32 turns) {
	for (u32 i = 0; i < turns; i++) {
		if (atomicAdd(arrived, 1) == nbid() - 1) {
			storeRelaxed(arrived, 0);
		} else {
			while (loadRelaxed(arrived)) {}
		}
	}
}
