package handbook_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strconv"
	"strings"
)

// code is a declaration of a file: code FILE NAME, where NAME is a function, a type with
// all its methods, or the body of an Example.
func code(arguments []string) string {
	file, fset := parse(arguments[0])
	var parts []string
	// add adds a declaration, whose doc comment has no place in it.
	add := func(node, d ast.Node, doc **ast.CommentGroup) {
		was := *doc
		*doc = nil
		defer func() { *doc = was }()
		var b strings.Builder
		if was != nil {
			for _, c := range was.List {
				b.WriteString(c.Text + "\n")
			}
		}
		var text strings.Builder
		must(0, (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset,
			&printer.CommentedNode{Node: node, Comments: within(file, d)}))
		if strings.HasPrefix(text.String(), "{\n") {
			b.WriteString(body(text.String()))
		} else {
			b.WriteString(text.String())
		}
		parts = append(parts, b.String())
	}
	for _, name := range arguments[1:] {
		before := len(parts)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch {
				case d.Name.Name != name && receiver(d) != name:
				case strings.HasPrefix(name, "Example"):
					add(d.Body, d, &d.Doc)
				default:
					add(d, d, &d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if of, ok := spec.(*ast.TypeSpec); ok && of.Name.Name == name {
						add(d, d, &d.Doc)
					}
				}
			}
		}
		if len(parts) == before {
			panic(arguments[0] + " has no " + name)
		}
	}
	return fenced("go", strings.Join(parts, "\n\n"))
}

// body takes the braces from around an Example, and its output off its end.
func body(s string) string {
	s, _, _ = strings.Cut(s, "    // Output:")
	s = strings.TrimSuffix(strings.TrimPrefix(s, "{\n"), "}")
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.TrimPrefix(line, "    "))
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// text is a constant of a file: text FILE NAME.
func text(arguments []string) string {
	file, _ := parse(arguments[0])
	value := file.Scope.Lookup(arguments[1]).Decl.(*ast.ValueSpec).Values[0]
	return fenced("text", must(strconv.Unquote(value.(*ast.BasicLit).Value)))
}

// output is what an Example prints, by its comment, which go test compares.
func output(arguments []string) string {
	file, _ := parse(arguments[0])
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != arguments[1] {
			continue
		}
		for _, c := range within(file, f) {
			if text, ok := strings.CutPrefix(c.Text(), "Output:"); ok {
				return fenced("text", strings.TrimLeft(text, "\n"))
			}
		}
	}
	panic(arguments[0] + ": " + arguments[1] + " has no output")
}

func parse(name string) (*ast.File, *token.FileSet) {
	fset := token.NewFileSet()
	return must(parser.ParseFile(fset, name, nil, parser.ParseComments)), fset
}

// receiver is the type of a method's receiver.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	name, _ := f.Recv.List[0].Type.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// within are the comments inside of a declaration, without the one before it.
func within(file *ast.File, d ast.Node) (inside []*ast.CommentGroup) {
	for _, c := range file.Comments {
		if c.Pos() > d.Pos() && c.End() <= d.End() {
			inside = append(inside, c)
		}
	}
	return inside
}
