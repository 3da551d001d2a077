package object

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

type thing struct {
	Name string
	Of   map[string]int
}

func made(rank int) thing {
	return thing{strings.Repeat("x", 1000*rank), map[string]int{"rank": rank}}
}

// each runs f on ranks of this process.
func each(t *testing.T, n int, f func(c *ringo.Comm) error) []error {
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	require.NoError(t, err)
	errs := make([]error, n)
	var all sync.WaitGroup
	for r, c := range comms {
		all.Go(func() {
			errs[r] = f(c)
			c.Close()
		})
	}
	all.Wait()
	return errs
}

func TestObjects(t *testing.T) {
	for n := 1; n <= 4; n++ {
		var want []thing
		for r := range n {
			want = append(want, made(r))
		}
		for r, err := range each(t, n, func(c *ringo.Comm) error {
			root := n - 1
			all, err := AllGather(c, made(c.Rank()))
			if err != nil || !reflect.DeepEqual(all, want) {
				return fmt.Errorf("all-gather: %w", err)
			}
			some, err := Gather(c, made(c.Rank()), root)
			if err != nil || c.Rank() == root && !reflect.DeepEqual(some, want) || c.Rank() != root && some != nil {
				return fmt.Errorf("gather: %w", err)
			}
			one, err := Broadcast(c, made(c.Rank()), root)
			if err != nil || !reflect.DeepEqual(one, want[root]) {
				return fmt.Errorf("broadcast: %w", err)
			}
			var give []thing
			if c.Rank() == root {
				give = want
			}
			one, err = Scatter(c, give, root)
			if err != nil || !reflect.DeepEqual(one, want[c.Rank()]) {
				return fmt.Errorf("scatter: %w", err)
			}
			return nil
		}) {
			require.NoError(t, err, "rank %d of %d", r, n)
		}
	}
}

// What cannot be encoded on one rank is an error on all, and changes nothing.
func TestNotEncodable(t *testing.T) {
	for r, err := range each(t, 3, func(c *ringo.Comm) error {
		value := any(c.Rank())
		if c.Rank() == 1 {
			value = make(chan int)
		}
		var errs []error
		_, err := AllGather(c, value)
		errs = append(errs, err)
		_, err = Broadcast(c, value, 1)
		errs = append(errs, err)
		_, err = Scatter(c, []any{1, value}, 1)
		errs = append(errs, err)
		for i, err := range errs {
			var wrong bool
			if err != nil {
				wrong = !strings.Contains(err.Error(), "invalid argument: the value of rank 1")
			}
			if err == nil || wrong {
				return fmt.Errorf("%d: %v", i, err)
			}
		}
		return ringo.Barrier(c)
	}) {
		require.NoError(t, err, "rank %d", r)
	}
}
