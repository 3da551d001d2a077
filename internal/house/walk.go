package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
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
	for line := range strings.Lines(w.lines) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			last := words[len(words)-1]
			files[words[0]] = last != "first" && last != "times"
		}
	}
	return files
}

// follow has an error for each function of a walk that is not in its file, and for each that the function above does
// not call.
func follow(root, lines string) error {
	type place struct {
		indent int
		calls  map[string]bool // nil if the function was not found
		name   string
	}
	var above []place
	var errs []error
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" || words[1] == "at" {
			continue
		}
		here := place{indent: len(line) - len(strings.TrimLeft(line, " ")), name: words[1]}
		for len(above) > 0 && above[len(above)-1].indent >= here.indent {
			above = above[:len(above)-1]
		}
		var err error
		here.calls, err = callsOf(filepath.Join(root, words[0]), here.name)
		errs = append(errs, err)
		if n := len(above); n > 0 && above[n-1].calls != nil {
			if short := here.name[strings.LastIndex(here.name, ".")+1:]; !above[n-1].calls[short] {
				errs = append(errs, fmt.Errorf("%s does not call %s", above[n-1].name, here.name))
			}
		}
		above = append(above, here)
	}
	return errors.Join(errs...)
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

// nameOf is a function's name, with its receiver's type in front.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		default:
			return t.(*ast.Ident).Name + "." + fn.Name.Name
		}
	}
}

// counted are the packages whose executed files are compared with a walk: all that carry out
// calls, without the emulator. The program itself has to be among them.
const counted = "./core/...,./engine/...,./fifo/...,./kernels/...,./mem,./ring/...,./sched/...,./trace/...," +
	"./transport/...,./bootstrap/...,./gpu,./internal/cuda,.,./internal/test/walked"

// executed compares the files that an AllReduce executes with each walk: the walk has to name all
// of these, and no others, "at times" and "at first" aside.
func executed(root string) error {
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "walked")
	run := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Dir, c.Stderr = root, os.Stderr
		c.Env = append(os.Environ(), "GOCOVERDIR="+dir) // for the coverage of the walked program
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
		}
		return nil
	}
	if err := run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", program,
		"./internal/test/walked"); err != nil {
		return err
	}
	var errs []error
	for _, w := range walks {
		counts := filepath.Join(dir, w.name)
		profile := counts + ".txt"
		if err := errors.Join(os.Mkdir(counts, 0o755), run(program, w.name, counts),
			run("go", "tool", "covdata", "textfmt", "-i="+counts, "-o="+profile)); err != nil {
			return err
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return err
		}
		errs = append(errs, w.compare(string(text)))
	}
	return errors.Join(errs...)
}

// compare has an error for each file that a coverage profile has executed lines of and the walk does not name, and the
// other way round. Files of the program itself are left out.
func (w walk) compare(profile string) error {
	passed, here := map[string]bool{}, w.files()
	var errs []error
	for line := range strings.Lines(profile) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		_, file, ok := strings.Cut(name, "/ringo-go/ringo/")
		if !ok || passed[file] || strings.HasSuffix(rest, " 0") || strings.HasPrefix(file, "internal/test/") {
			continue
		}
		passed[file] = true
		if _, ok := here[file]; !ok {
			errs = append(errs, fmt.Errorf("an AllReduce on %s executes %s, which %s.txt does not name", w.on, file, w.name))
		}
	}
	for file, always := range here {
		if always && !passed[file] {
			errs = append(errs, fmt.Errorf("an AllReduce on %s does not execute %s, which %s.txt names", w.on, file, w.name))
		}
	}
	return errors.Join(errs...)
}
