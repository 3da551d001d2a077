package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// floats16 are bfloat16s in memory.
func floats16(v ...float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(NewBF16(x)))
	}
	return b
}

func bfloat(b []byte, i int) float64 {
	return float64(BF16(binary.LittleEndian.Uint16(b[2*i:])).Float32())
}

// TestNormIsClose: a row differs from the formula in float64 by one rounding at most.
func TestNormIsClose(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{4, 60, 64, 1000, 8192} {
		values := func() []byte {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rnd.NormFloat64())
			}
			return floats16(x...)
		}
		norm := Norm{Type: BFloat16, Row: n, Epsilon: 1e-5, PlusOne: true, Small: Float8E4M3}
		require.NoError(t, norm.Check())
		r := NormRows{In: [][]byte{values(), values(), values()}, Residual: values(), Bias: values(), Weight: values(),
			Sum: make([]byte, 2*n), Normed: make([]byte, 2*n), Small: make([]byte, n), Scales: make([]byte, 4)}
		norm.Apply(&r)
		squares, largest := 0.0, 0.0
		for i := range n {
			sum := bfloat(r.In[0], i) + bfloat(r.In[1], i) + bfloat(r.In[2], i) + bfloat(r.Bias, i) + bfloat(r.Residual, i)
			require.InDelta(t, sum, bfloat(r.Sum, i), math.Abs(sum)/256+1e-6)
			squares += bfloat(r.Sum, i) * bfloat(r.Sum, i)
			largest = max(largest, math.Abs(bfloat(r.Normed, i)))
		}
		scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(r.Scales)))
		require.InDelta(t, largest/448, scale, largest/1e6)
		for i := range n {
			want := bfloat(r.Sum, i) / math.Sqrt(squares/float64(n)+1e-5) * (1 + bfloat(r.Weight, i))
			require.InDelta(t, want, bfloat(r.Normed, i), math.Abs(want)/255+1e-6)
			require.InDelta(t, bfloat(r.Normed, i), scale*float64(F8E4M3(r.Small[i]).Float32()), math.Abs(want)/14+scale/256)
		}
	}
}

// TestNormScales: elements saturate under a given scale; a row of zeros, or with a NaN, has a scale that is a number.
func TestNormScales(t *testing.T) {
	norm := Norm{Type: BFloat16, Row: 4, Small: Int8}
	r := NormRows{In: [][]byte{floats16(1, -1, 1, 1)}, Small: make([]byte, 4), Scale: 1.0 / 256}
	norm.Apply(&r)
	require.Equal(t, []byte{127, 129, 127, 127}, r.Small)
	r = NormRows{In: [][]byte{floats16(0, 0, 0, 0)}, Small: make([]byte, 4), Scales: make([]byte, 4)}
	norm.Epsilon = 1e-6
	norm.Apply(&r)
	require.Equal(t, make([]byte, 4), r.Small)
	require.EqualValues(t, leastOwn, math.Float32frombits(binary.LittleEndian.Uint32(r.Scales)))
	r.In[0] = floats16(float32(math.NaN()), 0, 0, 0)
	binary.LittleEndian.PutUint32(r.Scales, 1)
	norm.Apply(&r)
	require.Equal(t, make([]byte, 4), r.Small)
	require.EqualValues(t, leastOwn, math.Float32frombits(binary.LittleEndian.Uint32(r.Scales)))
	norm.Small = Float8E4M3
	norm.Apply(&r)
	require.Equal(t, []byte{nanF8E4M3, nanF8E4M3, nanF8E4M3, nanF8E4M3}, r.Small)
}

// TestNormCheck: Check refuses wrong types, row lengths and epsilons.
func TestNormCheck(t *testing.T) {
	good := Norm{Type: Float16, Row: 1024, Epsilon: 1e-6}
	require.NoError(t, good.Check())
	for want, change := range map[string]func(n *Norm){
		"rows of float64":               func(n *Norm) { n.Type = Float64 },
		"rows of 6 elements of 2 bytes": func(n *Norm) { n.Row = 6 },
		"rows of 0 elements":            func(n *Norm) { n.Row = 0 },
		"65536 bytes at most":           func(n *Norm) { n.Row = 32772 },
		"epsilon NaN":                   func(n *Norm) { n.Epsilon = float32(math.NaN()) },
		"epsilon -1":                    func(n *Norm) { n.Epsilon = -1 },
		"epsilon +Inf":                  func(n *Norm) { n.Epsilon = float32(math.Inf(1)) },
		"rows in uint8":                 func(n *Norm) { n.Small = Uint8 },
	} {
		n := good
		change(&n)
		require.ErrorContains(t, n.Check(), want)
	}
}
