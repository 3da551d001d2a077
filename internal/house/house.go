// Command house prints the numbers that keep the root package small, beside the
// most that each may be, and the files that an AllReduce passes on host memory and on a
// GPU's. Its exit status is 1 if a number is exceeded or a function is not where host.txt
// and gpu.txt say.
//
//	go run ./internal/house [folder of the module]
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed host.txt
var host string

//go:embed gpu.txt
var gpu string

// walks are the ways of an AllReduce. Each line of one is a file and a function in it,
// which the function above it calls that is indented less.
var walks = []walk{{"host memory", host}, {"a GPU's memory", gpu}}

type walk struct{ on, lines string }

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	text, errs := look(root, walks)
	fmt.Print(text)
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	if len(errs) > 0 {
		os.Exit(1)
	}
}

// look describes the module in a folder; the errors are what is wrong with it.
func look(root string, walks []walk) (text string, errs []error) {
	numbers, err := measure(root)
	if err != nil {
		return "", []error{err}
	}
	var b strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&b, "%6d of %-6d%s\n", n.is, n.most, n.name)
		if n.is > n.most {
			errs = append(errs, fmt.Errorf("%s: %d, want %d at most", n.name, n.is, n.most))
		}
	}
	for _, w := range walks {
		files, wrong := follow(root, w.lines)
		fmt.Fprintf(&b, "an AllReduce on %s passes %d files: %s\n", w.on, len(files), strings.Join(files, " "))
		errs = append(errs, wrong...)
	}
	return b.String(), errs
}

// A number is one of the house.
type number struct {
	name     string
	is, most int
}

// measure counts in the root package, tests left out.
func measure(root string) ([]number, error) {
	names, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		return nil, err
	}
	var files, lines, methods, device, driver int
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files++
		lines += bytes.Count(source, []byte("\n"))
		if strings.HasPrefix(base, "device") {
			device++
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(nameOf(fn), "Comm.") {
				methods++
			}
		}
		for _, spec := range f.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); strings.HasSuffix(path, "/internal/cuda") {
				driver++
			}
		}
	}
	if files == 0 {
		return nil, fmt.Errorf("no Go files in %s", root)
	}
	return []number{
		{"files of the root package", files, 16},
		{"lines in them", lines, 2500},
		{"methods of Comm", methods, 25},
		{"files that begin with device", device, 0},
		{"files that import internal/cuda", driver, 0},
	}, nil
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

// follow lists the files that a walk passes. The errors are functions that are not
// in their file, and those that the function above does not call.
func follow(root, lines string) (files []string, errs []error) {
	type place struct {
		indent int
		calls  map[string]bool // nil if the function was not found
		name   string
	}
	var above []place
	for _, line := range strings.Split(lines, "\n") {
		file, fn, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || file == "#" {
			continue
		}
		here := place{indent: len(line) - len(strings.TrimLeft(line, " ")), name: fn}
		for len(above) > 0 && above[len(above)-1].indent >= here.indent {
			above = above[:len(above)-1]
		}
		var err error
		if here.calls, err = callsOf(filepath.Join(root, file), fn); err != nil {
			errs = append(errs, err)
		}
		if n := len(above); n > 0 && above[n-1].calls != nil {
			if short := fn[strings.LastIndex(fn, ".")+1:]; !above[n-1].calls[short] {
				errs = append(errs, fmt.Errorf("%s does not call %s", above[n-1].name, fn))
			}
		}
		above = append(above, here)
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, errs
}

// callsOf are the names of the functions that one function calls.
func callsOf(file, name string) (map[string]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || nameOf(fn) != name {
			continue
		}
		calls := map[string]bool{}
		ast.Inspect(fn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				switch f := call.Fun.(type) {
				case *ast.Ident:
					calls[f.Name] = true
				case *ast.SelectorExpr:
					calls[f.Sel.Name] = true
				}
			}
			return true
		})
		return calls, nil
	}
	return nil, fmt.Errorf("%s has no function %s", file, name)
}
