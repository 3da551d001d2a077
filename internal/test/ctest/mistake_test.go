//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestMistakes: programs in C and in Python are told of each mistake at the latest as they end their communicator.
// Standard error has a line for each process and communicator, and one for a group without end.
func TestMistakes(t *testing.T) {
	tier.Heavy(t)
	lib, python := ctest.Library(t), need.Tool(t, "python3")
	for _, on := range []struct {
		where string
		env   []string
		c     string
	}{
		{"host", ctest.OnHost(), ctest.Program(t, "mistake", false)},
		{"GPUs", append(ctest.OnGPUs(2), "LD_LIBRARY_PATH="+filepath.Dir(ctest.Driver(t))),
			ctest.Program(t, "mistake", true)},
	} {
		for language, program := range map[string][]string{"C": {on.c},
			"Python": {python, in(t, "testdata/mistake.py"), lib}} {
			for _, m := range commtest.Mistakes {
				for _, processes := range []int{1, 2} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", on.where, language, m.Name, processes), func(t *testing.T) {
						t.Parallel()
						mistaken(t, m, on.env, processes, append(slices.Clone(program), m.Name)...)
					})
				}
			}
		}
	}
}

// mistaken runs a program that makes a mistake, and looks at what it prints.
func mistaken(t *testing.T, m commtest.Mistake, env []string, processes int, command ...string) {
	meet := filepath.Join(t.TempDir(), "id")
	cmds, told, warned := make([]*exec.Cmd, processes), make([]bytes.Buffer, processes), make([]bytes.Buffer, processes)
	for i := range cmds {
		args := command[1:]
		if processes > 1 {
			args = append(slices.Clone(args), strconv.Itoa(i), "2", meet)
		}
		cmds[i] = exec.Command(command[0], args...)
		cmds[i].Env, cmds[i].Stdout, cmds[i].Stderr = env, &told[i], &warned[i]
		assert.NoError(t, cmds[i].Start())
	}
	for i, cmd := range cmds {
		assert.NoError(t, cmd.Wait(), "%s%s", &told[i], &warned[i])
		ranks, lines := []int{i}, 1
		if processes == 1 {
			ranks = []int{0, 1}
			if m.Name == "group" {
				lines = 2
			}
		}
		m.Told(t, told[i].String(), ranks...)
		assert.Equal(t, lines, strings.Count(warned[i].String(), "] NCCL WARN "), "%s", &warned[i])
		assert.Regexp(t, m.Says[0]+"|"+m.Says[1], warned[i].String())
	}
}
