package gpu

import (
	"fmt"
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
					commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
						d, r := c.Device(), c.Rank()
						x := make([]float32, elements)
						for i := range x {
							x[i] = float32(i%11 - 4)
						}
						scale := []float32{float32(r + 2)}
						op := ringo.PreMulSum(float64(scale[0]))
						in, err := d.Alloc(4 * elements)
						if err != nil {
							return err
						}
						out, err := d.Alloc(4*elements + 16)
						if err != nil {
							return err
						}
						switch at := out.Slice(4*elements+4, 4); where {
						case "host":
							op = ringo.PreMulSumAt(mem.Of(scale))
						case "device":
							op = ringo.PreMulSumAt(at)
							if err := d.Write(at, commtest.Floats(scale)); err != nil {
								return err
							}
						}
						if err := d.Write(in, commtest.Floats(x)); err != nil {
							return err
						}
						if err := c.Do(&ringo.Call{Kind: kind, In: in, Out: out, Count: count, Type: ringo.Float32, Op: op,
							Root: 1}); err != nil {
							return err
						}
						if err := c.Synchronize(0); err != nil {
							return err
						}
						got := make([]byte, 4*count)
						if kind != ringo.KindReduce || r == 1 { // nothing else writes it
							if err := d.Read(got, out.Slice(0, len(got))); err != nil {
								return err
							}
						}
						if err := d.Free(in); err != nil {
							return err
						}
						if err := d.Free(out); err != nil {
							return err
						}
						want, first := make([]float32, count), 0
						if kind == ringo.KindReduceScatter {
							first = r * count
						}
						for i := range want {
							want[i] = (2 + 3 + 4) * x[first+i]
						}
						if string(commtest.Floats(want)) != string(got) && (kind != ringo.KindReduce || r == 1) {
							return fmt.Errorf("%v, scalar in %s: wrong", kind, where)
						}
						return nil
					}))
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
		x := make([]kernels.BF16, count)
		for i := range x {
			x[i] = kernels.NewBF16(float32(i % 7))
		}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
			d := c.Device()
			s, err := d.NewStream()
			if err != nil {
				return err
			}
			defer d.DestroyStream(s)
			m, err := d.Alloc(4*count + 2)
			if err != nil {
				return err
			}
			defer d.Free(m)
			in, out, at := m.Slice(0, 2*count), m.Slice(2*count, 2*count), m.Slice(4*count, 2)
			if err := d.Write(in, mem.Of(x).Bytes()); err != nil {
				return err
			}
			g, err := d.Capture(s, func() error {
				return c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: in, Out: out, Count: count, Type: ringo.BFloat16,
					Op: ringo.PreMulSumAt(at), Stream: s})
			})
			if err != nil {
				return err
			}
			for k := range 3 {
				scale := []kernels.BF16{kernels.NewBF16(float32((k + 1) * (c.Rank() + 1)))}
				if err := d.Write(at, mem.Of(scale).Bytes()); err != nil {
					return err
				}
				if err := g.Launch(s); err != nil {
					return err
				}
				if err := c.Synchronize(s); err != nil {
					return err
				}
				got := make([]kernels.BF16, count)
				if err := d.Read(mem.Of(got).Bytes(), out); err != nil {
					return err
				}
				for i := range got {
					if want := float32((k + 1) * 3 * (i % 7)); got[i].Float32() != want {
						return fmt.Errorf("launch %d: element %d is %g, want %g", k, i, got[i].Float32(), want)
					}
				}
			}
			return g.Close()
		}))
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
