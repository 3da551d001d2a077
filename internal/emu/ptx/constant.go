package ptx

import (
	"math"
	"strconv"
	"strings"
)

// maxDepth bounds how deep expressions and blocks nest.
const maxDepth = 64

// literal is a number as an operand.
func (p *parser) literal(t token) Operand {
	bad := func() {
		p.failAt(t, "%s is not a number, expected an integer, 0f and 8 hex digits, 0d and 16, or a decimal", t)
	}
	s := t.text
	if len(s) >= 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			v, err := strconv.ParseUint(s[2:], 16, 32)
			if err != nil || len(s) != 10 {
				bad()
			}
			return Operand{Kind: ImmOperand, Reg: -1, Imm: v, Float: F32}
		case 'd', 'D':
			v, err := strconv.ParseUint(s[2:], 16, 64)
			if err != nil || len(s) != 18 {
				bad()
			}
			return Operand{Kind: ImmOperand, Reg: -1, Imm: v, Float: F64}
		}
	}
	if !strings.HasPrefix(s, "0x") && !strings.HasPrefix(s, "0X") && strings.ContainsAny(s, ".eE") {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Contains(s, "_") {
			bad()
		}
		return Operand{Kind: ImmOperand, Reg: -1, Imm: math.Float64bits(v), Float: F64}
	}
	return Operand{Kind: ImmOperand, Reg: -1, Imm: p.integer(t)}
}

// integer is a decimal, 0x hexadecimal, 0b binary or 0 octal number, perhaps with a final U.
func (p *parser) integer(t token) uint64 {
	s := strings.TrimSuffix(t.text, "U")
	v, err := strconv.ParseUint(s, 0, 64) // base 0 also takes 0o and _, which PTX does not
	if err != nil || strings.ContainsAny(s, "_oO") {
		p.failAt(t, "%s is not an integer, expected decimal, 0x, 0b or octal, at most 64 bits", t)
	}
	return v
}

// constant parses an expression of constants: literals, unary - + ~ ! and the
// binary operators of C on integers. Floats take a sign only.
func (p *parser) constant() Operand { return p.binary(0, 0) }

var precedence = map[string]int{
	"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

func (p *parser) binary(above, depth int) Operand {
	x := p.unary(depth)
	for {
		op := p.tok
		prec := 0
		if op.kind == punctToken {
			prec = precedence[op.text]
		}
		if prec <= above {
			return x
		}
		p.advance()
		y := p.binary(prec, depth+1)
		if x.Float != NoType || y.Float != NoType {
			p.failAt(op, "%s of floats, expected integers", op)
		}
		x.Imm = p.combine(op, x.Imm, y.Imm)
	}
}

func (p *parser) combine(op token, x, y uint64) uint64 {
	switch op.text {
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "&":
		return x & y
	case "<<":
		return x << y
	case ">>":
		return uint64(int64(x) >> y)
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	if y == 0 {
		p.failAt(op, "division by zero in a constant")
	}
	if op.text == "/" {
		return uint64(int64(x) / int64(y))
	}
	return uint64(int64(x) % int64(y))
}

func (p *parser) unary(depth int) Operand {
	t := p.tok
	if depth > maxDepth {
		p.failAt(t, "an expression nested deeper than %d", maxDepth)
	}
	if t.kind == numberToken {
		p.advance()
		return p.literal(t)
	}
	switch {
	case t.is("WARP_SZ"):
		p.advance()
		return Operand{Kind: ImmOperand, Reg: -1, Imm: 32}
	case t.is("("):
		p.advance()
		x := p.binary(0, depth+1)
		p.expect(")")
		return x
	case t.is("+"):
		p.advance()
		return p.unary(depth + 1)
	case t.is("-"):
		p.advance()
		next := p.tok.text
		x := p.unary(depth + 1)
		switch {
		case x.Float == F32, x.Float == F64 && (strings.HasPrefix(next, "0d") || strings.HasPrefix(next, "0D")):
			p.failAt(t, "- before the bits of a float, expected them with the sign in them")
		case x.Float != NoType:
			x.Imm ^= 1 << 63
		default:
			x.Imm = -x.Imm
		}
		return x
	case t.is("~"), t.is("!"):
		p.advance()
		x := p.unary(depth + 1)
		if x.Float != NoType {
			p.failAt(t, "%s of a float, expected an integer", t)
		}
		if t.text == "~" {
			x.Imm = ^x.Imm
		} else if x.Imm == 0 {
			x.Imm = 1
		} else {
			x.Imm = 0
		}
		return x
	}
	p.failAt(t, "%s, expected a constant", t)
	return Operand{}
}

// size is a constant that counts something: not negative, at most max.
func (p *parser) size(what string, max uint64) int {
	t := p.tok
	x := p.constant()
	if x.Float != NoType || x.Imm > min(max, math.MaxInt) {
		p.failAt(t, "%s is out of range, expected 0 to %d", what, max)
	}
	return int(x.Imm)
}
