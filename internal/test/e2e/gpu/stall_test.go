package gpu

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// workFIFOs are shapes of the memory for tables, with the one first that makes most use of it.
var workFIFOs = []struct {
	name string
	cfg  ringo.Config
}{
	{"all in a ring", ringo.Config{WorkFIFOBytes: 1, WorkArgsBytes: 1}},
	{"smallest ring", ringo.Config{WorkFIFOBytes: 1}},
	{"default", ringo.Config{}},
}

// TestWorkFIFODoesNotStall runs, from one thread, the two programs that make the work FIFO of other libraries stall:
// all-reduces after one that is captured and never replayed (NVIDIA/nccl #1251), and thousands of them in one group.
func TestWorkFIFODoesNotStall(t *testing.T) {
	const n, most = 2, 2 * 100_000 // bytes of 100,000 bfloat16
	calls, group := tier.Count(3, 50), tier.Count(300, 2_000)
	if gputest.OnGPU() {
		calls, group = 100_000, 12_000
	}
	for _, shape := range tier.Some(1, workFIFOs) {
		t.Run(shape.name, func(t *testing.T) {
			list, cfg := gputest.GPUs(t, n), shape.cfg
			cfg.Timeout = time.Minute
			comms := commtest.OnDevices(t, list, cfg)
			all := make([]ringo.Call, n)
			for r, d := range list {
				s, err := d.NewStream()
				require.NoError(t, err)
				defer func() { require.NoError(t, d.DestroyStream(s)) }()
				all[r] = ringo.Call{Kind: ringo.KindAllReduce, Type: ringo.BFloat16, Stream: s,
					In:  commtest.Alloc(t, d, bytes.Repeat([]byte{0x80, 0x3f}, most/2)), // ones
					Out: commtest.Alloc(t, d, make([]byte, most))}
			}
			everywhere := func(times, count int) error {
				g := ringo.NewGroup()
				for i := range times { // each in memory of its own, for calls of a group have no order
					for r := range all {
						call := all[r]
						call.In, call.Out, call.Count = call.In.Slice(0, 2*count), call.Out.Slice(2*i*count, 2*count), count
						g.Add(comms[r], &call)
					}
				}
				return g.Run()
			}
			right := func() {
				t.Helper()
				for r, d := range list {
					require.NoError(t, comms[r].Synchronize(all[r].Stream))
					got := make([]byte, most)
					require.NoError(t, d.Read(got, all[r].Out))
					require.Equal(t, bytes.Repeat([]byte{0x00, 0x40}, most/2), got) // twos
				}
			}
			require.NoError(t, everywhere(1, most/2))
			var unused [n]*gpu.Graph
			var err error
			unused[0], err = list[0].Capture(all[0].Stream, func() (err error) {
				unused[1], err = list[1].Capture(all[1].Stream, func() error { return everywhere(1, most/2) })
				return err
			})
			require.NoError(t, err)
			for range calls {
				require.NoError(t, everywhere(1, 49_000))
			}
			right()
			require.NoError(t, everywhere(group, 4))
			right()
			for _, g := range unused {
				require.NoError(t, g.Close())
			}
		})
	}
}
