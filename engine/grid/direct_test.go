package grid

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// mailed is a board with mailboxes in which what is large elsewhere takes
// several rounds.
func mailed(ranks int) Board {
	b := small(ranks)
	b.MailBytes = 2 * 2 * (ranks - 1) * minMailbox * 2
	return b
}

// A directTrial is a direct operation of all ranks.
type directTrial struct {
	d       Direct
	root    sched.Rank
	t       kernels.DataType
	op      *kernels.RedOp
	count   int // elements of a message
	in, out int // elements by which the buffers are off
	skew    int // bytes by which a rank's memory is further off than that of the rank before
	inPlace bool
	scalar  bool // in device memory
	early   bool // each rank has a scalar of its own, in device memory
}

func (x directTrial) String() string {
	op := "copy"
	if x.op != nil {
		op = x.op.String()
	}
	return fmt.Sprintf("%v root %d/%v/%s/%d elements at %d and %d, in place %v", x.d, x.root, x.t, op, x.count, x.in,
		x.out, x.inPlace)
}

// elements are the lengths of a rank's buffers, and where in the longer one the
// shorter lies in place.
func (x *directTrial) elements(rank, ranks int) (in, out, inAt, outAt int) {
	n, all, isRoot := x.count, x.count*ranks, rank == int(x.root)
	switch x.d {
	case Reduce:
		return n, only(isRoot, n), 0, 0
	case Broadcast:
		return only(isRoot, n), n, 0, 0
	case ReduceScatter:
		return all, n, 0, rank * n
	case AllGather:
		return n, all, rank * n, 0
	case AllToAll:
		return all, all, 0, 0
	case Gather:
		return n, only(isRoot, all), only(isRoot, rank*n), 0
	case Scatter:
		return only(isRoot, all), n, 0, only(isRoot, rank*n)
	}
	return n, n, 0, 0
}

// A directRun is a trial with the memory of all ranks.
type directRun struct {
	directTrial
	jobs  []Job
	at    []uintptr // of a rank's image, which holds both buffers
	fresh [][]byte
	want  [][]byte
}

// mail makes a directRun; it is not started.
func (r *rig) mail(x directTrial, seed uint64) *directRun {
	r.t.Helper()
	n, size := len(r.ranks), x.t.Size()
	rnd := rand.New(rand.NewPCG(seed, 3))
	o := &directRun{directTrial: x}
	var red *kernels.Reducer
	reducer := func(op kernels.RedOp) *kernels.Reducer {
		red, err := kernels.NewReducer(x.t, op, n)
		require.NoError(r.t, err)
		return red
	}
	if x.op != nil {
		red = reducer(*x.op)
	}
	type buffers struct{ in, out []byte } // in is a copy, out lies in want
	var all []buffers
	longest := 0
	for i := range r.ranks {
		in, _, _, _ := x.elements(i, n)
		longest = max(longest, in)
	}
	for i, m := range r.ranks {
		in, out, inAt, outAt := x.elements(i, n)
		begin := guard + x.in*size
		second := begin
		if !x.inPlace {
			second = roundUp(begin+longest*size, 16) + guard + x.out*size
			inAt, outAt = 0, 0
		}
		image := make([]byte, roundUp(max(begin+(inAt+in)*size, second+(outAt+out)*size)+guard, 16))
		fill(rnd, x.t, image)
		inAt, outAt = begin+inAt*size, second+outAt*size
		o.fresh = append(o.fresh, image)
		want := append([]byte{}, image...)
		o.want = append(o.want, want)
		all = append(all, buffers{append([]byte{}, want[inAt:][:in*size]...), want[outAt:][:out*size]})
		var at, scalar uintptr
		own := red
		if x.early {
			own = reducer(kernels.PreMulSum(float64(i + 3)))
			own.Load(all[i].in, all[i].in)
		}
		r.with(m, func() (err error) {
			if at, err = r.d.MemAlloc(len(image) + 256); err == nil && (x.scalar || x.early) {
				scalar, err = r.d.MemAlloc(16)
				m.free = append(m.free, scalar)
				one := make([]byte, 16)
				own.Load(one[:size], unit(x.t))
				require.NoError(r.t, cuda.Write(r.d, scalar, one))
			}
			m.free = append(m.free, at)
			return err
		})
		at += uintptr(256 - guard + i*x.skew)
		o.at = append(o.at, at)
		o.jobs = append(o.jobs, Job{
			In: mem.Device(int(m.dev), at+uintptr(inAt), in*size), Out: mem.Device(int(m.dev), at+uintptr(outAt), out*size),
			Reducer: red, Scalar: scalar, Early: x.early, Stamp: transport.Stamp{0, uint64(x.d)}, Stream: m.stream,
		})
	}
	if x.early {
		red = reducer(kernels.Sum)
	}
	one := x.count * size
	part := func(b []byte, i int) []byte { return b[i*one:][:one] }
	combined := func(dst []byte, from func(q int) []byte) {
		srcs := make([][]byte, n)
		for q := range srcs {
			srcs[q] = from(q)
		}
		red.CombineAll(dst, srcs, 1<<n-1, true)
	}
	for i, b := range all {
		for q := range n {
			switch {
			case x.d == AllGather, x.d == Gather && i == int(x.root):
				copy(part(b.out, q), all[q].in)
			case x.d == AllToAll:
				copy(part(b.out, q), part(all[q].in, i))
			}
		}
		switch x.d {
		case OneShot, TwoShot:
			combined(b.out, func(q int) []byte { return all[q].in })
		case Reduce:
			if i == int(x.root) {
				combined(b.out, func(q int) []byte { return all[q].in })
			}
		case ReduceScatter:
			combined(b.out, func(q int) []byte { return part(all[q].in, i) })
		case Broadcast:
			copy(b.out, all[x.root].in)
		case Scatter:
			copy(b.out, part(all[x.root].in, i))
		}
	}
	return o
}

