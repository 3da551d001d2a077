package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShape bounds the packages in which most hangs together. Of the arrows from a file to another file whose names it
// uses, few go back up, in the best order of files that is found; and no type is everything.
func TestShape(t *testing.T) {
	const methods, fields, mostUp = 40, 25, 70
	up := 0
	for _, folder := range []string{"engine", "engine/grid", "core/call", "core/choice", "core/gpucomm", "core/gpupaths",
		"core/hostcomm", "core/life", "core/paths", "core/rankorder", "core/request", "bootstrap", "bootstrap/rendezvous"} {
		s := shapeOf(t, filepath.Join("..", folder))
		back := s.back()
		t.Logf("%s: %d files, %d arrows, %d back up: %s", folder, len(s.files), s.arrows(), len(back), back)
		up += len(back)
		for name, n := range s.methods {
			require.LessOrEqual(t, n, methods, "methods of %s.%s", folder, name)
		}
		for name, n := range s.fields {
			require.LessOrEqual(t, n, fields, "fields of %s.%s", folder, name)
		}
	}
	require.LessOrEqual(t, up, mostUp, "arrows back up")
}

// A shape is what the files of a package use of each other, and how large its types are.
type shape struct {
	files   []string
	uses    map[string]map[string]bool // by file
	methods map[string]int             // by type
	fields  map[string]int
}

// shapeOf reads a package. What other packages declare is not looked up: it leads to no file of this one.
func shapeOf(t *testing.T, folder string) *shape {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var parsed []*ast.File
	s := &shape{uses: map[string]map[string]bool{}, methods: map[string]int{}, fields: map[string]int{}}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_other.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, f)
		s.files = append(s.files, name)
		s.uses[name] = map[string]bool{}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	c := types.Config{Error: func(error) {}, Importer: nowhere{}}
	pkg, _ := c.Check(folder, fset, parsed, info)
	fileOf := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	for id, o := range info.Uses {
		from := fileOf(id.Pos())
		if o.Pkg() == pkg && o.Pos().IsValid() && isDeclared(o, pkg) && fileOf(o.Pos()) != from {
			s.uses[from][fileOf(o.Pos())] = true
		}
	}
	for _, name := range pkg.Scope().Names() {
		n, ok := pkg.Scope().Lookup(name).Type().(*types.Named)
		if _, isType := pkg.Scope().Lookup(name).(*types.TypeName); !ok || !isType {
			continue
		}
		s.methods[name] = n.NumMethods()
		if u, ok := n.Underlying().(*types.Struct); ok {
			s.fields[name] = u.NumFields()
		}
	}
	return s
}

// isDeclared reports whether an object is declared by its package: a name of it, a method or a field.
func isDeclared(o types.Object, pkg *types.Package) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == pkg.Scope()
	}
	return o.Parent() == pkg.Scope()
}

// nowhere has no package that is imported.
type nowhere struct{}

func (nowhere) Import(string) (*types.Package, error) { return nil, os.ErrNotExist }

// arrows returns how many pairs of files there are of which the first uses the second.
func (s *shape) arrows() (n int) {
	for _, to := range s.uses {
		n += len(to)
	}
	return n
}

// back lists the arrows that go back up: files are ordered so that each next one adds the fewest, and then files move
// as long as that removes one.
func (s *shape) back() (back []string) {
	cost := func(order []string) (list []string) {
		for i, from := range order {
			for _, to := range order[i+1:] {
				if s.uses[from][to] {
					list = append(list, from+" → "+to)
				}
			}
		}
		return list
	}
	var order []string
	left := slices.Clone(s.files)
	for len(left) > 0 {
		best, fewest := 0, len(left)+1
		for i, f := range left {
			n := 0
			for _, g := range left {
				if s.uses[f][g] {
					n++
				}
			}
			if n < fewest {
				best, fewest = i, n
			}
		}
		order, left = append(order, left[best]), slices.Delete(left, best, best+1)
	}
	back = cost(order)
	for better := true; better; {
		better = false
		for i := range order {
			for j := range order {
				moved := slices.Delete(slices.Clone(order), i, i+1)
				moved = slices.Insert(moved, j, order[i])
				if b := cost(moved); len(b) < len(back) {
					order, back, better = moved, b, true
				}
			}
		}
	}
	return back
}

// TestUnsafe: a file of the product that uses unsafe says so in its name.
func TestUnsafe(t *testing.T) {
	err := filepath.WalkDir("..", func(file string, d os.DirEntry, err error) error {
		name := d.Name()
		if err == nil && d.IsDir() && (name == "build" || name == "testdata" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		uses := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"unsafe"` })
		require.True(t, !uses || strings.Contains(name, "_unsafe"), "%s imports unsafe: end its name with _unsafe", file)
		return nil
	})
	require.NoError(t, err)
}
