package internal_test

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
		"not a number": {[]string{"-n", "x"}, nil, 0, "-n x: "},
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

// outputs is the error for one file that a flag names.
func outputs(file string, ends ...string) error {
	_, err := cli.Outputs(io.Discard, cli.Output{Flag: "-o", File: file, Ends: ends})
	return err
}

func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.svg")
	require.NoError(t, os.WriteFile(old, []byte("kept"), 0o600))
	for _, file := range []string{"", "-", old, filepath.Join(dir, "new.SVG"), os.DevNull} {
		require.NoError(t, outputs(file, ".svg", ".html"), file)
	}
	b, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left over")
	for _, file := range []string{dir, filepath.Join(dir, "absent", "x")} {
		err := outputs(file)
		require.ErrorContains(t, err, "-o "+file+": ")
		require.IsType(t, &cli.UsageError{}, err)
	}
	require.ErrorContains(t, outputs(filepath.Join(dir, "x.txt"), ".svg", ".html"), "must end in .svg or .html")
	var stdout strings.Builder
	for _, file := range []string{"-", old} {
		_, err = cli.Outputs(&stdout, cli.Output{Flag: "-a", File: file}, cli.Output{Flag: "-b", File: file})
		require.ErrorContains(t, err, "-a and -b are both "+file)
	}
	text, err := cli.Outputs(&stdout, cli.Output{Flag: "-a", File: old}, cli.Output{Flag: "-b", File: "-"})
	require.NoError(t, err)
	require.Equal(t, io.Discard, text, "nothing else is on standard output")
	text, err = cli.Outputs(&stdout, cli.Output{Flag: "-a", File: old})
	require.NoError(t, err)
	require.Equal(t, &stdout, text)
}

// TestSave: a file is replaced at once and keeps its rights, a symbolic link stays one, and nothing else is written.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	say := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	require.NoError(t, os.WriteFile(real, []byte("old"), 0o600))
	if err := os.Symlink(real, link); err != nil {
		link = real // a right that Windows gives to few
	}
	require.NoError(t, cli.Save("-o", link, nil, say("new")))
	broken := errors.New("broken")
	half := func(w io.Writer) error { return errors.Join(say("half")(w), broken) }
	require.ErrorIs(t, cli.Save("-o", link, nil, half), broken)
	text, err := os.ReadFile(real)
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
	info, err := os.Stat(real)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	var stdout strings.Builder
	require.NoError(t, cli.Save("-o", "-", &stdout, say("here")))
	require.Equal(t, "here", stdout.String())
	require.NoError(t, cli.Save("-o", "", nil, nil))
	require.NoError(t, cli.SaveJSON("-json", "-", &stdout, []int{1}))
	require.Equal(t, "here[\n 1\n]\n", stdout.String())
	none := filepath.Join(dir, "no", "x")
	require.ErrorContains(t, cli.Save("-o", none, nil, say("")), "-o "+none)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(left), 2, "nothing is left over")
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

// TestText: what would move a cursor, colour a terminal or turn its direction is quoted, also where a character comes
// in two parts.
func TestText(t *testing.T) {
	require.Equal(t, "a\tö\n", cli.Printable("a\tö\n"))
	require.Equal(t, `h\x1b[31m\r\u202e\u009b`, cli.Printable("h\x1b[31m\r\u202e\u009b"))
	require.NotContains(t, cli.Printable("\x9b"), "\x9b")
	var to strings.Builder
	w := cli.Text(&to)
	for _, b := range []byte("ö\x1b→\n") {
		n, err := w.Write([]byte{b})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Equal(t, `ö\x1b→`+"\n", to.String())
}

// TestFits: only what cannot fit is refused.
func TestFits(t *testing.T) {
	require.NoError(t, cli.Fits(1, "-np %d", 1))
	if cli.Free() > 0 {
		require.ErrorContains(t, cli.Fits(1<<60, "-np %d", 7), "-np 7: it takes about 1073741824.0 GiB of memory, and ")
	}
}

// TestListen: an address of no host here is a mistake, a port that is taken is not.
func TestListen(t *testing.T) {
	l, err := cli.Listen("-addr", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	usage := new(cli.UsageError)
	_, err = cli.Listen("-addr", l.Addr().String())
	require.ErrorContains(t, err, "-addr: listen tcp ")
	require.NotErrorAs(t, err, &usage)
	if runtime.GOOS == "linux" {
		_, err = cli.Listen("-addr", "192.0.2.1:0")
		require.ErrorAs(t, err, &usage)
	}
}
