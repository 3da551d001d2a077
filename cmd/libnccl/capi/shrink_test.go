package capi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/life"
)

// TestShrinkOnAnotherHost: after a failure the first rank that stays has to serve where all met first, and says so
// where it cannot.
func TestShrinkOnAnotherHost(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms := initAll(t, l, 3)
	elsewhere, err := bootstrap.IDFor("192.0.2.1:4000", "secret") // an address for documentation, nobody's
	require.NoError(t, err)
	c, err := l.comms.Get(comms[1])
	require.NoError(t, err)
	c.meetAgain(at(elsewhere))
	_, err = l.Shrink(0, comms[1], []int{0}, nil, shrinkAbort)
	require.ErrorContains(t, err, "192.0.2.1:4000 is no address of this host")
	require.ErrorContains(t, err, "rank 1 has to serve there")
	require.ErrorContains(t, err, "new ncclGetUniqueId")
	destroy(t, l, comms...)
}

// TestShrinkWithTheDead: a rank that is to stay although it has died or left is named at once, instead of waited for.
func TestShrinkWithTheDead(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms := initAll(t, l, 4)
	here, err := bootstrap.IDFor("127.0.0.1:1", "secret") // without it they would have nowhere to meet
	require.NoError(t, err)
	c, err := l.comms.Get(comms[0])
	require.NoError(t, err)
	c.meetAgain(at(here))
	require.NoError(t, l.Destroy(comms[2]))
	require.ErrorIs(t, l.Do(0, comms[0], allReduce([]int32{1})), ringo.ErrLeft)
	_, err = l.Shrink(0, comms[0], []int{1}, nil, 0)
	require.ErrorContains(t, err, "ncclCommShrink: rank 2 is to stay, and will not come: exclude it: ")
	require.Equal(t, RemoteError, ResultOf(err))
	for _, i := range []int{0, 1, 3} {
		require.NoError(t, l.Destroy(comms[i]))
	}
	for _, test := range []struct {
		why  error
		want []int
	}{
		{&life.PeerError{Failure: &bootstrap.Failure{Died: true}}, []int{1, 3}},
		{&life.PeerError{Failure: &bootstrap.Failure{Left: true}}, []int{1, 3}},
		{ringo.ErrLeft, []int{1, 3}},
		{&life.PeerError{Failure: &bootstrap.Failure{Reason: "aborted"}}, nil},
		{ringo.ErrTimeout, nil},
	} {
		require.Equal(t, test.want, gone(&ringo.Error{Culprits: []int{1, 3}, Err: fmt.Errorf("meet: %w", test.why)}),
			test.why)
	}
}

// TestShrinkWhileOneLeaves: if a rank that is to stay leaves while the first rank waits for its answer, the Shrink
// fails.
func TestShrinkWhileOneLeaves(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms := initAll(t, l, 3)
	failed := make(chan error, 1)
	go func() {
		_, err := l.Shrink(0, comms[0], []int{2}, nil, 0)
		failed <- err
	}()
	time.Sleep(20 * time.Millisecond) // the first waits, or will
	require.NoError(t, l.Destroy(comms[1]))
	within(t, func() { require.ErrorIs(t, <-failed, ringo.ErrLeft) })
	require.NoError(t, l.Destroy(comms[0]))
	require.NoError(t, l.Destroy(comms[2]))
}

// TestShrinkOfFinalized: Shrink of a finalized communicator is an error and returns no handle.
func TestShrinkOfFinalized(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	require.NoError(t, all(t, l, comms, func(g, c uintptr, _ int) error { return l.Finalize(g, c) }))
	h, err := l.Shrink(0, comms[0], []int{1}, nil, 0)
	require.ErrorIs(t, err, errFinalized)
	require.Zero(t, h)
	destroy(t, l, comms...)
}
