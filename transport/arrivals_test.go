package transport_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

func TestArrivals(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, guard := listen.NewArrivals[string](nil), new(fifo.Guard)
	require.True(t, l.Put(1, "a"))
	require.True(t, l.Put(2, "b"))
	require.True(t, l.Put(1, "c"))
	for _, want := range []struct {
		rank int
		what string
	}{{2, "b"}, {1, "a"}, {1, "c"}} {
		got, err := l.Take(want.rank, guard)
		require.NoError(t, err)
		require.Equal(t, want.what, got)
	}

	time.AfterFunc(time.Millisecond, func() { l.Put(3, "late") })
	got, err := l.Take(3, guard)
	require.NoError(t, err)
	require.Equal(t, "late", got)

	cause := errors.New("abort")
	time.AfterFunc(time.Millisecond, func() { guard.Abort(cause) })
	_, err = l.Take(1, guard)
	require.ErrorIs(t, err, cause)

	require.True(t, l.Put(5, "left"))
	time.AfterFunc(time.Millisecond, func() { require.Equal(t, []string{"left"}, l.Close()) })
	_, err = l.Take(1, new(fifo.Guard))
	require.ErrorIs(t, err, fifo.ErrClosed)
	require.False(t, l.Put(1, "too late"))
	require.Empty(t, l.Close())
}
