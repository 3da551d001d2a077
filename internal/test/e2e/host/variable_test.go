package ringo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unevenCounts are counts of which some are 0.
func unevenCounts(n int) (counts []int, total int) {
	for r := range n {
		counts = append(counts, (r*r+2)%5)
		total += counts[r]
	}
	return counts, total
}

func TestUneven(t *testing.T) {
	for n := 1; n <= 5; n++ {
		counts, total := unevenCounts(n)
		comms := local(t, n, Config{})
		for root := range n {
			noErrors(t, each(comms, func(c *Comm) error {
				rank, at := c.Rank(), 0
				for _, k := range counts[:rank] {
					at += k
				}
				mine, all := make([]int32, counts[rank]), make([]int32, total)
				for i := range mine {
					mine[i] = int32(at + i)
				}
				want := make([]int32, total)
				for i := range want {
					want[i] = int32(i)
				}
				if err := Gatherv(c, all, mine, counts, root); err != nil {
					return err
				}
				if rank == root && !slices.Equal(all, want) {
					return fmt.Errorf("gathered %v", all)
				}
				got := make([]int32, counts[rank])
				if err := Scatterv(c, got, want, counts, root); err != nil {
					return err
				}
				if !slices.Equal(got, mine) {
					return fmt.Errorf("scattered %v", got)
				}
				for _, op := range []RedOp{Sum, PreMulSum(2)} {
					if err := ReduceScatterv(c, got, want, counts, op); err != nil {
						return err
					}
					factor := int32(n)
					if op.Kind != Sum.Kind {
						factor *= 2
					}
					for i := range got {
						if got[i] != factor*mine[i] {
							return fmt.Errorf("%v: reduced %v", op, got)
						}
					}
				}
				return nil
			}))
		}
		noErrors(t, each(comms, func(c *Comm) error {
			x := []float64{float64(c.Rank() + 1), 1}
			if err := Scan(c, x, Sum); err != nil {
				return err
			}
			if r := float64(c.Rank() + 1); x[0] != r*(r+1)/2 || x[1] != r {
				return fmt.Errorf("scanned %v", x)
			}
			return nil
		}))
		for _, err := range []error{Gatherv(comms[0], nil, []int8{}, nil, 0), Scatterv[int8](comms[0], nil, nil, counts, n), Scan(comms[0], []float32{1}, Avg),
			ReduceScatterv(comms[0], make([]int8, 99), nil, counts, Sum)} {
			require.ErrorIs(t, err, ErrInvalid)
		}
		noErrors(t, each(comms, Barrier))
	}
}

type celsius float32

func TestNamedTypes(t *testing.T) {
	require.Equal(t, Float32, TypeOf[celsius]())
	require.Equal(t, Int64, TypeOf[time.Duration]())
	require.Contains(t, []DataType{Int32, Int64}, TypeOf[int]())
	require.Contains(t, []DataType{Uint32, Uint64}, TypeOf[uint]())
	comms := local(t, 2, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		x := []time.Duration{time.Duration(c.Rank()) * time.Second}
		if err := AllReduce(c, x, Max); err != nil || x[0] != time.Second {
			return fmt.Errorf("%v %w", x, err)
		}
		return nil
	}))
}

// A call ends when its context does, and says why.
func TestDoContext(t *testing.T) {
	x := []int32{1}
	comms := local(t, 2, Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, DoContext(ended, comms[0], AllReduceOf(x, Sum)), context.Canceled)
	noErrors(t, each(comms, func(c *Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return DoContext(ctx, c, BarrierOf())
	}))
	began := time.Now()
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := DoContext(soon, comms[0], AllReduceOf(x, Sum))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorContains(t, err, "rank 1 never entered it")
	require.Less(t, time.Since(began), 10*time.Second)

	comms = local(t, 2, Config{})
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("no need any more")
	time.AfterFunc(10*time.Millisecond, func() { stop(why) })
	err = DoContext(ctx, comms[0], AllReduceOf(x, Sum))
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, ErrAborted)
	require.ErrorIs(t, comms[0].Do(&Call{Kind: KindBarrier, Timeout: -1}), ErrInvalid)
}
