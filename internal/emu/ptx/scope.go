package ptx

import "strconv"

// A body is a function while it is read.
type body struct {
	*Func
	used   map[string]int // names in the function after renaming, with the suffix to try next
	scopes []*scope       // innermost last
}

// A scope is what braces enclose.
type scope struct {
	symbols map[string]symbol
	pending []labelUse
	open    token
}

// A labelUse is a label somewhere, to be found when its scope ends: as an
// operand of an instruction, or as an entry of a table.
type labelUse struct {
	name    token
	instr   int
	operand int
	table   string // if not empty, operand is the index in it
}

// declareLocal makes a name in the innermost scope. If the function or the
// module has it already it gets a suffix, so that scopes can be flattened.
func (p *parser) declareLocal(b *body, t token, s symbol) string {
	in := b.scopes[len(b.scopes)-1].symbols
	if _, ok := in[t.text]; ok {
		p.failAt(t, "%s is declared already", t)
	}
	if _, ok := specials[t.text]; ok {
		p.failAt(t, "%s is a special register, expected another name", t)
	}
	taken := func(name string) bool {
		_, local := b.used[name]
		_, global := p.globals[name]
		return local || global || name == b.Name
	}
	s.name = t.text
	for i := b.used[t.text]; taken(s.name); {
		i++
		b.used[t.text] = i
		s.name = t.text + "$" + strconv.Itoa(i)
	}
	b.used[s.name] = 0
	in[t.text] = s
	return s.name
}

// find looks a name up, in the innermost scope first.
func (p *parser) find(b *body, name string) (symbol, bool) {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if s, ok := b.scopes[i].symbols[name]; ok {
			return s, true
		}
	}
	s, ok := p.globals[name]
	return s, ok
}

// closeScope resolves the labels that were used in the innermost scope, or
// leaves them to the one around it.
func (p *parser) closeScope(b *body) {
	last := len(b.scopes) - 1
	inner := b.scopes[last]
	for _, use := range inner.pending {
		s, ok := inner.symbols[use.name.text]
		switch {
		case ok && s.kind != labelSymbol:
			p.failAt(use.name, "%s is not a label, expected one", use.name)
		case !ok && last == 0:
			p.failAt(use.name, "label %s is not in this function", use.name)
		case !ok:
			b.scopes[last-1].pending = append(b.scopes[last-1].pending, use)
		case use.table != "":
			b.Tables[use.table][use.operand] = s.name
		default:
			o := &b.Body[use.instr].Operands[use.operand]
			o.Name, o.Target = s.name, s.index
		}
	}
	b.scopes = b.scopes[:last]
}

// label makes a label of the next instruction, or of the table of labels or the prototype that follows.
func (p *parser) label(b *body, t token) {
	if p.tok.is(".callprototype") || p.tok.is(".calltargets") {
		p.prototype(b, t)
		return
	}
	if !p.tok.is(".branchtargets") {
		name := p.declareLocal(b, t, symbol{kind: labelSymbol, index: len(b.Body)})
		b.Labels[name] = len(b.Body)
		return
	}
	p.advance()
	name := p.declareLocal(b, t, symbol{kind: tableSymbol})
	in := b.scopes[len(b.scopes)-1]
	for {
		in.pending = append(in.pending, labelUse{name: p.name("a label"), operand: len(b.Tables[name]), table: name})
		b.Tables[name] = append(b.Tables[name], "")
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}
