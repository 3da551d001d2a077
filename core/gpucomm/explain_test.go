package gpucomm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/transport"
)

// TestExplained compares what choice.ExplainGPU says of GPUs that need not be there with what a communicator of
// emulated ones has: the algorithm, the blocks of a kernel, bulk copies.
func TestExplained(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("its GPUs are emulated")
	}
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 4
	if tier.Full() {
		rounds = 20
	}
	kinds := []call.Kind{call.AllReduce, call.AllGather, call.ReduceScatter, call.Broadcast, call.AlltoAll}
	for range rounds {
		for _, name := range []string{"v100", "t4", "a100", "l4", "h100", "h200"} {
			n := 2 + max(0, random.IntN(5)-2)
			wants := choice.Budget{Policy: choice.Policy(random.IntN(4))}
			switch random.IntN(3) {
			case 0:
				wants.Most = 1 + random.IntN(64)
			case 1:
				wants.Least = 1 + random.IntN(64)
			}
			link := []cuda.Link{cuda.NVLink, cuda.PCIe}[random.IntN(2)]
			t.Run(fmt.Sprintf("%d %s over %v, %+v", n, name, link, wants), func(t *testing.T) {
				kind, err := cudaemu.Kind(name)
				require.NoError(t, err)
				shapes := make([]cudaemu.Device, n)
				for i := range shapes {
					shapes[i] = kind
				}
				list := gputest.GPUsOf(t, gputest.Driver(t, gputest.Emu(cudaemu.Config{Shapes: shapes,
					Link: func(a, b int) cuda.Link { return link }})), n)
				g := openOn(t, bootstrap.Local(n), list, func(o *Options) { o.Chooser.Budget = wants })[0]
				path := transport.OverP2P.String()
				if link == cuda.PCIe {
					path = transport.OverPCIe.String()
				}
				for range 50 {
					k, bytes := kinds[random.IntN(len(kinds))], 1<<(2+random.IntN(29))
					said, err := choice.ExplainGPU(k, n, 0, bytes, 0, choice.GPUs{Name: kind.Name, Path: path},
						choice.Options{Budget: wants})
					require.NoError(t, err)
					is := g.chooser.Choose(choice.Question{Kind: k, Bytes: bytes, Type: kernels.Float32, OnGPU: true})
					at := fmt.Sprintf("%v of %d bytes", k, bytes)
					require.Equal(t, is.Algo.String(), said.Algo, at)
					require.Equal(t, is.Blocks, said.Blocks, "%s: %s, %s", at, is.WhyBlocks, said.WhyBlocks)
					require.Equal(t, is.By == choice.BySchedule && g.engine.Bulk(), said.Bulk, at)
				}
			})
		}
	}
}
