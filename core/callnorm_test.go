package core_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// normed is a call on a GPU with a Norm of two rows of 4 float32, with all memories but Scale.
func normed(change func(*call.Call)) *call.Call {
	at := func(k, n int) mem.Region { return mem.Device(0, uintptr(4096*(k+1)), n) }
	c := &call.Call{
		Kind: call.AllReduce, Type: kernels.Float32, Count: 8, In: at(0, 32), Out: at(1, 32),
		Norm: &call.Norm{
			Row: 4, Epsilon: 1e-6, Residual: at(2, 32), Bias: at(3, 16), Weight: at(4, 16), Normed: at(5, 32),
			Small: kernels.Float8E4M3, SmallOut: at(6, 8), Scales: at(7, 8),
		},
	}
	change(c)
	return c
}

func TestNormCheck(t *testing.T) {
	ok := map[string]func(*call.Call){
		"all":             func(*call.Call) {},
		"sums not wanted": func(c *call.Call) { c.Out = c.Out.Slice(0, 0) },
		"sum alone":       func(c *call.Call) { c.Norm = &call.Norm{Row: 4} },
		"in place":        func(c *call.Call) { c.Out, c.Norm.Normed = c.Norm.Residual, c.In },
		"in of out":       func(c *call.Call) { c.Out = c.In },
		"one scale":       func(c *call.Call) { c.Norm.Scale, c.Norm.Scales = c.Norm.Scales, c.Norm.Scale },
		"no rows":         func(c *call.Call) { c.Count, c.In, c.Out = 0, c.In.Slice(0, 0), c.Out.Slice(0, 0) },
		"reduce-scatter": func(c *call.Call) {
			c.Kind, c.In, c.Norm.Normed = call.ReduceScatter, mem.Device(0, 1<<16, 64), mem.Device(0, 1<<16+32, 32)
		},
	}
	for name, change := range ok {
		require.NoError(t, normed(change).Check(1, 2), name)
	}
	wrong := map[string]func(*call.Call){
		"follows an AllReduce or a ReduceScatter, and this is Broadcast": func(c *call.Call) { c.Kind = call.Broadcast },
		"follows a sum, and Op is max":                                   func(c *call.Call) { c.Op = kernels.Max },
		"rows of int32":                                                  func(c *call.Call) { c.Type = kernels.Int32 },
		"rows of 0 elements":                                             func(c *call.Call) { c.Norm.Row = 0 },
		"rows of 3 elements of 4 bytes: want whole words":                func(c *call.Call) { c.Norm.Row = 3 },
		"no multiple of Norm.Row 6":                                      func(c *call.Call) { c.Norm.Row = 6 },
		"epsilon NaN":                                                    func(c *call.Call) { c.Norm.Epsilon = float32(math.NaN()) },
		"rows in uint8":                                                  func(c *call.Call) { c.Norm.Small = kernels.Uint8 },
		"need Norm.Small":                                                func(c *call.Call) { c.Norm.Small = 0 },
		"give one of them": func(c *call.Call) {
			c.Norm.Scale = mem.Device(0, 1<<20,
				4)
		},
		"Norm.SmallOut is empty, needs 8 bytes": func(c *call.Call) {
			c.Norm.SmallOut = mem.Device(0, 0,
				0)
		},
		"Norm.Scales is empty": func(c *call.Call) {
			c.Norm.Scales = mem.Device(0, 0,
				0)
		},
		"Norm.Weight has 15 bytes, needs 16": func(c *call.Call) { c.Norm.Weight = c.Norm.Weight.Slice(0, 15) },
		"Out has 31 bytes":                   func(c *call.Call) { c.Out = c.Out.Slice(0, 31) },
		"Norm.Bias is not where In is": func(c *call.Call) {
			c.Norm.Bias = mem.Of(make([]float32,
				4))
		},
		"Norm.Residual is not where In is": func(c *call.Call) {
			c.Norm.Residual = mem.Device(1,
				4096, 32)
		},
		"Norm.Normed and In overlap": func(c *call.Call) {
			c.Norm.Normed = mem.Device(0,
				c.In.Ptr()+8, 32)
		},
		"Norm.Normed and Out overlap":           func(c *call.Call) { c.Norm.Normed = c.Out },
		"Norm.SmallOut and Norm.Weight overlap": func(c *call.Call) { c.Norm.SmallOut = c.Norm.Weight },
		"more than 1048576":                     func(c *call.Call) { c.Count = 4 << 21; c.In = mem.Device(0, 1<<20, 1<<26) },
	}
	for want, change := range wrong {
		err := normed(change).Check(0, 2)
		require.ErrorIs(t, err, call.ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
}

// A sign has all of a Norm that ranks must agree on, and says it.
func TestNormSign(t *testing.T) {
	base := call.SignOf(normed(func(*call.Call) {}))
	require.Equal(t, "AllReduce(2 rows of 4 + residual + bias, norm with epsilon 1e-06 and weight, to float8e4m3 by a "+
		"row's own scale, float32)", base.String())
	seen := map[call.Sign]bool{base: true}
	for _, change := range []func(*call.Call){
		func(c *call.Call) { c.Kind = call.ReduceScatter }, func(c *call.Call) { c.Type = kernels.BFloat16 },
		func(c *call.Call) { c.Count = 4 },
		func(c *call.Call) { c.Norm.Row = 2 }, func(c *call.Call) { c.Norm.Epsilon = math.Nextafter32(1e-6, 1) },
		func(c *call.Call) { c.Norm.Epsilon = 0 },
		func(c *call.Call) { c.Norm.PlusOne = true }, func(c *call.Call) { c.Norm.Residual = mem.Region{} },
		func(c *call.Call) { c.Norm.Bias = mem.Region{} },
		func(c *call.Call) { c.Norm.Weight = mem.Region{} }, func(c *call.Call) { c.Norm.Small = kernels.Int8 },
		func(c *call.Call) { c.Norm.Small = 0 },
		func(c *call.Call) { c.Norm.Scale = mem.Device(0, 1<<20, 4) }, func(c *call.Call) { c.Norm = nil },
	} {
		s := call.SignOf(normed(change))
		require.False(t, seen[s], "%v", s)
		require.Equal(t, s, call.ReadSign(s.Stamp()))
		require.NotEqual(t, base.String(), s.String())
		seen[s] = true
	}
	for _, same := range []func(*call.Call){func(c *call.Call) { c.Norm.Normed = mem.Region{} },
		func(c *call.Call) { c.Out = mem.Region{} }} {
		require.Equal(t, base, call.SignOf(normed(same)), "what a rank wants is its own")
	}
	rapid.Check(t, func(t *rapid.T) {
		s := call.Sign{
			Seq: rapid.Uint32().Draw(t, "seq"), Kind: call.AllReduce, Type: kernels.Float16, Op: kernels.Sum.Kind,
			Algo: call.OneShot,
			Root: -1,
			Rows: call.Rows{
				Has: true, Count: rapid.Uint32Range(0, call.MaxRows).Draw(t, "rows"),
				Words:   rapid.Uint32Range(0, kernels.MaxNormRow/8).Draw(t, "words"),
				Epsilon: rapid.Uint32().Draw(t, "epsilon"), Flags: rapid.Uint8().Draw(t, "flags"),
			},
		}
		require.Equal(t, s, call.ReadSign(s.Stamp()))
		require.True(t, strings.HasPrefix(s.Numbered(), "AllReduce"))
	})
}

// Memories visits each memory that is not empty, as far as the call uses it, up to the first error.
func TestNormMemories(t *testing.T) {
	c := normed(func(c *call.Call) { c.Norm.Scale = mem.Region{}; c.Norm.Bias = mem.Device(0, 1<<20, 64) })
	bytes := map[string]int{}
	require.NoError(t, c.Memories(func(name string, r mem.Region, _ int) error { bytes[name] = r.Len(); return nil }))
	require.Equal(t, map[string]int{
		"Norm.Residual": 32, "Norm.Bias": 16, "Norm.Weight": 16, "Norm.Normed": 32, "Norm.SmallOut": 8, "Norm.Scales": 8,
		"Out": 32,
	}, bytes)
	var seen []string
	err := c.Memories(func(name string, _ mem.Region, _ int) error {
		if seen = append(seen, name); name == "Norm.Weight" {
			return call.ErrInvalid
		}
		return nil
	})
	require.ErrorIs(t, err, call.ErrInvalid)
	require.Equal(t, "Norm.Weight", seen[len(seen)-1])
	require.Less(t, len(seen), len(bytes))
}
