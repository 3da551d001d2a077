package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

const readme = "# Cottage\n\n## Packages\n\n| package | in a line |\n|---|---|\n| `cottage` | all |\n| `low` | less |\n" +
	"\n## More\n\n| `other` | no |\n"

// cottage makes a module of a promised package beside its own, and of one that is not promised.
func cottage(t *testing.T) (write func(file, text string), root string) {
	need.Tool(t, "go")
	root = t.TempDir()
	write = func(file, text string) {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module example.com/cottage\n\ngo 1.26\n")
	write("README.md", readme)
	write("comm.go", "package cottage\n\nimport \"example.com/cottage/core/half\"\n\ntype Comm struct{ Half half.Half; n int }"+
		"\n\nfunc (c *Comm) Do() { c.inner(Of[int]()) }\nfunc (c *Comm) inner(n int) { c.n = n }\n")
	write("of.go", "package cottage\n\nimport \"example.com/cottage/core/half\"\n\n// A Part is a half.\n//\n// Fields and "+
		"methods: go doc cottage/core/half.Half\ntype Part = half.Half\n\nfunc Of[T any]() int { var c Comm; return c.n }\n")
	write("comm_test.go", "package cottage\n\nfunc (c *Comm) Untold() {}\n")
	write("low/low.go", "// Package low is low.\npackage low\n\ntype Queue[T any] struct{ Len int }\n\n"+
		"func (q *Queue[T]) Put(item T, more ...int) error { return nil }\n")
	write("core/half/half.go", "// Package half is a half, and nothing here is\n// promised to other modules.\npackage half\n"+
		"\nimport \"example.com/cottage/low\"\n\ntype Half struct{ Q *low.Queue[int] }\n\ntype Unseen int\n")
	write("internal/house/api.txt", "")
	require.NoError(t, look(root, true))
	return write, root
}

func TestLook(t *testing.T) {
	write, root := cottage(t)
	api, err := os.ReadFile(filepath.Join(root, "internal/house/api.txt"))
	require.NoError(t, err)
	require.Equal(t, `cottage, field Comm.Half core/half.Half
cottage, func Of[T any]() int
cottage, method (*Comm) Do()
cottage, type Comm struct
cottage, type Part = core/half.Half
low, field Queue.Len int
low, method (*Queue) Put(T, ...int) error
low, type Queue[T any] struct
core/half, field Half.Q *low.Queue[int]
core/half, type Half struct
`, string(api))

	kept := walks
	t.Cleanup(func() { walks = kept })
	walks = []walk{{lines: "# a walk\ncomm.go Comm.Do\n  comm.go Comm.inner\n"}}
	require.NoError(t, look(root, false))
	long := strings.Repeat("word ", 30)
	write("core/half/half.go", "// Package half is a half.\npackage half\n\ntype Half struct{ Q, R int }\n")
	write("of.go", "package cottage\n\nimport \"example.com/cottage/core/half\"\n\ntype Part = half.Half\n\n"+
		"func Of[T any]() int { var c Comm; return c.n }\n")
	write("low/queue.go", "// Of queues nothing here is promised to other modules.\npackage low\n")
	write("low/long.go", "package low\n\n// long "+long+"\nvar long = `"+long+"`\n\n//go:noinline "+long+
		"\nfunc short() {} // "+long+"\n")
	write("low/long_test.go", "package low\n\nvar text = \""+long+"\"\n\n"+
		"func ExampleLong() {\n\t// Output:\n\t// "+long+"\n}\n")
	write("docs/long.md", "# "+long+"\n\n"+long+"\n\n| "+long+"\n\n```\n"+long+"\n```\n\n"+strings.Repeat("x", 200)+"\n")
	walks[0].lines += "    low/low.go Queue.Put\n  comm.go Comm.absent\n"
	const rewrite = " (if that is meant: go run ./internal/house -rewrite)"
	require.EqualError(t, look(root, false), strings.Join([]string{
		"core/half: its package comment does not say that nothing here is promised to other modules, and README.md does " +
			"not list it",
		"README.md promises low, and its package comment does not",
		"the comment of Part does not lead to its fields and methods: go doc cottage/core/half.Half",
		"promised names have changed: - core/half, field Half.Q *low.Queue[int]" + rewrite,
		"promised names have changed: + core/half, field Half.Q int" + rewrite,
		"promised names have changed: + core/half, field Half.R int" + rewrite,
		"docs/long.md:3: more than 120 characters",
		"low/long.go:3: more than 120 characters", "low/long.go:7: more than 120 characters",
		"Comm.inner does not call Queue.Put", root + "/comm.go has no function Comm.absent",
		"Comm.Do does not call Comm.absent",
	}, "\n"))
	write("README.md", readme[:strings.Index(readme, "| `cottage`")])
	require.ErrorContains(t, look(root, false), "does not begin with `cottage`")
}

// Faults that only some systems, or only tests, have are found.
func TestSystems(t *testing.T) {
	write, root := cottage(t)
	require.NoError(t, systems(root, []string{"linux/arm64", "windows/386"}, true))
	write("low/low_windows.go", "package low\n\nfunc Deep() {}\n")
	write("large.go", "package cottage\n\nfunc init() { new(Comm).inner(large) }\n")
	write("large_386.go", "package cottage\n\nconst large = 1 << 31\n")
	write("large_arm64.go", "package cottage\n\nconst large = 1 << 31\n")
	require.NoError(t, systems(root, []string{"linux/arm64"}, false))
	require.ErrorContains(t, systems(root, []string{"windows/arm64"}, false),
		"windows/arm64: promised names have changed: + low, func Deep()")
	require.ErrorContains(t, systems(root, []string{"linux/386"}, false), "large.go:3:31: cannot use large")
	require.ErrorContains(t, systems(root, []string{"linux/arm"}, false), "undefined: large")
	write("large_test.go", "package cottage\n\nfunc init() { new(Comm).inner() }\n")
	require.NoError(t, systems(root, []string{"linux/arm64"}, false))
	require.ErrorContains(t, systems(root, []string{"linux/arm64"}, true), "large_test.go:3:31: not enough arguments")
	require.ErrorContains(t, systems(root, []string{"linux"}, false), `"linux" is no GOOS/GOARCH`)
	require.ErrorContains(t, systems(root, nil, false), "want GOOS/GOARCH")
}

func TestCompare(t *testing.T) {
	const at = "\nexample.com/ringo-go/ringo/"
	profile := "mode: atomic" + at + "comm.go:3.1,4.2 1 7" + at + "of.go:3.1,4.2 1 0" +
		at + "internal/test/walked/main.go:3.1,4.2 1 1" + at + "fifo/queue.go:1.1,2.2 1 1\n"
	w := walk{name: "host", on: "host memory", lines: "comm.go Comm.Do\n  links.go links.Send at first\n# others\n" +
		"fifo/queue.go\nfifo/wait.go at times\n"}
	require.NoError(t, w.compare(profile))
	w.lines = "comm.go Comm.Do\nmem.go\n"
	require.EqualError(t, w.compare(profile),
		"an AllReduce on host memory executes fifo/queue.go, which host.txt does not name\n"+
			"an AllReduce on host memory does not execute mem.go, which host.txt names")
}
