package verbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// pair is a placed connection between two new ranks.
func (p placement) pair(t *testing.T, o Options) (*placedSend, *placedRecv) {
	s, r := conntest.Pair(t, few, func(cfg transport.Config) transport.Transport { return p.open(t, cfg, o) })
	return s.(*placedSend), r.(*placedRecv)
}

// Memory is registered with every device, before and after Listen, until it is released or the
// Transport closed; and no file stays open.
func TestRegister(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	f := rdma.NewFabric(t, "fx0", "fx1")
	tr := New(transport.Config{Limits: few}, Options{Verbs: f})
	var all []transporttest.Slots
	for _, name := range []string{"host", "GPU", "GPU in order"} {
		all = append(all, placements[name](t, 8192))
	}
	before := files()
	for i, c := range all {
		release, err := tr.Register(c.Memory)
		require.NoError(t, err)
		require.Equal(t, before, files())
		require.Len(t, f.MRs, 2)
		for _, mr := range f.MRs {
			require.Equal(t, rdma.MR{Addr: c.Ptr(), Len: c.Len(), At: mr.At, Device: mr.Device, Access: mr.Access,
				DMABuf: mr.DMABuf}, *mr)
			require.Equal(t, i > 0, mr.DMABuf != nil)
			require.Equal(t, i == 1, mr.Access&ibverbs.AccessRemoteRead != 0)
			mem.Host(rdma.Span(mr.At, c.Len())).Bytes()[100] = 7 // the same memory
			require.EqualValues(t, 7, c.View[100])
			c.View[100] = 0
		}
		require.NoError(t, release())
		require.NoError(t, release(), "once more")
		require.Empty(t, f.MRs)
	}
	_, err := tr.Register(all[0].Memory)
	require.NoError(t, err)
	_, err = tr.Listen()
	require.NoError(t, err)
	own := len(f.MRs) - 2 // registrations of the area that Listen has tried
	release, err := tr.Register(all[1].Memory)
	require.NoError(t, err)
	require.Len(t, f.MRs, own+4)
	require.NoError(t, tr.Close())
	require.Empty(t, f.MRs)
	require.NoError(t, release(), "after Close")
	_, err = tr.Register(all[0].Memory)
	require.ErrorIs(t, err, transport.ErrClosed)
}

// GPU memory is registered by its address where there is no dma-buf; if that fails too, the error has
// both reasons, and nothing stays registered.
func TestRegisterGPU(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	tr := New(transport.Config{Limits: few}, Options{Verbs: f})
	defer tr.Close()
	c := transporttest.FileSlots(t, 8192)
	try := func() error {
		_, err := tr.Register(c.Memory)
		return err
	}
	invalid, fault := &ibverbs.Error{Call: "ibv_reg_dmabuf_mr", Errno: syscall.EOPNOTSUPP},
		&ibverbs.Error{Call: "ibv_reg_mr", Errno: syscall.EFAULT}
	f.RefuseFD = invalid
	require.NoError(t, try())
	require.Len(t, f.MRs, 2)
	f.Refuse = fault
	require.EqualError(t, try(),
		"ib: register: fx0: GPU memory: ibv_reg_dmabuf_mr: operation not supported; and by its address: ibv_reg_mr: bad "+
			"address (modprobe nvidia-peermem)")
	c.DMABuf = func() (int, uint64, error) { return -1, 0, errors.New("no export today") }
	require.ErrorContains(t, try(), "GPU memory: export a dma-buf: no export today; and")
	c.DMABuf = nil
	require.ErrorContains(t, try(),
		"GPU memory: the driver or the GPU exports no dma-buf; and by its address: ibv_reg_mr: bad address")
	f.Refuse = &ibverbs.Error{Call: "ibv_reg_mr", Errno: syscall.ENOMEM}
	c.Region = mem.Host(c.View)
	require.ErrorContains(t, try(), "ulimit -l unlimited")
	require.Len(t, f.MRs, 2)
}

