package internal_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cli"
)

// Flags may stand anywhere before "--", and a mistake is a UsageError.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		rest []string
		n    int
		err  string
	}{
		"before":       {[]string{"-n", "3", "a"}, []string{"a"}, 3, ""},
		"after":        {[]string{"a", "-n", "3"}, []string{"a"}, 3, ""},
		"between":      {[]string{"a", "--n=3", "b"}, []string{"a", "b"}, 3, ""},
		"double dash":  {[]string{"-n", "3", "--", "a", "-n", "4"}, []string{"a", "-n", "4"}, 3, ""},
		"last wins":    {[]string{"-n", "3", "a", "-n", "5"}, []string{"a"}, 5, ""},
		"dash later":   {[]string{"a", "--", "-n", "4"}, []string{"a", "-n", "4"}, 0, ""},
		"misspelt":     {[]string{"a", "-trnsport", "shm"}, nil, 0, "unknown flag -trnsport; did you mean -transport?"},
		"unlike any":   {[]string{"-zzzzzz"}, nil, 0, "unknown flag -zzzzzz"},
		"not a number": {[]string{"-n", "x"}, nil, 0, "invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			n := fs.Int("n", 0, "")
			fs.String("transport", "", "")
			rest, err := cli.Parse(fs, c.args)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.IsType(t, &cli.UsageError{}, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.rest, rest)
			require.Equal(t, c.n, *n)
		})
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	left, err := cli.ParseFirst(fs, []string{"--", "a", "-n"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "-n"}, left)
	_, err = cli.Parse(fs, []string{"a", "-h"})
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	require.NoError(t, os.WriteFile(old, []byte("kept"), 0o600))
	for _, file := range []string{"", old, filepath.Join(dir, "new"), os.DevNull} {
		require.NoError(t, cli.Writable("-o", file), file)
	}
	b, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left over")
	for _, file := range []string{dir, filepath.Join(dir, "absent", "x")} {
		err := cli.Writable("-o", file)
		require.ErrorContains(t, err, "-o "+file+": ")
		require.IsType(t, &cli.UsageError{}, err)
	}
}

func TestClosest(t *testing.T) {
	known := []string{"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall"}
	for word, want := range map[string]string{
		"all-reduce": "allreduce", "All_Gather": "allgather", "alreduce": "allreduce", "bcast": "", "broad": "broadcast",
		"redcue": "reduce", "reduce_scatter": "reducescatter", "xyz": "", "": "",
	} {
		require.Equal(t, want, cli.Closest(word, known), word)
	}
	require.ErrorContains(t, cli.Unknown("collective", "xyz", known), "known are allreduce, allgather")
	require.ErrorContains(t, cli.Unknown("collective", "redce", known), "did you mean reduce?")
}

func TestExitStatus(t *testing.T) {
	require.EqualError(t, cli.ExitStatus(3), "exit status 3")
}
