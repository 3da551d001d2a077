package gpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// PreMulSum, whose ranks have different scales, on every path and algorithm,
// deterministic or not, with the scalar in the call or in memory.
func TestDeviceScales(t *testing.T) {
	tier.Long(t)
	for name, cfg := range map[string]ringo.Config{
		"direct": {}, "rank order": commtest.Exact, "ring": {Algo: "ring"}, "twoshot": {Algo: "twoshot"},
		"host memory": commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1"),
	} {
		t.Run(name, func(t *testing.T) {
			const n, count = 3, 700
			list := gputest.GPUs(t, n, gputest.Unchecked(n))
			comms := commtest.OnHosts(t, list, func(int) ringo.Config { return cfg })
			for _, kind := range commtest.Reductions {
				for _, where := range []string{"call", "host", "device"} {
					elements, _ := (&ringo.Call{Kind: kind, Count: count}).Shape(0, n)
					x := make([]float32, elements)
					for i := range x {
						x[i] = float32(i%11 - 4)
					}
					commtest.Run(t, comms, func(c *commtest.Rank) {
						d, r := c.Device(), c.Rank()
						scale := []float32{float32(r + 2)}
						in, err := d.Alloc(4 * elements)
						require.NoError(c, err)
						out, err := d.Alloc(4*elements + 16)
						require.NoError(c, err)
						at := out.Slice(4*elements+4, 4)
						require.NoError(c, errors.Join(d.Write(in, commtest.Floats(x)), d.Write(at, commtest.Floats(scale))))
						op := map[string]ringo.RedOp{"call": ringo.PreMulSum(float64(scale[0])),
							"host": ringo.PreMulSumAt(mem.Of(scale)), "device": ringo.PreMulSumAt(at)}[where]
						require.NoError(c, errors.Join(c.Do(&ringo.Call{Kind: kind, In: in, Out: out, Count: count,
							Type: ringo.Float32, Op: op, Root: 1}), c.Synchronize(0)))
						if kind != ringo.KindReduce || r == 1 { // nothing else writes it
							want, first := make([]float32, count), 0
							if kind == ringo.KindReduceScatter {
								first = r * count
							}
							for i := range want {
								want[i] = (2 + 3 + 4) * x[first+i]
							}
							require.Equal(c, commtest.Floats(want), commtest.Read(c, d, out.Slice(0, 4*count)), "%v, scalar in %s", kind,
								where)
						}
						require.NoError(c, errors.Join(d.Free(in), d.Free(out)))
					})
				}
			}
		})
	}
}

// A graph reads the scalar each time that it is launched.
func TestDeviceScalarInGraph(t *testing.T) {
	const n, count = 2, 100
	list := gputest.GPUs(t, n)
	for _, cfg := range []ringo.Config{{}, {Algo: "ring"}, commtest.With(func(c *ringo.Config) { c.Algo = "steps" })} {
		comms := commtest.OnDevices(t, list, cfg)
		multiples := func(k int) []byte { // of 0 to 6
			x := make([]kernels.BF16, count)
			for i := range x {
				x[i] = kernels.NewBF16(float32(k * (i % 7)))
			}
			return mem.Of(x).Bytes()
		}
		commtest.Run(t, comms, func(c *commtest.Rank) {
			d, s := c.Device(), commtest.Stream(c, c.Device())
			in, at := commtest.Alloc(c, d, multiples(1)), commtest.Alloc(c, d, make([]byte, 2))
			out := commtest.Alloc(c, d, make([]byte, 2*count))
			g, err := d.Capture(s, func() error {
				return c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: in, Out: out, Count: count, Type: ringo.BFloat16,
					Op: ringo.PreMulSumAt(at), Stream: s})
			})
			require.NoError(c, err)
			for k := range 3 {
				scale := mem.Of([]kernels.BF16{kernels.NewBF16(float32((k + 1) * (c.Rank() + 1)))})
				require.NoError(c, errors.Join(d.Write(at, scale.Bytes()), g.Launch(s), c.Synchronize(s)))
				require.Equal(c, multiples((k+1)*3), commtest.Read(c, d, out), "launch %d", k)
			}
			require.NoError(c, g.Close())
		})
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	}
}

func TestScalarRefused(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	x, y := commtest.Alloc(t, list[0], make([]byte, 64)), commtest.Alloc(t, list[1], make([]byte, 64))
	host := mem.Of(make([]float32, 4))
	for _, tc := range []struct {
		name string
		in   ringo.Region
		at   ringo.Region
		want string
	}{
		{"another device", x, y.Slice(0, 4),
			"the scalar of premulsum(scalar on device 1) is not device 0's, like In and Out: copy it there"},
		{"host's call", host, x.Slice(0, 4),
			"the scalar of premulsum(scalar on device 0) is not the host's, like In and Out: copy it there"},
		{"misaligned", x, x.Slice(2, 4), "is no multiple of the element's 4 bytes: align it"},
		{"too short", x, x.Slice(0, 2), "the scalar's memory has 2 bytes: give it one element, of 4"},
		{"another type's", x, x.Slice(0, 8), "the scalar's memory has 8 bytes: give it one element, of 4"},
		{"nil", x, ringo.Region{}, "the scalar's memory is nil"},
	} {
		err := comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: tc.in, Out: tc.in, Count: 4, Type: ringo.Float32,
			Op: ringo.PreMulSumAt(tc.at)})
		require.ErrorIs(t, err, ringo.ErrInvalid, tc.name)
		require.ErrorContains(t, err, tc.want, tc.name)
		require.NoError(t, comms[0].Err(), "the communicator stays usable")
	}
}
