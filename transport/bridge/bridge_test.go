package bridge_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A side is a rank: its bridge, its transport, and queues that the test uses as a
// kernel would.
type side struct {
	bridge *bridge.Bridge
	guard  fifo.Guard
	via    transport.Transport
	addr   []byte
	info   transport.Info
	queues []bridge.Queue
	failed chan error
}

const lanes, slots = 3, 4

func queues(t testing.TB, slotBytes int) []bridge.Queue {
	list := make([]bridge.Queue, lanes)
	for i := range list {
		var err error
		list[i], err = bridge.NewQueue(slots, slotBytes, make([]byte, slots*slotBytes),
			make([]byte, slots*bridge.HeaderBytes), make([]byte, 128), make([]byte, 128))
		require.NoError(t, err)
	}
	return list
}

func sides(t testing.TB, network string, slotBytes int) (from, to *side) {
	both := make([]*side, 2)
	for r := range both {
		s := &side{info: transport.Info{Rank: r, Host: "h", Process: "p"}, failed: make(chan error, 2*lanes),
			queues: queues(t, slotBytes)}
		cfg := transport.Config{Self: s.info, Key: []byte("key"),
			Limits: transport.Limits{SlotBytes: slotBytes, Slots: slots}, Guard: &s.guard}
		if network == "inproc" {
			s.via = inproc.New(cfg)
		} else {
			s.via = socket.New(cfg, socket.Options{Network: network, IfName: "lo"})
		}
		var err error
		s.addr, err = s.via.Listen()
		require.NoError(t, err)
		s.bridge = bridge.New(bridge.Config{Guard: &s.guard, Fail: func(peer int, phase string, err error) {
			s.failed <- fmt.Errorf("%s %d: %w", phase, peer, err)
		}})
		both[r] = s
		t.Cleanup(func() {
			require.NoError(t, s.bridge.Close())
			require.NoError(t, s.via.Close())
		})
	}
	from, to = both[0], both[1]
	from.bridge.Out(1, from.queues, func() (transport.SendConn, error) { return from.via.Dial(to.info, to.addr) })
	to.bridge.In(0, to.queues, func() (transport.RecvConn, error) { return to.via.Accept(from.info) })
	return from, to
}

// until is how a kernel waits.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// publish sends a slot as a kernel does.
func publish(q *bridge.Queue, n uint64, stamp transport.Stamp, length int, fill func([]byte)) {
	until(func() bool { return int64(n-q.Seen.Load()) < slots })
	at := int(n % slots)
	if fill != nil {
		fill(q.Memory[at*q.SlotBytes:][:length])
	}
	h := q.Headers[at*bridge.HeaderBytes:]
	binary.LittleEndian.PutUint64(h, stamp[0])
	binary.LittleEndian.PutUint64(h[8:], stamp[1])
	binary.LittleEndian.PutUint64(h[16:], uint64(length))
	q.Posted.Store(n + 1)
}

// take receives a slot as a kernel does.
func take(q *bridge.Queue, n uint64, look func(stamp transport.Stamp, b []byte)) {
	until(func() bool { return q.Seen.Load() > n })
	at := int(n % slots)
	h := q.Headers[at*bridge.HeaderBytes:]
	if look != nil {
		look(transport.Stamp{binary.LittleEndian.Uint64(h), binary.LittleEndian.Uint64(h[8:])},
			q.Memory[at*q.SlotBytes:][:binary.LittleEndian.Uint64(h[16:])])
	}
	q.Posted.Store(n + 1)
}

// Slots come as they were sent, each on its lane, with stamp and length.
func TestSlots(t *testing.T) {
	for _, network := range []string{"inproc", "unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			from, to := sides(t, network, 4096)
			const count = 300
			var wg sync.WaitGroup
			for l := range lanes {
				wg.Go(func() {
					for n := range uint64(count) {
						publish(&from.queues[l], n, transport.Stamp{uint64(l), n}, int(n*37%4097), func(b []byte) {
							for i := range b {
								b[i] = byte(uint64(i) + n + uint64(l))
							}
						})
					}
				})
				wg.Go(func() {
					for n := range uint64(count) {
						take(&to.queues[l], n, func(stamp transport.Stamp, b []byte) {
							good := stamp == transport.Stamp{uint64(l), n} && len(b) == int(n*37%4097)
							for i := range b {
								good = good && b[i] == byte(uint64(i)+n+uint64(l))
							}
							if !good {
								t.Errorf("lane %d, slot %d: stamp %v, %d bytes", l, n, stamp, len(b))
							}
						})
					}
				})
			}
			wg.Wait()
			require.Empty(t, from.failed)
			require.Empty(t, to.failed)
		})
	}
}

