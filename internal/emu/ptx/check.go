package ptx

import (
	"fmt"
	"slices"
)

// check compares an instruction's operands with the table; it says what is wrong.
func (p *parser) check(b *body, f *form, in *Instr) string {
	if f.op == "call" {
		return "" // checked while parsing, against the function
	}
	roles := f.spec.roles
	required := 0
	for _, r := range roles {
		if !r.optional {
			required++
		}
	}
	n := len(in.Operands)
	if n < required || n > len(roles) {
		return fmt.Sprintf("%d operands, expected %s", n, count(required, len(roles)))
	}
	if size := in.Vec; size > 1 && size*in.Types[0].Size() > 16 {
		return fmt.Sprintf("a vector of %d bytes, expected 16 at most", size*in.Types[0].Size())
	}
	if f.op == "cp" && in.Has("bulk") && required < len(roles) && (n == len(roles)) != in.Has("L2::cache_hint") {
		return fmt.Sprintf("%d operands, expected a cache policy as the last one with .L2::cache_hint, and only there", n)
	}
	optional := n - required
	i := 0
	for _, r := range roles {
		if r.optional {
			if optional == 0 {
				continue
			}
			optional--
		}
		if err := p.checkOperand(b, f, r, &in.Operands[i]); err != "" {
			return fmt.Sprintf("operand %d is %s", i+1, err)
		}
		i++
	}
	if f.op == "cvt" {
		return checkConvert(in)
	}
	return ""
}

