package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed host.txt
var host string

//go:embed gpu.txt
var gpu string

// A walk is the way of an AllReduce through files. A line of two words is a file and a function in
// it: the nearest function above that is indented less calls this one. A line of one word is a
// file that answers these functions or holds the data they pass on. "at first" after the file means
// that a warm call does not come there, "at times" that not every call does.
type walk struct{ name, on, lines string }

var walks = []walk{{"host", "host memory", host}, {"gpu", "a GPU's memory", gpu}}

// files are the files of a walk: true if every warm call comes there.
func (w walk) files() map[string]bool {
	files := map[string]bool{}
	for _, line := range strings.Split(w.lines, "\n") {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			last := words[len(words)-1]
			files[words[0]] = last != "first" && last != "times"
		}
	}
	return files
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
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" || words[1] == "at" {
			continue
		}
		file, fn := words[0], words[1]
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
