//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// Kinds of slots.
const (
	ofHost   = "host"
	ofGPU    = "GPU"     // data that the plugin receives there are not seen before a flush
	ofDMABuf = "dma-buf" // at addresses that are not mapped in this process
)

// memoryOf makes slots of a kind.
func memoryOf(kind string) func(testing.TB, int) transporttest.Slots {
	switch kind {
	case ofHost:
		return transporttest.HostSlots
	case ofDMABuf:
		return transporttest.FileSlots
	}
	return func(tb testing.TB, n int) transporttest.Slots {
		s := transporttest.HostSlots(tb, n)
		s.Region = mem.Device(0, s.Ptr(), n)
		return s
	}
}

// A placedPair is a placed connection between two ranks.
type placedPair struct {
	ranks    []*conntest.Rank[*Transport]
	from, to *transporttest.PlacedEnd
	release  [2]func() error
}

// newPlacedPair registers more memory than the slots, which lie in the middle.
func newPlacedPair(t *testing.T, l *Library, kind string, limits transport.Limits,
	options ...func(*transport.Memory)) *placedPair {
	t.Helper()
	const before, after = 96, 32
	p := &placedPair{ranks: two(t, l, limits), from: &transporttest.PlacedEnd{Limits: limits},
		to: &transporttest.PlacedEnd{Limits: limits}}
	n := limits.SlotBytes * limits.Slots
	for i, r := range p.ranks {
		m := memoryOf(kind)(t, before+n+after)
		for _, o := range options {
			o(&m.Memory)
		}
		var err error
		p.release[i], err = r.Transport.Register(m.Memory)
		require.NoError(t, err)
		m.View, m.Region = m.View[before:][:n], m.Slice(before, n)
		[]*transporttest.PlacedEnd{p.from, p.to}[i].Slots = m
	}
	return p
}

func (p *placedPair) connect() (err error) {
	p.from.Send, err = p.ranks[0].Transport.DialPlaced(p.ranks[1].Config.Self, p.ranks[1].Addr, p.from.Region)
	if err != nil {
		return err
	}
	p.to.Recv, err = p.ranks[1].Transport.AcceptPlaced(p.ranks[0].Config.Self, p.to.Region)
	return err
}

// get receives a message.
func (p *placedPair) get(message, n int) error {
	if err := p.to.Get(message, n); err != nil {
		return err
	}
	return p.to.Recv.Release()
}

// exchange sends messages as soon as there are slots for them. Its error joins the errors of both ends.
func (p *placedPair) exchange(messages int) error {
	slot := p.from.Limits.SlotBytes
	size := func(i int) int { return []int{slot, 0, 1, slot / 3}[i%4] }
	received := make(chan error)
	go func() {
		for i := range messages {
			if err := p.get(i, size(i)); err != nil {
				p.to.Recv.Close() // ends the sender, unless the plugin has done so
				received <- fmt.Errorf("receive message %d: %w", i, err)
				return
			}
		}
		received <- nil
	}()
	for i := range messages {
		for p.from.Send.Free() == 0 {
			runtime.Gosched()
		}
		if err := p.from.Put(i, size(i)); err != nil {
			p.from.Send.Close()
			return errors.Join(fmt.Errorf("send message %d: %w", i, err), <-received)
		}
	}
	return <-received
}

// Every version carries placed slots, in every kind of memory; so does a plugin that is slow.
func TestPlaced(t *testing.T) {
	type test struct {
		version, delay int
		kinds          []string
	}
	for _, c := range tier.Some(2, []test{
		{11, 0, []string{ofHost, ofGPU, ofDMABuf}},
		{11, 2, []string{ofDMABuf}},
		{10, 0, []string{ofDMABuf}},
		{9, 0, []string{ofDMABuf}},
		{8, 0, []string{ofGPU}},
		{8, 2, []string{ofDMABuf}},
	}) {
		t.Run(fmt.Sprintf("v%d delay %d", c.version, c.delay), func(t *testing.T) {
			f := newFake(t, version(c.version))
			f.set(t, "", 0, c.delay)
			f.call(t, "device", 1, 100, hostMemory|deviceMemory|dmaBuf, 0, 0)
			l := f.load(t)
			for _, kind := range c.kinds {
				t.Run(kind, func(t *testing.T) { transporttest.Placed(t, open(l), memoryOf(kind)) })
				require.Equal(t, kind == ofDMABuf, f.call(t, "dmabufs") > 0, kind)
			}
			f.clean(t, contexts(c.version))
		})
	}
}

