package ptx

import (
	"maps"
	"strconv"
)

// function parses .entry or .func, with its body if it has one.
func (p *parser) function(linkage string) {
	where := p.advance()
	p.module.marks = append(p.module.marks, mark{line: where.line}) // those of the function before end
	f := &Func{Entry: where.text == ".entry", Linkage: linkage, Line: where.line, Labels: map[string]int{},
		Tables: map[string][]string{}, Prototypes: map[string]Prototype{}}
	b := &body{Func: f, used: map[string]int{}}
	b.scopes = []*scope{{symbols: map[string]symbol{}}}
	if !f.Entry && p.tok.is("(") {
		f.Results, f.ResultBytes = p.params(b)
	}
	name := p.name("a function")
	f.Name = name.text
	before, known := p.globals[f.Name]
	p.declareGlobal(name, symbol{kind: funcSymbol, index: len(p.module.Funcs)})
	p.module.Funcs = append(p.module.Funcs, f)
	if p.tok.is("(") {
		f.Params, f.ParamBytes = p.params(b)
	}
	p.performance(f)
	if p.accept(";") {
		f.Declare = true
	} else if p.outside {
		p.braces("a function")
	} else {
		p.block(b)
	}
	if known {
		p.redeclared(name, p.module.Funcs[before.index], f)
	}
	p.remember(b)
}

// redeclared checks the second of two that have the same name.
func (p *parser) redeclared(name token, old, f *Func) {
	if !old.Declare && !f.Declare {
		p.failAt(name, "function %s is defined already (line %d)", name, old.Line)
	}
	same := func(a, b []Var) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i].Size() != b[i].Size() || a[i].Align != b[i].Align {
				return false
			}
		}
		return true
	}
	if old.Entry != f.Entry || !same(old.Params, f.Params) || !same(old.Results, f.Results) {
		p.failAt(name, "function %s differs from its declaration (line %d)", name, old.Line)
	}
	if !old.Declare { // the name keeps meaning the definition
		p.globals[f.Name] = symbol{kind: funcSymbol, name: f.Name, index: len(p.module.Funcs) - 2}
	}
}

// remember keeps the names of a function, for declareGlobal.
func (p *parser) remember(b *body) {
	for name := range maps.Keys(b.used) {
		if name[0] != '%' {
			p.locals[name] = token{text: name, line: b.Line}
		}
	}
}

