//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// Values that a plugin returns when it starts are checked before they are used.
func TestLiesOfStart(t *testing.T) {
	for _, c := range []struct {
		devices int
		want    string // in the error
	}{
		{1 << 28, "devices: it says that it has 268435456 devices; at most 1024 are believed"},
		{1025, "devices: it says that it has 1025 devices"},
		{0, "devices: it has no device"},
		{-1, "devices: it has no device"},
	} {
		f := newFake(t, version(11))
		f.lie(t, "devices", c.devices)
		_, err := Load(f.file, nil)
		require.ErrorContains(t, err, c.want)
	}
	for _, n := range []int{-1, math.MaxInt32} {
		f := newFake(t, version(11))
		f.lie(t, "getProperties", n)
		l := f.load(t)
		name := "?[2J??" + strings.Repeat("x", maxLabel-6)
		d := l.Devices[0]
		d.conns = nil
		require.Equal(t, Device{Name: name, PCIPath: name, MaxConns: n, MaxRecvs: 1, MaxBytes: math.MaxInt32,
			memory: hostMemory}, d)
		two(t, l, transport.Limits{SlotBytes: 300, Slots: 4}) // it has no limit of connections
	}
	var out bytes.Buffer
	f := newFake(t, version(11))
	f.lie(t, "init", 0)
	_, err := Load(f.file, slog.New(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	require.NotContains(t, out.String(), "\x1b")
	require.Less(t, out.Len(), 3*maxText)
}

// Values that a plugin returns while it connects and carries messages are checked before they are used.
func TestLies(t *testing.T) {
	side := tier.Together(t)
	defer side.Wait()
	for _, c := range []struct {
		call  string
		lie   int
		want  string // in the error; "" for none
		delay int
	}{
		{"listen", 0, "listen: device 0 test0: rank 0: it succeeded and gave no listener", 0},
		{"connect", 0, "", 2}, // an offload to a device that Ringo did not ask for
		{"accept", 0, "", 2},
		{"test", 333, "irecv: device 0 test0: rank 0: malformed message of 333 bytes", 0},
		{"test", headerLen - 1, "irecv: device 0 test0: rank 0: malformed message of 31 bytes", 0},
		{"test", -1, "irecv: device 0 test0: rank 0: malformed message of -1 bytes", 0},
		{"test", math.MaxInt32, "irecv: device 0 test0: rank 0: malformed message of 2147483647 bytes", 0},
	} {
		f := newFake(t, version(11))
		side.Run(c.call, func(t *testing.T) {
			t.Cleanup(func() { f.clean(t, contexts(11)) }) // after the ranks have closed
			ranks := two(t, f.load(t), transport.Limits{SlotBytes: 300, Slots: 4})
			f.set(t, "", 0, c.delay)
			f.lie(t, c.call, c.lie)
			send, err := ranks[0].Dial(ranks[1])
			if err == nil {
				recv, accepting := ranks[1].Accept(ranks[0])
				require.NoError(t, accepting)
				err = exchange(send, recv, 10)
			}
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A payload longer than its slot is not flushed: that would reach into what lies after the slot.
func TestLiesOfPlaced(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 100, hostMemory|deviceMemory, 0, 0)
	p := newPlacedPair(t, f.load(t), ofGPU, transport.Limits{SlotBytes: 100, Slots: 4})
	require.NoError(t, p.connect())
	f.lie(t, "test", 101)
	err := p.exchange(10)
	require.ErrorContains(t, err, "malformed message of 101 bytes")
	require.Zero(t, f.call(t, "faults"))
}
