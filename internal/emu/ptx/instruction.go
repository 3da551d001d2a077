package ptx

import (
	"strings"
)

// A form is an instruction's name, taken apart.
type form struct {
	op    string
	mods  []string
	types []Type
	space Space
	vec   int
	spec  *spec
}

// formOf takes a name such as ld.global.v4.u32 apart and finds its line in the
// table. The error says what is wrong with it.
func formOf(name string) (*form, error) {
	parts := strings.Split(name, ".")
	f := &form{op: parts[0], mods: parts[1:], vec: 1}
	if len(f.mods) == 0 {
		f.mods = nil
	}
	for _, mod := range f.mods {
		if t, ok := typeNames[mod]; ok {
			f.types = append(f.types, t)
			continue
		}
		if s, ok := spaces[mod]; ok && f.space == Generic {
			f.space = s
			continue
		}
		switch mod {
		case "v2":
			f.vec = 2
		case "v4":
			f.vec = 4
		case "v8":
			f.vec = 8
		}
	}
	var err error
	f.spec, err = specOf(f)
	return f, err
}

// instruction parses an instruction with its guard, or a label.
func (p *parser) instruction(b *body) {
	in := Instr{Guard: -1}
	guarded := p.accept("@")
	if guarded {
		in.GuardNot = p.accept("!")
		in.Guard = p.register(b, p.name("a predicate"))
		if b.Regs[in.Guard].Type != Pred {
			p.failAt(p.tok, "a guard of type .%s, expected a predicate", b.Regs[in.Guard].Type)
		}
	}
	t := p.tok
	if t.kind != wordToken {
		p.failAt(t, "%s, expected an instruction", t)
	}
	p.advance()
	if !guarded && p.tok.is(":") {
		if strings.Contains(t.text, ".") {
			p.failAt(t, "%s, expected the name of a label", t)
		}
		p.advance()
		p.label(b, t)
		return
	}
	name := t.text
	for p.tok.kind == wordToken && p.tok.text[0] == '.' {
		name += p.advance().text
	}
	if mods := strings.Split(name, "."); absent(mods[0], mods[1:]) != "" {
		in.Line, in.Op, in.Mods, in.Vec = t.line, mods[0], mods[1:], 1
		in.Absent = absent(in.Op, in.Mods)
		in.Operands = p.skipInstruction()
		in.Text = p.src[t.off:p.end]
		p.advance()
		b.Body = append(b.Body, in)
		return
	}
	f := p.forms[name]
	if f == nil {
		var err error
		if f, err = formOf(name); err != nil {
			p.failAt(t, "%v", err)
		}
		p.forms[name] = f
	}
	in.Line, in.Op, in.Mods, in.Types, in.Space, in.Vec = t.line, f.op, f.mods, f.types, f.space, f.vec
	if f.op == "call" {
		in.Operands = p.callOperands(b)
	} else {
		in.Operands = p.operands(b, &in)
	}
	if !p.tok.is(";") {
		p.failAt(p.tok, "%s, expected an operand, “,” or “;”", p.tok)
	}
	in.Text = p.src[t.off:p.end]
	if err := p.check(b, f, &in); err != "" {
		p.failAt(t, "%s: %s", clip(in.Text), err)
	}
	p.advance()
	b.Body = append(b.Body, in)
}

// operands parses a list of operands up to the semicolon.
func (p *parser) operands(b *body, in *Instr) []Operand {
	if p.tok.is(";") {
		return nil
	}
	// One array holds the operands of many instructions.
	first := len(p.arena)
	if cap(p.arena)-first < 8 {
		p.arena, first = make([]Operand, 0, 512), 0
	}
	for {
		p.arena = append(p.arena, p.operand(b, in, len(p.arena)-first))
		if !p.accept(",") {
			break
		}
	}
	n := len(p.arena)
	return p.arena[first:n:n]
}

