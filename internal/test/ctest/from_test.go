//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// program is the n-th block of code, from 0, of a section of docs/from.md, in a file of its own.
func program(t *testing.T, section string, n int, file string) string {
	text, err := os.ReadFile(filepath.Join(ctest.Root(t), "docs", "from.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, ok, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	blocks := strings.Split(rest, "\n```")
	require.Greater(t, len(blocks), 2*n+1, section)
	_, code, ok := strings.Cut(blocks[2*n+1], "\n")
	require.True(t, ok)
	name := filepath.Join(t.TempDir(), file)
	require.NoError(t, os.WriteFile(name, []byte(code+"\n"), 0o600))
	return name
}

// sorted are the lines of what ranks have written, who may write in any order.
func sorted(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestFromGloo(t *testing.T) {
	lib := ctest.Library(t)
	file := program(t, "From Gloo", 1, "after.c")
	out := ctest.C(t, "from-gloo", file, lib)
	const ranks = 3
	texts, errs := make([][]byte, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Go(func() {
			cmd := exec.Command(out, strconv.Itoa(rank), strconv.Itoa(ranks), filepath.Join(filepath.Dir(file), "id"))
			cmd.Env = ctest.OnHost()
			texts[rank], errs[rank] = cmd.CombinedOutput()
		})
	}
	wg.Wait()
	for rank := range ranks {
		require.NoError(t, errs[rank], "%s", texts[rank])
		require.Equal(t, fmt.Sprintf("rank %d: 6\n", rank), string(texts[rank]))
	}
}

// fromMPI is what both programs write.
const fromMPI = `rank 0: sum 3, neighbour 2, first of its half 0
rank 1: sum 3, neighbour 0, first of its half 1
rank 2: sum 3, neighbour 1, first of its half 0`

func TestFromMPI(t *testing.T) {
	after := ctest.Go(t, "from-mpi", program(t, "From MPI", 1, "after.go"))
	var out, errs bytes.Buffer
	require.NoError(t, launch.Run(t.Context(),
		launch.Config{N: 3, Args: []string{after}, Env: ctest.OnHost(), Stdout: &out, Stderr: &errs}), "%s", &errs)
	require.Equal(t, fromMPI, sorted(out.Bytes()))
}

// mpirun starts both programs, and they say the same.
func TestUnderMPI(t *testing.T) {
	tier.Heavy(t)
	mpirun, mpicc := need.Tool(t, "mpirun.openmpi"), need.Tool(t, "mpicc.openmpi")
	file := program(t, "From MPI", 0, "before.c")
	before := strings.TrimSuffix(file, ".c")
	require.NoError(t, ctest.Run(mpicc, "-Wall", "-o", before, file))
	for _, name := range []string{before, ctest.Go(t, "from-mpi", program(t, "From MPI", 1, "after.go"))} {
		cmd := exec.Command(mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "3", name)
		cmd.Env = append(ctest.OnHost(), "TMPDIR="+t.TempDir())
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Run(), "%s", &errs)
		require.Equal(t, fromMPI, sorted(out.Bytes()))
	}
}

func TestFromNCCL(t *testing.T) {
	after := ctest.Go(t, "from-nccl", program(t, "From an NCCL binding", 1, "after.go"))
	text, err := exec.Command(after).CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Equal(t, "GPU 0: 3\nGPU 1: 3", sorted(text))
}
