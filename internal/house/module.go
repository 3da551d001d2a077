package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// A source is one Go file of the module, or of a module below it.
type source struct {
	name      string // with slashes, from the module's folder
	tree      *ast.File
	lines     int
	generated bool
	apart     bool // of a module below
	anywhere  bool // compiled on every system: neither its name nor a line names one
}

// folder is the package's folder, "." for the module's own.
func (s *source) folder() string { return path.Dir(s.name) }

// isTest reports whether a file serves tests alone.
func (s *source) isTest() bool {
	return strings.HasSuffix(s.name, "_test.go") || under(s.name, "internal/test") ||
		under(s.name, "transport/transporttest")
}

// imports are the paths that a file imports.
func (s *source) imports() (paths []string) {
	for _, spec := range s.tree.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// A module is the source of a folder.
type module struct {
	root  string
	path  string // what go.mod calls it
	fset  *token.FileSet
	files []*source // by name
}

// readModule parses the Go files below a folder, but testdata, build and what begins with a dot.
func readModule(root string) (*module, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	m := &module{root: root, path: strings.TrimSpace(strings.TrimPrefix(line, "module")), fset: token.NewFileSet()}
	var apart []string // modules below
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && name != "." && (d.Name() == "build" || d.Name() == "testdata" || d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir():
		case d.Name() == "go.mod" && name != "go.mod":
			apart = append(apart, path.Dir(name))
		case strings.HasSuffix(name, ".go"):
			m.files = append(m.files, &source{name: name})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(m.files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := range next {
				errs[i] = m.files[i].read(m.fset, root)
			}
		})
	}
	for i, s := range m.files {
		for _, a := range apart {
			s.apart = s.apart || under(s.name, a)
		}
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// read parses a file.
func (s *source) read(fset *token.FileSet, root string) (err error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.name)))
	if err != nil {
		return err
	}
	if s.tree, err = parser.ParseFile(fset, s.name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.lines = bytes.Count(text, []byte("\n"))
	s.generated = ast.IsGenerated(s.tree)
	s.anywhere = !namesSystem(s.name)
	for _, group := range s.tree.Comments {
		for _, c := range group.List {
			if constraint.IsGoBuild(c.Text) && c.Pos() < s.tree.Package {
				s.anywhere = false
			}
		}
	}
	return nil
}

// namesSystem reports whether a file's name has a system or a processor at its end, as in
// wait_linux.go.
func namesSystem(name string) bool {
	words := strings.Split(strings.TrimSuffix(path.Base(name), ".go"), "_")
	switch words[len(words)-1] {
	case "linux", "darwin", "windows", "freebsd", "js", "wasm", "amd64", "arm64", "386":
		return len(words) > 1
	}
	return false
}

// under reports whether a file is in a folder, at any depth.
func under(name, folder string) bool { return strings.HasPrefix(name, folder+"/") }

// name is the name of the module's own package.
func (m *module) name() string { return path.Base(m.path) }

// inside is the folder of a package of this module, "." for the module's own; ok is false for others.
func (m *module) inside(importPath string) (folder string, ok bool) {
	if importPath == m.path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.path+"/")
}
