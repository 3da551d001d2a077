//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

var loose = transporttest.Options{Loose: true}

// Other versions: TestVersions, TestPlaced.
func TestConformance(t *testing.T) {
	f := newFake(t, version(11))
	transporttest.Conformance(t, open(f.load(t)), loose)
	f.clean(t, contexts(11))
}

func TestProcesses(t *testing.T) { transporttest.Processes(t, open(newFake(t, version(11)).load(t))) }

func BenchmarkProcesses(b *testing.B) {
	transporttest.BenchProcesses(b, open(newFake(b, version(11)).load(b)))
}

// two are two ranks of one process.
func two(t *testing.T, l *Library, limits transport.Limits) []*conntest.Rank[*Transport] {
	t.Helper()
	return twoThatLinger(t, l, limits, 0)
}

func twoThatLinger(t *testing.T, l *Library, limits transport.Limits, linger time.Duration) (
	both []*conntest.Rank[*Transport]) {
	t.Helper()
	for i := range 2 {
		r := &conntest.Rank[*Transport]{Config: conntest.Config(i, limits)}
		r.Config.Guard.Begin(20 * time.Second)
		r.Config.Linger = linger
		r.Transport = New(r.Config, l, Options{})
		t.Cleanup(func() { r.Transport.Close() })
		var err error
		r.Addr, err = r.Transport.Listen()
		require.NoError(t, err)
		both = append(both, r)
	}
	return both
}

// pair is a connection from rank 0 to rank 1.
func pair(t *testing.T, l *Library, limits transport.Limits) (send transport.SendConn, recv transport.RecvConn,
	err error) {
	t.Helper()
	ranks := two(t, l, limits)
	if send, err = ranks[0].Dial(ranks[1]); err != nil {
		return nil, nil, err
	}
	recv, err = ranks[1].Accept(ranks[0])
	require.NoError(t, err)
	return send, recv, nil
}

// exchange sends messages through a connection and checks each that arrives.
func exchange(send transport.SendConn, recv transport.RecvConn, messages int) error {
	return conntest.Flow(send, recv, messages, func(i int) int { return i * 37 % 300 })
}

// Every version carries messages; so does a plugin whose every call is slow. Queues are deeper
// than the number of requests that a plugin takes at a time.
func TestVersions(t *testing.T) {
	side := tier.Together(t)
	defer side.Wait()
	for _, v := range versions {
		for _, delay := range []int{0, 3} {
			side.Run(fmt.Sprintf("v%d delay %d", v.number, delay), func(t *testing.T) {
				f := newFake(t, version(v.number))
				f.set(t, "", 0, delay)
				l := f.load(t)
				require.Equal(t, v.number, l.Version)
				require.Equal(t, "Test", l.Name)
				require.Len(t, l.Devices, 2)
				d := l.Devices[1]
				d.conns = nil
				require.Equal(t, Device{
					Index: 1, Name: "test1", PCIPath: "/sys/devices/test1", Speed: 10000, MaxConns: 1000, MaxRecvs: 1,
					MaxBytes: 1<<31 - 1, memory: hostMemory,
				}, d)
				t.Run("traffic", func(t *testing.T) {
					send, recv, err := pair(t, l, transport.Limits{SlotBytes: 300, Slots: 40})
					require.NoError(t, err)
					require.NoError(t, exchange(send, recv, 500))
				})
				f.clean(t, contexts(v.number))
			})
		}
	}
}

// A library that cannot be a network is an error of Load or Listen.
func TestUnusable(t *testing.T) {
	_, err := Load("libnccl-net-that-is-not-there.so", nil)
	require.ErrorContains(t, err, "libnccl-net-that-is-not-there.so is not there")
	torn := filepath.Join(t.TempDir(), "torn.so")
	require.NoError(t, os.WriteFile(torn, []byte("\x7fELF and no more"), 0o755))
	_, err = Load(torn, nil)
	require.ErrorContains(t, err, "network plugin torn.so: open library: ")
	require.ErrorContains(t, err, "NCCL_NET_PLUGIN=none")
	_, err = Load(newFake(t, "WITHOUT_TABLE").file, nil)
	require.ErrorContains(t, err, "it exports none of ncclNetPlugin_v8 to v11")
	_, err = Load(newFake(t, version(9), "WITHOUT_CONNECT").file, nil)
	require.ErrorContains(t, err, "network plugin libnccl-net-test.so (v9): its table has no connect")

	const host, cuda = hostMemory, deviceMemory
	for _, c := range []struct {
		recvs, comms, memory, offload, bytes uintptr
		want                                 string
	}{
		{1, 9, cuda, 0, 0, "device 0 test0 takes no host memory, device 1 test1 takes no host memory"},
		{0, 9, host, 0, 0, "device 0 test0 receives 0 messages at a time"},
		{1, 9, host, 1, 0, "device 0 test0 needs a part of its own on the GPU (type 1)"},
		{1, 9, host, 0, 100, "device 0 test0 carries messages of 100 bytes, slots need 332 (RINGO_SLOT_BYTES makes them " +
			"smaller)"},
		{8, 9, host | cuda, 0, 332, ""},
	} {
		f := newFake(t, version(11))
		f.call(t, "device", c.recvs, c.comms, c.memory, c.offload, c.bytes)
		tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 300, Slots: 4}}, f.load(t), Options{})
		_, err := tr.Listen()
		require.NoError(t, tr.Close())
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// Connections are spread over the devices, and no device gets more than it takes.
func TestDevices(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 2, hostMemory, 0, 0) // each end of a connection counts
	l := f.load(t)
	ranks := two(t, l, transport.Limits{SlotBytes: 300, Slots: 4})
	var sends []transport.SendConn
	for i := range 2 {
		send, err := ranks[0].Dial(ranks[1])
		require.NoError(t, err)
		require.Equal(t, i, send.(*sendConn).dev.Index)
		sends = append(sends, send)
	}
	_, err := ranks[0].Dial(ranks[1])
	require.ErrorContains(t, err, "all 2 devices have as many connections as they take")
	require.NoError(t, sends[0].Close())
	recv, err := ranks[1].Accept(ranks[0])
	require.NoError(t, err)
	require.NoError(t, recv.Close())
	require.Eventually(t, func() bool { return l.Devices[0].conns.Load() == 0 }, 20*time.Second, time.Millisecond)
	_, err = ranks[0].Dial(ranks[1])
	require.NoError(t, err)
}

