package bootstrap

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func listenHere(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// joinThrough joins all ranks of a group with options o.
func joinThrough(t *testing.T, id ID, n int, o JoinOptions) []Group {
	groups := make([]Group, n)
	var all errgroup.Group
	for r := range n {
		all.Go(func() (err error) {
			groups[r], err = Join(t.Context(), id, r, n, o)
			return err
		})
	}
	require.NoError(t, all.Wait())
	return groups
}

// A group meets at the program's listener, under the name in Addr; so do the ranks that are left after a failure, and
// the next group.
func TestListener(t *testing.T) {
	l := listenHere(t)
	var dialled atomic.Int32
	o := JoinOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "train-0.mesh:7000" {
			return nil, errors.New("no route to " + address)
		}
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
	}}
	id, err := NewID(ListenOptions{Listener: l, Addr: "train-0.mesh:7000", Again: true})
	require.NoError(t, err)
	require.Equal(t, "train-0.mesh:7000", id.Addr())
	for range 2 {
		groups := joinThrough(t, id, 3, o)
		Drop(groups[2])
		var left [2]Regrouping
		var both errgroup.Group
		for r := range left {
			both.Go(func() (err error) {
				left[r], err = groups[r].Regroup(t.Context(), 10*time.Second)
				return err
			})
		}
		require.NoError(t, both.Wait())
		require.Equal(t, id.Addr(), left[0].ID.Addr())
		require.NotEqual(t, id, left[0].ID)
		next := joinThrough(t, left[0].ID, 2, o)
		for _, g := range append(next, groups...) {
			require.NoError(t, g.Close())
		}
	}
	require.GreaterOrEqual(t, dialled.Load(), int32(2*(3+2)), "by the ranks here too")
	Stop(id)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// elsewhere is a listener that has no port.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.UnixAddr{Name: "/run/mesh", Net: "unix"} }

// Faults of a listener are errors.
func TestListenerWrong(t *testing.T) {
	l := listenHere(t)
	_, err := NewID(ListenOptions{Listener: l, Addr: "no port"})
	require.ErrorContains(t, err, "no port")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "it is closed")
	_, err = NewID(ListenOptions{Listener: elsewhere{listenHere(t)}})
	require.ErrorContains(t, err, "set Addr to the host:port")
}
