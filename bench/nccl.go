package bench

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A ncclPeer is a rank's communicator of NCCL, as a peer on the same GPU, memory
// and stream.
type ncclPeer struct {
	w    *worker
	lib  ncclLibrary
	comm nccl.Comm
	held []uintptr // handles of registered memory
}

// An ncclLibrary is the functions of NCCL that a peer needs.
type ncclLibrary interface {
	UniqueID() (nccl.ID, error)
	InitRank(size, rank int, id nccl.ID) (nccl.Comm, error)
	Register(c nccl.Comm, p uintptr, n int) (uintptr, error)
	Call(name string, args ...uintptr) error
	Together(f func() error) error
}

func openLibrary(file string) (ncclLibrary, error) { return nccl.Open(file) }

// ncclOps are the operators that NCCL has, with its numbers.
var ncclOps = map[kernels.Kind]uintptr{kernels.KindSum: 0, kernels.KindProd: 1, kernels.KindMax: 2, kernels.KindMin: 3,
	kernels.KindAvg: 4}

// openNCCL makes a communicator of NCCL with the ranks of w's communicator.
func openNCCL(w *worker) (*ncclPeer, error) {
	lib, err := w.library(w.cfg.NCCL)
	if err != nil {
		return nil, err
	}
	n := &ncclPeer{w: w, lib: lib}
	var id nccl.ID
	if w.comm.Rank() == 0 {
		if id, err = lib.UniqueID(); err != nil {
			return nil, err
		}
	}
	whole := mem.Of(id[:])
	if err := w.comm.Do(&ringo.Call{Kind: ringo.KindBroadcast, In: whole, Out: whole, Count: len(id),
		Type: ringo.Uint64}); err != nil {
		return nil, err
	}
	err = w.gpu.dev.With(func() error {
		if n.comm, err = lib.InitRank(w.comm.Size(), w.comm.Rank(), id); err != nil || !w.cfg.Registered {
			return err
		}
		for _, r := range []mem.Region{w.gpu.in, w.gpu.out} {
			handle, err := lib.Register(n.comm, r.Ptr(), r.Len())
			if err != nil {
				return fmt.Errorf("%w: NCCL registers memory since 2.19; leave -R out", err)
			}
			n.held = append(n.held, handle)
		}
		return nil
	})
	return n, err
}

func (n *ncclPeer) close() error {
	return n.w.gpu.dev.With(func() error {
		var errs []error
		for _, h := range n.held {
			errs = append(errs, n.lib.Call("ncclCommDeregister", uintptr(n.comm), h))
		}
		return errors.Join(append(errs, n.lib.Call("ncclCommDestroy", uintptr(n.comm)))...)
	})
}

// offers reports whether NCCL has the operation.
func (n *ncclPeer) offers(s *series) bool {
	_, ok := ncclOps[s.op.Kind]
	return !s.Reduces() || ok
}

// together is a function that makes calls with NCCL, in a group if they are several.
func (n *ncclPeer) together(calls []*ringo.Call) func() error {
	list := make([]func() error, len(calls))
	for i, c := range calls {
		list[i] = n.operation(c)
	}
	f := list[0]
	if len(list) > 1 {
		f = func() error {
			return n.lib.Together(func() error {
				for _, f := range list {
					if err := f(); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return func() error { return n.w.gpu.dev.With(f) }
}

// operation is a function that carries out a call with NCCL, with the device's context current.
func (n *ncclPeer) operation(c *ringo.Call) func() error {
	var (
		in, out, count = c.In.Ptr(), c.Out.Ptr(), uintptr(c.Count)
		t, op, root    = uintptr(c.Type.NCCL()), ncclOps[c.Op.Kind], uintptr(c.Root)
		comm, stream   = uintptr(n.comm), uintptr(c.Stream)
		one            = uintptr(c.Count * c.Type.Size())
		rank, size     = n.w.comm.Rank(), n.w.comm.Size()
	)
	var f func() error
	switch c.Kind {
	case ringo.KindAllReduce:
		f = func() error { return n.lib.Call("ncclAllReduce", in, out, count, t, op, comm, stream) }
	case ringo.KindReduce:
		f = func() error { return n.lib.Call("ncclReduce", in, out, count, t, op, root, comm, stream) }
	case ringo.KindBroadcast:
		f = func() error { return n.lib.Call("ncclBroadcast", in, out, count, t, root, comm, stream) }
	case ringo.KindAllGather:
		f = func() error { return n.lib.Call("ncclAllGather", in, out, count, t, comm, stream) }
	case ringo.KindReduceScatter:
		f = func() error { return n.lib.Call("ncclReduceScatter", in, out, count, t, op, comm, stream) }
	default:
		// These are groups of sends and receives, as in nccl-tests.
		type message struct {
			name string
			at   uintptr
			peer int
		}
		var list []message
		for p := range size {
			switch {
			case c.Kind == ringo.KindAlltoAll:
				list = append(list, message{"ncclSend", in + uintptr(p)*one, p}, message{"ncclRecv", out + uintptr(p)*one, p})
			case c.Kind == ringo.KindGather && rank == c.Root:
				list = append(list, message{"ncclRecv", out + uintptr(p)*one, p})
			case c.Kind == ringo.KindScatter && rank == c.Root:
				list = append(list, message{"ncclSend", in + uintptr(p)*one, p})
			}
		}
		switch c.Kind {
		case ringo.KindGather:
			list = append(list, message{"ncclSend", in, c.Root})
		case ringo.KindScatter:
			list = append(list, message{"ncclRecv", out, c.Root})
		case ringo.KindSend:
			list = append(list, message{"ncclSend", in, (rank + 1) % size}, message{"ncclRecv", out, (rank + size - 1) % size})
		}
		f = func() error {
			return n.lib.Together(func() error {
				for _, m := range list {
					if err := n.lib.Call(m.name, m.at, count, t, uintptr(m.peer), comm, stream); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return f
}
