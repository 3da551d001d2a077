package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// The registers of each block, in a grid of 6 × 4 × 1 blocks with clusters of 3 × 2.
const placesInClusters = `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
.explicitcluster
.reqnctapercluster 3, 2, 1
{
.reg .pred %p;
.reg .b32 %r<20>;
.reg .b64 %rd<3>;
ld.param.u64 %rd0, [out];
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ctaid.y;
mov.u32 %r2, %nctaid.x;
mad.lo.u32 %r3, %r1, %r2, %r0;
mad.wide.u32 %rd1, %r3, 64, %rd0;
mov.u32 %r4, %clusterid.x;
mov.u32 %r5, %clusterid.y;
mov.u32 %r6, %cluster_ctaid.x;
mov.u32 %r7, %cluster_ctaid.y;
st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};
mov.u32 %r4, %nclusterid.x;
mov.u32 %r5, %nclusterid.y;
mov.u32 %r6, %cluster_nctaid.x;
mov.u32 %r7, %cluster_nctaid.y;
st.global.v4.u32 [%rd1+16], {%r4, %r5, %r6, %r7};
mov.u32 %r4, %cluster_ctarank;
mov.u32 %r5, %cluster_nctarank;
mov.pred %p, %is_explicit_cluster;
selp.u32 %r6, 1, 0, %p;
mov.u32 %r7, %cluster_nctaid.z;
st.global.v4.u32 [%rd1+32], {%r4, %r5, %r6, %r7};
mov.u32 %r4, %clusterid.z;
mov.u32 %r5, %nclusterid.z;
mov.u32 %r6, %cluster_ctaid.z;
mov.u32 %r7, 0;
st.global.v4.u32 [%rd1+48], {%r4, %r5, %r6, %r7};
ret;
}
`

func TestPlacesInClusters(t *testing.T) {
	r := run{file: placesInClusters, kernel: "k", blocks: 6, blocksY: 4, threads: 1,
		words: [][]uint32{make([]uint32, 24*16)}}
	got := r.do(t, options{})[0]
	for y := range uint32(4) {
		for x := range uint32(6) {
			want := []uint32{x / 3, y / 2, x % 3, y % 2, 2, 2, 3, 2, y%2*3 + x%3, 6, 1, 1, 0, 1, 0, 0}
			require.Equal(t, want, got[(y*6+x)*16:][:16], "block %d, %d", x, y)
		}
	}
}

// ringOfBlocks has each of 4 blocks give its words to the block before it.
const ringOfBlocks = `
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, %ctaid.x;
mad.lo.u32 %r12, %r11, 100, %r0;
st.shared.u32 [%r1], %r12;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %r13, %r10, 1;
and.b32 %r13, %r13, 3;
mapa.shared::cluster.u32 %r14, %r1, %r13;
ld.shared::cluster.u32 %r15, [%r14];
mov.u32 %r16, %ntid.x;
mad.lo.u32 %r16, %r16, %r11, %r0;
mad.wide.u32 %rd4, %r16, 4, %rd0;
st.global.u32 [%rd4], %r15;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
`

func ringOfBlocksWant(clusters, threads int) (want []uint32) {
	for b := range uint32(4 * clusters) {
		for i := range uint32(threads) {
			want = append(want, (b&^3+(b+1)&3)*100+i)
		}
	}
	return want
}

