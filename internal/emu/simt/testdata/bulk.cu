// Blocks that move data by bulk copies.
#include "cuda.h"

typedef unsigned char u8;
extern __attribute__((shared)) __attribute__((aligned(128))) u8 room[];

DEVICE u32 near(const void *p) { u64 a; asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(p)); return (u32)a; }
DEVICE void init(u32 bar, u32 n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory"); }
DEVICE void arrive(u32 bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory"); }
DEVICE void expect(u32 bar, u32 n) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(n) : "memory"); }
DEVICE void await(u32 bar, u32 parity) {
	u32 ok;
	do {
		asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(bar), "r"(parity) : "memory");
	} while (!ok);
}
DEVICE void load(u32 to, const u8 *from, u32 n, u32 bar) {
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(n), "r"(bar) : "memory");
}
DEVICE void store(u8 *to, u32 from, u32 n) {
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(n) : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
DEVICE void reduce(u8 *to, u32 from, u32 n) {
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(n) : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
#define STORED(N) asm volatile("cp.async.bulk.wait_group " #N ";" ::: "memory")
#define SOURCES_READ(N) asm volatile("cp.async.bulk.wait_group.read " #N ";" ::: "memory")
DEVICE void fenceAsync() { asm volatile("fence.proxy.async;" ::: "memory"); }

const u32 tile = 1024, stages = 3;

// move carries n tiles to dst by one thread a block: loads run ahead of stores by all
// stages but one. With adds it adds them there.
template <bool adds> DEVICE void move(u8 *dst, const u8 *src, u32 n) {
	SHARED u64 bars[stages];
	if (tid()) return;
	u32 full = near(bars), slots = near(room);
	for (u32 i = 0; i < stages; i++) init(full + 8 * i, 1);
	fenceAsync();
	u32 count = (n - bid() + nbid() - 1) / nbid();
	for (u32 next = 0, i = 0; i < count; i++) {
		for (; next < count && next < i + stages - 1; next++) {
			u32 s = next % stages;
			if (next >= stages) SOURCES_READ(1);
			expect(full + 8 * s, tile);
			load(slots + s * tile, src + (u64)(bid() + next * nbid()) * tile, tile, full + 8 * s);
		}
		u32 s = i % stages;
		await(full + 8 * s, i / stages & 1);
		u8 *to = dst + (u64)(bid() + i * nbid()) * tile;
		if (adds) reduce(to, slots + s * tile, tile); else store(to, slots + s * tile, tile);
	}
	STORED(0);
}
GLOBAL push(u8 *dst, const u8 *src, u32 n) { move<false>(dst, src, n); }
GLOBAL pushAdd(u8 *dst, const u8 *src, u32 n) { move<true>(dst, src, n); }

// ring adds what the device before sent to its own n tiles and sends the sum on to the next
// one, tile by tile, with a flag a tile; the first device begins. Warp 0 loads and stores,
// the others add.
GLOBAL ring(u8 *next, u32 *nextFlags, const u8 *mine, const u8 *got, u32 *flags, u32 n, u32 first) {
	SHARED u64 bars[2 * stages];
	u32 full = near(bars), summed = full + 8 * stages, slots = near(room);
	u32 workers = ntid() - 32;
	if (tid() == 0) {
		for (u32 i = 0; i < stages; i++) {
			init(full + 8 * i, 1);
			init(summed + 8 * i, workers);
		}
		fenceAsync();
	}
	sync();
	u32 count = (n - bid() + nbid() - 1) / nbid();
	if (tid() >= 32) {
		for (u32 i = 0; i < count; i++) {
			u32 s = i % stages, parity = i / stages & 1;
			await(full + 8 * s, parity);
			u32 *a = (u32 *)(room + 2 * s * tile), *b = a + tile / 4;
			if (!first) for (u32 k = tid() - 32; k < tile / 4; k += workers) a[k] += b[k];
			fenceAsync();
			arrive(summed + 8 * s);
		}
		return;
	}
	if (tid()) return;
	for (u32 i = 0, ahead = 0; i < count; i++) {
		for (; ahead < count && ahead < i + stages - 1; ahead++) {
			u32 s = ahead % stages, t = bid() + ahead * nbid();
			if (!first) {
				while (!loadAcquireSys(flags + t)) {}
				fenceAsync();
			}
			expect(full + 8 * s, first ? tile : 2 * tile);
			load(slots + 2 * s * tile, mine + (u64)t * tile, tile, full + 8 * s);
			if (!first) load(slots + 2 * s * tile + tile, got + (u64)t * tile, tile, full + 8 * s);
		}
		u32 s = i % stages, t = bid() + i * nbid();
		await(summed + 8 * s, i / stages & 1);
		store(next + (u64)t * tile, slots + 2 * s * tile, tile);
		if (i > 0) {
			STORED(1);
			storeReleaseSys(nextFlags + t - nbid(), 1);
		}
	}
	STORED(0);
	if (count) storeReleaseSys(nextFlags + bid() + (count - 1) * nbid(), 1);
}