// A peer with another plugin is an error before a connection is made.
func TestOtherPlugin(t *testing.T) {
	f := newFake(t, version(11))
	ranks := two(t, f.load(t), transport.Limits{SlotBytes: 300, Slots: 4})
	_, err := ranks[0].Transport.Dial(ranks[1].Config.Self,
		bytes.Replace(ranks[1].Addr, []byte("Test"), []byte("Other"), 1))
	require.ErrorContains(t, err, `dial rank 1: it uses network "Other", this rank "Test"`)
}

// Lines that a plugin logs go to the log.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	file := newFake(t, version(10)).file
	for range 2 {
		_, err := Load(file, nil) // which keeps the lines
		require.NoError(t, err)
	}
	require.Empty(t, out.String())
	_, err := Load(file, log)
	require.NoError(t, err)
	require.Contains(t, out.String(), "plugin: NET/Test : version 10, over loopback, 2 devices, 0xabcdef,  1.25 GB/s\"")
	require.Contains(t, out.String(), "net.c")
}

func TestFile(t *testing.T) {
	for entry, want := range map[string]string{
		"": "libnccl-net.so", "aws": "libnccl-net-aws.so", "./x": "./x", "libnccl-net-ofi.so": "libnccl-net-ofi.so",
		"x.so": "x.so",
	} {
		require.Equal(t, want, File(entry), "%q", entry)
	}
}

func TestExpand(t *testing.T) {
	minus := func(n uint32) uintptr { return uintptr(-n) }
	got := expand("%d %5u|%-4d|%04x %ld %hhu %c %s %p %% %.2f %*d %s\n",
		[]uintptr{minus(3), minus(1), 7, 255, 1 << 40, 258, 'x', 1, 16, 5, 9},
		[]float64{1.5}, func(_ uintptr, most int) string { return "text"[:min(most, 4)] })
	require.Equal(t, "-3 4294967295|7   |00ff 1099511627776 2 x text 0x10 % 1.50     9 ?", got)
	require.Equal(t, "100%", expand("100%", nil, nil, nil))
	for format, want := range map[string]string{ // the argument is all ones but the last bit
		"%hhd": "-2", "%hd": "-2", "%d": "-2", "%i": "-2", "%ld": "-2", "%jd": "-2", "%zd": "-2",
		"%hhu": "254", "%hu": "65534", "%u": "4294967294", "%lu": "18446744073709551614", "%qu": "18446744073709551614",
		"%tu":  "18446744073709551614",
		"%hhx": "fe", "%#hx": "0xfffe", "%X": "FFFFFFFE", "%hho": "376", "%c|": "þ|", "%p": "0xfffffffffffffffe",
		"%+d": "-2", "%-6d|": "-2    |", "%06d": "-00002", "%w": "?", "%d %d": "-2 ?", "%f": "?", "%*d": "?", "a%": "a%",
		"a% 5":       "a% 5",
		"no end\n\n": "no end", "%%d": "%d",
	} {
		require.Equal(t, want, expand(format, []uintptr{^uintptr(1)}, nil, nil), "%q", format)
	}
	require.Equal(t, "(null)", expand("%s", []uintptr{0}, nil, nil))
	require.Equal(t, "2.500000 2.5e+00 2.5 ?", expand("%f %.1e %g %f", nil, []float64{2.5, 2.5, 2.5}, nil))

	// A string is read no further than it is printed: it may have no end.
	read := func(_ uintptr, most int) string { return fmt.Sprint(most) }
	got = expand("%.*s %.7s %.s %-9.3s| %5s %.*s %.99999999999999999999s", []uintptr{5, 1, 1, 1, 1, 1, minus(4), 1, 1},
		nil, read)
	require.Equal(t, "5 7  3        |  4096 4096 4096", got)
	// Widths are memory.
	require.Len(t, expand(strings.Repeat("%999999d", 100), make([]uintptr, 100), nil, nil), maxText)
	require.Len(t, expand("%999999.999999f", nil, []float64{1}, nil), maxText)
}
