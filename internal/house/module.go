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
	"path"
	"path/filepath"
	"strings"
)

// A module is the checked source of a folder, without cgo and as one system has it.
type module struct {
	root, path string                    // path is its name in go.mod
	packages   map[string]*types.Package // of this module and of those that it imports, by import path
	files      map[string][]*ast.File    // of this module alone, by import path
}

// A listed is a package in the words of go list.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool   // only imported by the packages asked for
	ForTest         string // the package for whose tests this one is compiled
	Module          *struct{ Path string }
}

// asked reports whether p is a package of ./..., or one of these with its tests.
func (p listed) asked() bool {
	name, _, _ := strings.Cut(p.ImportPath, " ")
	return !p.DepOnly || p.ForTest != "" && strings.TrimSuffix(name, "_test") == p.ForTest
}

// check reads the module in root for a target, a GOOS/GOARCH, with the compiler's type checker. It takes seconds, where
// a build also compiles the standard library and links. It does not see faults of assembly and of linking. Without
// bodies it checks declarations alone, as it does in packages of other modules.
func check(root, target string, tests, bodies bool) (*module, error) {
	system, arch, _ := strings.Cut(target, "/")
	sizes := types.SizesFor("gc", arch)
	if sizes == nil {
		return nil, fmt.Errorf("%q is no GOOS/GOARCH", target)
	}
	list := exec.Command("go", "list", "-deps", fmt.Sprintf("-test=%t", tests),
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,ForTest,Module", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var errs []error
	m := &module{root: root, packages: map[string]*types.Package{"unsafe": types.Unsafe}, files: map[string][]*ast.File{}}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return m, errors.Join(errs...)
		} else if err != nil {
			return nil, err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the main of a test is generated
			continue
		}
		var files []*ast.File
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		c := types.Config{
			Sizes: sizes, Importer: imports{m.packages, p.ImportMap}, IgnoreFuncBodies: !bodies || !p.asked(),
			Error: func(err error) { errs = append(errs, err) }, // and goes on
		}
		m.packages[p.ImportPath], _ = c.Check(p.ImportPath, fset, files, nil)
		if p.asked() {
			m.path, m.files[p.ImportPath] = p.Module.Path, files
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

// name is the name of the module's own package.
func (m *module) name() string { return path.Base(m.path) }

// folder returns a package's folder within the module, "." for the module's own; ok is false for others.
func (m *module) folder(importPath string) (folder string, ok bool) {
	if importPath == m.path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.path+"/")
}

// pkg is the package in a folder of the module.
func (m *module) pkg(folder string) *types.Package { return m.packages[path.Join(m.path, folder)] }
