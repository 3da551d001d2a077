package ptx

import (
	"slices"
	"strconv"
	"strings"
)

// Parse reads a PTX text; name is for errors, which are of the form
// file:line:col: the fault, and what was expected. The module keeps text alive. Parse
// checks as an assembler does: names, the modifiers of each instruction and their
// order, number, kinds and types of operands. It does not check versions and targets;
// see Lint.
func Parse(name string, text []byte) (*Module, error) { return parse(name, text, false) }

// ParseOutside is Parse without the bodies of functions, which may hold anything. So it reads
// the kernels and their parameters where Parse does not know the instructions.
func ParseOutside(name string, text []byte) (*Module, error) { return parse(name, text, true) }

func parse(name string, text []byte, outside bool) (m *Module, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case syntaxError:
			m, err = nil, e.err
		default:
			panic(e)
		}
	}()
	p := &parser{
		lexer:   lexer{file: name, src: string(text), line: 1},
		module:  &Module{AddressSize: 32},
		globals: map[string]symbol{},
		locals:  map[string]token{},
		forms:   map[string]*form{},
		outside: outside,
	}
	p.advance()
	p.parseModule()
	return p.module, nil
}

// A parser reads a module, one token ahead.
type parser struct {
	lexer
	tok     token
	end     int // of the token before tok, in src
	module  *Module
	globals map[string]symbol
	// names that functions so far have and a later global must not, without those that begin with %
	locals  map[string]token
	forms   map[string]*form // instructions seen, by their name with modifiers
	arena   []Operand        // where operands are kept
	outside bool             // bodies are passed over
}

// A symbol is the meaning of a name.
type symbol struct {
	kind  symbolKind
	name  string // as in the module; see Module on renaming
	index int    // registers: in Func.Regs; functions: in Module.Funcs
	space Space  // of a variable
}

type symbolKind uint8

const (
	regSymbol symbolKind = iota + 1
	varSymbol
	funcSymbol
	tableSymbol
	labelSymbol
	protoSymbol
)

func (p *parser) failAt(t token, format string, args ...any) {
	p.fail(t.line, t.col, format, args...)
}

func (p *parser) advance() token {
	t := p.tok
	p.end = p.off
	p.tok = p.next()
	return t
}

// peek is the byte after the token ahead, 0 at the end.
func (p *parser) peek() byte {
	if p.off == len(p.src) {
		return 0
	}
	return p.src[p.off]
}

