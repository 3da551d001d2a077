package examples

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/examples/object"
	"github.com/ringo-go/ringo/ringotest"
)

type thing struct {
	Name string
	Of   map[string]int
}

func made(rank int) thing {
	return thing{strings.Repeat("x", 1000*rank), map[string]int{"rank": rank}}
}

func TestObjects(t *testing.T) {
	test := func(c *ringo.Comm) {
		r, n := ringotest.Of(c), c.Size()
		root := n - 1
		var want []thing
		for q := range n {
			want = append(want, made(q))
		}
		all, err := object.AllGather(c, made(c.Rank()))
		require.NoError(r, err)
		require.Equal(r, want, all)
		some, err := object.Gather(c, made(c.Rank()), root)
		require.NoError(r, err)
		if c.Rank() == root {
			require.Equal(r, want, some)
		} else {
			require.Nil(r, some)
		}
		one, err := object.Broadcast(c, made(c.Rank()), root)
		require.NoError(r, err)
		require.Equal(r, want[root], one)
		var give []thing
		if c.Rank() == root {
			give = want
		}
		one, err = object.Scatter(c, give, root)
		require.NoError(r, err)
		require.Equal(r, want[c.Rank()], one)
	}
	for n := 1; n <= 4; n++ {
		ringotest.Run(t, n, test)
	}
	ringotest.Run(t, 3, test, ringotest.Over(ringotest.Processes))
}

// A value that one rank cannot encode is an error on all ranks, after which they go on.
func TestNotEncodable(t *testing.T) {
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		r, value := ringotest.Of(c), any(c.Rank())
		if c.Rank() == 1 {
			value = make(chan int)
		}
		_, err := object.AllGather(c, value)
		require.ErrorContains(r, err, "invalid argument: the value of rank 1")
		_, err = object.Broadcast(c, value, 1)
		require.ErrorContains(r, err, "invalid argument: the value of rank 1")
		_, err = object.Scatter(c, []any{1, value}, 1)
		require.ErrorContains(r, err, "invalid argument: the value of rank 1")
		require.NoError(r, ringo.Barrier(c))
	})
}

// If ranks call different functions or roots, all get ErrMismatch, and go on.
func TestObjectsDisagree(t *testing.T) {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		_, err := object.Broadcast(c, made(c.Rank()), c.Rank())
		require.ErrorIs(r, err, ringo.ErrMismatch)
		require.ErrorContains(r, err, "Broadcast(root 0)")
		require.ErrorContains(r, err, "Broadcast(root 1)")
		_, err = object.Gather(c, made(c.Rank()), c.Rank())
		require.ErrorIs(r, err, ringo.ErrMismatch)
		if c.Rank() == 0 {
			_, err = object.AllGather(c, made(0))
		} else {
			_, err = object.Scatter(c, []thing{made(0), made(1)}, 1)
		}
		require.ErrorIs(r, err, ringo.ErrMismatch)
		require.ErrorContains(r, err, "AllGather")
		require.ErrorContains(r, err, "Scatter(root 1)")
		require.NoError(r, ringo.Barrier(c))
	})
}

// A root that is no rank is an error on the calling rank only: it has sent nothing.
func TestObjectsRoot(t *testing.T) {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		if c.Rank() == 0 {
			for _, root := range []int{-1, 2} {
				_, err := object.Gather(c, made(0), root)
				require.ErrorIs(r, err, ringo.ErrInvalid)
				_, err = object.Broadcast(c, made(0), root)
				require.ErrorIs(r, err, ringo.ErrInvalid)
				_, err = object.Scatter[thing](c, nil, root)
				require.ErrorIs(r, err, ringo.ErrInvalid)
			}
		}
		require.NoError(r, ringo.Barrier(c))
	})
}
