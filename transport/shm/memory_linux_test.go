package shm

import (
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

func TestTrust(t *testing.T) {
	const size = 1 << 16
	for _, c := range []struct {
		name string
		dir  string
		make func(t *testing.T) *os.File
		err  string
	}{
		{"memfd", "", func(t *testing.T) *os.File { return must(allocate(size, "")) }, ""},
		{"file", "/tmp", func(t *testing.T) *os.File { return must(allocate(size, t.TempDir())) }, ""},
		{"too small", "", func(t *testing.T) *os.File { return must(allocate(size/2, "")) }, "65536 needed"},
		{"not allocated", "/tmp", func(t *testing.T) *os.File {
			f := must(create(""))
			require.NoError(t, f.Truncate(size))
			return f
		}, "0 allocated"},
		{"not sealed", "", func(t *testing.T) *os.File {
			f := must(create(""))
			require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, size))
			return f
		}, "shrink"},
		{"not a file", "", func(t *testing.T) *os.File { return must(os.Open(os.DevNull)) }, "needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.make(t)
			defer f.Close()
			err := trust(int(f.Fd()), size, c.dir)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func must(f *os.File, err error) *os.File {
	if err != nil {
		panic(err)
	}
	return f
}

// TestNoRoom: a rank without room for its queues hears it from Listen, with the
// figures and the remedy, and nothing is left in the directory.
func TestNoRoom(t *testing.T) {
	cfg := transport.Config{Limits: transport.Limits{SlotBytes: 1 << 30, Slots: 1 << 16}}
	for name, dir := range map[string]string{"memfd": "", "directory": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			tr := New(cfg, Options{Dir: dir})
			defer tr.Close()
			_, err := tr.Listen()
			require.ErrorContains(t, err, "67108872 MiB needed")
			require.ErrorContains(t, err, "sockets")
			if dir != "" {
				require.ErrorContains(t, err, "free in "+dir)
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
	tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 64, Slots: 2}}, Options{Dir: "/nowhere"})
	_, err := tr.Listen()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestStrangers: callers that say anything, or nothing, cost a line in the log
// and leave no descriptor behind.
func TestStrangers(t *testing.T) {
	var lines atomic.Int32
	log := slog.New(slog.NewTextHandler(lineCounter{&lines}, nil))
	cfg := func(r int) transport.Config {
		return transport.Config{
			Self: transport.Info{Rank: r}, Key: testKey, Log: log, Guard: new(fifo.Guard),
			Limits: transport.Limits{SlotBytes: 64, Slots: 2},
		}
	}
	before := openFiles(t)
	a, b := New(cfg(0), Options{}), New(cfg(1), Options{})
	addr, err := b.Listen()
	require.NoError(t, err)

	for _, garbage := range []string{"", "x", "GET / HTTP/1.1\r\n\r\n", magic, strings.Repeat("\x00", helloSize), strings.Repeat("y", 1<<16)} {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: string(addr)})
		require.NoError(t, err)
		_, _, _ = c.WriteMsgUnix([]byte(garbage), unix.UnixRights(0, 1, 2), nil)
		require.NoError(t, c.Close())
	}
	silent, err := net.Dial("unix", string(addr))
	require.NoError(t, err)
	defer silent.Close()

	send, err := a.Dial(cfg(1).Self, addr)
	require.NoError(t, err)
	_, err = b.Accept(cfg(0).Self)
	require.NoError(t, err)
	_, err = send.Reserve(64)
	require.NoError(t, err)

	require.Eventually(t, func() bool { return lines.Load() == 6 }, 2*time.Second, time.Millisecond, "a line for each stranger")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	silent.Close()
	require.Eventually(t, func() bool { return openFiles(t) <= before }, time.Second, time.Millisecond)
}

type lineCounter struct{ n *atomic.Int32 }

func (l lineCounter) Write(b []byte) (int, error) {
	l.n.Add(int32(strings.Count(string(b), "\n")))
	return len(b), nil
}

var _ io.Writer = lineCounter{}

func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// TestDisagree: ranks with different queues are told so by Dial.
func TestDisagree(t *testing.T) {
	cfg := transport.Config{Key: testKey, Limits: transport.Limits{SlotBytes: 64, Slots: 2}}
	b := New(cfg, Options{})
	defer b.Close()
	addr, err := b.Listen()
	require.NoError(t, err)
	cfg.Limits.Slots = 4
	a := New(cfg, Options{})
	defer a.Close()
	_, err = a.Dial(transport.Info{}, addr)
	require.ErrorContains(t, err, "4 slots of 64 bytes")
	_, err = a.Dial(transport.Info{}, []byte("@nobody"))
	require.ErrorContains(t, err, "dial rank 0")
	require.Zero(t, mappings(t))
}

// TestUnmaps: closing leaves no mapping.
func TestUnmaps(t *testing.T) {
	cfg := transport.Config{Key: testKey, Limits: transport.Limits{SlotBytes: 1 << 16, Slots: 4}}
	for range 5 {
		tr := New(cfg, Options{})
		addr, err := tr.Listen()
		require.NoError(t, err)
		for range 3 {
			_, err = tr.Dial(cfg.Self, addr)
			require.NoError(t, err)
		}
		_, err = tr.Accept(cfg.Self) // and two that nobody takes
		require.NoError(t, err)
		require.Equal(t, 6, mappings(t))
		require.NoError(t, tr.Close())
	}
	require.Zero(t, mappings(t))
}

// mappings is how many queues this process has mapped.
func mappings(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), "memfd:ringo")
}
