package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// A Shape is the size of a product of matrices, D = A·B + C: A has M rows and K columns, B has N columns.
type Shape struct{ M, N, K int }

// ShapeOf is the shape among the modifiers of an instruction, such as .m16n8k16.
func ShapeOf(mods []string) (s Shape, ok bool) {
	for _, mod := range mods {
		m, rest, _ := strings.Cut(strings.TrimPrefix(mod, "m"), "n")
		n, k, three := strings.Cut(rest, "k")
		var errs [3]error
		s.M, errs[0] = strconv.Atoi(m)
		s.N, errs[1] = strconv.Atoi(n)
		s.K, errs[2] = strconv.Atoi(k)
		if strings.HasPrefix(mod, "m") && three && errs == [3]error{} {
			return s, true
		}
	}
	return Shape{}, false
}

// A fragment is what a thread holds of a matrix: n registers.
type fragment struct {
	n   int
	typ Type // of a register
}

// fragmentOf is that of an operand in the role of a matrix: A, B, C or D of mma and wmma, or M for the matrices of
// ldmatrix and stmatrix, of which each takes a register.
func fragmentOf(f *form, matrix byte) fragment {
	if matrix == 'M' {
		for _, mod := range f.mods {
			if n, err := strconv.Atoi(strings.TrimPrefix(mod, "x")); err == nil {
				return fragment{n, B32}
			}
		}
	}
	s, _ := ShapeOf(f.mods)
	elements, t := 0, f.matrixType(matrix)
	switch matrix {
	case 'A':
		elements = s.M * s.K
	case 'B':
		elements = s.K * s.N
	default:
		elements = s.M * s.N
	}
	each := t.Bits() * elements / 32 // bits that a thread holds
	if f.op == "wmma" && t == F16 && (matrix == 'A' || matrix == 'B') {
		return fragment{8, B32} // of any shape: elements are held several times
	}
	switch t {
	case F64:
		return fragment{each / 64, F64}
	case F32, S32:
		return fragment{each / 32, t}
	}
	return fragment{each / 32, B32}
}

// matrixType is the type of a matrix's elements. An instruction on one matrix has its alone, and wmma.mma of f16 those
// of D and C.
func (f *form) matrixType(matrix byte) Type {
	switch {
	case len(f.types) == 4:
		return f.types[strings.IndexByte("DABC", matrix)]
	case len(f.types) == 2 && matrix == 'C':
		return f.types[1]
	case len(f.types) == 2 && matrix != 'D':
		return F16
	}
	return f.types[0]
}

// checkFragment checks the registers of a fragment. One register may stand without braces.
func (b *body) checkFragment(o *Operand, want fragment) string {
	regs := o.Elems
	if o.Kind != VecOperand {
		regs = []Operand{*o}
	}
	if len(regs) != want.n {
		return fmt.Sprintf("a fragment of %d registers, expected %d", len(regs), want.n)
	}
	for i := range regs {
		if err := b.checkRegister(&regs[i], want.typ, false); err != "" {
			return err
		}
	}
	return ""
}
