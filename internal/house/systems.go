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

// systems has the compiler's type checker read the module for other systems, each a GOOS/GOARCH. It takes seconds for
// each, where a build also compiles the standard library and links. It does not see faults of assembly and of linking.
func systems(root string, targets []string, tests bool) (text string, err error) {
	if len(targets) == 0 {
		return "", errors.New("-typecheck: want GOOS/GOARCH")
	}
	for _, target := range targets {
		n, err := check(root, target, tests)
		if err != nil {
			return text, fmt.Errorf("%s: %w", target, err)
		}
		text += fmt.Sprintf("%s: %d packages\n", target, n)
	}
	return text, nil
}

// A listed is what go list says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool   // only imported by the packages asked for
	ForTest         string // the package for whose tests this one is compiled
}

// asked says whether the bodies of p are to be checked: it is a package asked for, or one with its tests.
func (p listed) asked() bool {
	name, _, _ := strings.Cut(p.ImportPath, " ")
	return !p.DepOnly || p.ForTest != "" && strings.TrimSuffix(name, "_test") == p.ForTest
}

// check checks all packages of the module in dir, without cgo, with or without tests, and says how
// many there are. Of the packages that they import it checks the declarations.
func check(dir, target string, tests bool) (n int, err error) {
	system, arch, _ := strings.Cut(target, "/")
	sizes := types.SizesFor("gc", arch)
	if sizes == nil {
		return 0, fmt.Errorf("%q is no GOOS/GOARCH", target)
	}
	list := exec.Command("go", "list", "-deps", fmt.Sprintf("-test=%t", tests),
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,ForTest", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	out, err := list.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	var errs []error
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return n, errors.Join(errs...)
		} else if err != nil {
			return n, err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the main of a test is generated
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
			Sizes: sizes, Importer: imports{done, p.ImportMap}, IgnoreFuncBodies: !p.asked(),
			Error: func(err error) { errs = append(errs, err) }, // and goes on
		}
		done[p.ImportPath], _ = c.Check(p.ImportPath, fset, files, nil)
		if p.asked() {
			n++
		}
	}
}

// imports finds the imports of a package among done, the packages checked so far: go list names
// a package after its imports. vendored has the names that mean others in the standard library.
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
