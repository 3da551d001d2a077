package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// A Cell is where the fragments of a warp hold an element of a matrix: from bit Shift on of a thread's register.
type Cell struct {
	Lane, Reg, Shift int
	Row, Col         int
}

// Cells is where mma has the elements of A, B or C of a type; D is as C.
//
// Eight rows of A, or eight columns of B, are of eight groups of four threads, and what a thread has of one lies in
// four pieces of a register, neighbours along K. Of C, thread after thread of a group has two neighbours in a row.
// Registers go on with the next eight rows of A, then with the next elements along K. The matrices of wmma, whose
// fragments PTX leaves open, lie as several of mma side by side.
//
// Source: PTX ISA 8.0, section 9.7.13.4, whose figures are cases of this.
func Cells(s ptx.Shape, matrix byte, t ptx.Type) []Cell {
	each := max(1, 32/elementBits(t)) // elements of a register
	var n int
	switch matrix {
	case 'A':
		n = s.M * s.K
	case 'B':
		n = s.K * s.N
	default:
		n = s.M * s.N
	}
	cells := make([]Cell, 0, n)
	for lane := range 32 {
		group, in := lane/4, lane%4
		for i := range n / 32 {
			reg, e := i/each, i%each
			c := Cell{Lane: lane, Reg: reg, Shift: e * elementBits(t)}
			switch matrix {
			case 'A':
				c.Row, c.Col = group+8*(reg%(s.M/8)), each*(in+4*(reg/(s.M/8)))+e
			case 'B':
				of := s.K / (4 * each) // registers of eight columns
				c.Row, c.Col = each*(in+4*(reg%of))+e, group+8*(reg/of)
			default:
				c.Row, c.Col = group+8*(i/2%(s.M/8)), 2*in+i%2+8*(i/2/(s.M/8))
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// elementBits is the width in bits of an element.
func elementBits(t ptx.Type) int { return elementOf(t).Bits() }
