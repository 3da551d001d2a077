package ringo

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Ranks die one after the other: those that are left go on within a second, to the last.
func TestShrink(t *testing.T) {
	for _, cfg := range everyTransport {
		t.Run(nameOf(cfg), func(t *testing.T) {
			comms, err := OpenLocal(4, cfg)
			require.NoError(t, err)
			for n := 4; n > 1; n-- {
				victim := (n * 7) % n
				next := make([]*Comm, n)
				began := time.Now()
				errs := each(comms, func(c *Comm) error {
					x := make([]int64, 1000)
					for i := 0; ; i++ {
						if c.Rank() == victim && i == 5 {
							bootstrap.Drop(c.group)
							return nil
						}
						for j := range x {
							x[j] = int64(c.Rank())
						}
						if err := AllReduce(c, x, Sum); err != nil {
							var e *Error
							if !errors.As(err, &e) || !slices.Equal(e.Culprits, []int{victim}) {
								return fmt.Errorf("%v: culprits %v", err, e.Culprits)
							}
							next[c.Rank()], err = c.Shrink(t.Context())
							return err
						}
						if x[7] != int64(n*(n-1)/2) {
							return fmt.Errorf("sum %d of %d ranks", x[7], n)
						}
					}
				})
				noErrors(t, errs)
				require.Less(t, time.Since(began), tier.Patience)
				for _, c := range comms {
					c.Close()
				}
				comms = slices.DeleteFunc(next, func(c *Comm) bool { return c == nil })
				require.Len(t, comms, n-1)
				for r, c := range comms {
					require.Equal(t, [2]int{r, n - 1}, [2]int{c.Rank(), c.Size()})
				}
			}
			require.NoError(t, Barrier(comms[0]))
			require.NoError(t, comms[0].Close())
		})
	}
}

// A rank that gave up goes on with the others, and one that comes too late hears so.
func TestShrinkOfTheLiving(t *testing.T) {
	t.Parallel()
	comms := local(t, 4, Config{JoinTimeout: 2 * time.Second})
	comms[1].Abort(errors.New("once"))
	next := make([]*Comm, 4)
	noErrors(t, each(comms, func(c *Comm) (err error) {
		if c.Rank() == 2 {
			return nil
		}
		next[c.Rank()], err = c.Shrink(t.Context())
		if err != nil {
			return err
		}
		defer next[c.Rank()].Close()
		return Barrier(next[c.Rank()])
	}))
	require.Equal(t, 3, next[3].Size())
	require.Equal(t, 2, next[3].Rank())
	_, err := comms[2].Shrink(t.Context())
	require.ErrorIs(t, err, ErrExcluded)
	comms[2].Close()
	_, err = comms[2].Shrink(t.Context())
	require.ErrorIs(t, err, bootstrap.ErrClosed)
}

// New ranks join those of a communicator, which keep their numbers.
func TestGrow(t *testing.T) {
	comms := local(t, 2, Config{})
	id, err := NewID("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { bootstrap.Stop(id) })
	grown := make([]*Comm, 4)
	errs := make([]error, 4)
	var all sync.WaitGroup
	for r := range 4 {
		all.Go(func() {
			switch {
			case r == 1:
				grown[r], errs[r] = comms[r].Grow(t.Context(), &id, 4)
			case r < 2:
				grown[r], errs[r] = comms[r].Grow(t.Context(), nil, 4)
			default:
				grown[r], errs[r] = Open(t.Context(), Config{ID: &id, Rank: r, Size: 4})
			}
		})
	}
	all.Wait()
	noErrors(t, errs)
	noErrors(t, each(grown, func(c *Comm) error {
		x := []int32{int32(c.Rank())}
		if err := AllReduce(c, x, Sum); err != nil || x[0] != 6 {
			return fmt.Errorf("%v %w", x, err)
		}
		return c.Close()
	}))
	for _, test := range []struct {
		id   func(c *Comm) *bootstrap.ID
		size func(c *Comm) int
		want string
	}{
		{func(*Comm) *bootstrap.ID { return nil }, func(*Comm) int { return 3 }, "no rank gives an ID"},
		{func(*Comm) *bootstrap.ID { return &id }, func(*Comm) int { return 2 }, "2 ranks cannot become 2"},
		{func(*Comm) *bootstrap.ID { return &id }, func(c *Comm) int { return 3 + c.Rank() },
			"rank 0 wants 3 ranks, rank 1 4"},
	} {
		for _, err := range each(comms, func(c *Comm) error {
			_, err := c.Grow(t.Context(), test.id(c), test.size(c))
			return err
		}) {
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, test.want)
		}
	}
	noErrors(t, each(comms, Barrier))
}

// A new rank hears at once who of the old ones has died before or while they grow.
func TestGrowFails(t *testing.T) {
	for _, joined := range []bool{false, true} {
		t.Run(fmt.Sprint("joined ", joined), func(t *testing.T) {
			comms := local(t, 3, Config{})
			id, err := NewID("127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { bootstrap.Stop(id) })
			came := make(chan error)
			go func() {
				_, err := Open(t.Context(), Config{ID: &id, Rank: 3, Size: 4})
				came <- err
			}()
			began := time.Now()
			errs := each(comms, func(c *Comm) error {
				if c.Rank() == 1 {
					if joined { // agrees on where to meet, and does not come
						_, err := growAt(t.Context(), c, nil, 4)
						require.NoError(t, err)
					}
					bootstrap.Drop(c.group)
					return nil
				}
				at := &id
				if c.Rank() != 0 {
					at = nil
				}
				_, err := c.Grow(t.Context(), at, 4)
				return err
			})
			for _, err := range []error{errs[0], errs[2], <-came} {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, []int{1}, e.Culprits, "%v", err)
			}
			require.Less(t, time.Since(began), tier.Patience)
		})
	}
}

