package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// An exporter imports packages from the compiler's export data in the build cache.
type exporter struct {
	module *module
	files  map[string]string // the export data by import path
	from   types.Importer
}

// newExporter has the go command compile packages of the module for Linux on amd64, so that
// what it finds is the same on every machine.
func newExporter(m *module, folders []string) (*exporter, error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Export"}
	for _, f := range folders {
		args = append(args, "./"+f)
	}
	list := exec.Command("go", args...)
	list.Dir, list.Stderr = m.root, os.Stderr
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	x := &exporter{module: m, files: map[string]string{}}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		x.files[p.ImportPath] = p.Export
	}
	x.from = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if x.files[path] == "" {
			return nil, fmt.Errorf("%s was not compiled", path)
		}
		return os.Open(x.files[path])
	})
	return x, nil
}

// pkg is the package in a folder of the module.
func (x *exporter) pkg(folder string) (*types.Package, error) {
	if folder == "." {
		return x.from.Import(x.module.path)
	}
	return x.from.Import(x.module.path + "/" + folder)
}

// usesWithin are the files of the module's own package that each of them uses something of.
func (x *exporter) usesWithin() (map[string][]string, error) {
	var files []*ast.File
	for _, s := range x.module.files {
		if s.folder() == "." && !s.isTest() && s.anywhere {
			files = append(files, s.tree)
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	c := types.Config{Importer: x.from}
	pkg, err := c.Check(x.module.path, x.module.fset, files, &info)
	if err != nil {
		return nil, err
	}
	uses := map[string][]string{}
	for id, o := range info.Uses {
		if o.Pkg() != pkg || !o.Pos().IsValid() {
			continue
		}
		from := filepath.Base(x.module.fset.Position(id.Pos()).Filename)
		if to := filepath.Base(x.module.fset.Position(o.Pos()).Filename); to != from && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses, nil
}
