package ptx

import (
	"encoding/binary"
	"math"
)

// maxInit bounds what an initialiser may hold, in bytes.
const maxInit = 1 << 24

// initialiser parses = value or = {values} into v.Init and v.Relocs. If open,
// the values say how many elements there are.
func (p *parser) initialiser(v *Var, open bool) {
	at := p.expect("=")
	if v.Space != Global && v.Space != Const {
		p.failAt(at, "an initialiser of a .%s variable, expected none: only .global and .const have them", v.Space)
	}
	n := 0
	element := func() {
		if !open && n >= v.Count || n*v.Type.Size() >= maxInit {
			p.failAt(p.tok, "too many values, expected %d", n)
		}
		p.initial(v, n)
		n++
	}
	if !p.tok.is("{") {
		element()
	} else {
		p.advance()
		for !p.tok.is("}") {
			if p.tok.is("{") {
				p.failAt(p.tok, "an array of arrays, expected values")
			}
			element()
			if !p.accept(",") {
				break
			}
		}
		p.expect("}")
	}
	if open {
		v.Count = n
	}
	end := 0 // of the last element that is not zero, or is an address
	for i, b := range v.Init {
		if b != 0 {
			end = i + 1
		}
	}
	if k := len(v.Relocs); k > 0 {
		end = max(end, v.Relocs[k-1].Offset+v.Type.Size())
	}
	v.Init = v.Init[:end]
	if end == 0 {
		v.Init = nil
	}
}

// initial parses one element: a constant, or an address as name, name+4 or generic(name)+4.
func (p *parser) initial(v *Var, n int) {
	t := p.tok
	if t.kind == wordToken && !t.is("WARP_SZ") {
		if v.Type.Size()*8 != p.module.AddressSize || v.Type.Float() {
			p.failAt(t, "%s, expected a number: an address is of %d bits", t, p.module.AddressSize)
		}
		r := Reloc{Offset: n * v.Type.Size()}
		if r.Generic = p.accept("generic"); r.Generic {
			p.expect("(")
		}
		name := p.name("a variable or a function")
		s, ok := p.globals[name.text]
		if !ok || s.kind != varSymbol && s.kind != funcSymbol {
			p.failAt(name, "%s is not declared, expected a variable or a function", name)
		}
		r.Name = name.text
		if r.Generic {
			p.expect(")")
		}
		r.Addend = int64(p.offset())
		v.Relocs = append(v.Relocs, r)
		v.Init = append(v.Init, make([]byte, v.Type.Size())...)
		return
	}
	x := p.constant()
	bits := x.Imm
	switch {
	case v.Type == F32 && x.Float == F64:
		bits = uint64(math.Float32bits(float32(math.Float64frombits(bits))))
	case v.Type == F64 && x.Float == F32:
		bits = math.Float64bits(float64(math.Float32frombits(uint32(bits))))
	case v.Type.Float() && (x.Float == NoType || v.Type != F32 && v.Type != F64),
		!v.Type.Float() && x.Float != NoType:
		p.failAt(t, "%s does not fit .%s, expected a constant of that type", t, v.Type)
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	if int64(bits) < 0 && x.Float == NoType {
		binary.LittleEndian.PutUint64(b[8:], math.MaxUint64)
	}
	v.Init = append(v.Init, b[:v.Type.Size()]...)
}

// offset is the sum of the + constants after a base; + - constant subtracts.
func (p *parser) offset() (sum uint64) {
	for p.accept("+") {
		t := p.tok
		x := p.binary(precedence["+"], 0)
		if x.Float != NoType {
			p.failAt(t, "a float, expected an offset in bytes")
		}
		sum += x.Imm
	}
	return sum
}
