package verbs

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
)

var few = transport.Limits{SlotBytes: 500, Slots: 4}

func pairOn(t *testing.T, f *rdma.Fabric, o Options) (*sendConn, *recvConn) {
	o.Verbs = f
	expect(f, o)
	s, r := conntest.Pair(t, few, func(cfg transport.Config) transport.Transport { return New(cfg, o) })
	return s.(*sendConn), r.(*recvConn)
}

// ways are the ways in which a rail may fail.
var ways = map[string]func(f *rdma.Fabric, port string){
	"its port says so": func(f *rdma.Fabric, port string) { f.SetLink(port, false) },
	"nothing is acknowledged": func(f *rdma.Fabric, port string) {
		f.Set(func() { f.Dead[port] = true })
	},
	"slots arrive, but are not acknowledged": func(f *rdma.Fabric, port string) {
		f.Set(func() { f.Mute[port] = true })
		time.Sleep(time.Millisecond) // for slots to do so
		f.Set(func() { f.Dead[port] = true })
	},
}

// However a rail fails in mid-run, all slots arrive once and in order as long as there is another
// rail, in use or standing by.
func TestRailFails(t *testing.T) {
	for name, way := range ways {
		for port, rails := range map[string]int{"fx0:1": 1, "fx1:1": 3} {
			t.Run(name+" on "+port, func(t *testing.T) {
				f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
				s, r := pairOn(t, f, Options{Rails: rails})
				require.Equal(t, min(rails+1, 3), len(s.rails))
				sent, received := flow(s, r, 3000, func(i int) {
					if i == 1000 {
						way(f, port)
					}
				})
				require.NoError(t, errors.Join(sent, received))
				require.Equal(t, len(s.rails)-1, up(s.rails))
				require.Equal(t, len(s.rails)-1, up(r.rails))
			})
		}
	}
}

func up(rails []*rail) (n int) {
	for _, r := range rails {
		if r.phase() == railUp {
			n++
		}
	}
	return n
}

// A rail whose port comes back is used again, each one in turn, however few are left meanwhile. It gets a new queue
// pair at both ends.
func TestRailComesBack(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
	s, r := pairOn(t, f, Options{Rails: 2})
	before := s.rails[0].qp.Num
	at := 0
	send := func() {
		sent, received := flowFrom(s, r, at, at+40)
		require.NoError(t, errors.Join(sent, received))
		at += 40
	}
	for i := range 6 {
		port := fmt.Sprintf("fx%d:1", i%3)
		f.SetLink(port, false)
		require.Eventually(t, func() bool { return up(s.rails) == 2 && up(r.rails) == 2 }, 20*time.Second, time.Millisecond)
		send()
		f.SetLink(port, true)
		require.Eventually(t, func() bool { return up(s.rails) == 3 && up(r.rails) == 3 }, 20*time.Second, time.Millisecond)
		send()
	}
	require.NotEqual(t, before, s.rails[0].qp.Num)
	for _, x := range s.rails[:2] {
		require.Equal(t, x.peer.QPN, r.rails[x.index].qp.Num)
	}
	require.NoError(t, s.link())
}

// A rail over which no write comes through is not used again until one does, though its port is up.
func TestRailIsProved(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	s, r := pairOn(t, f, Options{})
	f.Set(func() { f.Dead["fx0:1"] = true })
	sent, received := flow(s, r, 20, nil)
	require.NoError(t, errors.Join(sent, received))
	x := s.rails[0]
	require.Eventually(t, func() bool { // the rail was tried in vain
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.wait > 2*firstWait && x.phase() == railDown
	}, 20*time.Second, time.Millisecond)
	f.Set(func() { f.Dead["fx0:1"] = false })
	require.Eventually(t, func() bool { return up(s.rails) == 2 && up(r.rails) == 2 }, 20*time.Second, time.Millisecond)
	sent, received = flowFrom(s, r, 20, 60)
	require.NoError(t, errors.Join(sent, received))
}