// A queue may be deeper than the number of requests, flushes included, that a plugin takes at a time.
func TestPlacedDepth(t *testing.T) {
	f := newFake(t, version(11))
	f.set(t, "", 0, 3)
	f.call(t, "device", 1, 100, hostMemory|dmaBuf, 0, 0)
	p := newPlacedPair(t, f.load(t), ofDMABuf, transport.Limits{SlotBytes: 3000, Slots: 40})
	require.NoError(t, p.connect())
	require.NoError(t, p.exchange(200))
	require.Zero(t, f.call(t, "faults"))
}

// A receiver that is placed has posted its receives before the sender has anything.
func TestPlacedPosts(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 100, hostMemory|deviceMemory|dmaBuf, 0, 0)
	p := newPlacedPair(t, f.load(t), ofGPU, transport.Limits{SlotBytes: 300, Slots: 4})
	f.set(t, "irecv", 4, 0) // the first of payloads
	require.ErrorContains(t, p.connect(),
		"plugin: accept rank 0, placed: network plugin libnccl-net-test.so (v11): irecv: ")
}

// GPUs that see writes in order need no flush, unless the plugin asks for one.
func TestPlacedFlush(t *testing.T) {
	for _, mode := range []uintptr{1, 2} {
		f := newFake(t, version(11))
		f.call(t, "device", 1, 100, hostMemory|deviceMemory, 0, 0)
		f.call(t, "flush", mode)
		p := newPlacedPair(t, f.load(t), ofGPU, transport.Limits{SlotBytes: 100, Slots: 4},
			func(m *transport.Memory) { m.Ordered = true })
		require.NoError(t, p.connect())
		require.NoError(t, p.exchange(20))
		require.Zero(t, f.call(t, "faults"))
	}
}

// Slots that were published before the peer has accepted, and before the sender closed, arrive.
// A slot that is not free is not published.
func TestPlacedOrder(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 100, hostMemory|dmaBuf, 0, 0)
	p := newPlacedPair(t, f.load(t), ofDMABuf, transport.Limits{SlotBytes: 100, Slots: 3})
	var err error
	p.from.Send, err = p.ranks[0].Transport.DialPlaced(p.ranks[1].Config.Self, p.ranks[1].Addr, p.from.Region)
	require.NoError(t, err)
	for i := range 3 {
		require.Equal(t, 3-i, p.from.Send.Free())
		require.NoError(t, p.from.Put(i, 100))
	}
	require.Zero(t, p.from.Send.Free())
	_, err = p.from.Send.Reserve(100)
	require.NoError(t, err, "it does not wait")
	require.EqualError(t, p.from.Send.Publish(transport.Stamp{}), "plugin: publish a slot that is not free")
	_, err = p.from.Send.Reserve(101)
	require.EqualError(t, err, "plugin: reserve 101 bytes of a slot of 100")
	p.to.Recv, err = p.ranks[1].Transport.AcceptPlaced(p.ranks[0].Config.Self, p.to.Region)
	require.NoError(t, err)
	require.EqualError(t, p.to.Recv.Release(), "plugin: release without next")
	for i := range 3 {
		require.NoError(t, p.get(i, 100))
	}
	require.NoError(t, p.from.Put(3, 7))
	require.NoError(t, p.from.Put(4, 0))
	require.NoError(t, p.from.Send.Close())
	require.NoError(t, p.get(3, 7))
	require.NoError(t, p.get(4, 0))
	_, _, err = p.to.Recv.Next()
	require.ErrorIs(t, err, transport.ErrClosed)
}

