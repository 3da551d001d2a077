package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestLook(t *testing.T) {
	root := t.TempDir()
	write(t, root, "comm.go", "package p\n\ntype Comm struct{}\n\nfunc (c *Comm) Do() { c.inner(Of[int]()) }\nfunc (Comm) inner(int) { queue() }\n")
	write(t, root, "of.go", "package p\n\nfunc Of[T any]() int { return 0 }\n")
	write(t, root, "comm_test.go", "package p\n\nfunc (c *Comm) more() {}\n")
	write(t, root, "deep/queue.go", "package deep\n\ntype Queue[T any] struct{}\n\nfunc (q *Queue[T]) Put() {}\n")
	const lines = "# a walk\ncomm.go Comm.Do\n  comm.go Comm.inner\n"
	text, errs := look(root, []walk{{"host memory", lines}})
	require.Empty(t, errs)
	require.Contains(t, text, "     2 of 16    files of the root package\n     9 of 2500  lines in them\n     2 of 25    methods of Comm\n")
	require.Contains(t, text, "an AllReduce on host memory passes 1 files: comm.go\n")

	write(t, root, "device.go", "package p\n\nimport _ \"example.com/x/internal/cuda\"\n"+strings.Repeat("\n", 2500))
	_, errs = look(root, []walk{{"host memory", lines + "    of.go Of\n    deep/queue.go Queue.Put\n  comm.go Comm.absent\n"}})
	var all []string
	for _, err := range errs {
		all = append(all, strings.TrimPrefix(err.Error(), root+"/"))
	}
	require.Equal(t, []string{
		"lines in them: 2512, want 2500 at most",
		"files that begin with device: 1, want 0 at most",
		"files that import internal/cuda: 1, want 0 at most",
		"Comm.inner does not call Of",
		"Comm.inner does not call Queue.Put",
		"comm.go has no function Comm.absent",
		"Comm.Do does not call Comm.absent",
	}, all)
	_, errs = look(t.TempDir(), nil)
	require.ErrorContains(t, errs[0], "no Go files in")
}
