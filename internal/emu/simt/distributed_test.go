package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// sumOfCluster has all threads of 4 blocks add to a word of the first block.
const sumOfCluster = `
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, 0;
@%p0 st.shared.u32 [tile], 0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r12, tile;
mapa.shared::cluster.u32 %r12, %r12, %r11;
mov.u32 %r13, %ctaid.x;
mad.lo.u32 %r13, %r13, 64, %r0;
red.shared::cluster.add.u32 [%r12], %r13;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.eq.and.u32 %p1, %r10, 0, %p0;
ld.shared.u32 %r14, [tile];
mov.u32 %r15, %clusterid.x;
mad.wide.u32 %rd4, %r15, 4, %rd0;
@%p1 st.global.u32 [%rd4], %r14;
`

func TestSumOfCluster(t *testing.T) {
	r := run{threads: 64, blocks: 8, clusters: 4, words: [][]uint32{{0, 0}, {0}, {0}}}
	want := []uint32{255 * 256 / 2, 255*256/2 + 256*256}
	find(t, sumOfCluster, r, want, []planted{
		{"of a scope that lacks the others", []edit{{"red.shared::cluster", "red.relaxed.cta.shared::cluster"}}, kinds(raced),
			"both are strong, but of a scope that lacks the other thread"},
		{"no atomic operation", []edit{{"red.shared::cluster.add.u32 [%r12], %r13;", "st.shared::cluster.u32 [%r12], %r13;"}},
			kinds(raced), "shared memory of block ("},
		{"read too early", []edit{{"[%r12], %r13;\nbarrier.cluster.arrive", "[%r12], %r13;\nbarrier.cluster.arrive.relaxed"}},
			kinds(raced), ""},
	})
	cluster := edit{"red.shared::cluster", "red.relaxed.cluster.shared::cluster"}.of(t, sumOfCluster)
	find(t, cluster, r, want, nil)
	fenced := edit{"[%r12], %r13;\nbarrier.cluster.arrive", "[%r12], %r13;\nfence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed"}
	find(t, fenced.of(t, sumOfCluster), r, want, nil)
}

// genericAddresses has the first block of two give the other the address of its tile, at which the other one stores.
const genericAddresses = `
.reg .b64 %own, %far, %box;
mov.u32 %r10, %cluster_ctarank;
mov.u64 %own, tile;
cvta.shared.u64 %own, %own;
xor.b32 %r11, %r10, 1;
mapa.u64 %box, %own, %r11;
getctarank.u64 %r12, %box;
getctarank.u64 %r13, %own;
isspacep.shared::cta %p1, %box;
isspacep.shared::cluster %p2, %box;
isspacep.shared %p3, %own;
selp.u32 %r14, 1, 0, %p1;
selp.u32 %r15, 2, 0, %p2;
selp.u32 %r16, 4, 0, %p3;
or.b32 %r14, %r14, %r15;
or.b32 %r14, %r14, %r16;
barrier.cluster.arrive;
barrier.cluster.wait;
st.u64 [%box+8], %own;
barrier.cluster.arrive;
barrier.cluster.wait;
ld.shared.u64 %far, [tile+8];
add.u32 %r17, %r10, 70;
st.u32 [%far], %r17;
atom.add.u32 %r18, [%far], 5;
barrier.cluster.arrive;
barrier.cluster.wait;
ld.shared.u32 %r19, [tile];
mad.wide.u32 %rd4, %r10, 24, %rd0;
st.global.v2.u32 [%rd4], {%r12, %r13};
st.global.v2.u32 [%rd4+8], {%r14, %r18};
st.global.u32 [%rd4+16], %r19;
`

func TestGenericAddresses(t *testing.T) {
	r := run{threads: 1, blocks: 2, clusters: 2, words: [][]uint32{make([]uint32, 12), {0}, {0}}}
	find(t, genericAddresses, r, []uint32{1, 0, 6, 70, 76, 0, 0, 1, 6, 71, 75, 0}, []planted{
		{"no barrier before the end", []edit{{"[%far], 5;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;", "[%far], 5;"}},
			kinds(raced, weakmem.OutOfBounds, unset), ""},
	})
}

