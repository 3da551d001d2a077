package procs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// README's first program ends on an error. By then every rank has written its history, which shows the one that never
// came.
func TestReadmeProgram(t *testing.T) {
	tier.Long(t)
	if _, err := exec.LookPath("go"); err != nil {
		need.Missing(t, "go", err.Error())
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, listing, _ := strings.Cut(string(readme), "\n```go\n")
	listing, _, _ = strings.Cut(listing, "\n```\n")
	require.Contains(t, listing, "log.Fatal(err)")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source,
		[]byte("package main\n\nimport (\n\t\"context\"\n\t\"log\"\n\n\t\"github.com/ringo-go/ringo\"\n)\n\n"+listing+"\n"),
		0o600))
	build := exec.Command("go", "build", "-o", program, source)
	build.Dir = root
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)

	const size = 4
	places := make(chan struct{}, 4)
	var runs sync.WaitGroup
	for i := range tier.Count(4, 20) {
		histories, id := filepath.Join(dir, fmt.Sprint("run", i)), commtest.Meeting(t)
		run := func() error {
			var ranks []*exec.Cmd
			for _, r := range []int{0, 2, 3} {
				cmd := exec.Command(program)
				cmd.Env = append(os.Environ(), "RINGO_COMM_ID="+id.String(), fmt.Sprint("RINGO_RANK=", r),
					fmt.Sprint("RINGO_SIZE=", size), "RINGO_TIMEOUT=500ms", "RINGO_HISTORY="+histories)
				if err := cmd.Start(); err != nil {
					return err
				}
				ranks = append(ranks, cmd)
			}
			c, err := ringo.Open(t.Context(), ringo.Config{ID: &id, Rank: 1, Size: size, History: histories})
			for _, cmd := range ranks {
				if cmd.Wait() == nil {
					err = fmt.Errorf("an all-reduce of %d ranks ended well without one: %w", size, err)
				}
			}
			if err != nil {
				return err
			}
			defer c.Close()
			for r := range size {
				if files, _ := filepath.Glob(filepath.Join(histories, fmt.Sprintf("ringo-*-rank%d.json", r))); len(files) != 1 &&
					r != 1 {
					// a rank that lives may write later
					return fmt.Errorf("run %d: rank %d has written %v", i, r, files)
				}
			}
			return nil
		}
		runs.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
}
