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

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/socket"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A side is a rank, and its queues as its kernel uses them.
type side struct {
	*conntest.Rank[transport.Transport]
	bridge *bridge.Bridge
	kernel []kernel
	failed chan error
}

const lanes, slots = 3, 4

// A kernel sees a queue's slots, also those that the bridge does not touch.
type kernel struct {
	*bridge.Queue
	slots []byte
}

// A way is how the slots of queues are carried.
type way struct {
	open   func(transport.Config) transport.Transport
	memory func(testing.TB, int) transporttest.Slots // of placed slots, nil for others
}

func card(cfg transport.Config) transport.Transport { return transporttest.NewCard(cfg, nil) }

func network(name string) way {
	return way{open: func(cfg transport.Config) transport.Transport {
		return socket.New(cfg, socket.Options{Network: name, IfName: "lo"})
	}}
}

var ways = map[string]way{
	"inproc": {open: func(cfg transport.Config) transport.Transport { return inproc.New(cfg) }},
	"unix":   network("unix"), "tcp": network("tcp"),
	"placed": {card, transporttest.HostSlots}, "placed in a file": {card, transporttest.FileSlots},
}

// apart makes two ranks without connections.
func apart(t testing.TB, name string, slotBytes int) (from, to *side) {
	t.Helper()
	w := ways[name]
	both := make([]*side, 2)
	for r, rank := range conntest.Ranks(t, 2, transport.Limits{SlotBytes: slotBytes, Slots: slots}, w.open) {
		s := &side{Rank: rank, failed: make(chan error, 2*lanes)}
		var m transporttest.Slots
		if w.memory != nil {
			m = w.memory(t, lanes*slots*slotBytes)
			_, err := rank.Transport.(transport.Placer).Register(m.Memory)
			require.NoError(t, err)
		}
		for i := range lanes {
			bytes, headers := slots*slotBytes, make([]byte, slots*bridge.HeaderBytes)
			k := kernel{slots: make([]byte, bytes)}
			q, err := bridge.NewQueue(slots, slotBytes, k.slots, headers, make([]byte, 128), make([]byte, 128))
			if w.memory != nil {
				k.slots = m.View[i*bytes:][:bytes]
				q, err = bridge.NewPlaced(slots, slotBytes, m.Slice(i*bytes, bytes), headers, make([]byte, 128),
					make([]byte, 128))
			}
			require.NoError(t, err)
			k.Queue = &q
			s.kernel = append(s.kernel, k)
		}
		s.bridge = bridge.New(bridge.Config{Guard: rank.Config.Guard, Fail: func(peer int, phase string, err error) {
			s.failed <- fmt.Errorf("%s %d: %w", phase, peer, err)
		}})
		t.Cleanup(func() { require.NoError(t, s.bridge.Close()) })
		both[r] = s
	}
	return both[0], both[1]
}

func (s *side) queues() []bridge.Queue {
	var list []bridge.Queue
	for _, k := range s.kernel {
		list = append(list, *k.Queue)
	}
	return list
}

func (s *side) dialPlaced(to *side, lane int) (transport.PlacedSendConn, error) {
	return s.Transport.(transport.Placer).DialPlaced(to.Config.Self, to.Addr, s.kernel[lane].Placed)
}

func (s *side) acceptPlaced(from *side, lane int) (transport.PlacedRecvConn, error) {
	return s.Transport.(transport.Placer).AcceptPlaced(from.Config.Self, s.kernel[lane].Placed)
}

// sides makes two ranks, and the connections of all lanes.
func sides(t testing.TB, name string, slotBytes int) (from, to *side) {
	t.Helper()
	from, to = apart(t, name, slotBytes)
	if ways[name].memory == nil {
		from.bridge.Out(1, from.queues(), func() (transport.SendConn, error) { return from.Dial(to.Rank) })
		to.bridge.In(0, to.queues(), func() (transport.RecvConn, error) { return to.Accept(from.Rank) })
		return from, to
	}
	from.bridge.OutPlaced(1, from.queues(), func(lane int) (transport.PlacedSendConn, error) {
		return from.dialPlaced(to, lane)
	})
	to.bridge.InPlaced(0, to.queues(), func(lane int) (transport.PlacedRecvConn, error) {
		return to.acceptPlaced(from, lane)
	})
	return from, to
}

// until is how a kernel waits.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

func (k kernel) slot(n uint64) []byte   { return k.slots[int(n%slots)*k.SlotBytes:][:k.SlotBytes] }
func (k kernel) header(n uint64) []byte { return k.Headers[n%slots*bridge.HeaderBytes:] }

// publish sends a slot as soon as it is the kernel's.
func (k kernel) publish(n uint64, length int, seed byte) {
	until(func() bool { return int64(n-k.Seen.Load()) < slots })
	for i := range k.slot(n)[:length] {
		k.slot(n)[i] = byte(i) + seed
	}
	k.post(n, length, seed)
}

