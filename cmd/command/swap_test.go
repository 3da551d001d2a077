package command

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

func TestSwapMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"which program?":         {"-host"},
		"want one of them":       {"-host", "-g", "2", "x"},
		"-g -1: want 0 to 64":    {"-g", "-1", "x"},
		"neither -host nor -g":   {"-compare", "-host", "x"},
		"-ignore is of -compare": {"-ignore", "a", "x"},
		"-ignore: error parsing": {"-compare", "-ignore", "(", "x"},
		"-gpu: unknown kind":     {"-gpu", "h300", "x"},
		"-time -1s: want 0 or":   {"-time", "-1s", "x"},
		"unknown flag -no":       {"-no", "x"},
	} {
		code, _, stderr := ringoHere(append([]string{"swap"}, args...)...)
		require.Equal(t, 2, code, "%q: %s", args, stderr)
		require.Contains(t, stderr, want)
	}
	code, _, stderr := ringoHere("swap", "-nccl", "no-such.so", "x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "-nccl no-such.so: no such file: scripts/libnccl builds it (Go and gcc)")
	t.Chdir(t.TempDir())
	code, _, stderr = ringoHere("swap", "x")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "libnccl.so.2 is not here: scripts/libnccl of Ringo's sources builds it (Go and gcc)")
}

// libraries is the path of an empty file in the place of Ringo's NCCL, with another for the library that counts.
func libraries(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{ncclFile, countFile} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	return filepath.Join(dir, ncclFile)
}

// TestSwapProgram runs shells that write the reports of processes. The loader complains of the empty libraries and
// goes on.
func TestSwapProgram(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is Linux's")
	}
	library := libraries(t)
	run := func(args ...string) (int, string, string) {
		return ringoHere(append([]string{"swap", "-nccl", library}, args...)...)
	}
	code, out, _ := run("-host", "--", "sh", "-c", `echo "$RINGO_HOST ${LD_PRELOAD}"`)
	require.Zero(t, code)
	require.Contains(t, out, "true "+filepath.Join(filepath.Dir(library), countFile)+":"+library)
	require.Contains(t, out, "no process that has ended by itself has loaded an NCCL")

	code, out, _ = run("sh", "-c",
		`for p in 1 2; do echo '{"process":'$p',"program":"a","library":"`+library+`","version":22809,`+
			`"nccl":{"ncclAllReduce":3,"ncclGroupEnd":1},"calls":{"ncclAllReduce":{"bytes":1500000,"ns":9000,"failed":2,"missing":1},"ncclGroupEnd":{"ns":10000}}}' >>"$RINGO_EMULATE_REPORT"; done
		echo '{"process":3,"library":"/lib/libnccl.so.2","version":23004,"nccl":{},"calls":{}}' >>"$RINGO_EMULATE_REPORT"; echo '{"torn' >>"$RINGO_EMULATE_REPORT"`)
	require.Zero(t, code)
	require.Contains(t, out, library+": Ringo's, which answers as NCCL 2.28.9 (processes: 2)\n")
	require.Contains(t, out, "/lib/libnccl.so.2: another NCCL 2.30.4 (processes: 1)\n")
	require.Regexp(t, `(?m)^ +2 +20µs +10µs +ncclGroupEnd\n +6 +3 +18µs +3µs +4 +ncclAllReduce$`, out)
	require.Contains(t, out, `answered by "not there": ncclAllReduce (2 times)`)

	code, _, stderr := run("-time", "50ms", "sleep", "60")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "ran out of time after 50ms (-time)")
	code, _, stderr = run("./no-such-program")
	require.Equal(t, 127, code)
	require.Contains(t, stderr, "no-such-program")
}

func TestSwapCompare(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is Linux's")
	}
	library := libraries(t)
	run := func(program string, args ...string) (int, string, string) {
		return ringoHere(append(append([]string{"swap", "-nccl", library, "-compare"}, args...), "--", "sh", "-c",
			program)...)
	}
	code, out, stderr := run("echo loss 1; echo loss 2")
	require.Zero(t, code)
	require.Contains(t, stderr, "with the program's own NCCL")
	require.Contains(t, out, "both printed the same")
	require.Regexp(t, `exit status +0 +0`, out)
	differs := `case "$LD_PRELOAD" in *libnccl*) x=7;; *) x=5;; esac; echo begin; echo loss $x; exit 0`
	code, out, _ = run(differs)
	require.Equal(t, 1, code)
	require.Contains(t, out, "the first difference is in line 2:\n  NCCL   loss 5\n  Ringo  loss 7\n")
	code, _, _ = run(differs, "-ignore", "[0-9]+")
	require.Zero(t, code)
	code, out, _ = run(`case "$LD_PRELOAD" in *libnccl*) exit 3;; esac; echo more`)
	require.Equal(t, 1, code)
	require.Contains(t, out, "  Ringo  (nothing any more)\n")
}

func TestFirstDifference(t *testing.T) {
	lines := func(s ...string) []string { return s }
	require.Zero(t, firstDifference(nil, nil, nil))
	require.Equal(t, 2, firstDifference(lines("a", "b"), lines("a", "c"), nil))
	require.Equal(t, 2, firstDifference(lines("a"), lines("a", "c"), nil))
	require.Zero(t, firstDifference(lines("1.5 s a"), lines("2.5 s a"), regexp.MustCompile(`[0-9.]+ s`)))
}

// Output is cut into lines however it is written; step is the time between lines.
func TestLineTimes(t *testing.T) {
	l := lineTimes{began: time.Now()}
	for _, piece := range []string{"a", "b\nc\n\n", "d"} {
		_, err := l.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"ab", "c", ""}, l.lines)
	require.Zero(t, l.step())
	l.at = []time.Duration{5, 10, 11, 13, 16, 100}
	require.EqualValues(t, 3, l.step())
	require.Equal(t, 1230*time.Microsecond, rough(1234567*time.Nanosecond))
}
