package verbs

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/transport"
)

// A communicator with some of the devices gets no memory that is registered with others: these
// could not be closed while it uses the memory.
func TestAreasKeepToDevices(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	one := New(transport.Config{Limits: few}, Options{Verbs: f, HCAs: "=fx0"})
	defer one.Close()
	all := new(Options)
	all.Verbs = f
	_, both, err := find(all)
	require.NoError(t, err)
	a, err := areas.take(one.shape.size(), both)
	require.NoError(t, err)
	areas.give(a)
	_, err = one.open()
	require.NoError(t, err)
	defer one.ends.Leave()
	held, err := areas.take(one.shape.size(), one.devices)
	require.NoError(t, err)
	defer areas.give(held)
	release(both)
	require.Len(t, held.mrs, 1)
	require.Contains(t, held.mrs, one.devices[0])
}

// The cache keeps idleBytes for later and no more; the oldest area goes first. An area that is
// registered with no device any more goes too.
func TestIdleAreas(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	all := Options{Verbs: f}
	_, devices, err := find(&all)
	require.NoError(t, err)
	var c cache
	var used []*area
	const n = idleBytes / 4
	for range 6 {
		a, err := c.take(n, devices)
		require.NoError(t, err)
		used = append(used, a)
	}
	require.Equal(t, 6, len(f.MRs))
	for _, a := range used {
		c.give(a)
	}
	require.True(t, slices.Equal(used[2:], c.idle))
	require.Equal(t, idleBytes, c.held)
	require.Equal(t, 4, len(f.MRs))
	c.forget(devices[0])
	require.Empty(t, c.idle)
	require.Zero(t, c.held)
	release(devices)
}

// The memory of a closed connection serves the next one, unless a caller still has a slot of that
// memory.
func TestAreasOfClosed(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	m := conntest.Ranks(t, 2, few, func(cfg transport.Config) transport.Transport { return New(cfg, Options{Verbs: f}) })
	connect := func() (*sendConn, *recvConn) {
		a, b := conntest.Connect(t, m[0], m[1])
		return a.(*sendConn), b.(*recvConn)
	}
	finish := func(s *sendConn, r *recvConn) {
		require.NoError(t, s.Close())
		require.NoError(t, r.Close())
		<-s.done
		<-r.done
	}
	s, r := connect()
	first := map[*area]bool{s.area: true, r.area: true}
	_, err := s.Reserve(8)
	require.NoError(t, err)
	require.NoError(t, s.Publish(transport.Stamp{}))
	_, _, err = r.Next()
	require.NoError(t, err)
	_, err = s.Reserve(8)
	require.NoError(t, err)
	finish(s, r)

	s2, r2 := connect() // both areas are in use
	require.False(t, first[s2.area] || first[r2.area])
	finish(s2, r2)
	require.ErrorIs(t, s.Publish(transport.Stamp{}), transport.ErrClosed)
	require.ErrorIs(t, r.Release(), transport.ErrClosed)
	require.Empty(t, m[0].Transport.(*Transport).ends.Append(nil))

	regs := f.Regs
	s3, r3 := connect()
	finish(s3, r3)
	require.Equal(t, regs, f.Regs)
}

// A peer whose host falls silent is noticed: the idle TCP connection has keep-alive.
func TestLineIsKeptAlive(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	for _, l := range []*control{s.control, r.control} {
		raw, err := l.conn.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			for option, want := range map[int]int{unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 5, unix.TCP_KEEPCNT: 3} {
				got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			on, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			require.NoError(t, err)
			require.Equal(t, 1, on)
		}))
	}
}
