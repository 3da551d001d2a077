package grid

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

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

// A directRun is a directTrial with the memory of all ranks: one image for both buffers.
type directRun struct {
	directTrial
	work
}

// prepareDirect makes a directRun; it is not started.
func (r *rig) prepareDirect(x directTrial, seed uint64) *directRun {
	r.t.Helper()
	n, size := len(r.ranks), x.t.Size()
	rnd := rand.New(rand.NewPCG(seed, 3))
	o := &directRun{directTrial: x, work: work{name: x.String()}}
	o.queue = func(m *member) error {
		return m.engine.RunDirect(&o.jobs[m.rank], o.d, o.root, o.count*o.t.Size())
	}
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
		fresh := make([]byte, roundUp(max(begin+(inAt+in)*size, second+(outAt+out)*size)+guard, 16))
		fill(rnd, x.t, fresh)
		inAt, outAt = begin+inAt*size, second+outAt*size
		want := bytes.Clone(fresh)
		all = append(all, buffers{bytes.Clone(want[inAt:][:in*size]), want[outAt:][:out*size]})
		own, scalar := red, uintptr(0)
		if x.early {
			own = reducer(kernels.PreMulSum(float64(i + 3)))
			own.Load(all[i].in, all[i].in)
		}
		if x.scalar || x.early {
			scalar = r.scalar(m, own)
		}
		at := r.alloc(m, len(fresh)+256+i*x.skew) + uintptr(256-guard+i*x.skew)
		o.images = append(o.images, image{m, at, fresh, want})
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

func (r *rig) tryDirect(x directTrial, seed uint64) {
	r.t.Helper()
	r.once(r.prepareDirect(x, seed))
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