// Slots that came over a rail count even if nobody has looked at them when the rail fails. The receiver waits until its
// dead queue pair has given back all receives, but not for ever. Completions that come later are ignored.
func TestMendKeepsArrivals(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	s, r := pairOn(t, f, Options{})
	require.NoError(t, r.enter()) // nobody looks
	require.NoError(t, sendAll(s, 0, 1, nil))
	require.Eventually(t, func() bool { return s.Free() == few.Slots && s.slots[0].rail == nil }, 20*time.Second,
		time.Millisecond)
	f.SetLink("fx0:1", false)
	x := r.rails[0]
	require.Eventually(t, func() bool { return s.rails[0].phase() == railDown && x.phase() == railDown }, 20*time.Second,
		time.Millisecond)
	f.SetLink("fx0:1", true)
	require.Eventually(t, func() bool { return x.phase() == railCalled }, 20*time.Second, time.Millisecond)
	x.posted = 3 // sends that the queue pair never gives back
	old := x.qp.Num
	r.rejoin(x)
	require.Equal(t, railCalled, x.phase(), "it has not given back what it was to receive")
	x.since.Add(-int64(drainTime))
	r.progress()
	require.Equal(t, railTried, x.phase())
	require.Zero(t, x.posted)
	f.Set(func() { f.Flushed(x.cq, old) })
	r.progress()
	require.Contains(t, []phase{railTried, railUp}, x.phase())
	r.leave()
	require.NoError(t, receiveAll(r, 0, 1))
	require.Eventually(t, func() bool { return up(s.rails) == 2 && up(r.rails) == 2 }, 20*time.Second, time.Millisecond)
	sent, received := flowFrom(s, r, 1, 40)
	require.NoError(t, errors.Join(sent, received))
	require.Equal(t, 2, up(r.rails))
}

// Ports go down and come back at any moments, each once after the other, and all slots arrive in order.
func TestRailsFlap(t *testing.T) {
	for seed := range uint64(tier.Count(1, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
			s, r := pairOn(t, f, Options{Rails: 3})
			down := -1
			sent, received := flow(s, r, 1500, func(i int) {
				if rng.IntN(25) > 0 {
					return
				}
				if down >= 0 {
					f.SetLink(fmt.Sprintf("fx%d:1", down), true)
					down = -1
				} else if up(s.rails) == 3 && up(r.rails) == 3 || rng.IntN(3) == 0 && up(s.rails) > 1 && up(r.rails) > 1 {
					down = rng.IntN(3)
					f.SetLink(fmt.Sprintf("fx%d:1", down), false)
				}
			})
			require.NoError(t, errors.Join(sent, received))
			if down >= 0 {
				f.SetLink(fmt.Sprintf("fx%d:1", down), true)
			}
			require.Eventually(t, func() bool { return up(s.rails) == 3 && up(r.rails) == 3 }, 20*time.Second, time.Millisecond)
		})
	}
}

// The same with two of three rails, at any moments.
func TestRailsFailAnyTime(t *testing.T) {
	failAnyTime(t, 1, func(t *testing.T, f *rdma.Fabric) (transport.SendConn, transport.RecvConn) {
		return pairOn(t, f, Options{Rails: 3})
	})
}

// failAnyTime makes two of three rails fail, in any way and at any moments, while slots flow on connections
// that pair makes. stream selects a sequence of random draws.
func failAnyTime(t *testing.T, stream uint64,
	pair func(t *testing.T, f *rdma.Fabric) (transport.SendConn, transport.RecvConn)) {
	var names []string
	for name := range ways {
		names = append(names, name)
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, stream))
			f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
			s, r := pair(t, f)
			at := map[int]string{}
			for _, i := range rng.Perm(3)[:2] {
				at[rng.IntN(400)] = fmt.Sprintf("fx%d:1", i)
			}
			sent, received := flow(s, r, 500, func(i int) {
				if port := at[i]; port != "" {
					ways[names[rng.IntN(len(names))]](f, port)
				}
			})
			require.NoError(t, errors.Join(sent, received))
		})
	}
}

// A sender need not call the connection again after its last slot: the slots go over another rail
// all the same.
func TestIdleSender(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	s, r := pairOn(t, f, Options{})
	f.Set(func() { f.Cut["fx0:1"], f.Cut["fx1:1"] = true, true })
	require.NoError(t, sendAll(s, 0, 4, nil))
	f.Set(func() { f.Cut["fx1:1"] = false })
	require.Equal(t, 1, f.Expire())
	require.NoError(t, receiveAll(r, 0, 4))
}

// Credits that a failed rail has lost come over the line.
func TestLostCredits(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	s, r := pairOn(t, f, Options{})
	require.NoError(t, sendAll(s, 0, 6, nil)) // as many as the ring has
	f.Set(func() { f.Cut["fx0:1"], f.Cut["fx1:1"] = true, true })
	require.NoError(t, receiveAll(r, 0, 6)) // gives credits
	f.Set(func() { f.Cut["fx1:1"] = false })
	f.Expire()
	sent, received := flowFrom(s, r, 6, 40)
	require.NoError(t, errors.Join(sent, received))
}

func flowFrom(s transport.SendConn, r transport.RecvConn, from, to int) (sent, received error) {
	done := make(chan error)
	go func() { done <- receiveAll(r, from, to) }()
	sent = sendAll(s, from, to, nil)
	return sent, <-done
}

