package ringo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// PreMulSum, whose ranks have different scales, on every path and algorithm,
// deterministic or not, with the scalar in the call or in memory.
func TestDeviceScales(t *testing.T) {
	for _, cfg := range []Config{{}, exact, {Algo: "ring"}, {Algo: "twoshot"}, {noP2P: "off"}} {
		t.Run(fmt.Sprintf("%s%s%s", cfg.Algo, cfg.Deterministic, cfg.noP2P), func(t *testing.T) {
			const n, count = 3, 700
			list := devices(t, n)
			comms := onHosts(t, list, func(int) Config { return cfg })
			for _, kind := range reductions {
				for _, where := range []string{"call", "host", "device"} {
					elements, _ := (&Call{Kind: kind, Count: count}).Shape(0, n)
					noErrors(t, each(comms, func(c *Comm) error {
						d, r := c.Device(), c.Rank()
						x := make([]float32, elements)
						for i := range x {
							x[i] = float32(i%11 - 4)
						}
						scale := []float32{float32(r + 2)}
						op := PreMulSum(float64(scale[0]))
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
							op = PreMulSumAt(mem.Of(scale))
						case "device":
							op = PreMulSumAt(at)
							if err := d.Write(at, floats(scale)); err != nil {
								return err
							}
						}
						if err := d.Write(in, floats(x)); err != nil {
							return err
						}
						if err := c.Do(&Call{Kind: kind, In: in, Out: out, Count: count, Type: Float32, Op: op, Root: 1}); err != nil {
							return err
						}
						if err := c.Synchronize(0); err != nil {
							return err
						}
						got := make([]byte, 4*count)
						if err := d.Read(got, out.Slice(0, len(got))); err != nil {
							return err
						}
						if err := d.Free(in); err != nil {
							return err
						}
						if err := d.Free(out); err != nil {
							return err
						}
						want, first := make([]float32, count), 0
						if kind == KindReduceScatter {
							first = r * count
						}
						for i := range want {
							want[i] = (2 + 3 + 4) * x[first+i]
						}
						if string(floats(want)) != string(got) && (kind != KindReduce || r == 1) {
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
	list := devices(t, n)
	for _, cfg := range []Config{{}, {Algo: "ring"}, with(func(c *Config) { c.Algo = "steps" })} {
		comms := onDevices(t, list, cfg)
		x := make([]kernels.BF16, count)
		for i := range x {
			x[i] = kernels.NewBF16(float32(i % 7))
		}
		noErrors(t, each(comms, func(c *Comm) error {
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
				return c.Do(&Call{Kind: KindAllReduce, In: in, Out: out, Count: count, Type: BFloat16, Op: PreMulSumAt(at), Stream: s})
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
	list := devices(t, 2)
	comms := onDevices(t, list, Config{})
	x, y := alloc(t, list[0], make([]byte, 64)), alloc(t, list[1], make([]byte, 64))
	host := mem.Of(make([]float32, 4))
	for _, tc := range []struct {
		name string
		in   Region
		at   Region
		want string
	}{
		{"another device", x, y.Slice(0, 4), "the scalar of premulsum(scalar on device 1) is not device 0's, like In and Out: copy it there"},
		{"host's call", host, x.Slice(0, 4), "the scalar of premulsum(scalar on device 0) is not the host's, like In and Out: copy it there"},
		{"misaligned", x, x.Slice(2, 4), "is no multiple of the element's 4 bytes: align it"},
		{"too short", x, x.Slice(0, 2), "the scalar's memory has 2 bytes: give it one element, of 4"},
		{"another type's", x, x.Slice(0, 8), "the scalar's memory has 8 bytes: give it one element, of 4"},
		{"nil", x, Region{}, "the scalar's memory is nil"},
	} {
		err := comms[0].Do(&Call{Kind: KindAllReduce, In: tc.in, Out: tc.in, Count: 4, Type: Float32, Op: PreMulSumAt(tc.at)})
		require.ErrorIs(t, err, ErrInvalid, tc.name)
		require.ErrorContains(t, err, tc.want, tc.name)
		require.NoError(t, comms[0].Err(), "the communicator stays usable")
	}
}
