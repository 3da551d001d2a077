package grid

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// What TestNormTimes measures.
var (
	normTokens = flag.String("tokens", "", "measure all-reduces with norms of these numbers of rows in graphs")
	normHidden = flag.String("hidden", "8K", "elements of a row")
	normWidths = flag.String("nwidths", "512", "threads of blocks, of 512")
	normParts  = flag.String("nparts", "16", "lines of a part of a row")
	normBlocks = flag.String("nblocks", "0", "blocks; 0: as there is work for")
)

// TestNormTimes measures on GPUs, a rank each, in µs: the all-reduce alone, with bias and residual, with norm, with a
// row's own float8 besides, by one hop and by two.
//
//	REQUIRE=cuda go test -run TestNormTimes -tokens 1,8,32
func TestNormTimes(t *testing.T) {
	if *normTokens == "" {
		t.Skip("-tokens measures on GPUs")
	}
	onMailboxes(t, 2, func(r *rig, about string) {
		for _, hidden := range sizes(*normHidden) {
			for _, tokens := range sizes(*normTokens) {
				r.timeNorms(fmt.Sprintf("%s hidden %d tokens %d", about, hidden, tokens), hidden, tokens)
			}
		}
	})
}

func (r *rig) timeNorms(name string, hidden, tokens int) {
	dt, err := kernels.ParseType(*directType)
	require.NoError(r.t, err)
	n := len(r.ranks)
	red, err := kernels.NewReducer(dt, kernels.Sum, n)
	require.NoError(r.t, err)
	bytes := tokens * hidden * dt.Size()
	plain := []float64{}
	for _, d := range []Direct{OneShot, TwoShot} {
		plain = append(plain, r.time(d, bytes))
	}
	fmt.Printf("%s: all-reduce %.2f, in two hops %.2f\n", name, plain[0], plain[1])
	reps := 20
	if !gputest.OnGPU() {
		reps = 1
	}
	for _, width := range sizes(*normWidths) {
		for _, shape := range combinations(sizes(*normParts), sizes(*normBlocks)) {
			part, blocks := shape[0], shape[1]
			line := fmt.Sprintf("  threads %d lines of a part %d blocks %d:", width, part, blocks)
			for _, d := range []Direct{OneShot, TwoShot} {
				line += fmt.Sprintf("  %v", d)
				for kind, what := range []string{"residual", "norm", "norm and float8"} {
					µs := r.timeGraphs(reps, func(_ int, m *member) func() error {
						m.engine.threads, m.engine.mail.part = width, part
						m.roomToMeasure(r)
						at := func(k, n int) mem.Region { return mem.Device(int(m.dev), m.scratch[1]+uintptr(k*bytes), n) }
						require.NoError(r.t, m.engine.PrepareNorm(red))
						j := Job{
							Reducer: red, Stamp: [2]uint64{1 << 32, 3}, Stream: m.stream, Blocks: blocks,
							In: mem.Device(int(m.dev), m.scratch[0], bytes), Out: at(0, bytes),
						}
						norm := Norm{Norm: kernels.Norm{Type: dt, Row: hidden, Epsilon: 1e-6}, Residual: at(0, bytes), Sum: true}
						if kind > 0 {
							norm.Normed, norm.Weight = at(1, bytes), mem.Device(int(m.dev), m.scratch[0], hidden*dt.Size())
						}
						if kind > 1 {
							norm.Small, norm.SmallOut, norm.Scales = kernels.Float8E4M3, at(2, tokens*hidden), at(3, 4*tokens)
						}
						return func() error { return m.engine.RunNorm(&j, &norm, d) }
					})
					line += fmt.Sprintf(" %s %.2f", what, µs)
				}
			}
			fmt.Println(line)
			for _, m := range r.ranks {
				m.engine.threads = maxThreads
			}
		}
	}
}

// roomToMeasure allocates memory of operations that are measured, once.
func (m *member) roomToMeasure(r *rig) {
	if m.scratch[0] != 0 {
		return
	}
	for k := range m.scratch {
		p, err := r.d.MemAlloc(maxScratch)
		require.NoError(r.t, err)
		require.NoError(r.t, r.d.MemsetD8Async(p, 0, maxScratch, m.stream))
		m.free = append(m.free, p)
		m.scratch[k] = p
	}
}

func combinations(a, b []int) (pairs [][2]int) {
	for _, x := range a {
		for _, y := range b {
			pairs = append(pairs, [2]int{x, y})
		}
	}
	return pairs
}
