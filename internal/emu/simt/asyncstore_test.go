package simt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// reduceLater has 64 threads reduce into a word and wait until all have.
const reduceLater = `
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
st.shared.u32 [tile], 5;
READY:
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
mov.u32 %r2, tile;
mov.u32 %r3, %cluster_ctarank;
mapa.shared::cluster.u32 %r2, %r2, %r3;
mov.u32 %r4, bar;
mapa.shared::cluster.u32 %r4, %r4, %r3;
add.u32 %r6, %r0, 1;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2], %r6, [%r4];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r5, [tile];
st.global.u32 [%rd1], %r5;
`

func TestReduceLater(t *testing.T) {
	const copied = "the asynchronous copy's"
	want := make([]uint32, 64)
	for i := range want {
		want[i] = 5 + 64*65/2
	}
	find(t, reduceLater, run{threads: 64, clusters: 1, words: [][]uint32{make([]uint32, 64), {0}, {0}}}, want, []planted{
		{"not waited for", []edit{{"@!%p1 bra WAIT;", ""}}, kinds(raced), copied},
		{"fewer bytes", []edit{{"_, [bar], 256", "_, [bar], 248"}}, kinds(bad, raced, stuck),
			"no longer uses its shared memory"},
		{"no barrier", []edit{{"mbarrier.init.shared.b64 [bar], 1;", ""}}, kinds(unset, bad), ""},
		{"unset", []edit{{"st.shared.u32 [tile], 5;", ""}}, kinds(unset), ""},
		{"read before", []edit{{"bar.sync 0;", "ld.shared.u32 %r7, [tile]; bar.sync 0;"}}, kinds(raced, unset), ""},
		{"beside a store", []edit{{"WAIT:\n", "@%p0 st.shared.u32 [tile], 9;\nWAIT:\n"}}, kinds(raced), copied},
		{"misaligned", []edit{{"add.u32 %r6, %r0, 1;", "add.u32 %r2, %r2, 2;"}}, kinds(weakmem.Misaligned), ""},
		{"another block", []edit{{"%cluster_ctarank;", "%cluster_nctarank;"}}, kinds(bad),
			"there is no block of rank 1 in the cluster: it has 1"},
	})
}

func TestReduceLaterOperations(t *testing.T) {
	for _, c := range []struct {
		op     string
		old, b uint64
		want   uint64
	}{
		{"inc.u32", 4, 5, 5}, {"dec.u32", 0, 5, 5}, {"min.s32", 3, 0xffffffff, 0xffffffff},
		{"max.u32", 3, 0xffffffff, 0xffffffff}, {"add.s32", 3, 0xffffffff, 2}, {"add.u64", 1 << 40, 3, 1<<40 + 3},
		{"and.b32", 6, 3, 2}, {"or.b32", 6, 3, 7}, {"xor.b32", 6, 3, 5},
	} {
		t.Run(c.op, func(t *testing.T) {
			bits := c.op[len(c.op)-2:]
			text := asynchronous(fmt.Sprintf(`mbarrier.init.shared.b64 [bar], 1;
st.shared.u64 [tile], %d;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], BITS/8;
mov.b64 %%rd5, %d;
cvt.u32.u64 %%r5, %%rd5;
mov.u64 %%rd6, tile;
cvta.shared.u64 %%rd6, %%rd6;
mov.u64 %%rd7, bar;
cvta.shared.u64 %%rd7, %%rd7;
red.async.mbarrier::complete_tx::bytes.%s [%%rd6], REG5, [%%rd7];
WAIT:
mbarrier.try_wait.parity.shared.b64 %%p1, [bar], 0;
@!%%p1 bra WAIT;
ld.shared.u64 %%rd8, [tile];
st.global.u64 [%%rd0], %%rd8;`, c.old, c.b, c.op))
			text = strings.ReplaceAll(text, "BITS", bits)
			text = strings.ReplaceAll(text, "REG", map[string]string{"32": "%r", "64": "%rd"}[bits])
			got := run{file: run{clusters: 1}.cluster(text), kernel: "k", threads: 1,
				words: [][]uint32{{0, 0}, {0}, {0}}}.do(t, options{})[0]
			require.Equal(t, c.want, uint64(got[1])<<32|uint64(got[0]))
		})
	}
}

// storeLater has thread 0 store a vector for the others.
const storeLater = `
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [tile], {%r0, 7, %r0, 9}, [bar];
READY:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r5, [%r1];
st.global.u32 [%rd1], %r5;
`

func TestStoreLater(t *testing.T) {
	r := run{threads: 4, clusters: 1, words: [][]uint32{make([]uint32, 4), {0}, {0}}}
	find(t, storeLater, r, []uint32{0, 7, 0, 9}, []planted{
		{"not waited for", []edit{{"@!%p1 bra WAIT;", ""}}, kinds(raced), "the asynchronous copy's store of 16 bytes"},
		{"misaligned", []edit{{"[tile], {", "[tile+8], {"}}, kinds(weakmem.Misaligned), ""},
	})
}

// Without clusters an H100 takes st.async and red.async for illegal instructions.
func TestStoreLaterWithoutClusters(t *testing.T) {
	for _, text := range []string{storeLater, reduceLater} {
		f := once(t, text, run{threads: 64, words: [][]uint32{make([]uint32, 64), {0}, {0}}}, 1).Fault()
		require.NotNil(t, f)
		require.Equal(t, bad, f.Kind)
		require.Contains(t, f.Detail, "in a launch without clusters")
	}
}
