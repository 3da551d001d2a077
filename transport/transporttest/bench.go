package transporttest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/transport"
)

// Bench measures a transport between two goroutines of one process.
func Bench(b *testing.B, open Open) {
	s := suite{open: open}
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("pingpong/%d", size), func(b *testing.B) {
			r := s.ranks(b, 2, benchLimits(size))
			send, in := conntest.Connect(b, r[0], r[1])
			out, recv := conntest.Connect(b, r[1], r[0])
			done := make(chan error)
			go func() { done <- echo(out, in) }()
			pingPong(b, send, recv, size)
			require.NoError(b, send.Close())
			require.NoError(b, <-done)
		})
	}
}

// BenchProcesses measures a transport between two processes. It is to be called
// by a benchmark function itself; see Processes.
func BenchProcesses(b *testing.B, open Open) {
	servePeer(b, open)
	s := suite{open: open}
	for _, spin := range []bool{true, false} {
		for role, sizes := range map[string][]int{"echo": benchSizes, "exchange": benchSizes, "sink": benchSizes[2:]} {
			for _, size := range sizes {
				b.Run(fmt.Sprintf("spin=%v/%s/%d", spin, role, size), func(b *testing.B) {
					j := job{Role: role, Limits: benchLimits(size), Spin: spin}
					if role == "exchange" {
						j.Limits.SlotBytes = size
					}
					p := s.peer(b, j)
					if role == "sink" {
						stream(b, p.send, size)
					} else {
						pingPong(b, p.send, p.recv, size)
					}
					require.NoError(b, p.send.Close())
					require.NoError(b, p.wait())
				})
			}
		}
	}
}

var benchSizes = []int{8, 1 << 10, 1 << 16, 1 << 18}

func benchLimits(size int) transport.Limits {
	return transport.Limits{SlotBytes: max(size, 1<<16), Slots: 8}
}

// pingPong reports the time of a message there and back. Both ways the payload
// is copied into a slot and out of it.
func pingPong(b *testing.B, send transport.SendConn, recv transport.RecvConn, size int) {
	data := make([]byte, size)
	b.ReportAllocs()
	for b.Loop() {
		if err := swap(send, recv, data); err != nil {
			b.Fatal(err)
		}
	}
}

// stream reports the rate at which messages go one way, copied in and out.
func stream(b *testing.B, send transport.SendConn, size int) {
	data := make([]byte, size)
	b.SetBytes(int64(size))
	for b.Loop() {
		slot, err := send.Reserve(size)
		if err != nil {
			b.Fatal(err)
		}
		copy(slot.Bytes(), data)
		if err := send.Publish(transport.Stamp{1}); err != nil {
			b.Fatal(err)
		}
	}
}