func (r *rig) resetDirect(o *directRun) {
	r.t.Helper()
	for i, m := range r.ranks {
		r.with(m, func() error { return cuda.Write(r.d, o.at[i], o.fresh[i]) })
	}
}

func (r *rig) runDirect(o *directRun) {
	r.t.Helper()
	for i, m := range r.ranks {
		r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, o.root, o.count*o.t.Size()) })
	}
}

func (r *rig) checkDirect(o *directRun) {
	r.t.Helper()
	require.NoError(r.t, r.wrongDirect(o))
}

// wrongDirect is what is wrong with the results, nil if nothing is.
func (r *rig) wrongDirect(o *directRun) (err error) {
	r.t.Helper()
	r.sync()
	for i, m := range r.ranks {
		require.NoError(r.t, m.engine.Control().Fault())
		r.with(m, func() error {
			got := make([]byte, len(o.want[i]))
			if err := r.d.MemcpyDtoH(got, o.at[i]); err != nil {
				return err
			}
			if at := difference(o.want[i], got); at >= 0 {
				err = fmt.Errorf("%v: rank %d: byte %d of %d is %x, want %x", o.directTrial, i, at-guard, len(got), got[at],
					o.want[i][at])
			}
			return nil
		})
	}
	return err
}

func (r *rig) tryDirect(x directTrial, seed uint64) {
	r.t.Helper()
	o := r.mail(x, seed)
	r.resetDirect(o)
	r.runDirect(o)
	r.checkDirect(o)
	r.forget()
}

// forget frees the memory of operations.
func (r *rig) forget() {
	r.t.Helper()
	for _, m := range r.ranks {
		r.with(m, func() error {
			for _, p := range m.free {
				require.NoError(r.t, r.d.MemFree(p))
			}
			m.free = nil
			return nil
		})
	}
}

// TestDirect compares every kind with what it should be, bit for bit, for counts
// and places of all sorts, up to some rounds.
func TestDirect(t *testing.T) {
	tier.Long(t)
	types := []kernels.DataType{kernels.BFloat16, kernels.Float32, kernels.Int8, kernels.Float64}
	for _, n := range []int{2, 3, 4, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			cfg := cudaemu.Config{Seed: uint64(n), Link: link(uint64(n)), Plain: unchecked(n%2 == 0)}
			r := newRig(t, emulated(t, n, cfg), mailed(n),
				options(n))
			for _, d := range collective.All() {
				for i, bytes := range []int{0, 8, 120, 104, 1000, 16001} {
					ty := types[(i+int(d))%len(types)]
					x := directTrial{d: d, root: sched.Rank(i % n), t: ty, count: bytes / ty.Size(), inPlace: i%3 == 2}
					if n == 8 && bytes > 1000 || !tier.Pairs() && (i+int(d)+n)%6 > 0 {
						continue
					}
					if d.Reduces() {
						x.op = &kernels.Sum
					}
					r.tryDirect(x, uint64(10*i))
					x.in, x.out, x.inPlace = 1, 2, !x.inPlace
					x.count |= 1
					r.tryDirect(x, uint64(10*i+1))
				}
			}
		})
	}
}
