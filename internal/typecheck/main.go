// Command typecheck has the compiler's type checker read the module for other systems. It
// takes 2 s for each, where a build also compiles the standard library and links. What it
// does not see are faults of assembly and of linking.
//
//	go run ./internal/typecheck linux/386 linux/riscv64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH...")
		os.Exit(2)
	}
	for _, target := range os.Args[1:] {
		n, err := check(".", target)
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", target, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", target, n)
	}
}

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool // only imported by the packages asked for
}

// check checks all packages of the module in dir, without cgo and tests, and says how many
// there are. Of the packages that they import it checks the declarations.
func check(dir, target string) (n int, err error) {
	system, arch, _ := strings.Cut(target, "/")
	sizes := types.SizesFor("gc", arch)
	if sizes == nil {
		return 0, fmt.Errorf("%q is no GOOS/GOARCH", target)
	}
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	var errs []error
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return n, errors.Join(errs...)
		} else if err != nil {
			return n, err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var files []*ast.File
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return n, err
			}
			files = append(files, f)
		}
		c := types.Config{
			Sizes: sizes, Importer: imports{done, p.ImportMap}, IgnoreFuncBodies: p.DepOnly,
			Error: func(err error) { errs = append(errs, err) }, // and goes on
		}
		done[p.ImportPath], _ = c.Check(p.ImportPath, fset, files, nil)
		if !p.DepOnly {
			n++
		}
	}
}

// imports are of a package: done are all that have been checked, and go list has a package
// after its imports; vendored are names that mean others in the standard library.
type imports struct {
	done     map[string]*types.Package
	vendored map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if other := i.vendored[path]; other != "" {
		path = other
	}
	if i.done[path] == nil {
		return nil, fmt.Errorf("%s: not listed before", path)
	}
	return i.done[path], nil
}
