package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// write writes a file of a module, with its folders.
func write(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// build makes a module of three rooms: two files of its own package that need each other, a
// promised package and one that is not.
func build(t *testing.T) (root string) {
	root = t.TempDir()
	for file, text := range map[string]string{
		"go.mod": "module example.com/cottage\n\ngo 1.26\n",
		"README.md": "# Cottage\n\n## Packages\n\n| package | in a line |\n|---|---|\n| `cottage` | all |\n| `low` | less " +
			"|\n\n## More\n\n| `other` | no |\n",
		"comm.go": "package cottage\n\nimport \"example.com/cottage/core/half\"\n\ntype Comm struct{ Half half.Half; " +
			"hidden int }\n\n" +
			"func (c *Comm) Do() { c.inner(Of[int]()) }\nfunc (c *Comm) inner(n int) { c.hidden = n }\n",
		"of.go": "package cottage\n\nimport \"example.com/cottage/core/half\"\n\n// A Part is a half.\n//\n// " +
			"Fields and methods: go doc cottage/core/half.Half\ntype Part = half.Half\n\nfunc Of[T any]() int { var c Comm; " +
			"return c.hidden }\n",
		"comm_test.go": "package cottage\n\nfunc (c *Comm) Untold() {}\n",
		"low/low.go": "// Package low is low.\npackage low\n\ntype Queue[T any] struct{ Len int }\n\nfunc (q " +
			"*Queue[T]) Put(item T, more ...int) error { return nil }\n",
		"core/half/half.go": "// Package half is a half, and nothing here is\n// promised to other modules.\npackage " +
			"half\n\nimport \"example.com/cottage/low\"\n\ntype Half struct{ Q *low.Queue[int] }\n\ntype Unseen int\n",
	} {
		write(t, root, file, text)
	}
	write(t, root, "internal/house/api.txt", "")
	return root
}

func look(t *testing.T, h *house) (text string, errs []string) {
	t.Helper()
	need.Tool(t, "go")
	require.NoError(t, h.look())
	for _, err := range h.errs {
		errs = append(errs, strings.TrimPrefix(err.Error(), h.root+"/"))
	}
	return h.text.String(), errs
}

const done = "# a walk\ncomm.go Comm.Do\n  comm.go Comm.inner\n"

func TestLook(t *testing.T) {
	root := build(t)
	_, errs := look(t, &house{root: root, rewrite: true})
	require.Empty(t, errs)
	text, errs := look(t, &house{root: root, walks: []walk{{on: "host memory", lines: done}}})
	require.Empty(t, errs)
	require.Equal(t, `     3 of 20    folders at the top
     8 of 65    entries at the top
     2 of 16    files of package cottage
     1 of 5     arrows back up, of 5 between 4 rooms on 4 floors
                  of.go → comm.go
     2 of 34    promised packages
     4 of 173   names of package cottage, of 6 that are promised
lines of Go: product 33, emulator 0, tools 0, tests 3; generated 0
the ten longest functions, and those above 60 lines or a cyclomatic number of 20:
     1 lines,  1  comm.go Comm.Do
     1 lines,  1  comm.go Comm.inner
     1 lines,  1  low/low.go Queue.Put
     1 lines,  1  of.go Of
1 files carry an AllReduce on host memory, and 0 answer or hold: comm.go
`, text)
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
}

func TestLookFindsFaults(t *testing.T) {
	root := build(t)
	_, errs := look(t, &house{root: root, rewrite: true})
	require.Empty(t, errs)
	write(t, root, "core/half/half.go", "// Package half is a half.\npackage half\n\ntype Half struct{ Q, R int }\n")
	write(t, root, "of.go",
		"package cottage\n\nimport \"example.com/cottage/core/half\"\n\ntype Part = half.Half\n\nfunc Of[T any]() int { "+
			"var c Comm; return c.hidden }\n")
	write(t, root, "low/low_linux.go", "package low\n\nfunc Deep() {}\n")
	write(t, root, "low/queue.go", "// Of queues nothing here is promised to other modules.\npackage low\n")
	more := done + "    of.go Of\n    low/low.go Queue.Put\n  comm.go Comm.absent\n"
	_, errs = look(t, &house{root: root, walks: []walk{{on: "host memory", lines: more}}})
	const rewrite = " (if that is meant: go run ./internal/house -rewrite)"
	require.Equal(t, []string{
		"README.md promises low, and its package comment does not",
		"core/half: its package comment does not say that nothing here is promised to other modules, and README.md does " +
			"not list it",
		"of.go: the comment of Part does not lead to its fields and methods: go doc cottage/core/half.Half",
		"low: Deep is not on every system",
		"promised names have changed: - core/half, field Half.Q *low.Queue[int]" + rewrite,
		"promised names have changed: + core/half, field Half.Q int" + rewrite,
		"promised names have changed: + core/half, field Half.R int" + rewrite,
		"promised names have changed: + low, func Deep()" + rewrite,
		"Comm.inner does not call Of",
		"Comm.inner does not call Queue.Put",
		"comm.go has no function Comm.absent",
		"Comm.Do does not call Comm.absent",
	}, errs)
	write(t, root, "README.md", "## Packages\n")
	require.ErrorContains(t, (&house{root: root}).look(), "does not begin with `cottage`")
	require.Error(t, (&house{root: t.TempDir()}).look())
}

func TestNumber(t *testing.T) {
	h := &house{}
	h.number("arrows", 5, 5)
	require.Empty(t, h.errs)
	h.number("folders", 21, 20)
	require.EqualError(t, h.errs[0], "folders: 21, want 20 at most")
	require.Equal(t, "     5 of 5     arrows\n    21 of 20    folders\n", h.text.String())
}

// The order of a circle has the fewest arrows up: here one, though each of three rooms forms a
// circle with the hall.
func TestUp(t *testing.T) {
	needs := func(lines ...string) map[string]map[string]bool {
		m := map[string]map[string]bool{}
		for _, line := range lines {
			from, to, _ := strings.Cut(line, ": ")
			m[from] = map[string]bool{}
			for _, room := range strings.Fields(to) {
				m[from][room] = true
			}
		}
		return m
	}
	p := &plan{rooms: []string{"a", "b", "c", "hall", "roof"},
		needs: needs("a: hall", "b: hall", "c: hall", "hall: ground", "ground: a b c", "roof: a")}
	p.needs["hall"]["cellar"] = true
	p.needs["cellar"] = map[string]bool{}
	back, floors := p.up()
	require.Equal(t, []string{"hall → ground"}, back)
	require.Equal(t, 4, floors)
	require.Equal(t, 9, p.arrows())

	straight := &plan{rooms: []string{"x", "y"}, needs: needs("x: y", "y: ")}
	back, floors = straight.up()
	require.Empty(t, back)
	require.Equal(t, 2, floors)

	ring := &plan{needs: map[string]map[string]bool{}} // larger than what is tried exactly
	for i := range mostExact + 2 {
		room := string(rune('a' + i))
		ring.rooms = append(ring.rooms, room)
		ring.needs[room] = map[string]bool{string(rune('a' + (i+1)%(mostExact+2))): true}
	}
	back, _ = ring.up()
	require.Len(t, back, 1)
}

func TestLongest(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module example.com/m\n")
	write(t, root, "a.go", `package m

func flat(a int) string {
	switch a {
	case 1:
		return "one"
	case 2:
		return "two"
	}
	for range 3 {
		if a > 1 && a < 5 || a == 7 {
			a++
		}
	}
	return ""
}

func table() []int {
	return []int{
		1,
		2,
	}
}

func deep(a int, c chan int) {
	switch a {
	case 1:
		a++
		a++
	case 2:
	}
	select {
	case <-c:
	default:
	}
}
`)
	m, err := readModule(root)
	require.NoError(t, err)
	require.Equal(t, []function{{"a.go flat", 14, 6}, {"a.go deep", 12, 5}, {"a.go table", 3, 1}}, longest(m))
	require.Equal(t, map[string]int{"product": 36}, linesOf(m))
}

func TestCompare(t *testing.T) {
	files := filesOf("mode: atomic\nexample.com/ringo-go/ringo/comm.go:3.1,4.2 1 " +
		"7\nexample.com/ringo-go/ringo/of.go:3.1,4.2 1 0\n" +
		"example.com/ringo-go/ringo/internal/test/walked/main.go:3.1,4.2 1 " +
		"1\nexample.com/ringo-go/ringo/fifo/queue.go:1.1,2.2 1 1\n")
	require.Equal(t, []string{"comm.go", "fifo/queue.go"}, files)
	w := walk{name: "host", on: "host memory", lines: done +
		"  links.go links.Send at first\n# others\nfifo/queue.go\nfifo/wait.go at times\n"}
	require.Empty(t, w.compare(files))
	w.lines = done + "mem.go\n"
	require.Equal(t, []error{
		errors.New("an AllReduce on host memory executes fifo/queue.go, which host.txt does not name"),
		errors.New("an AllReduce on host memory does not execute mem.go, which host.txt names"),
	}, w.compare(files))
}

// Lines that are too long are found in Go and in documents, but not in raw strings, directives, tables and listings.
func TestWide(t *testing.T) {
	root := build(t)
	long := strings.Repeat("word ", 30)
	write(t, root, "low/long.go", "package low\n\n// Long "+long+
		"\nvar Long = `"+long+"`\n\n//go:debug "+long+"\nvar short = 1 // "+long+"\n")
	write(t, root, "low/long_test.go", "package low\n\nvar text = \""+long+
		"\"\n\nfunc ExampleLong() {\n\t// Output:\n\t// "+long+"\n}\n")
	write(t, root, "docs/long.md", "# "+long+"\n\n"+long+"\n\n| "+long+"\n\n```\n"+long+
		"\n```\n\n"+strings.Repeat("x", 200)+"\n")
	h := &house{root: root}
	m, err := readModule(root)
	require.NoError(t, err)
	require.NoError(t, h.wide(m))
	var found []string
	for _, err := range h.errs {
		found = append(found, err.Error())
	}
	require.Equal(t, []string{
		"low/long.go:3: more than 120 characters", "low/long.go:7: more than 120 characters",
		"docs/long.md:3: more than 120 characters",
	}, found)
}
