package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// asynchronous is a kernel with a tile of shared memory and barriers, of which [%rd0] is the
// output, %rd1 the thread's word of it, [%rd2] the input, %r0 the thread, %r1 the address
// of its word of the tile, %p0 whether it is thread 0.
func asynchronous(body string) string {
	return `.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 flag)
{
.reg .pred %p<9>;
.reg .b32 %r<30>;
.reg .b64 %rd<20>;
.shared .align 128 .b8 tile[2048];
.shared .align 8 .b64 bar[4];
ld.param.u64 %rd0, [out];
ld.param.u64 %rd2, [in];
ld.param.u64 %rd3, [flag];
mov.u32 %r0, %tid.x;
mad.wide.u32 %rd1, %r0, 4, %rd0;
mov.u32 %r1, tile;
mad.lo.u32 %r1, %r0, 4, %r1;
setp.eq.u32 %p0, %r0, 0;
` + body + `
ret;
}
`
}

// An edit changes a text. The old part has to be there.
type edit struct{ from, to string }

func (e edit) of(t *testing.T, text string) string {
	require.Contains(t, text, e.from)
	return strings.Replace(text, e.from, e.to, 1)
}

// A planted fault is an edit of a right kernel, and what is found of it.
type planted struct {
	name   string
	edits  []edit
	kinds  []weakmem.FaultKind // one of these
	detail string              // of the first kind
}

// asyncSeeds are enough to meet each policy with each pace of copies.
const asyncSeeds = 15

// tries is how many seeds of n to try. A GPU has none.
func tries(n int) int {
	if gputest.OnGPU() {
		return 1
	}
	return tier.Count((n+2)/3, n)
}

// find runs a right kernel, which has to give want, and its faulty versions, of which each
// has to be found by most of the seeds.
func find(t *testing.T, text string, r run, want []uint32, faults []planted) {
	r.kernel = "k"
	r.file = r.cluster(asynchronous(text))
	for seed := range uint64(tries(3 * asyncSeeds)) {
		require.Equal(t, want, r.do(t, options{seed: seed})[0][:len(want)], "seed %d", seed)
	}
	for _, p := range faults {
		t.Run(p.name, func(t *testing.T) {
			emulated(t)
			text := text
			for _, e := range p.edits {
				text = e.of(t, text)
			}
			found := 0
			for seed := range uint64(asyncSeeds) {
				m := boot(t, r.cluster(asynchronous(text)), options{seed: seed, stall: 30_000})
				var a []any
				for _, w := range r.words {
					a = append(a, m.words(w...))
				}
				g := m.grid("k", max(r.blocks, 1), r.threads, a...)
				m.start(g)
				if f := g.Fault(); f != nil {
					require.Contains(t, p.kinds, f.Kind, "%v", f)
					if f.Kind == p.kinds[0] {
						require.Contains(t, f.Error(), p.detail)
					}
					found++
				}
			}
			t.Logf("found by %d of %d seeds", found, asyncSeeds)
			require.Greater(t, 2*found, asyncSeeds)
		})
	}
}

func kinds(k ...weakmem.FaultKind) []weakmem.FaultKind { return k }

const (
	raced   = weakmem.Race
	unset   = weakmem.Uninitialized
	noFence = weakmem.NoProxyFence
	stuck   = weakmem.Deadlock
	bad     = weakmem.BadInstruction
)

// What does not matter here is passed over.
func TestHintsOfNewerGPUs(t *testing.T) {
	got := compute(t, options{}, hand(`griddepcontrol.wait;
prefetch.global.L2 [%rd0];
cp.async.bulk.prefetch.L2.global [%rd0], 16;
elect.sync %r1|%p1, 0xffffffff;
@%p1 st.global.u32 [%rd0], %r0;
griddepcontrol.launch_dependents;
`), "k", 32, []uint32{9, 9, 9, 9}, 5)
	require.Equal(t, []uint32{0, 9, 9, 9}, got)
}
