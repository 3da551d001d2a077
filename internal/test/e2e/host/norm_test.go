package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// TestNorm: rows are finished on hosts with the bits of kernels.Norm, few and in several pieces.
func TestNorm(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		comms := commtest.Local(t, n, ringo.Config{})
		for seed := range uint64(tier.Count(10, 30)) {
			x := commtest.RandomNorm(rand.New(rand.NewPCG(seed, uint64(n))))
			require.NoError(t, x.Try(comms, seed, false), "%d ranks", n)
		}
		if n != 3 && !tier.Full() {
			continue
		}
		for _, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindReduceScatter} {
			x := commtest.NormTrial{
				Norm: kernels.Norm{Type: ringo.Float32, Row: 1024, Epsilon: 1e-5}, Kind: kind, Rows: 3 << 20 / 4096 / len(comms),
				Residual: true, Bias: true, Weight: true, Sum: true, Normed: true, InPlace: true,
			}
			if kind == ringo.KindAllReduce {
				x.Rows *= len(comms)
			}
			require.NoError(t, x.Try(comms, 1, false), "%d ranks", n)
		}
	}
}

// TestNormUnlike: ranks whose norms behind the sum differ hear of both.
func TestNormUnlike(t *testing.T) {
	for i, want := range []string{"epsilon 1e-05", "and 1 + weight", "to int8"} {
		comms, errs := commtest.OpenAll(t, 2, func(int) ringo.Config { return ringo.Config{} })
		commtest.NoErrors(t, errs)
		errs = commtest.Each(comms, func(c *ringo.Comm) error {
			row := make([]float32, 64)
			norm := &ringo.Norm{Row: 64, Epsilon: 1e-6, Weight: mem.Of(make([]float32, 64)), Normed: mem.Of(make([]float32, 64))}
			if c.Rank() == 1 {
				switch i {
				case 0:
					norm.Epsilon = 1e-5
				case 1:
					norm.PlusOne = true
				case 2:
					norm.Small, norm.SmallOut, norm.Scales = ringo.Int8, mem.Of(make([]byte, 64)), mem.Of(make([]float32, 1))
				}
			}
			return c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: mem.Of(row), Count: 64, Type: ringo.Float32, Norm: norm})
		})
		err := errors.Join(errs...)
		require.ErrorIs(t, err, ringo.ErrMismatch)
		for r, mine := range []string{"epsilon 1e-06 and weight, float32", want} {
			require.ErrorContains(t, err, fmt.Sprintf("rank %d calls AllReduce", r))
			require.ErrorContains(t, err, mine)
		}
	}
}
