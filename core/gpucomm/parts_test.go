package gpucomm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts are the files of each part of a Comm.
var parts = map[string]string{
	"queue":   "queue batch exchange norm shares phases prepare workplace",
	"windows": "windows register flat signal",
	"order":   "stream capture chain copystream",
	"known":   "check",
	"upkeep":  "estate watch roll watcher observe footprint leave",
	"base":    "gpucomm",
}

// TestPartsAreWrittenAtHome: each part's fields are written in its own files alone.
func TestPartsAreWrittenAtHome(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files, owner, written := map[string]*ast.File{}, map[string]string{}, map[string]bool{}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		name = strings.TrimSuffix(name, ".go")
		if strings.HasSuffix(name, "_test") {
			continue
		}
		files[name] = f
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && parts[s.Name.Name] != "" {
				for _, field := range s.Type.(*ast.StructType).Fields.List {
					for _, id := range field.Names {
						require.Empty(t, owner[id.Name], "field %s of two parts", id.Name)
						owner[id.Name] = s.Name.Name
					}
				}
			}
			return true
		})
	}
	for name, f := range files {
		comm := "" // what the function calls a Comm or a part
		write := func(x ast.Expr) {
			p := path(x)
			i := slices.IndexFunc(p, func(s string) bool { return owner[s] != "" })
			if i < 1 || p[0] != comm && p[0] != "ws" && parts[p[i-1]] == "" {
				return
			}
			home := owner[p[i]]
			written[home] = true
			require.Contains(t, strings.Fields(parts[home]), name, "%s writes %s, of %s", name, strings.Join(p, "."), home)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				comm = "g"
				if n.Recv != nil {
					p, _ := n.Recv.List[0].Type.(*ast.StarExpr)
					if p != nil && parts[p.X.(*ast.Ident).Name] != "" {
						comm = n.Recv.List[0].Names[0].Name
					}
				}
			case *ast.AssignStmt:
				for _, x := range n.Lhs {
					write(x)
				}
			case *ast.IncDecStmt:
				write(n.X)
			}
			return true
		})
	}
	require.Len(t, written, len(parts), "the test sees writes to each part")
}

// path are the names of x.y[i].z: x, y, z.
func path(x ast.Expr) []string {
	switch x := x.(type) {
	case *ast.Ident:
		return []string{x.Name}
	case *ast.IndexExpr:
		return path(x.X)
	case *ast.SelectorExpr:
		return append(path(x.X), x.Sel.Name)
	}
	return nil
}