func TestRingOfBlocks(t *testing.T) {
	r := run{threads: 64, blocks: 8, clusters: 4, words: [][]uint32{make([]uint32, 8*64), {0}, {0}}}
	find(t, ringOfBlocks, r, ringOfBlocksWant(2, 64), []planted{
		{"too early", []edit{{"barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;", ""}},
			kinds(weakmem.OutOfBounds, unset), ""},
		{"arrivals that release nothing", []edit{{"arrive.aligned", "arrive.relaxed.aligned"}}, kinds(raced, unset), ""},
		{"behind the end", []edit{{"barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", ""}},
			kinds(weakmem.OutOfBounds), ""},
		{"an end that waits too early", []edit{{"st.global.u32 [%rd4], %r15;", ""},
			{"ld.shared::cluster.u32 %r15, [%r14];", ""},
			{"wait.acquire.aligned;", "wait.acquire.aligned;\nld.shared::cluster.u32 %r15, [%r14];"}},
			kinds(weakmem.OutOfBounds), ""},
		{"own memory only", []edit{{"ld.shared::cluster", "ld.shared"}}, kinds(bad), "this is for the block's own"},
		{"no such block", []edit{{"and.b32 %r13, %r13, 3;", "add.u32 %r13, %r13, 3;"}}, kinds(bad), "it has 4"},
		{"beyond", []edit{{"[%r14]", "[%r14+2048]"}}, kinds(weakmem.OutOfBounds, unset), "the block has"},
		{"arrives twice", []edit{{"barrier.cluster.wait.aligned;", "barrier.cluster.arrive.aligned;"}}, kinds(bad),
			"arrives twice at the barrier of the cluster"},
		{"waits without having arrived", []edit{{"barrier.cluster.arrive.aligned;", ""}}, kinds(bad),
			"without having arrived"},
		{"a block never arrives", []edit{{"barrier.cluster.arrive.aligned;", `setp.eq.u32 %p1, %r10, 2;
@!%p1 bra JOIN;
WAIT: ld.volatile.global.u32 %r17, [%rd2];
setp.eq.u32 %p2, %r17, 0;
@%p2 bra WAIT;
JOIN: barrier.cluster.arrive.aligned;`}}, kinds(stuck), "waits at the barrier of the cluster"},
	})
}

// More clusters than fit at once follow each other, each as a whole: here there is room for two and a half.
func TestClustersFollowEachOther(t *testing.T) {
	devices := []simt.Shape{small}
	devices[0].SMs, devices[0].BlocksPerSM = 5, 2
	r := run{kernel: "k", threads: 32, blocks: 40, clusters: 4, words: [][]uint32{make([]uint32, 40*32), {0}, {0}}}
	r.file = r.cluster(asynchronous(ringOfBlocks))
	for seed := range uint64(tries(10)) {
		require.Equal(t, ringOfBlocksWant(10, 32), r.do(t, options{seed: seed, devices: devices})[0])
	}
}

// A deadlock names who waits, and for whom.
func TestDeadlockInCluster(t *testing.T) {
	r := run{threads: 64, blocks: 4, clusters: 4, words: [][]uint32{make([]uint32, 8*64), {0}, {0}}}
	text := edit{"[%r14];", `[%r14];
setp.eq.u32 %p1, %r10, 1;
setp.lt.and.u32 %p1, %r0, 32, %p1;
@%p1 bar.sync 1, 64;`}.of(t, ringOfBlocks)
	f := once(t, text, r, 3).Fault()
	require.NotNil(t, f)
	require.Equal(t, weakmem.Deadlock, f.Kind)
	for _, want := range []string{
		"no thread of the cluster can go on",
		"waits at the barrier of the cluster, where 224 of all 256 that live have arrived and there lack 32 of block (1,0,0)",
		"block (1,0,0), thread (0,0,0) and 31 more of its warp, line 33: wait at barrier 1, where 32 of 64 have arrived",
	} {
		require.Contains(t, f.Detail, want)
	}
}

// once runs a kernel once and gives the grid.
func once(t *testing.T, text string, r run, seed uint64) *simt.Grid {
	emulated(t)
	m := boot(t, r.cluster(asynchronous(text)), options{seed: seed, stall: 30_000})
	var a []any
	for _, w := range r.words {
		a = append(a, m.words(w...))
	}
	g := m.grid("k", max(r.blocks, 1), r.threads, a...)
	m.start(g)
	return g
}
