// Reductions of several ranks side by side, Workplaces that fail, and the size of a share.

package core_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A table is where ranks put the memory that they send, for the others to read.
type table struct {
	mu    sync.Mutex
	moved *sync.Cond
	come  int
	in    []mem.Region
	inL   []engine.Layout
}

// meet returns when all ranks have called it as often as this one.
func (t *table) meet() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.come++
	for until := (t.come + len(t.in) - 1) / len(t.in) * len(t.in); t.come < until; {
		t.moved.Wait()
	}
	t.moved.Broadcast()
}

// A seat is a Workplace of one rank at a table.
type seat struct {
	bench
	*table
	rank int
}

func (s *seat) Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region,
	outL engine.Layout) error {
	s.in[s.rank], s.inL[s.rank] = in, inL
	s.meet()
	for p := range s.in {
		from, n := 0, s.in[p].Len()
		if kind == call.AlltoAll {
			from, n = s.inL[p].Extent(s.rank)
		}
		if kind == call.Gather && s.rank != int(r.Key.Peer) {
			continue
		}
		to, room := outL.Extent(p)
		if room != n {
			return fmt.Errorf("%v: rank %d has %d bytes of room for %d of rank %d", kind, s.rank, room, n, p)
		}
		if dst, src := out.Slice(to, n), s.in[p].Slice(from, n); dst.Ptr() != src.Ptr() { // others read what lies there
			copy(dst.Bytes(), src.Bytes())
		}
	}
	s.meet()
	return nil
}

// TestOrder: each element is the contributions' combination in order of rank, in all reductions and sizes, also
// where ranks scale what they give.
func TestRankOrder(t *testing.T) {
	const ranks, root, room = 3, 1, 3 * 64
	type reduction struct {
		kind call.Kind
		out  int // elements of a rank that gets any
	}
	for _, test := range []reduction{
		{call.AllReduce, 0}, {call.AllReduce, 7}, {call.AllReduce, 48}, {call.AllReduce, 101},
		{call.Reduce, 0}, {call.Reduce, 5}, {call.Reduce, 16}, {call.Reduce, 41},
		{call.ReduceScatter, 5}, {call.ReduceScatter, 16}, {call.ReduceScatter, 41},
	} {
		for _, op := range []string{"sum", "avg", "premulsum"} {
			t.Run(fmt.Sprint(test.kind, " ", test.out, " ", op), func(t *testing.T) {
				n := test.out
				if test.kind == call.ReduceScatter {
					n *= ranks
				}
				ins, outs := make([][]float32, ranks), make([][]float32, ranks)
				shared := &table{in: make([]mem.Region, ranks), inL: make([]engine.Layout, ranks)}
				shared.moved = sync.NewCond(&shared.mu)
				for r := range ranks {
					outs[r] = make([]float32, test.out)
					for i := range n {
						ins[r] = append(ins[r], []float32{1e8, 1, -1e8}[(r+i)%3]+float32(r*i))
					}
				}
				var done sync.WaitGroup
				errs := make([]error, ranks)
				scale := func(r int) float32 { return float32(r + 2) }
				for r := range ranks {
					done.Go(func() {
						how := map[string]kernels.RedOp{"sum": kernels.Sum, "avg": kernels.Avg,
							"premulsum": kernels.PreMulSum(float64(scale(r)))}[op]
						reducer, err := kernels.NewReducer(kernels.Float32, how, ranks)
						if err != nil {
							panic(err)
						}
						q := request.Request{Reducer: reducer, Op: how.Kind, Size: 4, Unit: 4}
						q.Key.Peer = root
						out := mem.Of(outs[r])
						if test.kind == call.Reduce && r != root {
							out = mem.Region{}
						}
						errs[r] = rankorder.New(r, ranks, &seat{table: shared, rank: r}, 32, room).Run(q, test.kind, mem.Of(ins[r]), out)
					})
				}
				done.Wait()
				require.NoError(t, errors.Join(errs...))
				for r, out := range outs {
					want := make([]float32, test.out)
					for i := range want {
						if test.kind == call.Reduce && r != root {
							break
						}
						at := i
						if test.kind == call.ReduceScatter {
							at += r * test.out
						}
						for p := range ranks {
							x := ins[p][at]
							if op == "premulsum" {
								x *= scale(p)
							}
							want[i] += x
						}
						if op == "avg" {
							want[i] /= ranks
						}
					}
					if op == "avg" {
						require.InDeltaSlice(t, want, out, 8, "rank %d", r) // a float32 of 1e8 is exact to 8
					} else {
						require.Equal(t, want, out, "rank %d", r)
					}
				}
			})
		}
	}
}

// A broken Workplace fails at one of its calls.
type broken struct {
	bench
	left int
}

var errBroken = errors.New("broken")

func (b *broken) fails() error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return nil
}

func (b *broken) Scratch(which rankorder.Use, n int) (mem.Region, error) {
	r, err := b.bench.Scratch(which, n)
	return r, errors.Join(err, b.fails())
}

func (b *broken) Move(*request.Request, call.Kind, mem.Region, engine.Layout, mem.Region, engine.Layout) error {
	return b.fails()
}

func (b *broken) Combine(*request.Request, mem.Region, mem.Region, uint64, bool) error {
	return b.fails()
}

// TestFails: a reduction ends at the first call of its Workplace that fails, with that error.
func TestReductionFails(t *testing.T) {
	for _, kind := range []call.Kind{call.AllReduce, call.Reduce, call.ReduceScatter} {
		for _, elements := range []int{4, 120} {
			for fails := 0; ; fails++ {
				b := &broken{left: fails}
				in, out := make([]float32, elements), make([]float32, elements)
				if kind == call.ReduceScatter {
					in = make([]float32, 3*elements)
				}
				err := rankorder.New(0, 3, b, 32, 3*64).Run(request.Request{Op: kernels.KindPreMulSum, Size: 4, Unit: 4},
					kind, mem.Of(in),
					mem.Of(out))
				if b.left >= 0 {
					require.NoError(t, err)
					require.Greater(t, fails, 4, "%v of %d", kind, elements)
					break
				}
				require.ErrorIs(t, err, errBroken, "%v of %d, call %d", kind, elements, fails)
				require.Equal(t, -1, b.left, "goes on: %v of %d, call %d", kind, elements, fails)
			}
		}
	}
}

// TestShare: a share is whole lines and whole units, and at least one of them.
func TestShare(t *testing.T) {
	for _, test := range []struct{ scratch, unit, want int }{
		{3 * 1000, 4, 960}, {3 * 1024, 4, 1024}, {10, 4, 64}, {10, 0, 64}, {3 * 1000, 64, 960},
		{3 * 1000, 12, 768}, {10, 12, 768}, {3 * 1000, 128, 64 * 128},
	} {
		require.Equal(t, test.want, rankorder.Share(test.scratch, 3, test.unit), test)
	}
	f := rankorder.New(0, 3, &bench{}, 100, 3*64)
	for bytes, want := range map[int]call.Kind{64: call.AllGather, 65: call.AlltoAll} { // Whole is more than a share
		first, _ := f.Parts(call.AllReduce, bytes)
		require.Equal(t, want, first, bytes)
	}
}