// arrivals have a thread of each of 3 blocks arrive at a barrier of the first block, whose threads then read what they
// stored there.
const arrivals = `
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, bar;
mov.u32 %r12, 0;
setp.ne.u32 %p1, %r10, 0;
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 3;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.relaxed;
barrier.cluster.wait;
@!%p0 bra WAIT;
mapa.shared::cluster.u32 %r11, %r11, %r12;
mov.u32 %r13, tile;
mapa.shared::cluster.u32 %r13, %r13, %r12;
mad.lo.u32 %r13, %r10, 4, %r13;
add.u32 %r14, %r10, 7;
st.shared::cluster.u32 [%r13], %r14;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
WAIT:
@%p1 bra END;
AGAIN:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra AGAIN;
ld.shared.u32 %r15, [%r1];
st.global.u32 [%rd1], %r15;
END:
barrier.cluster.arrive;
barrier.cluster.wait;
`

func TestArrivalsOfOtherBlocks(t *testing.T) {
	r := run{threads: 3, blocks: 3, clusters: 3, words: [][]uint32{{0, 0, 0}, {0}, {0}}}
	find(t, arrivals, r, []uint32{7, 8, 9}, []planted{
		{"released to the block", []edit{{"arrive.release.cluster.shared", "arrive.release.cta.shared"}}, kinds(raced), ""},
		{"acquired from the block", []edit{{"parity.acquire.cluster", "parity.acquire.cta"}}, kinds(raced), ""},
		{"one arrival too few", []edit{{"[bar], 3", "[bar], 4"}}, kinds(stuck), "phase 0 lacks 1 of 4 arrivals"},
		{"one arrival too many", []edit{{"[bar], 3", "[bar], 2"}}, kinds(raced, unset), ""},
		{"no fence of the barrier", []edit{{"fence.mbarrier_init.release.cluster;", ""}}, kinds(raced), ""},
		{"not met", []edit{{"READY:\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;", "READY:\nbar.sync 0;"}},
			kinds(weakmem.OutOfBounds), "a barrier of the cluster has to come first"},
		{"waits at another block's", []edit{{"shared::cta.b64 %p2, [bar]", "shared::cluster.b64 %p2, [%r11]"},
			{"@%p1 bra END;", ""}}, kinds(bad), "this is for the block's own"},
	})
	text := edit{"arrive.release.cluster.shared::cluster", "arrive.shared::cluster"}.of(t, arrivals)
	find(t, edit{"parity.acquire.cluster", "parity"}.of(t, text), r, []uint32{7, 8, 9}, nil)
}

// storeToNext has each of 4 blocks store a vector to the next one, and tell its barrier.
const storeToNext = `
mov.u32 %r10, %cluster_ctarank;
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
READY:
barrier.cluster.arrive;
barrier.cluster.wait;
add.u32 %r11, %r10, 1;
and.b32 %r11, %r11, 3;
mov.u32 %r12, bar;
mapa.shared::cluster.u32 %r12, %r12, %r11;
mov.u32 %r13, tile;
mapa.shared::cluster.u32 %r13, %r13, %r11;
add.u32 %r14, %r10, 20;
@%p0 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r13], {%r14, 7, %r14, 9}, [%r12];
AGAIN:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra AGAIN;
ld.shared.u32 %r15, [%r1];
mov.u32 %r16, %ctaid.x;
mad.lo.u32 %r16, %r16, 4, %r0;
mad.wide.u32 %rd4, %r16, 4, %rd0;
st.global.u32 [%rd4], %r15;
`

func TestStoreToNextBlock(t *testing.T) {
	r := run{threads: 4, blocks: 4, clusters: 4, words: [][]uint32{make([]uint32, 16), {0}, {0}}}
	want := []uint32{23, 7, 23, 9, 20, 7, 20, 9, 21, 7, 21, 9, 22, 7, 22, 9}
	text := storeToNext
	find(t, text, r, want, []planted{
		{"not waited for", []edit{{"@!%p2 bra AGAIN;", ""}}, kinds(raced, bad, unset), ""},
		{"the barrier of another block", []edit{{"%r12, %r12, %r11", "%r12, %r12, %r10"}}, kinds(bad),
			"and the copy goes to block"},
	})
}

// copyToNext has each of 2 blocks copy its tile to the other.
const copyToNext = `
mov.u32 %r10, %cluster_ctarank;
mad.lo.u32 %r11, %r10, 1000, %r0;
st.shared.u32 [%r1], %r11;
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
fence.mbarrier_init.release.cluster;
READY:
fence.proxy.async;
barrier.cluster.arrive;
barrier.cluster.wait;
xor.b32 %r12, %r10, 1;
mov.u32 %r13, bar;
mapa.shared::cluster.u32 %r13, %r13, %r12;
mov.u32 %r14, tile;
add.u32 %r14, %r14, 1024;
mapa.shared::cluster.u32 %r14, %r14, %r12;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r14], [tile], 128, [%r13];
AGAIN:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra AGAIN;
ld.shared.u32 %r15, [%r1+1024];
mov.u32 %r16, %ctaid.x;
mad.lo.u32 %r16, %r16, 32, %r0;
mad.wide.u32 %rd4, %r16, 4, %rd0;
st.global.u32 [%rd4], %r15;
barrier.cluster.arrive;
barrier.cluster.wait;
`

