package ringo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nearWrap are ranks whose collectives are about to have numbers that stamps cannot carry. The group has heard of
// the last ones: rank 0 has come late.
func nearWrap(t *testing.T, n int) []*Comm {
	comms := local(t, n, Config{Timeout: 20 * time.Second})
	noErrors(t, each(comms, func(c *Comm) error {
		c.life.Turn.Skip(1<<32 - 20)
		if c.Rank() == 0 {
			time.Sleep(slowCall)
		}
		for range 40 {
			if err := Barrier(c); err != nil {
				return err
			}
		}
		return nil
	}))
	h := comms[0].History()
	require.EqualValues(t, 1<<32+20, h.State.Last)
	require.EqualValues(t, 1<<32+20, h.Calls[len(h.Calls)-1].Number)
	return comms
}

// slowCall is longer than a call takes before the ranks ask each other where they are.
const slowCall = 1200 * time.Millisecond

// After 2³² collectives a rank may leave in order, and the others go on with messages between them.
func TestDepartureAfterWrap(t *testing.T) {
	t.Parallel()
	comms := nearWrap(t, 3)
	require.NoError(t, comms[2].Close())
	noErrors(t, each(comms[:2], func(c *Comm) error {
		x := []int32{0}
		for range 50 {
			if c.Rank() == 0 {
				time.Sleep(10 * time.Millisecond) // for word of rank 2
			}
			if err := c.Do([]*Call{SendOf(x, 1), RecvOf(x, 0)}[c.Rank()]); err != nil {
				return err
			}
		}
		return c.Err()
	}))
}

// After 2³² collectives calls are compared as before: a Reduce of one rank and a Gather of the others, which need
// nothing of each other's last step.
func TestMismatchAfterWrap(t *testing.T) {
	t.Parallel()
	comms := nearWrap(t, 3)
	for r, err := range each(comms, func(c *Comm) error {
		x, y := make([]int32, 4), make([]int32, 12)
		if c.Rank() == 1 {
			return Reduce(c, x, x, Sum, 1)
		}
		return Gather(c, y, x, 0)
	}) {
		if err == nil { // it needed nothing of rank 1
			err = Barrier(comms[r])
		}
		require.ErrorIs(t, err, ErrMismatch)
		require.ErrorContains(t, err, "Reduce #22")
	}
}
