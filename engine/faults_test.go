package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// errCut is the error of a use that fails.
var errCut = errors.New("cut")

// faults count the uses that rank 0 makes of its connections and have one use fail. Then gone is closed, which ends
// the peers.
type faults struct {
	left int // uses before the one that fails
	gone chan struct{}
	peer sched.Rank
	what string
}

// hit counts a use of a rank's connection to a peer, and returns its error if this use or an earlier one has failed.
func (f *faults) hit(rank, peer sched.Rank, what string) error {
	if rank != 0 {
		return nil
	}
	if f.left--; f.left == -1 {
		f.peer, f.what = peer, what
		close(f.gone)
	}
	if f.left < 0 {
		return errCut
	}
	return nil
}

type slot struct {
	bytes []byte
	stamp transport.Stamp
}

// A wire is a queue that lends no memory. Its ends are plainSend or lendSend, and plainRecv or intoRecv.
type wire struct {
	*faults
	slots    chan slot
	from, to sched.Rank
}

type plainSend struct {
	*wire
	reserved []byte
}

func (c *plainSend) Close() error { return nil }

func (c *plainSend) Reserve(n int) (mem.Region, error) {
	c.reserved = make([]byte, n)
	return mem.Host(c.reserved), c.hit(c.from, c.to, "send")
}

func (c *plainSend) Publish(s transport.Stamp) error {
	if err := c.hit(c.from, c.to, "send"); err != nil {
		return err
	}
	return c.put(slot{c.reserved, s})
}

func (w *wire) put(s slot) error {
	select {
	case w.slots <- s:
		return nil
	case <-w.gone:
		return fifo.ErrClosed
	}
}

func (w *wire) take() (slot, error) {
	if err := w.hit(w.to, w.from, "recv"); err != nil {
		return slot{}, err
	}
	select {
	case s := <-w.slots:
		return s, nil
	case <-w.gone:
		return slot{}, fifo.ErrClosed
	}
}

type lendSend struct{ plainSend }

func (c *lendSend) PublishFrom(src mem.Region, s transport.Stamp) error {
	if err := c.hit(c.from, c.to, "send"); err != nil {
		return err
	}
	return c.put(slot{append([]byte(nil), src.Bytes()...), s})
}

func (c *lendSend) Flush() error { return c.hit(c.from, c.to, "send") }

type plainRecv struct{ *wire }

func (c *plainRecv) Close() error { return nil }

func (c *plainRecv) Next() (mem.Region, transport.Stamp, error) {
	s, err := c.take()
	return mem.Host(s.bytes), s.stamp, err
}

func (c *plainRecv) Release() error { return c.hit(c.to, c.from, "recv") }

type intoRecv struct{ plainRecv }

func (c *intoRecv) NextInto(dst mem.Region) (transport.Stamp, error) {
	s, err := c.take()
	copy(dst.Bytes(), s.bytes)
	return s.stamp, err
}

// faulty are the Links of one rank. Between ranks of different parity slots are wide.
type faulty struct {
	*faults
	wires  map[[2]sched.Rank]*wire
	rank   sched.Rank
	direct bool // connections lend, and receive straight into memory
	wide   int
}

func (l *faulty) Width(peer sched.Rank) int {
	if (l.rank+peer)%2 == 1 {
		return l.wide
	}
	return 1
}

func (l *faulty) Send(to sched.Rank) (transport.SendConn, error) {
	c := plainSend{wire: l.wires[[2]sched.Rank{l.rank, to}]}
	if l.direct {
		return &lendSend{c}, l.hit(l.rank, to, "connect")
	}
	return &c, l.hit(l.rank, to, "connect")
}

func (l *faulty) Recv(from sched.Rank) (transport.RecvConn, error) {
	c := plainRecv{l.wires[[2]sched.Rank{from, l.rank}]}
	if l.direct {
		return &intoRecv{c}, l.hit(l.rank, from, "accept")
	}
	return &c, l.hit(l.rank, from, "accept")
}

// TestFaults has each use of rank 0's connections fail in turn: the run ends there, and the error names the peer and
// the phase.
func TestFaults(t *testing.T) {
	limits := transport.Limits{SlotBytes: 64, Slots: 4}
	red, err := kernels.NewReducer(kernels.Int32, kernels.Sum, 3)
	require.NoError(t, err)
	for name, s := range map[string]sched.Schedule{
		"ring": ring.AllReduce{N: 3}, "all-gather": ring.AllGather{N: 3}, "one shot": direct.OneShot{N: 3},
		"doubling": direct.RecursiveDoubling{N: 3},
	} {
		for _, lends := range []bool{false, true} {
			for _, wide := range []int{1, 4} {
				for fails := 0; ; fails++ {
					f := &faults{left: fails, gone: make(chan struct{})}
					wires := map[[2]sched.Rank]*wire{}
					for from := range sched.Rank(3) {
						for to := range sched.Rank(3) {
							wires[[2]sched.Rank{from, to}] = &wire{faults: f, slots: make(chan slot, limits.Slots), from: from, to: to}
						}
					}
					run := func(rank sched.Rank) error {
						p, err := Compile(s, rank, &faulty{f, wires, rank, lends, wide})
						if err != nil {
							return err
						}
						const bytes = 1200
						shape := s.Shape()
						j := Job{Program: p, In: make([]byte, bytes), InL: Even(bytes, shape.In, 4), Reducer: red, Lend: lends}
						j.Out, j.OutL = make([]byte, bytes), j.InL
						if shape.Out > shape.In { // each rank's In is a chunk of Out
							j.Out, j.OutL = make([]byte, bytes*shape.Out), Layout{Total: bytes * shape.Out, Chunk: bytes}
						}
						return New(limits).Run(&j)
					}
					var peers errgroup.Group
					peers.Go(func() error { return run(1) })
					peers.Go(func() error { return run(2) })
					err := run(0)
					others := peers.Wait()
					about := fmt.Sprintf("%s, lends %v, wide %d, fault %d", name, lends, wide, fails)
					if f.left >= 0 {
						require.NoError(t, errors.Join(err, others), about)
						require.Greater(t, fails, 10, about)
						break
					}
					var step *StepError
					require.ErrorAs(t, err, &step, about)
					require.ErrorIs(t, err, errCut, about)
					require.Equal(t, -1, f.left, "goes on: %s", about)
					require.Equal(t, f.peer, step.Peer, about)
					require.Equal(t, f.what, step.Phase, about)
				}
			}
		}
	}
}

// A StepError's text has the phase and the peer.
func TestStepErrorWords(t *testing.T) {
	for phase, want := range map[string]string{
		"send": "send to rank 2: cut", "recv": "recv from rank 2: cut", "connect": "connect to rank 2: cut",
		"accept": "accept from rank 2: cut",
	} {
		require.EqualError(t, &StepError{Peer: 2, Phase: phase, Err: errCut}, want)
	}
	e := at(&StepError{Peer: 2, Phase: "send", Err: errCut}, 3, 4)
	require.Equal(t, &StepError{Peer: 2, Phase: "send", Err: errCut, Round: 3, Step: 4}, e)
	require.Equal(t, errCut, at(errCut, 3, 4))
	require.Equal(t, 128, New(transport.Limits{SlotBytes: 64, Slots: 5}).Piece())
}
