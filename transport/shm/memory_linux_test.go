package shm

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

var testKey = []byte("a secret of thirty-two bytes: ok")

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

// TestNoRoom: without room for the queues Listen returns an error with the figures and
// the remedy, and nothing is left in the directory.
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
	nowhere := Options{Dir: filepath.Join(t.TempDir(), "none")}
	tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 64, Slots: 2}}, nowhere)
	_, err := tr.Listen()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestStrangers: callers that say anything, or nothing, cost a line in the log
// and leak no descriptor.
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

	for _, garbage := range []string{"", "x", "GET / HTTP/1.1\r\n\r\n", "\x0bringo shm 2", strings.Repeat("\x00", 80),
		strings.Repeat("y", 1<<16)} {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: doorOf(addr)})
		require.NoError(t, err)
		_, _, _ = c.WriteMsgUnix([]byte(garbage), unix.UnixRights(0, 1, 2), nil)
		require.NoError(t, c.Close())
	}
	silent, err := net.Dial("unix", doorOf(addr))
	require.NoError(t, err)
	defer silent.Close()

	send, err := a.Dial(cfg(1).Self, addr)
	require.NoError(t, err)
	_, err = b.Accept(cfg(0).Self)
	require.NoError(t, err)
	_, err = send.Reserve(64)
	require.NoError(t, err)

	require.Eventually(t, func() bool { return lines.Load() == 6 }, tier.Soon(20*time.Second), time.Millisecond,
		"a line for each stranger")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	silent.Close()
	require.Eventually(t, func() bool { return openFiles(t) <= before }, tier.Soon(20*time.Second), time.Millisecond)
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

// TestNoDescriptors: a rank that has no descriptor left for the memory returns an error,
// and the rank that dials gets the reason.
func TestNoDescriptors(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	var ends []*net.UnixConn
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		f.Close()
		defer c.Close()
		ends = append(ends, c.(*net.UnixConn))
	}
	f := must(allocate(4096, ""))
	defer f.Close()
	passed := make(chan error, 1)
	go func() { passed <- pass(ends[0], f) }()
	free, err := unix.Dup(0) // the least number that is free
	require.NoError(t, err)
	require.NoError(t, unix.Close(free))
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free), Max: limit.Max}))
	_, err = receiveFile(ends[1])
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, unix.EMFILE)
	require.ErrorContains(t, err, "no file descriptor left for it: raise ulimit -n")
	require.NoError(t, answer(ends[1], err))
	require.ErrorContains(t, <-passed, "refused: shared memory came, but this process has no file descriptor left")

	go ends[0].Write([]byte{0})
	_, err = receiveFile(ends[1])
	require.ErrorIs(t, err, errNoFile)
}

// TestCloseWhileAdopting: a dialler that has proved itself and then says nothing
// does not hold up Close.
func TestCloseWhileAdopting(t *testing.T) {
	cfg := transport.Config{Key: testKey, Limits: transport.Limits{SlotBytes: 64, Slots: 2}}
	b := New(cfg, Options{})
	addr, err := b.Listen()
	require.NoError(t, err)
	c, err := listen.Dial(t.Context(), listen.Target{Network: "unix", Addr: string(addr)}, testKey, protocol,
		&listen.Request{Limits: cfg.Limits}, nil)
	require.NoError(t, err)
	defer c.Close()
	start := time.Now()
	require.NoError(t, b.Close())
	require.Less(t, time.Since(start), listen.HandshakeTime*9/10)
}

// TestDialClosed: a peer that has closed is not waited for.
func TestDialClosed(t *testing.T) {
	cfg := transport.Config{Key: testKey, Limits: transport.Limits{SlotBytes: 64, Slots: 2}}
	b := New(cfg, Options{})
	addr, err := b.Listen()
	require.NoError(t, err)
	require.NoError(t, b.Close())
	a := New(cfg, Options{})
	defer a.Close()
	_, err = a.Dial(transport.Info{Rank: 3}, addr)
	require.ErrorIs(t, err, transport.ErrClosed)
	require.ErrorContains(t, err, "shm: dial rank 3: nobody listens there any more")
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
		_, err = tr.Accept(cfg.Self) // and two more that are not accepted
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

// doorOf is the socket of a transport's address.
func doorOf(addr []byte) string {
	door, _, _ := strings.Cut(string(addr), "#")
	return door
}
