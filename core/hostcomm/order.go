// Reductions in order of rank in host memory: the Workplace that package rankorder carries them out in.

package hostcomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/mem"
)

// scratchOnHost is how many bytes of shares a rank holds at a time: they stay in a core's
// cache.
const scratchOnHost = 2 << 20

// inOrder carries out a reduction in order of rank.
func (h *Comm) inOrder(c *call.Call, r *request.Request) error {
	if c.Norm != nil {
		return h.Reduction().RunRows(*r, c.Kind, c.In.Slice(0, r.In), c.Norm.Row*r.Size, func(rows rankorder.Rows) error {
			rows.OnHost(c)
			return nil
		})
	}
	return h.Reduction().Run(*r, c.Kind, c.In.Slice(0, r.In), c.Out.Slice(0, r.Out))
}

// Reduction carries out reductions in order of rank in host memory. It is made on first use.
func (h *Comm) Reduction() *rankorder.Reduction {
	if h.reduction == nil {
		h.workplace = workplace{h: h, srcs: make([][]byte, h.life.Size)}
		h.reduction = rankorder.New(h.life.Rank, h.life.Size, &h.workplace, choice.WholeOnHost, scratchOnHost)
	}
	return h.reduction
}

// A workplace is a rankorder.Workplace in host memory.
type workplace struct {
	h       *Comm
	scratch [rankorder.Uses][]byte
	srcs    [][]byte
}

func (w *workplace) Scratch(which rankorder.Use, n int) (mem.Region, error) {
	if len(w.scratch[which]) < n {
		w.scratch[which] = make([]byte, n)
	}
	return mem.Host(w.scratch[which][:n]), nil
}

func (w *workplace) Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region,
	outL engine.Layout) error {
	a, _ := choice.Threshold(kind, w.h.chooser.Topo, outL.Chunk, call.Auto) // the same on all ranks
	p, err := w.h.compile(r.Part(kind, a))
	if err != nil {
		return err
	}
	j := &w.h.job
	j.Program, j.Reducer, j.Stamp, j.Each, j.Lend = p, nil, r.Stamp, r.Each, true
	j.In, j.Out, j.InL, j.OutL = in.Bytes(), out.Bytes(), inL, outL
	err = w.h.engine.Run(j)
	j.In, j.Out = nil, nil
	return err
}

func (w *workplace) Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error {
	n := dst.Len()
	if n == 0 {
		return nil
	}
	list := w.srcs[:srcs.Len()/n]
	for i := range list {
		list[i] = srcs.Slice(i*n, n).Bytes()
	}
	r.Reducer.CombineAll(dst.Bytes(), list, contributions, finish)
	clear(list)
	return nil
}
