package gpucomm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// Do only queues a prepared call: nothing is loaded or allocated, whatever carries the call out.
func TestPreparedIsOnlyQueued(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	for _, way := range []struct {
		name    string
		algo    call.Algo
		inOrder bool
		window  bool
		count   int
	}{
		{"kernel", call.Auto, false, false, 64}, {"ring", call.Ring, false, false, 64},
		{"window", call.Window, false, true, 64}, {"copies", call.Copies, false, true, 4096},
		{"in order", call.Auto, true, false, 64}, {"in order, in shares", call.Auto, true, false, 1 << 16},
		{"in order, in parts", call.Steps, true, false, 64},
	} {
		for _, op := range []kernels.RedOp{kernels.Sum, kernels.PreMulSum(3)} {
			t.Run(fmt.Sprint(way.name, " ", op), func(t *testing.T) {
				ranks := 2
				if way.inOrder {
					ranks = 3 // of two the order does not matter
				}
				list := gputest.GPUs(t, ranks, gputest.Unchecked(ranks))
				comms := open(t, list, func(o *Options) { o.Chooser.Forced, o.Chooser.InOrder = way.algo, way.inOrder })
				bytes := 4 * way.count
				memory := memories(t, list, 2*bytes)
				if way.window {
					defer closeAll(t, comms, register(t, comms, memory, 0, 2*bytes))
				}
				calls := make([]*call.Call, ranks)
				for r, d := range list {
					data := make([]byte, bytes)
					for i := range way.count {
						binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i%100*(r+1))))
					}
					require.NoError(t, d.Write(memory[r].Slice(0, bytes), data))
					calls[r] = &call.Call{Kind: call.AllReduce, In: memory[r].Slice(0, bytes), Out: memory[r].Slice(bytes, bytes),
						Count: way.count, Type: kernels.Float32, Op: op}
				}
				each(t, comms, func(g *Comm) error {
					g.Life.Turn.Lock(context.Background())
					defer g.Life.Turn.Unlock()
					return g.Prepare(calls[g.Life.Rank])
				})
				m := list[0].Driver().(*cudaemu.Machine)
				for _, name := range []string{"cuMemAlloc", "cuMemHostAlloc", "cuMemAddressReserve", "cuModuleLoadDataEx",
					"cuStreamCreateWithPriority", "cuEventCreate"} {
					m.Inject(cudaemu.Injection{Call: name, Nth: 1, Result: cuda.ErrUnknown})
				}
				each(t, comms, func(g *Comm) error { return g.do(calls[g.Life.Rank]) })
				factor := float32(ranks*(ranks+1)) / 2
				if op.Kind == kernels.KindPreMulSum {
					factor *= 3
				}
				for r, d := range list {
					require.NoError(t, d.Synchronize(0))
					got := make([]byte, bytes)
					require.NoError(t, d.Read(got, calls[r].Out))
					for i := range way.count {
						require.Equal(t, factor*float32(i%100), math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])), "element %d",
							i)
					}
				}
			})
		}
	}
}