// However rails fail, slots arrive as they were sent, also to a GPU that sees only data that were
// read back.
func TestPlacedRailsFail(t *testing.T) {
	failAnyTime(t, 2, func(t *testing.T, f *rdma.Fabric) (transport.SendConn, transport.RecvConn) {
		return placements["GPU"].pair(t, Options{Verbs: f, Rails: 3})
	})
}

// Slots for a GPU that does not see writes in order, and no others, are read back by the device that
// wrote them; Next returns none of them before.
func TestReadBack(t *testing.T) {
	for name, reads := range map[string]int{"host": 0, "GPU": 50, "GPU in order": 0} {
		f := rdma.NewFabric(t, "fx0", "fx1")
		s, r := placements[name].pair(t, Options{Verbs: f, Rails: 2})
		sent, received := flow(s, r, 50, nil)
		require.NoError(t, errors.Join(sent, received))
		require.Equal(t, reads, f.Backs, name)
	}
	f := rdma.NewFabric(t, "fx0")
	s, r := placements["GPU"].pair(t, Options{Verbs: f})
	f.Set(func() { f.LostBack = true })
	require.NoError(t, sendAll(s, 0, 1, nil))
	for range 2 {
		_, _, err := r.Next()
		var link *LinkError
		require.ErrorAs(t, err, &link)
		require.ErrorContains(t, err,
			"link from fx0:1 to fx0:1 has failed: what came over it cannot be read back: transport retry counter exceeded")
	}
}

// A rail whose device cannot read back carries nothing: slots take another rail, and without one both
// ends return the reason.
func TestNoReadBack(t *testing.T) {
	for names, want := range map[string]string{"fx0,fx1": "", "fx0": "link from fx0:1 to fx0:1 has failed: "} {
		f := rdma.NewFabric(t, "fx0", "fx1")
		f.NoBack = "fx0"
		s, r := placements["GPU"].pair(t, Options{Verbs: f, HCAs: names})
		sent, received := flow(s, r, 20, nil)
		if want == "" {
			require.NoError(t, errors.Join(sent, received))
			require.Equal(t, 20, f.Backs)
			continue
		}
		require.ErrorContains(t, sent, want+"as the peer says, fx0:1: invalid argument")
		require.ErrorContains(t, received, want+"fx0:1: invalid argument")
	}
}

// A rail that could not read back is called back when its device can, and not before.
func TestReadBackComesBack(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	f.NoBack = "fx0"
	s, r := placements["GPU"].pair(t, Options{Verbs: f, Rails: 2})
	sent, received := flowFrom(s, r, 0, 20)
	require.NoError(t, errors.Join(sent, received))
	x := s.rails[0]
	require.Eventually(t, func() bool { // the rail was called in vain
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.wait > 2*firstWait && x.phase() == railDown
	}, 20*time.Second, time.Millisecond)
	f.Set(func() { f.NoBack = "" })
	require.Eventually(t, func() bool { return up(s.rails) == 2 && up(r.rails) == 2 }, 20*time.Second, time.Millisecond)
	sent, received = flowFrom(s, r, 20, 60)
	require.NoError(t, errors.Join(sent, received))
	f.Set(func() { require.Equal(t, 60, f.Backs) })
}

// Slots that have come and are still being read back are returned although the sender has gone.
func TestReadBackAfterGoodbye(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	s, r := placements["GPU"].pair(t, Options{Verbs: f})
	f.Set(func() { f.SlowBack = true })
	require.NoError(t, sendAll(s, 0, 2, nil))
	require.NoError(t, s.Close())
	<-r.control.done
	received := make(chan error)
	go func() { received <- receiveAll(r, 0, 2) }()
	select {
	case err := <-received:
		t.Fatal("before it was read back: ", err)
	case <-time.After(20 * time.Millisecond):
	}
	f.Set(func() { f.SlowBack = false })
	require.NoError(t, <-received)
	_, _, err := r.Next()
	require.Error(t, err)
}