// A slot that is published after a long pause arrives soon, and sooner after Wake.
func TestIdle(t *testing.T) {
	from, to := sides(t, "unix", 4096)
	for n := range uint64(3) {
		time.Sleep(30 * time.Millisecond)
		start := time.Now()
		from.bridge.Wake()
		publish(&from.queues[0], n, transport.Stamp{}, 10, nil)
		take(&to.queues[0], n, nil)
		require.Less(t, time.Since(start), tier.Soon(5*time.Second)) // real time
	}
}

// A peer that says goodbye is not missed.
func TestGoodbye(t *testing.T) {
	from, to := sides(t, "tcp", 4096)
	for l := range lanes {
		publish(&from.queues[l], 0, transport.Stamp{}, 10, nil)
		take(&to.queues[l], 0, nil)
	}
	require.NoError(t, from.bridge.Close())
	require.NoError(t, from.via.Close())
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, to.failed)
}

// Fail hears of a connection that breaks, with the peer.
func TestBroken(t *testing.T) {
	from, to := sides(t, "unix", 4096)
	publish(&from.queues[0], 0, transport.Stamp{}, 10, nil)
	take(&to.queues[0], 0, nil)
	to.guard.Abort(errors.New("dies without goodbye"))
	require.NoError(t, to.via.Close())
	for n := uint64(1); len(from.failed) == 0; n++ {
		if int64(n-from.queues[0].Seen.Load()) < slots {
			publish(&from.queues[0], n, transport.Stamp{}, 10, nil)
		}
		time.Sleep(time.Millisecond)
	}
	require.ErrorContains(t, <-from.failed, "send 1: ")
}

// A kernel's length that is more than its slot is an error.
func TestLength(t *testing.T) {
	from, _ := sides(t, "inproc", 128)
	q := &from.queues[1]
	h := q.Headers
	binary.LittleEndian.PutUint64(h[16:], 129)
	q.Posted.Store(1)
	require.ErrorContains(t, <-from.failed, "129 bytes of 128")
}

// The end of the Guard ends everything without a call of Fail.
func TestAborted(t *testing.T) {
	from, to := sides(t, "unix", 4096)
	publish(&from.queues[0], 0, transport.Stamp{}, 10, nil)
	take(&to.queues[0], 0, nil)
	from.guard.Abort(errors.New("enough"))
	to.guard.Abort(errors.New("enough"))
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, from.failed)
	require.Empty(t, to.failed)
}

func TestNewQueue(t *testing.T) {
	_, err := bridge.NewQueue(4, 128, make([]byte, 4*128), make([]byte, 4*bridge.HeaderBytes-1), make([]byte, 8),
		make([]byte, 8))
	require.Error(t, err)
	_, err = bridge.NewQueue(4, 128, make([]byte, 4*128), make([]byte, 4*bridge.HeaderBytes), make([]byte, 7),
		make([]byte, 8))
	require.Error(t, err)
}

// BenchmarkSlots measures one lane, for several sizes of slots.
func BenchmarkSlots(b *testing.B) {
	for _, network := range []string{"unix", "tcp"} {
		for _, size := range []int{1 << 10, 128 << 10, 512 << 10} {
			b.Run(fmt.Sprint(network, "/", size), func(b *testing.B) {
				from, to := sides(b, network, size)
				b.SetBytes(int64(size))
				done := make(chan bool)
				go func() {
					for n := range uint64(b.N) {
						take(&to.queues[0], n, nil)
					}
					close(done)
				}()
				for n := range uint64(b.N) {
					publish(&from.queues[0], n, transport.Stamp{}, size, nil)
				}
				<-done
			})
		}
	}
}
