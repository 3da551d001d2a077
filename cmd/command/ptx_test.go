package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu/emu/ptxcheck"
)

// handoff is the command line of docs/testing.md, with more flags at its end.
func handoff(more ...string) []string {
	args := []string{"ptx", "check", "../../gpu/emu/ptxcheck/testdata/handoff.ptx", "-g", "2", "-block", "1",
		"-buf", "box=u32[1]", "-buf", "flag=u32[1]:0", "-buf", "out=u32[1]",
		"-arg", "box", "-arg", "flag", "-arg", "box@(1-rank)", "-arg", "flag@(1-rank)", "-arg", "out", "-arg", "rank+1"}
	return append(args, more...)
}

// "ringo ptx check" prints the output that docs/testing.md shows.
func TestPTXInDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/testing.md")
	if os.IsNotExist(err) {
		t.Skip("the source is not here")
	}
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(b), "$ ringo ptx check ")
	require.True(t, ok)
	shown, _, _ := strings.Cut(after, "\n```")
	line, output, _ := strings.Cut(strings.ReplaceAll(shown, "\\\n", " "), "\n")
	var args []string
	for _, word := range strings.Fields(line) {
		args = append(args, strings.Trim(word, "'"))
	}
	args[0] = filepath.Join("..", "..", args[0])
	code, stdout, stderr := ringoHere(append([]string{"ptx", "check"}, args...)...)
	require.Equal(t, 1, code)
	require.Equal(t, output, strings.TrimSpace(stdout)+"\n"+strings.TrimSpace(stderr))
}

func TestPTX(t *testing.T) {
	code, stdout, _ := ringoHere(handoff("-seeds", "3", "-json")...)
	require.Equal(t, 1, code)
	var r ptxcheck.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Contains(t, stdout, "{\n  \"", "for people too")
	require.Equal(t, ptxcheck.Version, r.Version)
	require.Equal(t, 3, r.Ran)
	require.Equal(t, "GPUs", r.Findings[0].Across)

	b, err := os.ReadFile("../../gpu/emu/ptxcheck/testdata/handoff.ptx")
	require.NoError(t, err)
	args := handoff("-want", "out=3", "-want", "box@1=1", "-seeds", "10")
	args[2] = filepath.Join(t.TempDir(), "right.ptx")
	require.NoError(t, os.WriteFile(args[2], []byte(strings.Replace(string(b), "relaxed", "release", 1)), 0o600))
	code, stdout, stderr := ringoHere(args...)
	require.Equal(t, 0, code)
	require.Equal(t, "nothing found under 10 seeds\n", stdout)
	require.Empty(t, stderr)

	code, stdout, stderr = ringoHere(handoff("-time", "1ns")...)
	require.Equal(t, 1, code)
	require.Equal(t, "nothing found under 0 seeds\n", stdout)
	require.Contains(t, stderr, "0 of 100 seeds: ran out of time after 1ns (-time)")
}

// Launches follow each other, each with the flags after its -kernel.
func TestPTXLaunches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.ptx")
	require.NoError(t, os.WriteFile(file, []byte(`.version 7.0
.target sm_70
.address_size 64
.visible .entry set(.param .u64 to, .param .u32 v)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [to];
	ld.param.u32 %r0, [v];
	mov.u32 %r1, %tid.x;
	mad.wide.u32 %rd0, %r1, 4, %rd0;
	st.global.u32 [%rd0], %r0;
	ret;
}
.visible .entry double(.param .u64 to)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [to];
	mov.u32 %r1, %ctaid.x;
	mad.wide.u32 %rd0, %r1, 4, %rd0;
	ld.global.u32 %r0, [%rd0];
	add.u32 %r0, %r0, %r0;
	st.global.u32 [%rd0], %r0;
	ret;
}
`), 0o600))
	code, stdout, stderr := ringoHere("ptx", "check", file, "-g", "2", "-buf", "x=u32[8]:7", "-seeds", "5",
		"-kernel", "set", "-block", "4", "-arg", "x", "-arg", "pick(3,4)",
		"-kernel", "double", "-grid", "2,2", "-block", "1", "-arg", "x+8", "-on", "1",
		"-want", "x@0=3,3,3,3,7,7,7,7", "-want", "x@1=4,4,8,4,7,7,7,7")
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "race between blocks", "blocks (0,0) and (0,1) have the same element")
	code, stdout, stderr = ringoHere("ptx", "check", file, "-g", "2", "-buf", "x=u32[8]:7", "-seeds", "5",
		"-block", "4", "-arg", "x", "-arg", "pick(3,4)", "-kernel", "set",
		"-kernel", "double", "-grid", "2", "-block", "1", "-arg", "x+8", "-on", "1",
		"-want", "x@0=3,3,3,3,7,7,7,7", "-want", "x@1=4,4,8,8,7,7,7,7")
	require.Equal(t, 0, code, stdout+stderr)
}

func TestPTXMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"what? write: ringo ptx check FILE":               {"ptx"},
		`unknown subcommand "chek"; did you mean check?`:  {"ptx", "chek", "x"},
		"2 files: give one":                               {"ptx", "check", "a", "b"},
		"-seeds 0: want 1 to a million seeds":             {"ptx", "check", "a", "-seeds", "0"},
		"want up to three numbers":                        {"ptx", "check", "a", "-grid", "1,2,3,4"},
		"-g 17: want 1 to 16 GPUs":                        handoff("-g", "17"),
		`unknown link "nvlnk"; did you mean nvlink?`:      handoff("-link", "nvlnk"),
		"7 arguments, want 6: handoff(.u64 box, .u64 fla": handoff("-arg", "1"),
		"handoff.ptx has none of this name; it has hando": handoff("-kernel", "handof"),
		`unknown type "f99"`:                              handoff("-buf", "x=f99[1]"),
		"want NAME=TYPE[COUNT]":                           handoff("-buf", "x=f32"),
		"there is a buffer box already":                   handoff("-buf", "box=f32[1]"),
		`"boxx" is no buffer: there are box, flag, out`:   handoff("-want", "boxx=1"),
		"blocks of 2000 threads, the device allows 1024":  handoff("-block", "2000"),
	} {
		code, _, stderr := ringoHere(args...)
		require.Equal(t, 2, code, "%q: %s", args, stderr)
		require.Contains(t, stderr, want, "%q", args)
	}
	code, _, stderr := ringoHere("ptx", "check", "absent.ptx")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "absent.ptx")
}