// post sends a slot of any bytes.
func (k kernel) post(n uint64, length int, seed byte) {
	h := k.header(n)
	binary.LittleEndian.PutUint64(h, uint64(seed))
	binary.LittleEndian.PutUint64(h[8:], n)
	binary.LittleEndian.PutUint64(h[16:], uint64(length))
	k.Posted.Store(n + 1)
}

// take receives a slot, and gives it back.
func (k kernel) take(n uint64) {
	until(func() bool { return k.Seen.Load() > n })
	k.Posted.Store(n + 1)
}

// wrong is how a slot that has arrived differs from the one published, nil if it does not.
func (k kernel) wrong(n uint64, length int, seed byte) error {
	h := k.header(n)
	good := binary.LittleEndian.Uint64(h) == uint64(seed) && binary.LittleEndian.Uint64(h[8:]) == n &&
		binary.LittleEndian.Uint64(h[16:]) == uint64(length)
	for i := range k.slot(n)[:length] {
		good = good && k.slot(n)[i] == byte(i)+seed
	}
	if !good {
		return fmt.Errorf("slot %d of %d bytes: header %x, data %x", n, length, h[:24], k.slot(n)[:length])
	}
	return nil
}

// Slots come as they were sent, each on its lane, with stamp and length, and are the sender's again when the receiver
// has released them, which may hold all of them.
func TestSlots(t *testing.T) {
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			const count, bytes = 300, 4096
			from, to := sides(t, name, bytes)
			var wg sync.WaitGroup
			for l := range lanes {
				length := func(n uint64) int { return int(n*37+uint64(l)) % (bytes + 1) }
				wg.Go(func() {
					for n := range uint64(count) {
						from.kernel[l].publish(n, length(n), byte(l)+byte(n))
					}
					until(func() bool { return from.kernel[l].Seen.Load() == count }) // nothing more is posted
				})
				wg.Go(func() {
					held := uint64(l) // slots that this kernel keeps for a while
					k := to.kernel[l]
					for n := range uint64(count) {
						until(func() bool { return k.Seen.Load() > n })
						if n >= held {
							if err := k.wrong(n-held, length(n-held), byte(l)+byte(n-held)); err != nil {
								t.Error(err)
							}
							k.Posted.Store(n - held + 1)
						}
					}
					k.Posted.Store(count)
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
		from.kernel[0].publish(n, 10, 0)
		to.kernel[0].take(n)
		require.Less(t, time.Since(start), tier.Soon(5*time.Second)) // real time
	}
}

// A peer that says goodbye is not missed.
func TestGoodbye(t *testing.T) {
	from, to := sides(t, "tcp", 4096)
	for l := range lanes {
		from.kernel[l].publish(0, 10, 0)
		to.kernel[l].take(0)
	}
	require.NoError(t, from.bridge.Close())
	require.NoError(t, from.Transport.Close())
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, to.failed)
}

// Fail hears of a connection that breaks, with the peer.
func TestBroken(t *testing.T) {
	from, to := sides(t, "unix", 4096)
	from.kernel[0].publish(0, 10, 0)
	to.kernel[0].take(0)
	to.Config.Guard.Abort(errors.New("dies without goodbye"))
	require.NoError(t, to.Transport.Close())
	for n := uint64(1); len(from.failed) == 0; n++ {
		if int64(n-from.kernel[0].Seen.Load()) < slots {
			from.kernel[0].publish(n, 10, 0)
		}
		time.Sleep(time.Millisecond)
	}
	require.ErrorContains(t, <-from.failed, "send 1: ")
}

// A kernel's length that is more than its slot is an error.
func TestLength(t *testing.T) {
	from, _ := sides(t, "inproc", 128)
	from.kernel[1].post(0, 129, 0)
	require.ErrorContains(t, <-from.failed, "129 bytes of 128")
}

// The end of the Guard ends everything without a call of Fail.
func TestAborted(t *testing.T) {
	from, to := sides(t, "unix", 4096)
	from.kernel[0].publish(0, 10, 0)
	to.kernel[0].take(0)
	from.Config.Guard.Abort(errors.New("enough"))
	to.Config.Guard.Abort(errors.New("enough"))
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, from.failed)
	require.Empty(t, to.failed)
}

// A queue has memory for all of its slots, headers and counters.
func TestNewQueue(t *testing.T) {
	for _, short := range [][4]int{{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}} {
		memory := make([]byte, 4*128-short[0])
		headers := make([]byte, 4*bridge.HeaderBytes-short[1])
		posted, seen := make([]byte, 8-short[2]), make([]byte, 8-short[3])
		_, err := bridge.NewQueue(4, 128, memory, headers, posted, seen)
		require.Error(t, err, short)
		_, err = bridge.NewPlaced(4, 128, mem.Host(memory), headers, posted, seen)
		require.Error(t, err, short)
	}
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
						to.kernel[0].take(n)
					}
					close(done)
				}()
				for n := range uint64(b.N) {
					until(func() bool { return int64(n-from.kernel[0].Seen.Load()) < slots })
					from.kernel[0].post(n, size, 0)
				}
				<-done
			})
		}
	}
}