// operand parses one operand; n is its number.
func (p *parser) operand(b *body, in *Instr, n int) Operand {
	t := p.tok
	switch {
	case t.kind == wordToken && !t.is("WARP_SZ"):
		p.advance()
		o := p.named(b, in, t, n)
		if p.tok.is("|") && (o.Kind == RegOperand || o.Kind == SinkOperand) {
			p.advance()
			second := p.named(b, in, p.name("a register"), n)
			return Operand{Kind: PairOperand, Reg: -1, Elems: []Operand{o, second}}
		}
		return o
	case t.is("["):
		return p.address(b)
	case t.is("{"):
		return p.list(b, in, "{", "}")
	case t.is("!") && class[p.peek()]&(startsWord|digit) == startsWord:
		p.advance()
		o := Operand{Kind: RegOperand, Not: true}
		o.Reg = p.register(b, p.name("a predicate"))
		if b.Regs[o.Reg].Type != Pred {
			p.failAt(t, "! of a register of type .%s, expected a predicate", b.Regs[o.Reg].Type)
		}
		return o
	}
	return p.constant()
}

// list parses operands between two brackets.
func (p *parser) list(b *body, in *Instr, left, right string) Operand {
	o := Operand{Kind: VecOperand, Reg: -1}
	p.expect(left)
	for !p.tok.is(right) {
		t := p.tok
		if t.is("{") || t.is("[") || t.is("!") || in.Op == "bra" {
			p.failAt(t, "%s within %s %s, expected a register or a constant", t, left, right)
		}
		e := p.operand(b, in, -1)
		if e.Kind == PairOperand {
			p.failAt(t, "a pair within %s %s, expected a register or a constant", left, right)
		}
		o.Elems = append(o.Elems, e)
		if !p.accept(",") {
			break
		}
	}
	p.expect(right)
	return o
}

// named is the operand of a word.
func (p *parser) named(b *body, in *Instr, t token, n int) Operand {
	if in.Op == "bra" {
		here := b.scopes[len(b.scopes)-1]
		here.pending = append(here.pending, labelUse{name: t, instr: len(b.Body), operand: n})
		return Operand{Kind: LabelOperand, Reg: -1, Name: t.text}
	}
	s, ok := p.find(b, t.text)
	switch {
	case ok && s.kind == regSymbol:
		return Operand{Kind: RegOperand, Reg: s.index}
	case ok && s.kind == varSymbol:
		return Operand{Kind: NameOperand, Reg: -1, Name: s.name, Imm: p.offset()}
	case ok && s.kind == funcSymbol && in.Op == "mov":
		return Operand{Kind: NameOperand, Reg: -1, Name: t.text}
	case ok && s.kind == tableSymbol && in.Op == "brx":
		return Operand{Kind: NameOperand, Reg: -1, Name: s.name}
	case ok:
		p.failAt(t, "%s is not a value, expected a register, a variable or a constant", t)
	case t.text == "_":
		return Operand{Kind: SinkOperand, Reg: -1}
	}
	if _, ok := specials[t.text]; !ok {
		p.failAt(t, "%s is not declared", t)
	}
	return Operand{Kind: SpecialOperand, Reg: -1, Name: t.text}
}

// register is the number of a register by its name.
func (p *parser) register(b *body, t token) int {
	s, ok := p.find(b, t.text)
	if !ok {
		p.failAt(t, "%s is not declared, expected a register", t)
	}
	if s.kind != regSymbol {
		p.failAt(t, "%s is not a register", t)
	}
	return s.index
}

// address parses [base + offset].
func (p *parser) address(b *body) Operand {
	p.expect("[")
	o := Operand{Kind: AddrOperand, Reg: -1}
	t := p.tok
	if t.kind == wordToken && !t.is("WARP_SZ") {
		p.advance()
		s, ok := p.find(b, t.text)
		switch {
		case !ok:
			p.failAt(t, "%s is not declared, expected a register or a variable", t)
		case s.kind == varSymbol:
			o.Name = s.name
		case s.kind != regSymbol:
			p.failAt(t, "%s is not an address, expected a register or a variable", t)
		default:
			o.Reg = s.index
			switch typ := b.Regs[s.index].Type; typ {
			case B32, U32, S32, B64, U64, S64:
			default:
				p.failAt(t, "an address of type .%s, expected 32 or 64 bits", typ)
			}
		}
		o.Imm = p.offset()
	} else {
		x := p.constant()
		if x.Float != NoType {
			p.failAt(t, "a float as address, expected an integer")
		}
		o.Imm = x.Imm
	}
	p.expect("]")
	return o
}

// variable is one of the function's variables or parameters.
func (f *Func) variable(name string) *Var {
	for _, list := range [][]Var{f.Vars, f.Params, f.Results} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