// While the only port is down its slots wait; when it comes back they go on.
func TestOnlyPortComesBack(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	sent, received := flow(s, r, 100, func(i int) {
		if i == 50 {
			f.SetLink("fx0:1", false)
			time.AfterFunc(5*time.Millisecond, func() { f.SetLink("fx0:1", true) })
		}
	})
	require.NoError(t, errors.Join(sent, received))
	require.Equal(t, 1, up(s.rails))
}

// If the only port does not come back within the time of all retries, the connection ends.
func TestOnlyPortStaysDown(t *testing.T) {
	require.Equal(t, 34359738368*time.Nanosecond, (&Options{Timeout: 20, Retries: 7}).retryTime())
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{Timeout: 1})
	f.SetLink("fx0:1", false)
	sent, received := flow(s, r, 100, nil)
	var link *LinkError
	for _, err := range []error{sent, received} {
		require.ErrorAs(t, err, &link)
		require.Equal(t, "port is down", link.Reason)
	}
}

// When the last rail fails both ends return an error, also one that only waits.
func TestLastRail(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	waiting := make(chan error)
	go func() { waiting <- receiveAll(r, 0, 1) }()
	f.Set(func() { f.Cut["fx0:1"] = true })
	require.NoError(t, sendAll(s, 0, 1, nil))
	f.Expire()
	err := <-waiting
	var link *LinkError
	require.ErrorAs(t, err, &link)
	require.Equal(t, LinkError{Port: "fx0:1", Peer: "fx0:1", Remote: true, Reason: "transport retry counter exceeded"},
		*link)
	require.ErrorContains(t, err, "as the peer says, transport retry counter exceeded; look at the ports")
	err = sendAll(s, 1, 9, nil)
	require.ErrorAs(t, err, &link)
	require.False(t, link.Remote)
}

// The wait for a peer that does not answer about a failed rail ends.
func TestSilentPeer(t *testing.T) {
	s, _ := pairOn(t, rdma.NewFabric(t, "fx0", "fx1"), Options{})
	r := s.rails[0]
	s.fail(r, "test", false)
	r.tryAt.Store(math.MaxInt64)
	require.Eventually(t, func() bool { return r.phase() == railDown }, 20*time.Second, time.Millisecond)
	require.NoError(t, s.link(), "there is another rail")
	r.life.Store(uint32(railFailing)) // as if the answer had not come
	require.NoError(t, s.link())
	r.since.Add(-int64(answerTime))
	var link *LinkError
	require.ErrorAs(t, s.link(), &link)
}

// The error of a connection whose peer's process is gone is the death, not the failed link.
func TestDeathBeforeLink(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	r.control.conn.Close() // as the kernel does when a process dies
	f.Set(func() { f.Cut["fx0:1"] = true })
	err := sendAll(s, 0, 9, nil)
	require.ErrorContains(t, err, "the peer has gone")
	var link *LinkError
	require.False(t, errors.As(err, &link))
}

// A slot whose header does not fit is an error, now and later.
func TestMalformedSlot(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	b, err := s.Reserve(8)
	require.NoError(t, err)
	require.Equal(t, 8, b.Len())
	s.slot(0).length = headerLen + 8
	copy(s.area.bytes[s.shape.at(0):], "this is no header of a slot, is it?")
	require.True(t, s.write(0))
	for range 2 {
		_, _, err = r.Next()
		require.ErrorContains(t, err, "malformed slot 0: a write of 40 bytes")
	}
}

// Slots that were published before Close arrive, also where the peer's device is late to
// acknowledge them.
func TestCloseLingers(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	f.Set(func() { f.Cut["fx0:1"] = true })
	require.NoError(t, sendAll(s, 0, 4, nil))
	received := make(chan error)
	go func() { received <- receiveAll(r, 0, 4) }()
	require.NoError(t, s.Close())
	require.Eventually(t, r.bye.Load, 20*time.Second, time.Millisecond)
	select {
	case <-s.done:
		t.Fatal("the sender has given up")
	case err := <-received:
		t.Fatal("the receiver has given up: ", err)
	case <-time.After(30 * time.Millisecond):
	}
	f.Set(func() { f.Cut["fx0:1"] = false })
	require.NoError(t, <-received)
	_, _, err := r.Next()
	require.ErrorIs(t, err, transport.ErrClosed)
}

