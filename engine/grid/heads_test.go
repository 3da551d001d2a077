package grid

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// apartLinks are links of a board, but the heads of a queue lie in memory of their own at the receiver.
type apartLinks struct {
	Links
	rank  sched.Rank
	heads []uint64 // by receiver
	each  uint64   // bytes for a sender
}

func (l apartLinks) Send(to sched.Rank) (End, error) {
	e, err := l.Links.Send(to)
	e.Heads = l.heads[to] + uint64(l.rank)*l.each
	return e, err
}

func (l apartLinks) Recv(from sched.Rank) (End, error) {
	e, err := l.Links.Recv(from)
	e.Heads = l.heads[l.rank] + uint64(from)*l.each
	return e, err
}

// TestHeadsApart: heads may lie apart from the slots, for all ways to move slices, and for notes.
func TestHeadsApart(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		t.Run(fmt.Sprint("bulk ", bulk), func(t *testing.T) {
			const n = 2
			o := options(n)
			o.Bulk = bulk
			r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), o)
			each := 0
			for a := range sched.Rank(n) {
				for b := range sched.Rank(n) {
					g := r.board.Geometry(a, b)
					each = max(each, g.Lanes*g.HeadBytes())
				}
			}
			var heads []uint64
			for _, m := range r.ranks {
				r.with(m, func() error {
					at, err := r.d.MemAlloc(n * each)
					if err != nil {
						return err
					}
					t.Cleanup(func() { r.with(m, func() error { return r.d.MemFree(at) }) })
					heads = append(heads, uint64(at))
					return errors.Join(r.d.MemsetD8Async(at, 0, n*each, m.stream), r.d.StreamSynchronize(m.stream))
				})
			}
			for _, m := range r.ranks {
				m.engine.links = apartLinks{m.engine.links, m.rank, heads, uint64(each)}
			}
			r.try(trial{name: "allreduce", schedule: allReduce(n).schedule, t: kernels.Float32, op: &kernels.Sum, count: 999}, 1)
			r.try(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 700}, 2)
			r.once(r.prepareGroup([]sending{{0, 1, 200}, {1, 0, 3000}, {0, 1, 100}}, false, 3))
		})
	}
}
