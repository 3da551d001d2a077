package simt_test

import (
	"math/rand/v2"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A table is a matrix of small whole numbers, row by row, which all types hold and whose products tensor cores sum
// exactly.
type table struct {
	rows, cols int
	v          []int
}

// newTable is of random numbers of a type, from low to high.
func newTable(r *rand.Rand, rows, cols, low, high int) table {
	m := table{rows, cols, make([]int, rows*cols)}
	for i := range m.v {
		m.v[i] = low + r.IntN(high-low+1)
	}
	return m
}

// turned is the matrix with rows for columns.
func (m table) turned() table {
	t := table{m.cols, m.rows, make([]int, len(m.v))}
	for i := range m.v {
		t.v[i%m.cols*m.rows+i/m.cols] = m.v[i]
	}
	return t
}

// product is a·b + c.
func product(a, b, c table) table {
	d := table{c.rows, c.cols, make([]int, len(c.v))}
	for i := range d.v {
		d.v[i] = c.v[i]
		for k := range a.cols {
			d.v[i] += a.v[i/d.cols*a.cols+k] * b.v[k*b.cols+i%d.cols]
		}
	}
	return d
}

// words are the elements as they lie in memory, row after row.
func (m table) words(t ptx.Type) []uint32 {
	words := make([]uint32, (len(m.v)*t.Bits()+31)/32)
	for i, v := range m.v {
		b, at := encode(t, v), i*t.Bits()
		words[at/32] |= uint32(b << (at % 32))
		if t.Bits() == 64 {
			words[at/32+1] = uint32(b >> 32)
		}
	}
	return words
}

// encode is a whole number in a type that holds it.
func encode(t ptx.Type, v int) uint64 {
	f, ok := map[ptx.Type]struct{ exp, man int }{ptx.F16: {5, 10}, ptx.BF16: {8, 7}, ptx.TF32: {8, 23}, ptx.F32: {8, 23},
		ptx.F64: {11, 52}, ptx.E4M3: {4, 3}, ptx.E5M2: {5, 2}}[t]
	if !ok {
		return uint64(v) & (1<<t.Bits() - 1)
	}
	if v == 0 {
		return 0
	}
	sign := uint64(0)
	if v < 0 {
		sign, v = 1<<(f.exp+f.man), -v
	}
	exp := 0
	for v>>(exp+1) != 0 {
		exp++
	}
	man := uint64(v) << (63 - exp) << 1 // the leading bit is not held
	if man<<f.man != 0 {
		panic("not a number of the type")
	}
	return sign | uint64(exp+1<<(f.exp-1)-1)<<f.man | man>>(64-f.man)
}
