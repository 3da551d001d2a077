package socket

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/transport"
)

// BenchmarkStreams compares a goroutine for each connection with one for all of them, at both ends: the gain
// of one proxy for each network card. An operation is a slot on each connection.
func BenchmarkStreams(b *testing.B) {
	for _, size := range []int{4 << 10, 512 << 10} {
		for _, conns := range []int{1, 4, 16} {
			for _, goroutines := range slices.Compact([]int{1, conns}) {
				b.Run(fmt.Sprintf("%d bytes, %d connections, %d goroutines", size, conns, goroutines), func(b *testing.B) {
					streams(b, onLoopback, size, conns, goroutines)
				})
			}
		}
	}
}

// BenchmarkSealed is one connection under TLS.
func BenchmarkSealed(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 512 << 10} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			streams(b, Options{Network: "tcp", IfName: "lo", TLS: byKey}, size, 1, 1)
		})
	}
}

func streams(b *testing.B, o Options, size, conns, goroutines int) {
	l := transport.Limits{SlotBytes: size, Slots: 8}
	var send []*sendConn
	var recv []*recvConn
	for range conns {
		s, r := pair(b, l, o)
		s.t.cfg.Spin, r.t.cfg.Spin = false, false // there are more goroutines than cores
		send, recv = append(send, s), append(recv, r)
	}
	b.SetBytes(int64(size * conns))
	n := b.N
	b.ResetTimer()
	var g errgroup.Group
	for at := range goroutines {
		g.Go(func() error {
			for range n {
				for i := at; i < conns; i += goroutines {
					if _, err := send[i].Reserve(size); err != nil {
						return err
					}
					if err := send[i].Publish(transport.Stamp{}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		g.Go(func() error {
			for range n {
				for i := at; i < conns; i += goroutines {
					if _, _, err := recv[i].Next(); err != nil {
						return err
					}
					if err := recv[i].Release(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(b, g.Wait())
}
