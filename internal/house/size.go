package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// kinds are the folders by what their lines are for. A file is of the first kind with a folder that it is in.
var kinds = []struct{ name, folders string }{
	{"emulator", "internal/emu gpu/emu cmd/libcuda"},
	{"product", "cmd/libnccl"},
	{"tools", "cmd bench scripts docs examples adapters kernels/_asm kernels/ptx/gen internal/house " +
		"internal/cli internal/nccl"},
}

// kindOf is the kind of a file's lines: product, emulator, tools, tests or generated.
func kindOf(s *source) string {
	switch {
	case s.generated:
		return "generated"
	case s.isTest() || under(s.name, "ringotest") || under(s.name, "internal/relay"):
		return "tests"
	}
	for _, k := range kinds {
		for _, folder := range strings.Fields(k.folders) {
			if under(s.name, folder) {
				return k.name
			}
		}
	}
	return "product"
}

// linesOf counts the lines of Go by kind.
func linesOf(m *module) map[string]int {
	n := map[string]int{}
	for _, s := range m.files {
		n[kindOf(s)] += s.lines
	}
	return n
}

// A function is a function's name, length in lines and cyclomatic number. Tables do not count:
// neither the lines of composite literals, nor the cases of a switch whose cases are one
// statement each.
type function struct {
	name          string // with its file
	lines, cycles int
}

// Functions longer than manyLines, or with a cyclomatic number above manyCycles, are listed.
const manyLines, manyCycles = 60, 20

// longest are the ten longest functions, and those that are too long or too branched.
// Generated ones, those of tests and those of modules below are left out.
func longest(m *module) (list []function) {
	for _, s := range m.files {
		if k := kindOf(s); s.apart || s.isTest() || k == "generated" {
			continue
		}
		for _, d := range s.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				list = append(list, measureFunction(m.fset, s.name, fn))
			}
		}
	}
	slices.SortFunc(list, func(a, b function) int {
		return cmp.Or(cmp.Compare(b.lines, a.lines), cmp.Compare(b.cycles, a.cycles), cmp.Compare(a.name, b.name))
	})
	for i, f := range list {
		if i >= 10 && f.lines <= manyLines && f.cycles <= manyCycles {
			list[i].name = ""
		}
	}
	return slices.DeleteFunc(list, func(f function) bool { return f.name == "" })
}

func measureFunction(fset *token.FileSet, file string, fn *ast.FuncDecl) function {
	line := func(p token.Pos) int { return fset.Position(p).Line }
	f := function{name: fmt.Sprintf("%s %s", file, nameOf(fn)), lines: line(fn.End()) - line(fn.Pos()) + 1, cycles: 1}
	table := token.NoPos // the end of the outermost literal
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if n.Pos() > table {
				f.lines -= line(n.End()) - line(n.Pos())
				table = n.End()
			}
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			f.cycles++
		case *ast.SwitchStmt:
			f.cycles += branches(n.Body)
		case *ast.TypeSwitchStmt:
			f.cycles += branches(n.Body)
		case *ast.SelectStmt:
			f.cycles += len(n.Body.List)
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				f.cycles++
			}
		}
		return true
	})
	return f
}

// branches is what a switch adds to a function's cyclomatic number: its cases, and 1 if all
// are one statement.
func branches(b *ast.BlockStmt) (n int) {
	table := true
	for _, s := range b.List {
		c := s.(*ast.CaseClause)
		if c.List != nil {
			n++
		}
		table = table && len(c.Body) <= 1
	}
	if table {
		return min(n, 1)
	}
	return n
}

// nameOf is a function's name, with its receiver's type in front.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	switch g := t.(type) {
	case *ast.IndexExpr:
		t = g.X
	case *ast.IndexListExpr:
		t = g.X
	}
	return t.(*ast.Ident).Name + "." + fn.Name.Name
}
