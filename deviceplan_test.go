package ringo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/mem"
)

// TestDeviceDirect: small operations take direct kernels, which need no program,
// unless another algorithm is asked for; all give what they should.
func TestDeviceDirect(t *testing.T) {
	const n, count = 3, 70
	for _, test := range []struct {
		algo     string
		kind     Kind
		programs int
		named    algo
	}{
		{"", KindAllReduce, 0, algoOneShot},
		{"oneshot", KindAllReduce, 0, algoOneShot},
		{"twoshot", KindAllReduce, 0, algoTwoShot},
		{"ring", KindAllReduce, 1, algoRing},
		{"", KindReduceScatter, 0, algoDirect},
		{"direct", KindReduceScatter, 0, algoDirect},
		{"ring", KindReduceScatter, 1, algoRing},
		{"", KindAllGather, 0, algoDirect},
		{"logstep", KindAllGather, 1, algoLogStep},
		{"", KindBroadcast, 0, algoDirect},
		{"tree", KindBroadcast, 1, algoTree},
		{"", KindReduce, 0, algoDirect},
		{"", KindGather, 0, algoDirect},
		{"", KindScatter, 0, algoDirect},
		{"", KindAlltoAll, 0, algoDirect},
		{"ring", KindAlltoAll, 0, algoDirect},
		{"steps", KindAlltoAll, 1, algoSteps},
	} {
		t.Run(fmt.Sprintf("%v/%s", test.kind, test.algo), func(t *testing.T) {
			list := devices(t, n)
			comms := onDevices(t, list, Config{Algo: test.algo})
			host := local(t, n, Config{})
			calls := make([]Call, n)
			var in, out []mem.Region
			for r, d := range list {
				x := make([]float32, n*count)
				for i := range x {
					x[i] = float32(i%17 + r)
				}
				in, out = append(in, alloc(t, d, floats(x))), append(out, alloc(t, d, make([]byte, 4*n*count)))
				calls[r] = Call{Kind: test.kind, In: mem.Of(x), Out: mem.Of(make([]float32, n*count)), Count: count, Type: Float32, Op: Sum, Root: 1}
			}
			noErrors(t, each(host, func(c *Comm) error { return c.Do(&calls[c.Rank()]) }))
			for range 3 {
				noErrors(t, each(comms, func(c *Comm) error {
					call := calls[c.Rank()]
					call.In, call.Out = in[c.Rank()], out[c.Rank()]
					return c.Do(&call)
				}))
			}
			for r, c := range comms {
				require.NoError(t, c.Synchronize(0))
				got := make([]byte, 4*n*count)
				require.NoError(t, list[r].Read(got, out[r]))
				require.Equal(t, calls[r].Out.Bytes(), got)
				require.Len(t, c.dev.programs, test.programs)
				require.Equal(t, test.named, c.dev.choose(test.kind, 4*count, false))
			}
		})
	}
}
