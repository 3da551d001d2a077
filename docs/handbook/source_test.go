package handbook_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strconv"
	"strings"
)

// code is a declaration of a file: code FILE NAME, where NAME is a function, a type with
// all its methods, or the body of an Example.
func code(arguments []string) (string, error) {
	file, fset, err := parse(arguments[0])
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	write := func(node any, doc *ast.CommentGroup) error {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		if doc != nil {
			for _, c := range doc.List {
				b.WriteString(c.Text + "\n")
			}
		}
		var text strings.Builder
		err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset, node)
		if strings.HasPrefix(text.String(), "{\n") {
			b.WriteString(body(text.String()))
		} else {
			b.WriteString(text.String())
		}
		return err
	}
	for _, name := range arguments[1:] {
		before := b.Len()
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name != name && receiver(d) != name {
					continue
				}
				doc := d.Doc
				node := &printer.CommentedNode{Node: d, Comments: within(file, d)}
				d.Doc = nil
				if strings.HasPrefix(name, "Example") {
					node.Node = d.Body
				}
				if err := write(node, doc); err != nil {
					return "", err
				}
				d.Doc = doc
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == name {
						doc := d.Doc
						d.Doc = nil
						if err := write(&printer.CommentedNode{Node: d, Comments: within(file, d)}, doc); err != nil {
							return "", err
						}
						d.Doc = doc
					}
				}
			}
		}
		if b.Len() == before {
			return "", fmt.Errorf("%s has no %s", arguments[0], name)
		}
	}
	return fenced("go", b.String()), nil
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
func text(arguments []string) (string, error) {
	file, _, err := parse(arguments[0])
	if err != nil {
		return "", err
	}
	if o := file.Scope.Lookup(arguments[1]); o != nil {
		if spec, ok := o.Decl.(*ast.ValueSpec); ok {
			s, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			return fenced("text", s), err
		}
	}
	return "", fmt.Errorf("%s has no constant %s", arguments[0], arguments[1])
}

// output is what an Example prints, by its comment, which go test compares.
func output(arguments []string) (string, error) {
	file, _, err := parse(arguments[0])
	if err != nil {
		return "", err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != arguments[1] {
			continue
		}
		for _, c := range within(file, f) {
			if text, ok := strings.CutPrefix(c.Text(), "Output:"); ok {
				return fenced("text", strings.TrimLeft(text, "\n")), nil
			}
		}
	}
	return "", fmt.Errorf("%s: %s has no output", arguments[0], arguments[1])
}

func parse(name string) (*ast.File, *token.FileSet, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	return f, fset, err
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