// A caller that has one slot and waits for a second has the plugin polled, however seldom he looks.
func TestArrivedOfMore(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 100, hostMemory, 0, 0)
	p := newPlacedPair(t, f.load(t), ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
	require.NoError(t, p.connect())
	f.set(t, "", 0, 400) // the plugin is asked so often for each message, which takes longer than yieldTime
	for i := range 3 {
		require.NoError(t, p.from.Put(i, 100))
	}
	require.Eventually(t, func() bool {
		_ = p.from.Send.Free()
		return p.to.Recv.Arrived() == 3
	}, 20*time.Second, 2*time.Millisecond)
}

// One end that is placed and one that is not get an error at both ends.
func TestOddPair(t *testing.T) {
	for _, placed := range []bool{true, false} {
		p := newPlacedPair(t, newFake(t, version(11)).load(t), ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
		var send transport.SendConn
		var err, accepting error
		want := "plugin: accept rank 0: the sending end of the connection is placed and the receiving one is not; do all " +
			"ranks have the same settings?"
		if placed {
			send, err = p.ranks[0].Transport.DialPlaced(p.ranks[1].Config.Self, p.ranks[1].Addr, p.from.Region)
			require.NoError(t, err)
			_, accepting = p.ranks[1].Accept(p.ranks[0])
		} else {
			send, err = p.ranks[0].Dial(p.ranks[1])
			require.NoError(t, err)
			_, accepting = p.ranks[1].Transport.AcceptPlaced(p.ranks[0].Config.Self, p.to.Region)
			want = "plugin: accept rank 0, placed: the sending end of the connection is not placed and the receiving one is; " +
				"do all ranks have the same settings?"
		}
		require.EqualError(t, accepting, want)
		<-send.(*sendConn).ctl.parted
		require.ErrorContains(t, publish(send), "the peer has given up: the sending end of the connection is ")
	}
}

func publish(c transport.SendConn) error {
	if _, err := c.Reserve(8); err != nil {
		return err
	}
	return c.Publish(transport.Stamp{})
}

// Memory that cannot be registered is an error of Register, and memory that was not registered an
// error of DialPlaced.
func TestRegister(t *testing.T) {
	limits := transport.Limits{SlotBytes: 100, Slots: 4}
	none := func() (int, uint64, error) { return -1, 0, errors.New("no more files") }
	exported, gpu := memoryOf(ofDMABuf)(t, 400).Memory, memoryOf(ofGPU)(t, 400).Memory
	const host, cuda = hostMemory, deviceMemory
	for _, c := range []struct {
		name    string
		memory  uintptr
		m       transport.Memory
		defines []string
		fails   string
		want    string
	}{
		{"CUDA", host | cuda, gpu, nil, "", ""},
		{"dma-buf that is not asked for", host | cuda, transport.Memory{Region: gpu.Region, DMABuf: none}, nil, "", ""},
		{"CUDA instead of a dma-buf", host | cuda | dmaBuf, transport.Memory{Region: gpu.Region, DMABuf: none}, nil, "", ""},
		{"no flush, and none needed", host | cuda, transport.Memory{Region: gpu.Region, Ordered: true},
			[]string{"WITHOUT_FLUSH"}, "", ""},
		{"none", host, exported, nil, "",
			"getProperties: device 0 test0 takes no GPU memory (it says neither NCCL_PTR_CUDA nor NCCL_PTR_DMABUF)"},
		{"no export", host | dmaBuf, gpu, nil, "",
			"getProperties: device 0 test0 takes GPU memory only as a dma-buf (NCCL_PTR_DMABUF), which this GPU or its driver " +
				"does not export"},
		{"no flush", host | cuda, gpu, []string{"WITHOUT_FLUSH"}, "",
			"getProperties: its table has no iflush, without which GPUs do not see what came"},
		{"an export that fails", host | dmaBuf, transport.Memory{Region: gpu.Region, DMABuf: none}, nil, "",
			"regMrDmaBuf: device 0 test0: rank 0: export GPU memory: no more files"},
		{"a registration that fails", host | dmaBuf, exported, nil, "regMrDmaBuf",
			"regMrDmaBuf: device 0 test0: rank 0: system error (2)"},
		{"a flush that fails", host | dmaBuf, exported, nil, "iflush", "iflush: device 0 test0: rank 0: system error (2)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, append([]string{version(11)}, c.defines...)...)
			f.call(t, "device", 1, 100, c.memory, 0, 0)
			l := f.load(t)
			t.Run("connection", func(t *testing.T) {
				ranks := two(t, l, limits)
				f.set(t, c.fails, 0, 0)
				release, err := ranks[0].Transport.Register(c.m)
				if c.want != "" {
					require.ErrorContains(t, err, "plugin: register: network plugin libnccl-net-test.so (v11): "+c.want)
					_, err = ranks[0].Transport.DialPlaced(ranks[1].Config.Self, ranks[1].Addr, c.m.Region)
					require.ErrorContains(t, err, "not registered")
					return
				}
				require.NoError(t, err)
				_, err = ranks[0].Transport.DialPlaced(ranks[1].Config.Self, ranks[1].Addr, c.m.Region)
				require.NoError(t, err)
				require.NoError(t, release())
			})
			f.clean(t, contexts(11))
		})
	}

	l := newFake(t, version(11)).load(t)
	m := memoryOf(ofHost)(t, 500).Memory
	_, err := New(transport.Config{}, l, Options{}).Register(m)
	require.EqualError(t, err, "plugin: register: this rank does not listen yet")
	ranks := two(t, l, limits)
	_, err = ranks[0].Transport.DialPlaced(ranks[1].Config.Self, ranks[1].Addr, m.Slice(0, 400))
	require.EqualError(t, err, "plugin: dial rank 1, placed: slots in memory that was not registered")
	_, err = ranks[0].Transport.Register(m)
	require.NoError(t, err)
	_, err = ranks[0].Transport.DialPlaced(ranks[1].Config.Self, ranks[1].Addr, m.Slice(1, 399))
	require.EqualError(t, err, "plugin: dial rank 1, placed: 399 bytes for 4 slots of 100")
	_, err = ranks[0].Transport.DialPlaced(ranks[1].Config.Self, ranks[1].Addr, m.Slice(100, 400))
	require.NoError(t, err)
	_, err = ranks[1].Transport.AcceptPlaced(ranks[0].Config.Self, m.Slice(0, 400))
	require.EqualError(t, err, "plugin: accept rank 0, placed: slots in memory that was not registered")
}