// Close waits for a peer as long as Config.Linger, and then returns what is lost.
func TestCloseSaysWhatIsLost(t *testing.T) {
	for name, x := range map[string]struct {
		linger time.Duration
		lost   bool
	}{"it comes back": {time.Hour, false}, "it does not": {50 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := rdma.NewFabric(t, "fx0")
			o := Options{Verbs: f}
			expect(f, o)
			end, _ := conntest.Pair(t, few, func(cfg transport.Config) transport.Transport {
				cfg.Linger = x.linger
				return New(cfg, o)
			})
			s := end.(*sendConn)
			f.Set(func() { f.Cut["fx0:1"] = true })
			require.NoError(t, sendAll(s, 0, 4, nil))
			closed := make(chan error, 1)
			go func() { closed <- s.t.Close() }()
			if x.lost {
				require.ErrorContains(t, <-closed, "bytes that were sent to it are lost")
				return
			}
			select {
			case err := <-closed:
				t.Fatal("Close has given up: ", err)
			case <-time.After(ends.LingerTime * 5 / 4):
			}
			f.Set(func() { f.Cut["fx0:1"] = false })
			require.NoError(t, <-closed)
		})
	}
}

// A slot that comes a second time, after it was released, is not taken for a later one.
func TestTwice(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	s, r := pairOn(t, f, Options{})
	f.Set(func() { f.Mute["fx0:1"] = true })
	require.NoError(t, sendAll(s, 0, 1, nil))
	require.NoError(t, receiveAll(r, 0, 1))
	f.Set(func() { f.Dead["fx0:1"] = true })
	require.Eventually(t, func() bool { // the slot was sent again
		require.NoError(t, s.enter())
		defer s.leave()
		return s.slots[0].rail == nil
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, sendAll(s, 1, 6, nil))
	require.NoError(t, receiveAll(r, 1, 6))
	require.Zero(t, *r.arrived(6))
}

// A completion for a slot that the sender cannot have sent yet is not taken for a slot.
func TestFromTheFuture(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	require.NoError(t, s.enter())
	require.NoError(t, s.rails[0].write(0, uint32(r.shape.ring), piece{byValue: true}, piece{}))
	s.leave()
	require.Zero(t, r.Arrived())
	for i := range r.wrote {
		require.Zero(t, r.wrote[i])
	}
	sent, received := flow(s, r, 20, nil)
	require.NoError(t, errors.Join(sent, received))
}

// The memory of a slot is not reused before its write was acknowledged, though the receiver has
// released the slot.
func TestNotAcknowledged(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := pairOn(t, f, Options{})
	f.Set(func() { f.Mute["fx0:1"] = true })
	received := make(chan error)
	go func() { received <- receiveAll(r, 0, 7) }()
	require.NoError(t, sendAll(s, 0, s.shape.ring, nil))
	guard := s.t.cfg.Guard
	guard.SetDeadline(fifo.Now() + int64(30*time.Millisecond))
	_, err := s.Reserve(1)
	require.ErrorIs(t, err, fifo.ErrDeadline)
	require.NotZero(t, s.credit)
	guard.SetDeadline(0)
	f.Set(func() { f.Mute["fx0:1"] = false })
	require.NoError(t, sendAll(s, s.shape.ring, 7, nil))
	require.NoError(t, <-received)
}

// Slots that arrived before the sender left are received, however far behind others the slots that
// were sent again lie in a completion queue.
func TestLastWordsBehindOthers(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	const messages = 64
	l := transport.Limits{SlotBytes: 500, Slots: messages}
	send, recv := conntest.Pair(t, l,
		func(cfg transport.Config) transport.Transport { return New(cfg, Options{Verbs: f, Rails: 2}) })
	s, r := send.(*sendConn), recv.(*recvConn)
	require.NoError(t, r.enter()) // nobody looks at what arrives
	f.Set(func() { f.Dead["fx0:1"] = true })
	require.NoError(t, sendAll(s, 0, messages, nil))
	require.Eventually(t, func() bool {
		s.Free()
		return s.rails[0].phase() != railUp && s.rails[0].phase() != railFailing
	}, tier.Soon(5*time.Second), time.Millisecond)
	require.NoError(t, s.Close())
	<-s.done
	<-r.control.done
	r.leave()
	require.NoError(t, receiveAll(r, 0, messages))
}

// A probe that the card refuses is an error, so that the rail is given up again.
func TestProbeRefused(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	full := errors.New("no room for work")
	r := &rail{port: &port{dev: &device{verbs: &noSends{f, full}}}, qp: new(ibverbs.QP)}
	require.ErrorIs(t, r.probe(), full)
	require.Zero(t, r.posted)
}

// noSends is a fabric whose cards take no sends.
type noSends struct {
	*rdma.Fabric
	why error
}

func (f *noSends) PostSend(*ibverbs.QP, *ibverbs.SendWR) error { return f.why }