// accept takes the punctuation or word if it is next.
func (p *parser) accept(s string) bool {
	if p.tok.is(s) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(s string) token {
	if !p.tok.is(s) {
		p.failAt(p.tok, "%s, expected “%s”", p.tok, s)
	}
	return p.advance()
}

// word is a word that is a name.
func (p *parser) name(what string) token {
	if p.tok.kind != wordToken || strings.Contains(p.tok.text, ".") {
		p.failAt(p.tok, "%s, expected the name of %s", p.tok, what)
	}
	return p.advance()
}

// skipRest passes over the rest of a line.
func (p *parser) skipRest(line int) {
	for p.tok.kind != endToken && p.tok.line == line {
		p.advance()
	}
}

func (p *parser) parseModule() {
	p.header()
	linkage := ""
	for p.tok.kind != endToken {
		t := p.tok
		switch t.text {
		case ".visible", ".extern", ".weak", ".common":
			p.advance()
			if linkage != "" {
				p.failAt(t, "%s after .%s, expected a declaration", t, linkage)
			}
			linkage = t.text[1:]
			continue
		case ".entry", ".func":
			p.function(linkage)
		case ".global", ".const", ".shared":
			p.module.Vars = append(p.module.Vars, p.variables(linkage, p.declareGlobal)...)
		default:
			if linkage != "" || !p.debug() {
				p.failAt(t, "%s, expected a directive: .entry, .func, .global, .const, .shared, .visible, .extern or .weak", t)
			}
		}
		linkage = ""
	}
	if linkage != "" {
		p.failAt(p.tok, "%s, expected what .%s applies to", p.tok, linkage)
	}
}

// header parses .version, .target and .address_size.
func (p *parser) header() {
	for p.debug() {
	}
	p.expect(".version")
	t := p.advance()
	major, minor, ok := strings.Cut(t.text, ".")
	a, err1 := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err1 != nil || err2 != nil {
		p.failAt(t, "%s is not a version, expected like 7.0", t)
	}
	p.module.Version = Version{int(a), int(b)}
	p.expect(".target")
	t = p.name("an architecture, like sm_70")
	if _, _, ok := architecture(t.text); !ok {
		p.failAt(t, "%s is not an architecture, expected like sm_70", t)
	}
	p.module.Target = t.text
	for p.accept(",") {
		p.module.Options = append(p.module.Options, p.name("an option of .target").text)
	}
	if p.accept(".address_size") {
		t := p.tok
		p.module.AddressSize = p.size("the address size", 64)
		if p.module.AddressSize != 32 && p.module.AddressSize != 64 {
			p.failAt(t, "%s is not an address size, expected 32 or 64", t)
		}
	}
}

// architecture splits "sm_90a" into 90 and "a".
func architecture(s string) (sm int, suffix string, ok bool) {
	s, ok = strings.CutPrefix(s, "sm_")
	digits := strings.TrimRight(s, "af")
	sm, err := strconv.Atoi(digits)
	return sm, s[len(digits):], ok && err == nil && sm > 0 && digits[0] != '+'
}

// debug passes over directives without effect: pragmas, sections of debug information. It
// keeps source lines.
func (p *parser) debug() bool {
	switch p.tok.text {
	case ".loc":
		p.location()
	case ".file":
		p.sourceFile()
	case ".pragma":
		p.advance()
		for {
			if t := p.advance(); t.kind != stringToken {
				p.failAt(t, "%s, expected a pragma in quotes", t)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(";")
	case ".section":
		p.advance()
		p.advance()
		p.braces("a section")
	default:
		return false
	}
	return true
}

// braces passes over { to its }.
func (p *parser) braces(what string) {
	open := p.expect("{")
	for depth := 1; depth > 0; {
		switch t := p.advance(); {
		case t.kind == endToken:
			p.failAt(open, "%s without its end, expected }", what)
		case t.is("{"):
			depth++
		case t.is("}"):
			depth--
		}
	}
}

// declareGlobal makes a name of the module; what was declared extern may be defined later.
func (p *parser) declareGlobal(t token, s symbol) string {
	old, ok := p.globals[t.text]
	if ok && !(old.kind == s.kind && s.kind == funcSymbol) {
		p.failAt(t, "%s is declared already", t)
	}
	if at, ok := p.locals[t.text]; ok {
		p.failAt(t, "%s is a local name of a function already (line %d), expected variables and functions before the "+
			"functions that use their names", t, at.line)
	}
	if t.text[0] == '%' {
		p.failAt(t, "%s begins with %%, expected that of registers only", t)
	}
	s.name = t.text
	p.globals[t.text] = s
	return t.text
}

// alignment parses .align if it is there.
func (p *parser) alignment(natural int) int {
	if !p.accept(".align") {
		return natural
	}
	t := p.tok
	n := p.size("an alignment", 1<<16)
	if n == 0 || n&(n-1) != 0 {
		p.failAt(t, "alignment %s, expected a power of two", t)
	}
	return n
}

// variableTypes are those of variables and parameters.
var variableTypes = []Type{B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F16, F16x2, F32, F64}

func (p *parser) variableType() Type {
	t := p.tok
	typ := NoType
	if t.kind == wordToken && t.text[0] == '.' {
		typ = typeNames[t.text[1:]]
	}
	if !slices.Contains(variableTypes, typ) {
		p.failAt(t, "%s, expected the type of a variable: .b8 to .b128, .u8 to .u64, .s8 to .s64, .f16, .f16x2, .f32 or .f64",
			t)
	}
	p.advance()
	return typ
}

// maxVariable bounds the size of a variable in elements, so that sizes do not overflow.
const maxVariable = 1 << 40

// variables parses a declaration such as
//
//	.global .align 16 .b8 a[64] = {1, 2}, b[8];
func (p *parser) variables(linkage string, declare func(token, symbol) string) []Var {
	where := p.advance()
	v := Var{Space: spaces[where.text[1:]], Linkage: linkage, Extern: linkage == "extern"}
	align := p.alignment(0)
	v.Type = p.variableType()
	v.Align = max(align, v.Type.Size())
	if align != 0 && align < v.Type.Size() {
		p.failAt(where, "alignment %d of .%s, expected at least %d", align, v.Type, v.Type.Size())
	}
	var list []Var
	for {
		t := p.name("a variable")
		v := v
		v.Count = 1
		open := false
		if p.accept("[") {
			if open = p.tok.is("]"); !open {
				v.Count = p.size("the number of elements", maxVariable)
			}
			p.expect("]")
			if p.tok.is("[") {
				p.failAt(p.tok, "an array of arrays, expected one dimension")
			}
		}
		if open {
			v.Count = 0
		}
		v.Name = declare(t, symbol{kind: varSymbol, space: v.Space})
		if p.tok.is("=") {
			p.initialiser(&v, open)
		}
		if v.Count == 0 && !v.Extern {
			p.failAt(t, "%s has no size, expected [n], an initialiser or .extern", t)
		}
		list = append(list, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return list
}
