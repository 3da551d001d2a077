package bench

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// An nccl is a rank's communicator of NCCL, as a peer on the same GPU, memory
// and stream. Its library is opened at run time.
type nccl struct {
	w    *worker
	lib  dl.Library
	syms map[string]uintptr
	comm uintptr
	held []uintptr // handles of registered memory
}

// ncclOps are the operators that NCCL has, with its numbers.
var ncclOps = map[kernels.Kind]uintptr{kernels.KindSum: 0, kernels.KindProd: 1, kernels.KindMax: 2, kernels.KindMin: 3, kernels.KindAvg: 4}

// openNCCL makes a communicator of NCCL with the ranks of w's.
func openNCCL(w *worker) (*nccl, error) {
	n := &nccl{w: w, syms: map[string]uintptr{}}
	var err error
	if n.lib, err = dl.Open(w.cfg.NCCL); err != nil {
		return nil, fmt.Errorf("peer nccl: %w: name the file with -nccl", err)
	}
	var id [16]uintptr // ncclUniqueId, 128 bytes
	if w.comm.Rank() == 0 {
		if err := n.call("ncclGetUniqueId", addressOf(&id)); err != nil {
			return nil, err
		}
	}
	whole := mem.Of(id[:])
	if err := w.comm.Do(&ringo.Call{Kind: ringo.KindBroadcast, In: whole, Out: whole, Count: len(id), Type: ringo.Uint64}); err != nil {
		return nil, err
	}
	// A struct of 128 bytes by value lies on the stack, after six arguments in registers.
	args := []uintptr{addressOf(&n.comm), uintptr(w.comm.Size()), uintptr(w.comm.Rank()), 0, 0, 0}
	args = append(args, id[:]...)
	err = w.gpu.dev.With(func() error {
		if err := n.call("ncclCommInitRank", args...); err != nil || !w.cfg.Registered {
			return err
		}
		for _, r := range []mem.Region{w.gpu.in, w.gpu.out} {
			var handle uintptr
			if err := n.call("ncclCommRegister", n.comm, r.Ptr(), uintptr(r.Len()), addressOf(&handle)); err != nil {
				return fmt.Errorf("%w: NCCL registers memory since 2.19; leave -R out", err)
			}
			n.held = append(n.held, handle)
		}
		return nil
	})
	return n, err
}

// call calls a function of NCCL.
func (n *nccl) call(name string, args ...uintptr) error {
	fn, ok := n.syms[name]
	if !ok {
		var err error
		if fn, err = n.lib.Sym(name); err != nil {
			return fmt.Errorf("peer nccl: %w", err)
		}
		n.syms[name] = fn
	}
	if r := int32(dl.Call(fn, args...)); r != 0 {
		return fmt.Errorf("peer nccl: %s: result %d; NCCL_DEBUG=WARN says more", name, r)
	}
	return nil
}

func (n *nccl) close() error {
	return n.w.gpu.dev.With(func() error {
		var errs []error
		for _, h := range n.held {
			errs = append(errs, n.call("ncclCommDeregister", n.comm, h))
		}
		return errors.Join(append(errs, n.call("ncclCommDestroy", n.comm))...)
	})
}

// offers reports whether NCCL has the operation.
func (n *nccl) offers(s *series) bool {
	_, ok := ncclOps[s.op.Kind]
	return !s.Reduces() || ok
}

// operation is what carries out a call with NCCL.
func (n *nccl) operation(s *series, c *ringo.Call) func() error {
	var (
		in, out, count = c.In.Ptr(), c.Out.Ptr(), uintptr(c.Count)
		t, op, root    = uintptr(c.Type.NCCL()), ncclOps[c.Op.Kind], uintptr(c.Root)
		comm, stream   = n.comm, uintptr(c.Stream)
		one            = uintptr(c.Count * c.Type.Size())
		rank, size     = n.w.comm.Rank(), n.w.comm.Size()
	)
	var f func() error
	switch c.Kind {
	case ringo.KindAllReduce:
		f = func() error { return n.call("ncclAllReduce", in, out, count, t, op, comm, stream) }
	case ringo.KindReduce:
		f = func() error { return n.call("ncclReduce", in, out, count, t, op, root, comm, stream) }
	case ringo.KindBroadcast:
		f = func() error { return n.call("ncclBroadcast", in, out, count, t, root, comm, stream) }
	case ringo.KindAllGather:
		f = func() error { return n.call("ncclAllGather", in, out, count, t, comm, stream) }
	case ringo.KindReduceScatter:
		f = func() error { return n.call("ncclReduceScatter", in, out, count, t, op, comm, stream) }
	default:
		// What NCCL makes of sends and receives, as nccl-tests does.
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
			if err := n.call("ncclGroupStart"); err != nil {
				return err
			}
			for _, m := range list {
				if err := n.call(m.name, m.at, count, t, uintptr(m.peer), comm, stream); err != nil {
					return err
				}
			}
			return n.call("ncclGroupEnd")
		}
	}
	return func() error { return n.w.gpu.dev.With(f) }
}