// A rank that dies when all have met, an old one or a new one: all others have the new communicator, which says who,
// and go on from it without that rank.
func TestGrowBereaved(t *testing.T) {
	for _, victim := range []int{1, 3} {
		t.Run(fmt.Sprint("rank ", victim), func(t *testing.T) {
			comms := local(t, 3, Config{})
			id, err := NewID("127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { bootstrap.Stop(id) })
			grown, next := make([]*Comm, 5), make([]*Comm, 5)
			errs := make([]error, 5)
			began := time.Now()
			var all sync.WaitGroup
			for r := range 5 {
				all.Go(func() {
					switch {
					case r == victim:
						if r < 3 {
							_, errs[r] = growAt(t.Context(), comms[r], nil, 5)
						}
						group, err := bootstrap.Join(t.Context(), id, r, 5, bootstrap.JoinOptions{})
						if errs[r] = errors.Join(errs[r], err); err == nil {
							bootstrap.Drop(group)
						}
						if r < 3 {
							bootstrap.Drop(comms[r].group)
						}
						return
					case r == 0:
						grown[r], errs[r] = comms[r].Grow(t.Context(), &id, 5)
					case r < 3:
						grown[r], errs[r] = comms[r].Grow(t.Context(), nil, 5)
					default:
						grown[r], errs[r] = Open(t.Context(), Config{ID: &id, Rank: r, Size: 5})
					}
					if errs[r] != nil {
						return
					}
					var e *Error
					if err := Barrier(grown[r]); !errors.As(err, &e) || !errors.Is(err, ErrPeer) ||
						!slices.Equal(e.Culprits, []int{victim}) {
						errs[r] = fmt.Errorf("barrier: %w", err)
						return
					}
					if errs[r] = grown[r].Err(); errs[r] != nil {
						next[r], errs[r] = grown[r].Shrink(t.Context())
					}
				})
			}
			all.Wait()
			noErrors(t, errs)
			next = slices.Delete(next, victim, victim+1)
			noErrors(t, each(next, Barrier))
			if victim == 3 {
				noErrors(t, each(comms, Barrier))
			}
			closeAll(next)
			closeAll(slices.Delete(grown, victim, victim+1))
			require.Less(t, time.Since(began), tier.Patience)
		})
	}
}

// A rank that stops between the muster and the new group is left out: the others meet again without it.
func TestShrinkStops(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	comms, err := OpenLocal(4, Config{Transport: "socket", JoinTimeout: 4 * time.Second})
	require.NoError(t, err)
	defer closeAll(comms)
	comms[1].Abort(errors.New("enough"))
	var mustered sync.WaitGroup
	mustered.Go(func() { // and then nothing
		_, err := comms[3].group.Regroup(t.Context(), time.Second)
		require.NoError(t, err)
	})
	next := make([]*Comm, 3)
	for _, err := range each(comms[:3], func(c *Comm) (err error) {
		next[c.Rank()], err = c.Shrink(t.Context())
		return err
	}) {
		require.NoError(t, err)
	}
	mustered.Wait()
	defer closeAll(next)
	require.Equal(t, 3, next[0].Size())
}

// What ends a communicator ends what is made of it while the ranks meet, and is its error.
func TestSplitWithinParent(t *testing.T) {
	comms, err := OpenLocal(3, Config{})
	require.NoError(t, err)
	defer closeAll(comms)
	start := time.Now()
	errs := each(comms, func(c *Comm) error {
		if c.Rank() == 2 { // takes part until the ranks have agreed
			if _, _, err := splitParts(t.Context(), c, 0, 0, nil); err != nil {
				return err
			}
			bootstrap.Drop(c.group)
			return nil
		}
		_, err := c.Split(t.Context(), 0, 0)
		return err
	})
	require.NoError(t, errs[2])
	for _, err := range errs[:2] {
		var e *Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, ErrPeer)
		require.Equal(t, "Split", e.Op)
		require.Equal(t, []int{2}, e.Culprits)
		require.ErrorContains(t, err, "rank 2 died")
	}
	require.Less(t, time.Since(start), tier.Patience, "not JoinTimeout")
}

// A Config that one rank's part cannot have is refused on all ranks before they meet again.
func TestSplitWithBad(t *testing.T) {
	comms, err := OpenLocal(3, Config{})
	require.NoError(t, err)
	defer closeAll(comms)
	start := time.Now()
	for _, err := range each(comms, func(c *Comm) error {
		cfg := Config{}
		if c.Rank() == 1 {
			cfg.Slots = 1
		}
		_, err := c.SplitWith(t.Context(), 0, 0, cfg)
		return err
	}) {
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "rank 1: ")
		require.ErrorContains(t, err, "Slots (RINGO_SLOTS) is 1")
	}
	require.Less(t, time.Since(start), tier.Patience, "not JoinTimeout")
	for _, err := range each(comms, Barrier) {
		require.NoError(t, err, "the communicator is well")
	}
}

// Where the first rank of a part cannot have the part meet, all ranks hear why, also those of no part.
func TestSplitMeetsNowhere(t *testing.T) {
	comms := local(t, 3, Config{})
	comms[1].cfg.Slots = 1
	for _, err := range each(comms, func(c *Comm) error {
		color := 0
		if c.Rank() == 0 {
			color = NoColor
		}
		_, err := c.SplitWith(t.Context(), color, 0, Config{})
		return err
	}) {
		require.ErrorContains(t, err, "rank 1: ")
		require.ErrorContains(t, err, "Slots (RINGO_SLOTS) is 1")
	}
	noErrors(t, each(comms, Barrier))
}

func closeAll(comms []*Comm) {
	for _, c := range comms {
		c.Close()
	}
}