// A placed connection counts as the two comms that it has.
func TestPlacedComms(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 1, hostMemory, 0, 0)
	p := newPlacedPair(t, f.load(t), ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
	require.ErrorContains(t, p.connect(), "all 2 devices have as many connections as they take")
}

// When release has returned the plugin knows nothing of the memory any more: connections in it are
// closed, also those that were closed just before and those that were dialled and not accepted.
func TestRelease(t *testing.T) {
	f := newFake(t, version(11))
	l := f.load(t)
	t.Run("connections", func(t *testing.T) {
		p := newPlacedPair(t, l, ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
		require.NoError(t, p.connect())
		require.NoError(t, p.from.Put(0, 100))
		waiting := p.to.Recv
		second, err := p.ranks[0].Transport.DialPlaced(p.ranks[1].Config.Self, p.ranks[1].Addr, p.from.Region)
		require.NoError(t, err)
		require.NoError(t, p.release[1]())
		_, _, err = waiting.Next()
		require.ErrorIs(t, err, transport.ErrClosed)
		_, err = p.ranks[1].Transport.AcceptPlaced(p.ranks[0].Config.Self, p.to.Region)
		require.EqualError(t, err, "plugin: accept rank 0, placed: slots in memory that was not registered")
		require.NoError(t, p.from.Send.Close())
		require.NoError(t, p.release[0]())
		require.ErrorIs(t, publish(second), transport.ErrClosed)
		require.NoError(t, p.release[0]())
		for _, e := range []*half{p.from.Send.(*sendConn).half, second.(*sendConn).half, waiting.(*recvConn).half} {
			require.NoError(t, e.setup.do(t.Context(), func() error {
				require.True(t, e.ended)
				return nil
			}))
		}
	})
	for _, d := range l.Devices {
		require.Zero(t, d.conns.Load())
	}
	f.clean(t, contexts(11))
}

// Close returns ErrHeld if the plugin may still use registered memory.
func TestHeld(t *testing.T) {
	for _, call := range []string{"none", "deregMr", "closeSend", "closeRecv"} {
		f := newFake(t, version(11))
		p := newPlacedPair(t, f.load(t), ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
		require.NoError(t, p.connect())
		require.NoError(t, p.exchange(4))
		f.set(t, call, 0, 0)
		for r, closing := range []string{"closeSend", "closeRecv"} {
			err := p.ranks[r].Transport.Close()
			held := call == closing || call == "deregMr"
			require.Equal(t, held, errors.Is(err, transport.ErrHeld), "%s: rank %d: %v", call, r, err)
		}
	}
}

// release waits for a plugin that does not let go of memory no longer than closing may take.
func TestReleaseOfHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := New(transport.Config{}, &Library{File: "libnccl-net-test.so", Version: 11}, Options{})
		r := new(region)
		r.users.Add(1)
		require.EqualError(t, tr.release(r),
			"plugin: release: network plugin libnccl-net-test.so (v11): it has not let go of the memory in 11s; "+
				"NCCL_NET_PLUGIN=none goes without plugins")
		r.leave(nil)
	})
}

