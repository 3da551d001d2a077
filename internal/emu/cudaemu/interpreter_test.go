package cudaemu

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// TestInterpreterIsSequential: the packages that execute kernels start no goroutines and have no
// locks, for scripts/race-test compiles them without the race detector. The machine's lock guards
// them.
func TestInterpreterIsSequential(t *testing.T) {
	for _, dir := range []string{"../alu", "../simt", "../weakmem"} {
		files := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))
		if _, err := os.Stat(dir); err != nil {
			t.Skip("the source is not here")
		}
		require.NotEmpty(t, files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))
			for _, imp := range f.Imports {
				require.NotEqual(t, `"sync"`, imp.Path.Value, file)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				_, starts := n.(*ast.GoStmt)
				require.False(t, starts, "%s starts a goroutine", file)
				return true
			})
		}
	}
}
