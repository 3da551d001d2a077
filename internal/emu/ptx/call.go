package ptx

// callOperands parses (results), function, (arguments), prototype; either list may be missing, and a register as the
// function has a prototype.
func (p *parser) callOperands(b *body) []Operand {
	in := &Instr{Op: "call"}
	results := Operand{Kind: VecOperand, Reg: -1}
	args := results
	if p.tok.is("(") {
		results = p.list(b, in, "(", ")")
		p.expect(",")
	}
	t := p.name("a function")
	s, ok := p.find(b, t.text)
	if !ok || s.kind != funcSymbol && s.kind != regSymbol {
		p.failAt(t, "%s is not declared, expected a function, or a register with the address of one", t)
	}
	comma := p.accept(",")
	if comma && p.tok.is("(") {
		args = p.list(b, in, "(", ")")
		comma = p.accept(",")
	}
	if s.kind == regSymbol {
		if b.Regs[s.index].Type.Size() != 8 || !comma {
			p.failAt(t, "a call through %s, expected a register of 64 bits and a prototype", t)
		}
		name := p.name("a prototype")
		proto, ok := p.find(b, name.text)
		if !ok || proto.kind != protoSymbol {
			p.failAt(name, "%s is not a prototype, expected .callprototype or .calltargets of that name before", name)
		}
		want := b.Prototypes[proto.name]
		p.passes(b, t, "results", results, want.Results)
		p.passes(b, t, "arguments", args, want.Params)
		return []Operand{results, {Kind: RegOperand, Reg: s.index}, args, {Kind: NameOperand, Reg: -1, Name: proto.name}}
	}
	f := p.module.Funcs[s.index]
	if f.Entry {
		p.failAt(t, "a call of kernel %s, expected a function", t)
	}
	p.passes(b, t, "results", results, f.Results)
	p.passes(b, t, "arguments", args, f.Params)
	return []Operand{results, {Kind: NameOperand, Reg: -1, Name: t.text}, args}
}

// passes checks what a call gives or takes.
func (p *parser) passes(b *body, t token, what string, given Operand, want []Var) {
	if len(given.Elems) != len(want) {
		p.failAt(t, "%d %s of %s, expected %d", len(given.Elems), what, t, len(want))
	}
	for i, e := range given.Elems {
		v := b.variable(e.Name)
		switch {
		case e.Kind == NameOperand && v != nil && v.Space == Param:
			if v.Size() != want[i].Size() {
				p.failAt(t, "%s has %d bytes, expected %d", e.Name, v.Size(), want[i].Size())
			}
		case e.Kind == RegOperand && b.Regs[e.Reg].Type.Size() == want[i].Size():
		case e.Kind == ImmOperand && what == "arguments":
		default:
			p.failAt(t, "%s of %s that are not of .param, or of another size", what, t)
		}
	}
}

// prototype parses what follows a label: .callprototype (results) _ (parameters); or .calltargets f, g;
func (p *parser) prototype(b *body, label token) {
	var proto Prototype
	if p.advance().is(".callprototype") {
		if p.tok.is("(") {
			proto.Results, _ = p.params(b)
		}
		p.name("_")
		if p.tok.is("(") {
			proto.Params, _ = p.params(b)
		}
		p.performance(&Func{})
	} else {
		for {
			t := p.name("a function")
			s, ok := p.globals[t.text]
			if !ok || s.kind != funcSymbol {
				p.failAt(t, "%s is not declared, expected a function", t)
			}
			f := p.module.Funcs[s.index]
			proto = Prototype{f.Results, f.Params}
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect(";")
	b.Prototypes[p.declareLocal(b, label, symbol{kind: protoSymbol})] = proto
}
