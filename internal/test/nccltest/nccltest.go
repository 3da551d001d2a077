// Package nccltest stands in for NCCL: a World carries out the calls of its ranks by Ringo, on copies of their GPUs'
// memory in the host.
package nccltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Err is the error of a function that fails.
var Err = errors.New("peer nccl: result 3")

// A World is the ranks of a communicator.
type World struct {
	Device func(number int) (*gpu.Device, error)

	Fails string        // a function that fails; "{" and "}" are the ends of a group
	Lazy  bool          // nothing is carried out
	Wrong bool          // a bit of every result is flipped
	Hang  chan struct{} // no group ends before this is closed

	mu     sync.Mutex
	called map[string]int
	comms  []*ringo.Comm // by rank
}

// Called is how often a function was called.
func (w *World) Called(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.called[name]
}

// A Library is what one goroutine sees of NCCL.
type Library struct {
	w     *World
	ranks []*rank
	depth int // of groups
}

type rank struct {
	comm  *ringo.Comm
	dev   *gpu.Device
	calls []*ringo.Call
	outs  []uintptr // of the calls
}

// Open is the library for the ranks of one goroutine.
func (w *World) Open() *Library { return &Library{w: w} }

// call notes a call. The error is that of the function that fails.
func (l *Library) call(name string) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.called == nil {
		l.w.called = map[string]int{}
	}
	if l.w.called[name]++; name == l.w.Fails {
		return fmt.Errorf("%s: %w", name, Err)
	}
	return nil
}

func (l *Library) join(number, size, gpu int) (c nccl.Comm, err error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.comms == nil {
		if l.w.comms, err = ringo.OpenLocal(size, ringo.Config{}); err != nil {
			return 0, err
		}
	}
	r := &rank{comm: l.w.comms[number]}
	r.dev, err = l.w.Device(gpu)
	l.ranks = append(l.ranks, r)
	return nccl.Comm(number + 1), err
}

func (l *Library) Version() (int, error)      { return 22703, nil }
func (l *Library) UniqueID() (nccl.ID, error) { return nccl.ID{1, 15: 16}, l.call("ncclGetUniqueId") }

func (l *Library) InitAll(devices ...int) (comms []nccl.Comm, err error) {
	err = l.call("ncclCommInitAll")
	for i, number := range devices {
		c, failed := l.join(i, len(devices), number)
		comms, err = append(comms, c), errors.Join(err, failed)
	}
	return comms, err
}

// InitRank takes the GPU of the rank's number.
func (l *Library) InitRank(size, rank int, id nccl.ID) (nccl.Comm, error) {
	if id != (nccl.ID{1, 15: 16}) {
		return 0, errors.New("another ID")
	}
	if err := l.call("ncclCommInitRank"); err != nil {
		return 0, err
	}
	return l.join(rank, size, rank)
}

func (l *Library) Register(_ nccl.Comm, p uintptr, _ int) (uintptr, error) {
	return p + 1, l.call("ncclCommRegister")
}

func (l *Library) Together(f func() error) error {
	if err := l.call("{"); err != nil {
		return err
	}
	l.depth++
	err := f()
	if l.depth--; err == nil {
		err = l.call("}")
	}
	if err != nil || l.depth > 0 {
		return err
	}
	return l.end()
}

var kinds = map[string]ringo.Kind{"ncclAllReduce": ringo.KindAllReduce, "ncclReduce": ringo.KindReduce,
	"ncclBroadcast": ringo.KindBroadcast, "ncclAllGather": ringo.KindAllGather,
	"ncclReduceScatter": ringo.KindReduceScatter, "ncclSend": ringo.KindSend, "ncclRecv": ringo.KindRecv}

func (l *Library) Call(name string, args ...uintptr) error {
	kind, moves := kinds[name]
	if err := l.call(name); err != nil || !moves {
		return err
	}
	number := int(args[len(args)-2]) - 1
	r := l.ranks[slices.IndexFunc(l.ranks, func(r *rank) bool { return r.comm.Rank() == number })]
	if kind == ringo.KindSend || kind == ringo.KindRecv { // their one buffer stands for both
		args = append(args[:1:1], args...)
	}
	types := kernels.Types()
	c := &ringo.Call{Kind: kind, Count: int(args[2]), Type: types[slices.IndexFunc(types,
		func(t kernels.DataType) bool { return uintptr(t.NCCL()) == args[3] })]}
	rest := args[4:]
	if kind.Reduces() {
		c.Op, rest = []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg}[rest[0]], rest[1:]
	}
	switch {
	case kind.Rooted():
		c.Root = int(rest[0])
	case kind == ringo.KindSend || kind == ringo.KindRecv:
		c.Peer = int(rest[0])
	}
	in, out := c.Shape(number, r.comm.Size())
	host := make([]byte, in*c.Type.Size())
	if err := r.dev.Read(host, mem.Device(r.dev.Number(), args[0], len(host))); err != nil {
		return err
	}
	c.In, c.Out = mem.Host(host), mem.Host(make([]byte, out*c.Type.Size()))
	r.calls, r.outs = append(r.calls, c), append(r.outs, args[1])
	if l.depth > 0 {
		return nil
	}
	return l.end()
}

// end carries out what the goroutine's ranks have called, as a group of each.
func (l *Library) end() error {
	if l.w.Hang != nil {
		<-l.w.Hang
		return errors.New("late")
	}
	errs := make([]error, len(l.ranks))
	var all sync.WaitGroup
	for i, r := range l.ranks {
		all.Go(func() {
			if errs[i] = r.carryOut(l.w); errs[i] != nil {
				r.comm.Abort(errs[i])
			}
			r.calls, r.outs = nil, nil
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *rank) carryOut(w *World) error {
	if w.Lazy {
		return nil
	}
	g := ringo.NewGroup()
	for _, c := range r.calls {
		g.Add(r.comm, c)
	}
	if err := g.Run(); err != nil {
		return err
	}
	for i, c := range r.calls {
		b := c.Out.Bytes()
		if w.Wrong && len(b) > 0 {
			b[len(b)/2] ^= 16
		}
		if err := r.dev.Write(mem.Device(r.dev.Number(), r.outs[i], len(b)), b); err != nil {
			return err
		}
	}
	return nil
}