// params parses (.param .u64 a, .param .align 8 .b8 b[64]).
func (p *parser) params(b *body) (list []Var, bytes int) {
	p.expect("(")
	for !p.tok.is(")") {
		p.expect(".param")
		v := Var{Space: Param, Count: 1}
		align := p.alignment(0)
		v.Type = p.variableType()
		if p.accept(".ptr") { // describes a pointer's target; no effect
			if spaces[trimDot(p.tok.text)] != Generic {
				p.advance()
			}
			p.alignment(0)
		}
		v.Align = max(align, v.Type.Size())
		t := p.name("a parameter")
		if p.accept("[") {
			v.Count = p.size("the number of elements", 1<<16)
			p.expect("]")
		}
		if v.Name = t.text; v.Name != "_" { // of a prototype
			v.Name = p.declareLocal(b, t, symbol{kind: varSymbol, space: Param})
		}
		v.Offset = alignUp(bytes, v.Align)
		bytes = v.Offset + v.Size()
		list = append(list, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return list, bytes
}

func trimDot(s string) string {
	if s != "" && s[0] == '.' {
		return s[1:]
	}
	return s
}

func alignUp(n, align int) int { return (n + align - 1) &^ (align - 1) }

// performance parses the directives between parameters and body.
func (p *parser) performance(f *Func) {
	dims := func(what string) (d Dim) {
		d = Dim{1, 1, 1}
		for i := range d {
			d[i] = p.size(what, 1<<31)
			if i == 2 || !p.accept(",") {
				break
			}
		}
		return d
	}
	for {
		switch t := p.tok; t.text {
		case ".maxntid":
			p.advance()
			f.MaxThreads = dims("a number of threads")
		case ".reqntid":
			p.advance()
			f.ReqThreads = dims("a number of threads")
		case ".minnctapersm":
			p.advance()
			f.MinBlocks = p.size("a number of blocks", 1<<16)
		case ".maxnreg":
			p.advance()
			f.MaxRegs = p.size("a number of registers", 1<<16)
		case ".reqnctapercluster":
			p.advance()
			f.ReqCluster = dims("a number of blocks")
		case ".maxclusterrank":
			p.advance()
			f.MaxCluster = p.size("a number of blocks", 1<<16)
		case ".explicitcluster":
			p.advance()
			f.Explicit = true
		case ".noreturn":
			p.advance()
		default:
			if !p.debug() {
				return
			}
		}
	}
}

// block parses the body of a function.
func (p *parser) block(b *body) {
	b.scopes[0].open = p.expect("{")
	for len(b.scopes) > 0 {
		t := p.tok
		switch {
		case t.kind == endToken:
			p.failAt(b.scopes[len(b.scopes)-1].open, "{ without its }")
		case t.is("{"):
			p.advance()
			if len(b.scopes) > maxDepth {
				p.failAt(t, "blocks nested deeper than %d", maxDepth)
			}
			b.scopes = append(b.scopes, &scope{symbols: map[string]symbol{}, open: t})
		case t.is("}"):
			p.advance()
			p.closeScope(b)
		case t.is("@"):
			p.instruction(b)
		case t.kind != wordToken:
			p.failAt(t, "%s, expected an instruction, a label or a directive", t)
		case t.text[0] == '.':
			p.directive(b)
		default:
			p.instruction(b)
		}
	}
	p.layOut(b)
}

// directive parses a declaration within a body, or skips a directive without effect.
func (p *parser) directive(b *body) {
	switch t := p.tok; t.text {
	case ".reg":
		p.registers(b)
	case ".shared", ".local", ".param":
		declare := func(t token, s symbol) string { return p.declareLocal(b, t, s) }
		b.Vars = append(b.Vars, p.variables("", declare)...)
	default:
		if !p.debug() {
			p.failAt(t, "%s, expected a directive: .reg, .shared, .local, .param, .loc or .pragma", t)
		}
	}
}

// layOut gives the function's variables their offsets.
func (p *parser) layOut(b *body) {
	end := map[Space]*int{Shared: &b.SharedBytes, Local: &b.LocalBytes, Param: &b.CallBytes}
	for i := range b.Vars {
		v := &b.Vars[i]
		bytes := end[v.Space]
		v.Offset = alignUp(*bytes, v.Align)
		*bytes = v.Offset + v.Size()
	}
}

// maxRegisters bounds the n of %r<n>.
const maxRegisters = 1 << 16

// registerTypes are those of registers; narrower and packed formats live in .b16 and .b32.
var registerTypes = map[Type]bool{
	Pred: true, B16: true, B32: true, B64: true, B128: true, U16: true, U32: true, U64: true, S16: true, S32: true,
	S64: true,
	B8:  true, U8: true, S8: true, F16: true, F16x2: true, F32: true, F64: true,
}

// registers parses .reg .b32 %r<8>, a, b;
func (p *parser) registers(b *body) {
	p.advance()
	t := p.advance()
	typ := typeNames[trimDot(t.text)]
	if t.text == "" || t.text[0] != '.' || !registerTypes[typ] {
		p.failAt(t, "%s, expected the type of a register: .pred, .b8 to .b128, .u8 to .u64, .s8 to .s64, .f16, .f16x2, "+
			".f32 or .f64", t)
	}
	one := func(t token) {
		s := symbol{kind: regSymbol, index: len(b.Regs)}
		b.Regs = append(b.Regs, Reg{p.declareLocal(b, t, s), typ})
	}
	for {
		t := p.name("a register")
		if !p.accept("<") {
			one(t)
		} else {
			n := p.size("the number of registers", maxRegisters)
			p.expect(">")
			for i := range n {
				r := t
				r.text += strconv.Itoa(i)
				one(r)
			}
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}
