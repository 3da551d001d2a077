package socket

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// lentBytes is the least payload that is lent, on systems that lend.
const lentBytes = min(lendMin, 64<<10)

var large = transport.Limits{SlotBytes: 300_000, Slots: 4}

func networks() map[string]Options {
	striped := Options{Network: "tcp", IfName: "lo", Streams: 3, Family: 6}
	if ifs, err := interfaces(); err == nil {
		if _, err := choose(ifs, striped); err != nil {
			striped.Family = 0 // IPv6 is turned off on this machine
		}
	}
	return map[string]Options{
		"tcp": onLoopback, "unix": {Network: "unix"},
		"striped": striped,
		"tls":     {Network: "tcp", IfName: "lo", TLS: byKey},
	}
}

// TestLending: slots whose memory is lent, copied, or the caller's own arrive
// whole in any mix, though the sender uses each memory again as soon as it may.
func TestLending(t *testing.T) {
	sizes := []int{0, 1, minRead, lentBytes - 1, lentBytes, lentBytes + 1, 100_000, large.SlotBytes}
	for name, o := range networks() {
		for _, lend := range []bool{true, false} {
			if !lend && o.TLS != nil {
				continue // TLS never lends
			}
			t.Run(fmt.Sprintf("%s, kernel lends: %v", name, lend), func(t *testing.T) {
				s, r := pair(t, large, o)
				if !lend {
					refuseLoans(s)
				}
				messages := tier.Count(150, 600)
				draw := func() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
				var g errgroup.Group
				g.Go(func() error {
					own, rng := make([]byte, large.SlotBytes), draw()
					for i := range messages {
						n, from := sizes[rng.IntN(len(sizes))], rng.IntN(3) == 0
						dst := mem.Host(own[:n])
						if from {
							if err := s.Flush(); err != nil {
								return err
							}
						} else {
							var err error
							if dst, err = s.Reserve(n); err != nil {
								return err
							}
						}
						payload.Fill(dst.Bytes(), uint64(i))
						send := func() error { return s.Publish(transport.Stamp{uint64(i)}) }
						if from {
							send = func() error { return s.PublishFrom(dst, transport.Stamp{uint64(i)}) }
						}
						if err := send(); err != nil {
							return err
						}
					}
					return s.Flush()
				})
				g.Go(func() error {
					rng, pick := draw(), rand.New(rand.NewPCG(3, 4))
					want, into := make([]byte, large.SlotBytes), make([]byte, large.SlotBytes)
					for i := range messages {
						n := sizes[rng.IntN(len(sizes))]
						rng.IntN(3)
						payload.Fill(want[:n], uint64(i))
						var got []byte
						var stamp transport.Stamp
						var err error
						if pick.IntN(2) == 0 {
							got = into[:n]
							stamp, err = r.NextInto(mem.Host(got))
						} else {
							var in mem.Region
							in, stamp, err = r.Next()
							got = bytes.Clone(in.Bytes())
							if err == nil {
								err = r.Release()
							}
						}
						switch {
						case err != nil:
							return err
						case stamp[0] != uint64(i) || !bytes.Equal(want[:n], got):
							return fmt.Errorf("message %d of %d bytes is not what was sent", i, n)
						}
					}
					return nil
				})
				require.NoError(t, g.Wait())
			})
		}
	}
}

// TestDeepQueue: all slots can be published while nobody receives, whatever the
// kernel's buffers hold, and all arrive after the sender has closed.
func TestDeepQueue(t *testing.T) {
	for name, o := range networks() {
		for _, n := range []int{lentBytes - 1, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, n), func(t *testing.T) {
				l := transport.Limits{SlotBytes: 1 << 20, Slots: 24}
				if n < lentBytes {
					l.Slots = 300
				}
				s, r := pair(t, l, o)
				size := func(int) int { return n }
				require.NoError(t, conntest.PutAll(s, 0, l.Slots, size))
				require.NoError(t, s.Close())
				require.NoError(t, conntest.GetAll(r, 0, l.Slots, size))
				_, _, err := r.Next()
				require.ErrorIs(t, err, fifo.ErrClosed)
			})
		}
	}
}

// TestLentIsBounded: a sender whose memory is lent waits for credits.
func TestLentIsBounded(t *testing.T) {
	s, r := pair(t, large, Options{Network: "unix"})
	for range large.Slots {
		_, err := s.Reserve(large.SlotBytes)
		require.NoError(t, err)
		require.NoError(t, s.Publish(transport.Stamp{}))
	}
	if s.slots[0].due == 0 {
		t.Skip("this kernel does not lend")
	}
	s.t.cfg.Guard.SetDeadline(fifo.Now() + int64(30*time.Millisecond))
	_, err := s.Reserve(1)
	require.ErrorIs(t, err, fifo.ErrDeadline)
	s.t.cfg.Guard.SetDeadline(0)
	for range large.Slots / 2 {
		_, _, err := r.Next()
		require.NoError(t, err)
		require.NoError(t, r.Release())
	}
	_, err = s.Reserve(1)
	require.NoError(t, err)
}
