package rankorder

import (
	"encoding/binary"
	"math"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Rows are whole rows of a call with a Norm whose contributions lie in a rank's memory, one after the other.
type Rows struct {
	First         int        // their first row's number among the rows of the rank's outputs
	Shares        mem.Region // the contributions
	Contributions int        // how many there are
	Sums          mem.Region // for sums with bias and residual, the only output then; empty: all outputs are made
	Summed        bool       // the only contribution is a sum with bias and residual
}

// Bytes is how many bytes a contribution has.
func (rows *Rows) Bytes() int { return rows.Shares.Len() / rows.Contributions }

// Of is the part of an output or a residual r that belongs to these rows, whose contributions have row bytes each. r
// has n bytes a row.
func (rows *Rows) Of(r mem.Region, n, row int) mem.Region {
	if r.Len() == 0 {
		return r
	}
	return r.Slice(rows.First*n, rows.Bytes()/row*n)
}

// OnHost makes the outputs that a call in host memory wants of these rows, with the bits that GPUs make.
func (rows *Rows) OnHost(c *call.Call) {
	n := c.Norm
	a, row := n.Arithmetic(c.Type), n.Row*c.Type.Size()
	of := func(r mem.Region, n int) []byte { return bytesOf(rows.Of(r, n, row)) }
	whole := func(r mem.Region) []byte { return bytesOf(r.Slice(0, min(row, r.Len()))) }
	var k kernels.NormRows
	for i := range rows.Contributions {
		k.In = append(k.In, rows.Shares.Slice(i*rows.Bytes(), rows.Bytes()).Bytes())
	}
	if !rows.Summed {
		k.Residual, k.Bias = of(n.Residual, row), whole(n.Bias)
	}
	if rows.Sums.Len() > 0 {
		k.Sum = rows.Sums.Bytes()
	} else {
		k.Weight, k.Sum, k.Normed = whole(n.Weight), of(c.Out, row), of(n.Normed, row)
		k.Small, k.Scales = of(n.SmallOut, n.Row), of(n.Scales, 4)
		if n.Scale.Len() > 0 {
			k.Scale = math.Float32frombits(binary.LittleEndian.Uint32(n.Scale.Bytes()))
		}
	}
	a.Apply(&k)
}

func bytesOf(r mem.Region) []byte {
	if r.Len() == 0 {
		return nil
	}
	return r.Bytes()
}

// RunRows is Run for a call with a Norm, whose rows have row bytes. finish makes the outputs, or Sums, of some rows.
// When finish returns, the contributions have been read, or their reading is queued on the GPU: the scratch is used
// again.
func (f *Reduction) RunRows(q request.Request, kind call.Kind, in mem.Region, row int, finish func(Rows) error) error {
	f.request = q
	r, n := &f.request, f.size
	rows, room := in.Len()/row, max(1, f.ScratchBytes/n/row) // room: rows whose contributions are held at a time
	first, _ := f.Parts(kind, in.Len())
	switch {
	case n == 1:
		return finish(Rows{Shares: in, Contributions: 1})
	case kind == call.ReduceScatter:
		mine := rows / n
		for at := 0; at == 0 || at < mine; at += room {
			k := min(room, mine-at)
			for p := range n {
				f.offs[p], f.ns[p] = (p*mine+at)*row, k*row
			}
			l := engine.Layout{Off: f.offs, Len: f.ns}
			if err := f.summed(r, call.AlltoAll, in, l, k*row, Rows{First: at}, finish); err != nil {
				return err
			}
		}
		return nil
	case first == call.AllGather:
		return f.summed(r, first, in, even(1, in.Len()), in.Len(), Rows{}, finish)
	}
	for at := 0; at < rows; at += room * n {
		k := min(room*n, rows-at)
		l := engine.Even(k*row, n, row)
		off, own := l.Extent(f.rank)
		sums, err := f.workplace.Scratch(ForScaled, k*row)
		if err != nil {
			return err
		}
		mine := sums.Slice(off, own)
		part := Rows{First: at + off/row, Sums: mine}
		if err := f.summed(r, call.AlltoAll, in.Slice(at*row, k*row), l, own, part, finish); err != nil {
			return err
		}
		if err := f.workplace.Move(r, call.AllGather, mine, even(1, own), sums, l); err != nil {
			return err
		}
		if err := finish(Rows{First: at, Shares: sums, Contributions: 1, Summed: true}); err != nil {
			return err
		}
	}
	return nil
}

// summed moves the contributions of all ranks here, own bytes each, and calls finish with them.
func (f *Reduction) summed(
	r *request.Request, kind call.Kind, in mem.Region, l engine.Layout, own int, rows Rows, finish func(Rows) error,
) error {
	shares, err := f.workplace.Scratch(ForShares, f.size*own)
	if err != nil {
		return err
	}
	if err := f.workplace.Move(r, kind, in, l, shares, even(f.size, own)); err != nil || own == 0 {
		return err
	}
	rows.Shares, rows.Contributions = shares, f.size
	return finish(rows)
}