func TestCopyToNextBlock(t *testing.T) {
	var want []uint32
	for b := range uint32(2) {
		for i := range uint32(32) {
			want = append(want, (1-b)*1000+i)
		}
	}
	r := run{threads: 32, blocks: 2, clusters: 2, words: [][]uint32{make([]uint32, 64), {0}, {0}}}
	const last = "st.global.u32 [%rd4], %r15;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
	find(t, copyToNext, r, want, []planted{
		{"not waited for", []edit{{"@!%p2 bra AGAIN;", ""}}, kinds(raced, unset), "store of 128 bytes"},
		{"the source ends", []edit{{last, "st.global.u32 [%rd4], %r15;"}}, kinds(bad), "no longer uses its shared memory"},
		{"no proxy fence", []edit{{"fence.proxy.async;", ""}}, kinds(noFence), ""},
		{"the tile of this block", []edit{{"%r14, %r14, %r12", "%r14, %r14, %r10"}}, kinds(bad), ""},
	})
}

// A copy may reduce into another block's shared memory.
func TestReduceIntoNextBlock(t *testing.T) {
	var want []uint32
	for b := range uint32(2) {
		for i := range uint32(32) {
			want = append(want, 5+(1-b)*1000+i)
		}
	}
	text := edit{"[%r1], %r11;", "[%r1], %r11;\nst.shared.u32 [%r1+1024], 5;"}.of(t, copyToNext)
	text = edit{"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
		"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"}.of(t, text)
	r := run{threads: 32, blocks: 2, clusters: 2, words: [][]uint32{make([]uint32, 64), {0}, {0}}}
	find(t, text, r, want, []planted{
		{"not waited for", []edit{{"@!%p2 bra AGAIN;", ""}}, kinds(raced), ""},
		{"into unwritten memory", []edit{{"st.shared.u32 [%r1+1024], 5;", ""}}, kinds(unset), ""},
	})
}

// copyToAll has the first of 4 blocks load a tile for blocks 0, 1 and 3.
const copyToAll = `
mov.u32 %r10, %cluster_ctarank;
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
setp.ne.u32 %p3, %r10, 2;
@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
@!%p3 mbarrier.arrive.shared.b64 _, [bar];
READY:
barrier.cluster.arrive;
barrier.cluster.wait;
setp.eq.and.u32 %p1, %r10, 0, %p0;
mov.u16 %h, 11;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd2], 128, [bar], %h;
AGAIN:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra AGAIN;
mov.u32 %r15, 5;
@%p3 ld.shared.u32 %r15, [%r1];
mov.u32 %r16, %ctaid.x;
mad.lo.u32 %r16, %r16, 32, %r0;
mad.wide.u32 %rd4, %r16, 4, %rd0;
st.global.u32 [%rd4], %r15;
`

func TestCopyToAllBlocks(t *testing.T) {
	var want []uint32
	for b := range uint32(4) {
		for i := range uint32(32) {
			v := 100 * i
			if b == 2 {
				v = 5
			}
			want = append(want, v)
		}
	}
	text := ".reg .b16 %h;\nmov.u32 %r10, %cluster_ctarank;\nsetp.ne.u32 %p3, %r10, 2;\n" + copyToAll
	r := run{threads: 32, blocks: 4, clusters: 4, words: [][]uint32{make([]uint32, 128), sequence(32, 100), {0}}}
	find(t, text, r, want, []planted{
		{"not waited for", []edit{{"@!%p2 bra AGAIN;", ""}}, kinds(raced, unset, bad), ""},
		{"a block too many", []edit{{"%h, 11", "%h, 27"}}, kinds(bad), "it has 4"},
		{"a block that does not wait", []edit{{"%h, 11", "%h, 15"}}, kinds(bad, weakmem.OutOfBounds), ""},
		{"a block that waits in vain", []edit{{"%h, 11", "%h, 9"}}, kinds(stuck), "128 bytes"},
	})
}

// In one block each instruction does what it does in a cluster.
func TestClusterOfOneBlock(t *testing.T) {
	text := edit{"[bar], 3", "[bar], 1"}.of(t, arrivals)
	require.Equal(t, []uint32{7}, run{file: asynchronous(text), kernel: "k", threads: 1,
		words: [][]uint32{{0}, {0}, {0}}}.do(t, options{})[0])
}