// A sender has no free slots before the receiver has sent the address of its slots, and then all of
// the queue. Slots that are published before that wait, and keep their order.
func TestPlacedRoom(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	m := conntest.Ranks(t, 2, few, func(cfg transport.Config) *placer {
		return placements["host"].open(t, cfg, Options{Verbs: f})
	})
	end, err := m[0].Dial(m[1])
	require.NoError(t, err)
	s := end.(*placedSend).sendConn
	require.Zero(t, s.Free())
	b, err := s.Reserve(few.SlotBytes) // does not wait
	require.NoError(t, err)
	require.Equal(t, end.(*placedSend).memory.Ptr(), b.Ptr())
	published := make(chan error)
	go func() { published <- sendAll(s, 0, few.Slots, nil) }()
	end2, err := m[1].Accept(m[0])
	require.NoError(t, err)
	require.NoError(t, <-published)
	require.Zero(t, s.Free())
	require.NoError(t, receiveAll(end2, 0, 1))
	require.Equal(t, 1, s.Free())
	require.NoError(t, receiveAll(end2, 1, few.Slots))
	require.Equal(t, few.Slots, s.Free())
}

// Slots lie in registered memory, all of them.
func TestPlacedNowhere(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	p := conntest.Ranks(t, 1, few, func(cfg transport.Config) *placer {
		return placements["GPU"].open(t, cfg, Options{Verbs: f})
	})[0].Transport
	c, err := p.place()
	require.NoError(t, err)
	peer := transport.Info{Rank: 5}
	for _, test := range []struct {
		slots mem.Region
		want  string
	}{
		{c.Slice(0, few.Slots*few.SlotBytes-1), "4 slots of 500 bytes in memory of 1999"},
		{mem.Device(c.Dev()+1, c.Ptr(), c.Len()), "the slots lie in memory that was not registered"},
		{mem.Device(c.Dev(), c.Ptr()+1, c.Len()), "not registered"},
		{mem.Device(c.Dev(), c.Ptr()-1, c.Len()), "not registered"},
		{mem.Host(make([]byte, 4096)), "not registered"},
	} {
		_, err := p.DialPlaced(peer, []byte("127.0.0.1:1"), test.slots)
		require.ErrorContains(t, err, test.want)
		_, err = p.AcceptPlaced(peer, test.slots)
		require.ErrorContains(t, err, "ib: accept rank 5: ")
		require.ErrorContains(t, err, test.want)
	}
}

// Where one end is placed and the other is not, both ends return an error.
func TestPlacedOneEnd(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	for _, placed := range []bool{false, true} {
		m := conntest.Ranks(t, 2, few, func(cfg transport.Config) transport.Transport {
			if placed == (cfg.Self.Rank == 0) {
				return placements["GPU"].open(t, cfg, Options{Verbs: f})
			}
			return New(cfg, Options{Verbs: f})
		})
		s, err := m[0].Dial(m[1])
		require.NoError(t, err)
		_, err = m[1].Accept(m[0])
		kind := map[bool]string{false: "has its slots in its own memory", true: "has them placed in the caller's"}
		want := fmt.Sprintf("rank 0 has dialled a connection that %s, rank 1 accepts one that %s", kind[placed],
			kind[!placed])
		require.EqualError(t, err, "ib: accept rank 0: "+want)
		require.ErrorContains(t, sendAll(s, 0, 9, nil), "rank 1 refuses: "+want)
	}
}

// After the end of a placed connection Free counts slots that were not sent, which the caller may fill. So the
// end is final: whatever the peer says later, these slots are not sent again.
func TestPlacedEnds(t *testing.T) {
	s, _ := placements["host"].pair(t, Options{Verbs: rdma.NewFabric(t, "fx0", "fx1")})
	r := s.rails[0]
	s.fail(r, "test", false)
	r.tryAt.Store(math.MaxInt64)
	require.Eventually(t, func() bool { return r.phase() == railDown }, 20*time.Second, time.Millisecond)
	r.life.Store(uint32(railFailing)) // as if the answer had not come
	r.since.Add(-int64(answerTime))
	require.Equal(t, s.shape.ring, s.sendConn.Free())
	r.life.Store(uint32(railDown))
	_, err := s.sendConn.Reserve(0)
	var link *LinkError
	require.ErrorAs(t, err, &link)
}
