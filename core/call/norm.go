package call

import (
	"fmt"
	"math"
	"strings"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A Norm is what follows the sum of an AllReduce or a ReduceScatter, for serving: its data are rows (tokens) of Row
// elements, to which a bias and a residual are added; each is divided by its root mean square (RMSNorm), weighted, and
// made narrower. kernels.Norm has the arithmetic, bit for bit the same on hosts and GPUs and by every algorithm: a
// row's results depend on that row alone, and not on the batch that it is in.
//
// Type is Float16, BFloat16 or Float32, Op Sum, and Count whole rows. Out gets the sums with bias and residual. All
// memory is where In is. An empty Region means that an input is not there, or an output not wanted. In an AllReduce
// Residual, Bias, Weight and Scale must be the same on all ranks. Out or Normed may be Residual, or the same rows of In
// (in a ReduceScatter the rank's share). Apart from that no output may overlap other memory.
type Norm struct {
	Row     int     // elements: a multiple of 8 bytes, 64 KiB at most
	Epsilon float32 // is added to the mean of squares
	PlusOne bool    // elements are multiplied by 1 + weight

	Residual     mem.Region // [Count]
	Bias, Weight mem.Region // [Row]
	Normed       mem.Region // [Count]

	// The normed rows in 8 bits, a byte for each element: Float8E4M3 or Int8, divided by a scale.
	Small    kernels.DataType
	SmallOut mem.Region // [Count]
	Scale    mem.Region // the scale of all rows, a float32; empty: each row gets a scale of its own
	Scales   mem.Region // the rows' own scales, a float32 each
}

// MaxRows is the most rows of a call with a Norm, on any rank.
const MaxRows = 1 << 20

// Arithmetic is the computation that makes the rows of a call of type t.
func (n *Norm) Arithmetic(t kernels.DataType) kernels.Norm {
	return kernels.Norm{Type: t, Row: n.Row, Epsilon: n.Epsilon, PlusOne: n.PlusOne, Small: n.Small}
}

// A normPart is one of a Norm's memories.
type normPart struct {
	name   string
	at     mem.Region
	bytes  int  // that the call uses
	needed bool // may not be empty
	output bool
	unit   int // alignment in bytes that a GPU needs
}

// parts are the memories of a call's Norm.
func (c *Call) parts() [8]normPart {
	n, size := c.Norm, c.Type.Size()
	all, row := c.Count*size, n.Row*size
	small := n.Small != 0 && c.Count > 0
	return [8]normPart{
		{"Norm.Residual", n.Residual, all, false, false, 8},
		{"Norm.Bias", n.Bias, row, false, false, 8},
		{"Norm.Weight", n.Weight, row, false, false, 8},
		{"Norm.Scale", n.Scale, 4, false, false, 4},
		{"Norm.Normed", n.Normed, all, false, true, 8},
		{"Norm.SmallOut", n.SmallOut, c.Count, small, true, 4},
		{"Norm.Scales", n.Scales, c.Count / n.Row * 4, small && n.Scale.Len() == 0, true, 4},
		{"Out", c.Out, all, false, true, 8},
	}
}

// Memories calls f for each memory of a call's Norm, Out included, that is not empty: with the part that the call uses,
// and the alignment in bytes that a GPU needs. It stops at the first error of f, and returns the error.
func (c *Call) Memories(f func(name string, r mem.Region, unit int) error) error {
	for _, p := range c.parts() {
		if p.at.Len() == 0 {
			continue
		}
		if err := f(p.name, p.at.Slice(0, p.bytes), p.unit); err != nil {
			return err
		}
	}
	return nil
}

// checkNorm finds what is wrong with the Norm of a call, the length of whose In is checked already.
func (c *Call) checkNorm(rank, ranks int) error {
	n := c.Norm
	a := n.Arithmetic(c.Type)
	if c.Kind != AllReduce && c.Kind != ReduceScatter {
		return invalid("a Norm follows an AllReduce or a ReduceScatter, and this is %v", c.Kind)
	}
	if c.Op.Kind != kernels.Sum.Kind {
		return invalid("a Norm follows a sum, and Op is %v", c.Op)
	}
	if err := a.Check(); err != nil {
		return invalid("Norm: %v", err)
	}
	rows := c.Count / n.Row
	switch {
	case c.Count%n.Row != 0:
		return invalid("Count is %d elements, which is no multiple of Norm.Row %d", c.Count, n.Row)
	case rows*c.Kind.Shares(ranks) > MaxRows:
		return invalid("%d rows of Norm.Row %d are more than %d", rows*c.Kind.Shares(ranks), n.Row, MaxRows)
	case n.Small == 0 && (n.SmallOut.Len() > 0 || n.Scale.Len() > 0 || n.Scales.Len() > 0):
		return invalid("Norm.SmallOut, Scale and Scales need Norm.Small: Float8E4M3 or Int8")
	case n.Scale.Len() > 0 && n.Scales.Len() > 0:
		return invalid("Norm.Scale is of all rows, Norm.Scales of each: give one of them")
	}
	parts := c.parts()
	for _, p := range parts {
		switch {
		case p.at.Len() == 0 && p.needed:
			return invalid("%s is empty, needs %d bytes for rows in %v", p.name, p.bytes, n.Small)
		case p.at.Len() == 0:
		case p.at.Len() < p.bytes:
			return invalid("%s has %d bytes, needs %d", p.name, p.at.Len(), p.bytes)
		case p.at.IsHost() == c.OnDevice() || p.at.Dev() != c.In.Dev() && c.Count > 0:
			return invalid("%s is not where In is: copy it there", p.name)
		}
	}
	in := c.In.Slice(0, c.Count*c.Kind.Shares(ranks)*c.Type.Size())
	mine := in
	if c.Kind == ReduceScatter {
		mine = in.Slice(rank*parts[7].bytes, parts[7].bytes)
	}
	for i, p := range parts {
		if p.at.Len() == 0 || !p.output {
			continue
		}
		at, whole := p.at.Slice(0, p.bytes), p.bytes == mine.Len() && p.name != "Norm.SmallOut" && p.name != "Norm.Scales"
		if at.Overlaps(in) && !(whole && at.Ptr() == mine.Ptr()) {
			return invalid("%s and In overlap, but not as the same rows", p.name)
		}
		for k, o := range parts {
			if k == i || o.at.Len() == 0 || !at.Overlaps(o.at.Slice(0, o.bytes)) {
				continue
			}
			if !(whole && k == 0 && at.Ptr() == o.at.Ptr()) {
				return invalid("%s and %s overlap", p.name, o.name)
			}
		}
	}
	return nil
}

// Rows are the part of a Sign that only a call with a Norm has: what all ranks must agree on about the Norm.
type Rows struct {
	Has     bool   // the call has a Norm
	Count   uint32 // rows of a rank's result
	Words   uint32 // of 8 bytes, in a row
	Epsilon uint32 // bits of a float32
	Flags   uint8
}

// Flags of Rows.
const (
	hasResidual = 1 << iota
	hasBias
	hasWeight
	plusOne
	toE4M3
	toInt8
	ownScale
)

// withRows stands for Sum in the stamp of a call with a Norm.
const withRows kernels.Kind = 15

const _ = uint(withRows - kernels.KindUser - 1) // withRows is the number of no operator

// rowsOf are the Rows of a call.
func rowsOf(c *Call) Rows {
	n := c.Norm
	r := Rows{true, uint32(c.Count / n.Row), uint32(n.Row * c.Type.Size() / 8), math.Float32bits(n.Epsilon), 0}
	flag := func(f uint8, is bool) {
		if is {
			r.Flags |= f
		}
	}
	flag(hasResidual, n.Residual.Len() > 0)
	flag(hasBias, n.Bias.Len() > 0)
	flag(hasWeight, n.Weight.Len() > 0)
	flag(plusOne, n.PlusOne)
	flag(toE4M3, n.Small == kernels.Float8E4M3)
	flag(toInt8, n.Small == kernels.Int8)
	flag(ownScale, n.Small != 0 && n.Scale.Len() == 0)
	return r
}

// stamp lays out a sign with Rows, in bits: in the place of count 21 of Count, 18 of Words and 7 of Flags, in the
// places of where and root the 32 of Epsilon and the last bit of Flags.
func (r Rows) stamp(seq uint32, kind Kind, typ kernels.DataType, a Algo) [2]uint64 {
	t := stamp(seq, kind, typ, withRows, a, uint16(r.Epsilon&MaxWhere), 0, 0, int(r.Epsilon>>15|uint32(r.Flags>>7)<<17)-1)
	t[1] |= (uint64(r.Count&(1<<21-1))<<25 | uint64(r.Words&(1<<18-1))<<7 | uint64(r.Flags&127)) << 18
	return t
}

// rowsIn are the Rows of a stamp, without Has.
func rowsIn(t [2]uint64) Rows {
	count, root := t[1]>>18, t[1]&(1<<18-1)
	return Rows{
		Count: uint32(count >> 25), Words: uint32(count >> 7 & (1<<18 - 1)),
		Epsilon: uint32(t[0]&MaxWhere) | uint32(root&(1<<17-1))<<15, Flags: uint8(count&127 | root>>17<<7),
	}
}

// of says in words what follows a sum of type t.
func (r Rows) of(t kernels.DataType) string {
	var b strings.Builder
	row := uint64(r.Words) * 8
	if size := t.Size(); t.Valid() && size > 0 {
		row /= uint64(size)
	}
	fmt.Fprintf(&b, "rows of %d", row)
	for i, what := range []string{" + residual", " + bias"} {
		if r.Flags>>i&1 != 0 {
			b.WriteString(what)
		}
	}
	fmt.Fprintf(&b, ", norm with epsilon %v", math.Float32frombits(r.Epsilon))
	switch r.Flags & (hasWeight | plusOne) {
	case hasWeight:
		b.WriteString(" and weight")
	case hasWeight | plusOne:
		b.WriteString(" and 1 + weight")
	}
	if r.Flags&toE4M3 != 0 {
		b.WriteString(", to float8e4m3")
	}
	if r.Flags&toInt8 != 0 {
		b.WriteString(", to int8")
	}
	if r.Flags&ownScale != 0 {
		b.WriteString(" by a row's own scale")
	}
	return b.String()
}
