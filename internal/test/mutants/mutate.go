package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
)

// An edit replaces src[from:to]. It keeps the number of lines, so that code which is the same after it is compiled to
// the same bytes.
type edit struct {
	kind     string
	line     int
	generic  bool // in a function that is compiled where it is used
	from, to int
	text     string
}

// A mutant is a file with one edit.
type mutant struct {
	pkg  *pkg
	file string
	src  []byte
	edit
}

// whole is the whole file with the edit.
func (m *mutant) whole() []byte {
	return bytes.Join([][]byte{m.src[:m.from], []byte(m.text), m.src[m.to:]}, nil)
}

func (m *mutant) String() string {
	name := filepath.ToSlash(filepath.Join(m.pkg.folder(), filepath.Base(m.file)))
	before, after := brief(string(m.src[m.from:m.to])), brief(m.text)
	return fmt.Sprintf("%s:%d: %s: %s → %s; in %s", name, m.line, m.kind, before, after, brief(m.sourceLine()))
}

// sourceLine is the line on which the edit begins.
func (m *mutant) sourceLine() string {
	from := bytes.LastIndexByte(m.src[:m.from], '\n') + 1
	line, _, _ := bytes.Cut(m.src[from:], []byte("\n"))
	return string(line)
}

// brief is a text in one short line.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 90 {
		s = string(r[:89]) + "…"
	}
	if s == "" {
		return "nothing"
	}
	return "`" + s + "`"
}

// A mutator collects the edits of a file.
type mutator struct {
	src   []byte
	fset  *token.FileSet
	edits []edit
	until token.Pos // of the generic function that m is in
}

func (m *mutator) at(p token.Pos) int { return m.fset.Position(p).Offset }

// of is the text of a node.
func (m *mutator) of(n ast.Node) string { return string(m.src[m.at(n.Pos()):m.at(n.End())]) }

// add notes an edit of [from, to).
func (m *mutator) add(kind string, from, to token.Pos, text string) {
	a, b := m.at(from), m.at(to)
	if lines := bytes.Count(m.src[a:b], []byte("\n")) - strings.Count(text, "\n"); lines > 0 {
		text += strings.Repeat("\n", lines)
	}
	m.edits = append(m.edits, edit{kind, m.fset.Position(from).Line, from < m.until, a, b, text})
}

func (m *mutator) replace(kind string, n ast.Node, text string) { m.add(kind, n.Pos(), n.End(), text) }

// others are what an operator may be taken for.
var others = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"/"},
	token.AND: {"|"}, token.OR: {"&"}, token.XOR: {"&"}, token.AND_NOT: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
	token.ADD_ASSIGN: {"-=", "="}, token.SUB_ASSIGN: {"+="}, token.OR_ASSIGN: {"&=", "="}, token.INC: {"--"},
	token.DEC: {"++"},
}

func (m *mutator) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			m.condition(n.Cond)
		}
	case *ast.BinaryExpr:
		m.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			m.add("negation left out", n.OpPos, n.OpPos+1, "")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			m.replace("constant", n, "("+n.Value+" + 1)")
			m.replace("constant", n, "("+n.Value+" - 1)")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			m.replace("constant", n, other)
		}
	case *ast.CallExpr:
		m.call(n)
	case *ast.BranchStmt:
		if other := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]; other != "" {
			m.add("jump", n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), other)
		}
	case *ast.ReturnStmt:
		if k := len(n.Results) - 1; k >= 0 {
			if id, ok := n.Results[k].(*ast.Ident); ok && id.Name == "err" {
				m.replace("error dropped", id, "nil")
			}
		}
	case *ast.FuncDecl:
		if generic(n) {
			m.until = n.End()
		}
		m.early(n)
	case ast.Stmt:
		m.statement(n)
	}
}

// statement leaves out a statement that only does something.
func (m *mutator) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			m.replace("assignment left out", s, "")
		}
		m.operator(s.Tok, s.TokPos)
	case *ast.IncDecStmt:
		m.replace("assignment left out", s, "")
		m.operator(s.Tok, s.TokPos)
	case *ast.ExprStmt, *ast.SendStmt:
		m.replace("statement left out", s, "")
	case *ast.DeferStmt, *ast.GoStmt:
		m.replace("statement left out", s, "")
	}
}

// operator takes an operator for others.
func (m *mutator) operator(op token.Token, at token.Pos) {
	for _, other := range others[op] {
		m.add("operator", at, at+token.Pos(len(op.String())), other)
	}
}

// condition negates a condition. One that looks for an error also overlooks it.
func (m *mutator) condition(c ast.Expr) {
	text := m.of(c)
	m.replace("condition", c, "!("+text+")")
	if b, ok := c.(*ast.BinaryExpr); ok && b.Op == token.NEQ && strings.HasSuffix(m.of(b.X), "err") && m.of(b.Y) == "nil" {
		m.replace("error dropped", c, text+" && false")
	}
}

func (m *mutator) binary(b *ast.BinaryExpr) {
	m.operator(b.Op, b.OpPos)
	switch b.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.SUB, token.QUO, token.REM:
		m.replace("operands swapped", b, "("+m.of(b.Y)+") "+b.Op.String()+" ("+m.of(b.X)+")")
	}
}

// call takes lengths one short, and the least for the most.
func (m *mutator) call(c *ast.CallExpr) {
	f, ok := c.Fun.(*ast.Ident)
	if !ok {
		return
	}
	switch f.Name {
	case "len":
		m.replace("one less", c, "("+m.of(c)+" - 1)")
	case "min":
		m.replace("function", f, "max")
	case "max":
		m.replace("function", f, "min")
	}
}

// generic reports whether a function or its receiver has parameters that are types.
func generic(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return f.Type.TypeParams != nil
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch of.(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}

// early returns zeros from the middle of a function, from its beginning if it has one statement.
func (m *mutator) early(f *ast.FuncDecl) {
	if f.Body == nil || len(f.Body.List) == 0 {
		return
	}
	var zeros []string
	if f.Type.Results != nil {
		for _, r := range f.Type.Results.List {
			for range max(1, len(r.Names)) {
				zeros = append(zeros, "*new("+m.of(r.Type)+")")
			}
		}
	}
	s := f.Body.List[len(f.Body.List)/2]
	m.add("early return", s.Pos(), s.Pos(), strings.TrimSpace("return "+strings.Join(zeros, ", "))+"; ")
}