// Each call that fails is an error that names function, device and peer, and the other end gets an
// error too.
func TestPlacedFailures(t *testing.T) {
	side := tier.Together(t)
	defer side.Wait()
	for _, c := range []struct {
		call  string
		after int
		kind  string
	}{
		{"connect", 1, ofHost},
		{"accept", 1, ofHost},
		{"listen", 1, ofHost},
		{"regMr", 0, ofHost},
		{"regMr", 1, ofHost},
		{"regMr", 3, ofGPU}, // the second at the receiving end
		{"regMrDmaBuf", 0, ofDMABuf},
		{"regMrDmaBuf", 1, ofDMABuf},
		{"irecv", 4, ofGPU}, // the first of payloads
		{"irecv", 12, ofGPU},
		{"isend", 5, ofGPU},
		{"iflush", 1, ofDMABuf},
		{"test", 30, ofDMABuf},
	} {
		side.Run(fmt.Sprintf("%s after %d", c.call, c.after), func(t *testing.T) {
			f := newFake(t, version(11))
			f.call(t, "device", 1, 100, hostMemory|deviceMemory|dmaBuf, 0, 0)
			p := newPlacedPair(t, f.load(t), c.kind, transport.Limits{SlotBytes: 300, Slots: 4})
			f.set(t, c.call, c.after, 0)
			err := p.connect()
			if err == nil {
				err = p.exchange(100)
				if c.call != "test" { // which both ends do
					require.ErrorContains(t, err, "the peer has given up: network plugin ")
				}
			}
			require.ErrorContains(t, err, "network plugin libnccl-net-test.so (v11): "+c.call+": device 0 test0: rank ")
			said := `; it said "NET/Test : ` + c.call + ` of 11 passed 99% 0.5 on purpose"`
			if text := err.Error(); !strings.HasPrefix(c.call, "regMr") || strings.Contains(text, said) {
				// both ends may fail at once, and only one gets the plugin's warning
				require.Contains(t, text, "system error (2)"+said+"; NCCL_NET_PLUGIN=none")
			}
			require.Zero(t, f.call(t, "faults"))
		})
	}
}
