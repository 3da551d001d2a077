package auth

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// serve runs p on a listener whose handlers do the handshake and then echo.
func serve(t *testing.T, p *Pending, network, addr string) net.Addr {
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Serve(l, func(c net.Conn) {
			trusted := false
			err := Answer(c, key, protocol, func(b []byte) []byte {
				trusted = p.Trust(c)
				return b
			})
			if trusted {
				defer c.Close()
				if err == nil {
					io.Copy(c, c)
				}
			}
		})
	}()
	t.Cleanup(func() {
		l.Close()
		p.Close()
		<-done
	})
	return l.Addr()
}

func dial(t *testing.T, a net.Addr) net.Conn {
	c, err := net.Dial(a.Network(), a.String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func ended(t *testing.T, c net.Conn) {
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	if e, ok := err.(net.Error); ok {
		require.False(t, e.Timeout(), "still connected")
	}
}

// silent makes n connections that say nothing.
func silent(t *testing.T, a net.Addr, n int) (cs []net.Conn) {
	for range n {
		cs = append(cs, dial(t, a))
	}
	return cs
}

func TestOldestGoes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		p := NewPending(2, time.Hour, nil)
		a := serve(t, p, "tcp", "127.0.0.1:0")
		cs := silent(t, a, 3)
		ended(t, cs[0])
		_, err := Call(cs[1], key, protocol, nil) // and proves itself
		require.NoError(t, err)
		cs = append(cs, silent(t, a, 2)...)
		ended(t, cs[2])
		_, err = Call(cs[3], key, protocol, nil)
		require.NoError(t, err)
		cs[1].Write([]byte("x")) // a trusted caller stays
		b := make([]byte, 1)
		_, err = io.ReadFull(cs[1], b)
		require.NoError(t, err)
		p.Close()
		ended(t, cs[4])
	})
}

// A handshake goes on beside more silent callers than there are places.
func TestSilentCallers(t *testing.T) {
	p := NewPending(64, time.Hour, nil)
	a := serve(t, p, "tcp", "127.0.0.1:0")
	silent(t, a, 525)
	_, err := Call(dial(t, a), key, protocol, nil)
	require.NoError(t, err)
}

// Whoever was closed to make room is not trusted, even if its proof was right.
func TestEvictedWhileProving(t *testing.T) {
	p := NewPending(1, time.Hour, nil)
	first, _ := net.Pipe()
	second, _ := net.Pipe()
	require.True(t, p.enter(first))
	require.True(t, p.enter(second))
	require.False(t, p.Trust(first))
	require.True(t, p.Trust(second))
	require.False(t, p.Trust(second), "twice")
	third, _ := net.Pipe()
	require.True(t, p.enter(third))
	p.Close()
	require.False(t, p.Trust(third))
	require.False(t, p.enter(third))
	require.True(t, p.Closed())
}

// A caller that finds no room waits until another has proved itself, or the oldest has
// had its grace.
func TestComersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPending(2, time.Hour, nil)
		var c [4]net.Conn
		for i := range c {
			c[i], _ = net.Pipe()
		}
		p.enter(c[0])
		time.Sleep(grace / 2)
		p.enter(c[1])
		begin := time.Now()
		go func() {
			time.Sleep(grace / 4)
			require.True(t, p.Trust(c[1]))
		}()
		p.enter(c[2])
		require.Equal(t, grace/4, time.Since(begin))
		p.enter(c[3])
		require.Equal(t, grace/2, time.Since(begin))
		require.False(t, p.Trust(c[0]), "pushed out")
	})
}

// When descriptors run out, the oldest connection of the larger class is closed.
func TestEvict(t *testing.T) {
	p := NewPending(4, time.Hour, nil)
	p.evict()
	a, _ := net.Pipe()
	b, far := net.Pipe()
	p.conns[0], p.conns[1] = []guest{{Conn: a}}, []guest{{Conn: b}, {Conn: a}}
	p.evict()
	ended(t, far)
	require.False(t, p.Trust(b))
}

// A caller that takes too long is closed; one that has proved itself may take its time.
func TestTime(t *testing.T) {
	p := NewPending(4, 30*time.Millisecond, nil)
	a := serve(t, p, "tcp", "127.0.0.1:0")
	c := dial(t, a)
	_, err := Call(c, key, protocol, nil)
	require.NoError(t, err)
	ended(t, dial(t, a))
	c.Write([]byte("x"))
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
}

func TestUsers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say whose process called")
	}
	p := NewPending(1, time.Hour, nil)
	a := serve(t, p, "unix", filepath.Join(t.TempDir(), "s"))
	stranger, far := net.Pipe()
	require.True(t, p.enter(stranger))
	ours := dial(t, a)
	for len(func() []guest { p.mu.Lock(); defer p.mu.Unlock(); return p.conns[1] }()) == 0 {
		runtime.Gosched()
	}
	again, _ := net.Pipe()
	require.True(t, p.enter(again)) // pushes a stranger out, not us
	ended(t, far)
	_, err := Call(ours, key, protocol, nil)
	require.NoError(t, err)
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := NewLog(slog.New(slog.NewTextHandler(&b, nil)))
		lines := func() []string {
			defer b.Reset()
			return strings.Split(strings.TrimSpace(b.String()), "\n")
		}
		for range 1000 {
			l.Warn("stranger")
		}
		require.Len(t, lines(), burst)
		time.Sleep(time.Second)
		l.Warn("stranger", "from", "x")
		l.Warn("stranger", "from", "y")
		got := lines()
		require.Len(t, got, 1)
		require.Contains(t, got[0], "from=x suppressed=990")
		time.Sleep(time.Hour)
		l.Warn("stranger")
		require.Contains(t, lines()[0], "suppressed=1")
		for range 1000 {
			l.Warn("stranger")
		}
		require.Len(t, lines(), burst-1, "no more than a burst")
		NewLog(nil).Warn("silent")
	})
}