func count(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// typeOf is the type of an operand in the role; NoType for an address of any width.
func (r role) typeOf(f *form) Type {
	switch {
	case r.kind == 'q':
		return Pred
	case r.typ != NoType:
		return r.typ
	case r.sel == '1' && len(f.types) > 1:
		return f.types[1]
	case r.sel == 'a' || len(f.types) == 0:
		return NoType
	case r.sel == 'w':
		return wide[f.types[0]]
	}
	return f.types[0]
}

var wide = map[Type]Type{U16: U32, S16: S32, U32: U64, S32: S64}

func (p *parser) checkOperand(b *body, f *form, r role, o *Operand) string {
	t := r.typeOf(f)
	if o.Not && r.kind != 'q' {
		return "negated, expected it plain"
	}
	if o.Kind == SpecialOperand && (f.op == "mov" || f.op == "cvt") {
		return checkSpecial(o, t)
	}
	switch r.kind {
	case 'd':
		if o.Kind == SinkOperand && sinks[f.op] {
			return ""
		}
		return b.checkRegister(o, t, false)
	case 'D':
		return b.checkVector(o, f, t, true)
	case 's', 'q':
		return b.checkSource(o, t, false)
	case 'S':
		return b.checkVector(o, f, t, false)
	case 'P':
		return b.checkPair(o, Pred)
	case 'e':
		if f.op == "shfl" && o.Kind == PairOperand && o.Elems[0].Kind == SinkOperand {
			return "without a destination, expected one"
		}
		return b.checkPair(o, t)
	case 'm':
		return p.checkAddress(b, f, o)
	case 'b', 'n':
		return b.checkBarrier(o, r.kind == 'n')
	case 'F':
		return b.checkFragment(o, fragmentOf(f, r.sel))
	case 'V', 'M':
		return b.checkMove(o, t, r.kind == 'M')
	}
	return b.checkFixed(r, o)
}

// checkFixed checks an operand that is known before the program runs: a constant, a label or a table.
func (b *body) checkFixed(r role, o *Operand) string {
	switch {
	case r.kind == 'i' && (o.Kind != ImmOperand || o.Float != NoType):
		return "not an integer constant, expected one"
	case r.kind == 'l' && o.Kind != LabelOperand:
		return "not a label, expected one"
	case r.kind == 't' && (o.Kind != NameOperand || b.Tables[o.Name] == nil):
		return "not a table of labels, expected one of .branchtargets"
	}
	return ""
}

// sinks are the operations whose result may go nowhere, as _.
var sinks = map[string]bool{"atom": true, "mbarrier": true}

// fits reports whether a register of type r may stand where an instruction says t.
func fits(t, r Type) bool {
	if t == NoType {
		return r.Size() >= 4 && !r.Float()
	}
	if t == Pred || r == Pred {
		return t == r
	}
	if t.Size() != r.Size() {
		return false
	}
	ct, cr := types[t].class, types[r].class
	return ct == bits || cr == bits || ct != float && cr != float || t == r
}

// fitsWider is fits for memory accesses and conversions, whose registers may
// be wider than what they hold.
func fitsWider(t, r Type) bool {
	if fits(t, r) || t == Pred || r == Pred || r.Size() <= t.Size() {
		return fits(t, r)
	}
	return types[t].class == bits || types[r].class == bits || !t.Float() && !r.Float()
}

func (b *body) checkRegister(o *Operand, t Type, wider bool) string {
	if o.Kind != RegOperand {
		return "not a register, expected one" + ofType(t)
	}
	r := b.Regs[o.Reg].Type
	if fits(t, r) || wider && fitsWider(t, r) {
		return ""
	}
	return fmt.Sprintf("%s of type .%s, expected one%s", b.Regs[o.Reg].Name, r, ofType(t))
}

func ofType(t Type) string {
	if t == NoType {
		return " of 32 or 64 bits"
	}
	return " that fits ." + t.String()
}

func (b *body) checkSource(o *Operand, t Type, wider bool) string {
	switch o.Kind {
	case ImmOperand:
		return checkConstant(o, t)
	case SpecialOperand:
		return "a special register, expected it moved to another one first"
	}
	return b.checkRegister(o, t, wider)
}

// checkSpecial checks how mov and cvt read a special register: the whole, or the lower
// half of a counter.
func checkSpecial(o *Operand, t Type) string {
	s := specials[o.Name].typ
	half := s == U32 && fits(t, U16) || o.Name == "%gridid" && fits(t, U32)
	if fits(t, s) || half {
		return ""
	}
	return fmt.Sprintf("%s of type .%s, expected one%s", o.Name, s, ofType(t))
}

// checkBarrier checks which barrier, or how many threads meet there.
func (b *body) checkBarrier(o *Operand, threads bool) string {
	switch {
	case o.Kind == ImmOperand && threads && o.Imm%32 != 0:
		return fmt.Sprintf("%d threads, expected a multiple of 32", int64(o.Imm))
	case o.Kind == ImmOperand && !threads && o.Imm > 15:
		return fmt.Sprintf("barrier %d, expected 0 to 15", int64(o.Imm))
	}
	return b.checkSource(o, U32, false)
}

func checkConstant(o *Operand, t Type) string {
	switch {
	case o.Float == NoType && (t == F32 || t == F64):
		return fmt.Sprintf("an integer, expected a constant of type .%s, like 0f3F800000", t)
	case o.Float == NoType && t.Float():
		return fmt.Sprintf("a constant, expected a register that fits .%s", t)
	case o.Float != NoType && t != F32 && t != F64 && !(types[t].class == bits && t.Size() == o.Float.Size()):
		return "a float, expected an integer"
	}
	return ""
}

// checkVector checks the operands of ld and st: one, or the number of .v2 or .v4.
func (b *body) checkVector(o *Operand, f *form, t Type, dst bool) string {
	one := func(o *Operand) string {
		if dst {
			return b.checkRegister(o, t, true)
		}
		return b.checkSource(o, t, true)
	}
	if f.vec == 1 && o.Kind != VecOperand {
		return one(o)
	}
	if o.Kind != VecOperand || len(o.Elems) != f.vec {
		return fmt.Sprintf("not a vector of %d, expected one", f.vec)
	}
	var regs []Type // types of the instruction's registers, which have to agree
	for i := range o.Elems {
		e := &o.Elems[i]
		if dst && e.Kind == SinkOperand {
			continue
		}
		if err := one(e); err != "" {
			return err
		}
		if e.Kind != RegOperand {
			continue
		}
		r := b.Regs[e.Reg].Type
		for _, other := range regs {
			if !fits(other, r) {
				return fmt.Sprintf("a vector of .%s and .%s, expected one type", other, r)
			}
		}
		regs = append(regs, r)
	}
	return ""
}

// checkPair checks d, or d|p with a predicate.
func (b *body) checkPair(o *Operand, t Type) string {
	if o.Kind != PairOperand {
		return b.checkRegister(o, t, false)
	}
	if o.Elems[0].Kind != SinkOperand {
		if err := b.checkRegister(&o.Elems[0], t, false); err != "" || o.Elems[1].Kind == SinkOperand {
			return err
		}
	}
	return b.checkRegister(&o.Elems[1], Pred, false)
}

// checkMove checks an operand of mov: a value, the address of a variable, or a vector
// of the type's width.
func (b *body) checkMove(o *Operand, t Type, src bool) string {
	switch {
	case o.Kind == NameOperand && src:
		if t.Size() < 4 || t.Float() {
			return fmt.Sprintf("an address, expected a value that fits .%s", t)
		}
		return ""
	case o.Kind != VecOperand && src:
		return b.checkSource(o, t, false)
	case o.Kind != VecOperand:
		return b.checkRegister(o, t, false)
	}
	if types[t].class != bits || len(o.Elems) != 2 && len(o.Elems) != 4 || t.Size()%len(o.Elems) != 0 {
		return fmt.Sprintf("a vector of %d, expected one of 2 or 4, of a type .b16 to .b128", len(o.Elems))
	}
	part := map[int]Type{1: B8, 2: B16, 4: B32, 8: B64}[t.Size()/len(o.Elems)]
	for i := range o.Elems {
		e := &o.Elems[i]
		check := b.checkRegister
		if src {
			check = b.checkSource
		}
		if e.Kind == SinkOperand && !src {
			continue
		}
		if err := check(e, part, false); err != "" {
			return err
		}
	}
	return ""
}

// shortSpaces are the spaces that addresses of 32 bits reach in any module.
var shortSpaces = []Space{Shared, Local, Const, Param}

// checkAddress checks that the space of a variable is the one accessed.
func (p *parser) checkAddress(b *body, f *form, o *Operand) string {
	if o.Kind != AddrOperand {
		return "not an address in brackets, expected one"
	}
	if f.op == "cp" || (f.op == "st" || f.op == "red") && f.mods[0] == "async" {
		return "" // several spaces
	}
	if o.Reg >= 0 && p.module.AddressSize == 64 && b.Regs[o.Reg].Type.Size() == 4 &&
		!slices.Contains(shortSpaces, f.space) {
		return "an address of 32 bits, expected 64"
	}
	if o.Name == "" && o.Reg < 0 && f.space != Local {
		return "a number as address, expected a register or a variable"
	}
	if o.Name == "" || f.space == Generic {
		return ""
	}
	var s Space
	if v := b.variable(o.Name); v != nil {
		s = v.Space
		if f.op == "st" && slices.ContainsFunc(b.Params, func(p Var) bool { return p.Name == v.Name }) {
			return "a parameter of the function, which cannot be written"
		}
	} else {
		s = p.globals[o.Name].space
	}
	if s != f.space {
		return fmt.Sprintf("a variable in .%s, expected one in .%s", s, f.space)
	}
	return ""
}

// checkConvert checks that a rounding is given where the conversion needs one, and only there.
func checkConvert(in *Instr) string {
	d, s := in.Types[0], in.Types[1]
	rounds, whole := false, false
	for _, m := range in.Mods {
		switch m {
		case "rn", "rz", "rm", "rp", "rna":
			rounds = true
		case "rni", "rzi", "rmi", "rpi":
			whole = true
		}
	}
	switch {
	case d == E4M3x2 || d == E5M2x2 || d == F16x2 || d == BF16x2 || d == TF32:
		return ""
	case d.Float() && s.Float():
		return checkRounding(d, s, rounds, whole)
	case !d.Float() && s.Float() && !whole:
		return fmt.Sprintf("to .%s from .%s without rounding to a whole number, expected .rni, .rzi, .rmi or .rpi", d, s)
	case !d.Float() && !s.Float() && (rounds || whole):
		return "rounding between integers, expected none"
	case d.Float() && !s.Float() && !rounds:
		return fmt.Sprintf("to .%s from .%s without rounding, expected .rn, .rz, .rm or .rp", d, s)
	case d.Float() && !s.Float() && whole:
		return "rounding to a whole number, expected .rn, .rz, .rm or .rp"
	}
	return ""
}

// checkRounding is checkConvert between floats.
func checkRounding(d, s Type, rounds, whole bool) string {
	switch {
	case d.Size() < s.Size() && !rounds:
		return fmt.Sprintf("to .%s from .%s without rounding, expected .rn, .rz, .rm or .rp", d, s)
	case d.Size() > s.Size() && (rounds || whole):
		return "rounding to a wider type, expected none"
	case d == s && rounds:
		return "rounding to the same type, expected .rni, .rzi, .rmi, .rpi or none"
	case d != s && whole:
		return "rounding to a whole number of another type, expected .rn, .rz, .rm or .rp"
	}
	return ""
}
