package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/test/need"
)

// fails is a shell in the place of a CUDA program: it fails under seeds from 2 on; while its decisions are written down
// it makes 50 of them, and where some are followed it fails if the 7th and the 31st are among them.
const fails = `echo "{\"process\":1,\"ended\":true,\"threads\":$THREADS}" >>"$RINGO_EMULATE_REPORT"
if [ -n "$RINGO_EMULATE_RECORD" ]; then
	i=0
	while [ $i -lt 50 ]; do i=$((i+1)); echo "{\"kind\":\"switch\",\"at\":$i}"; done >"$RINGO_EMULATE_RECORD"
fi
if [ -n "$RINGO_EMULATE_FOLLOW" ]; then
	echo run >>"$RUNS"
	case "$(cat "$RINGO_EMULATE_FOLLOW")" in *'"at":7,'*'"at":31,'* | *'"at":31,'*'"at":7,'*) ;; *) exit 0 ;; esac
	echo '{"process":1,"step":{"kind":"switch","at":7,"kernel":"_Z3addPf","source":"add.cu:9","to":{"block":[1,0,0]},` +
	`"toKernel":"_Z3addPf","toSource":"add.cu:4"}}' >>"$RINGO_EMULATE_REPORT"
	exit 5
fi
[ "$RINGO_EMULATE_SEED" -lt 2 ] || exit 5`

func TestShrink(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS == "windows" {
		t.Skip("wants a shell")
	}
	dir := t.TempDir()
	t.Setenv("RUNS", filepath.Join(dir, "runs"))
	t.Setenv("THREADS", "1")
	run := func(args ...string) (int, string) {
		code, out, _ := ringoHere(append([]string{"emulate", "-kit", kitWith(t), "-seeds", "4", "-shrink"}, args...)...)
		return code, out
	}
	code, out := run("-json", "sh", "-c", fails)
	require.Equal(t, 1, code)
	var r emulateReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Shrunk, 1)
	require.Equal(t, shrunk{Failure: "exit status 5", Seed: 2, Decisions: 50, Needed: 2, Repeats: 3, Threads: 1,
		Story: []string{"GPU 0, add, block (0,0,0), warp 0 stands at add.cu:9: GPU 0, add, block (1,0,0), warp 0 runs from " +
			"add.cu:4"}}, *r.Shrunk[0])
	runs, err := os.ReadFile(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	require.Less(t, len(runs)/len("run\n"), 60)

	t.Setenv("THREADS", "3")
	_, out = run("sh", "-c", fails)
	require.Contains(t, out, "schedule of exit status 5\n    needs 2 of 50 decisions of seed 2; all else is in the plain "+
		"order\n    1. GPU 0, add, block (0,0,0), warp 0 stands at add.cu:9")
	require.Contains(t, out, "came 3 times in 3 runs; 3 threads of the host call the driver in an order that is not part")

	const records = `[ -z "$RINGO_EMULATE_RECORD" ] || : >"$RINGO_EMULATE_RECORD"; `
	for program, want := range map[string]string{
		"exit 3":           "schedule of exit status 3\n    not made short: no process of the program has called the GPU's driver",
		records + "exit 3": "schedule of exit status 3\n    needs none of 0 decisions of seed 0: it comes in the plain order",
		records + `[ -n "$RINGO_EMULATE_FOLLOW" ]`: "not made short: the same decisions did not make it again",
		`[ -n "$RINGO_EMULATE_RECORD" ]`:           "not made short: it did not come again under 20 seeds whose decisions were written down",
		`for i in 1 2; do echo "{\"process\":$i,\"ended\":true}" >>"$RINGO_EMULATE_REPORT"; done; exit 1`: "not made short: 2 processes of the program use GPUs",
	} {
		_, out = run("sh", "-c", program)
		require.Contains(t, out, want)
	}
	_, out = run("sh", "-c", `[ -z "$RINGO_EMULATE_FOLLOW" ]`)
	require.NotContains(t, out, "schedule of")
}

func TestStory(t *testing.T) {
	at := decision.Scene{Kernel: "_Z3addPf", Source: "add.cu:9", Thread: 33, Size: 4, Where: "MemAlloc #2+0x10", Value: 7}
	seen, unknown := at, at
	seen.Seen = true
	unknown.Source, unknown.Line, unknown.Value = "", 12, 0
	warp := decision.Warp{Device: 1, Block: [3]int{2, 0, 0}, Warp: 1}
	for want, step := range map[string]emulateStep{
		"GPU 1, add, block (2,0,0), warp 1, thread 33 at add.cu:9: others do not see the store of 0x7 to MemAlloc #2+0x10 yet": {
			decision.Decision{Kind: decision.Hold, Warp: warp}, at},
		"add.cu:9, the store of 0x7 to MemAlloc #2+0x10: all see it now": {decision.Decision{Kind: decision.Hold}, seen},
		"GPU 1, add, block (2,0,0), warp 1, thread 33 at line 12 of the PTX of add: others do not see the store of 4 bytes to " +
			"MemAlloc #2+0x10 yet": {decision.Decision{Kind: decision.Hold, Warp: warp}, unknown},
		"GPU 1, add, block (2,0,0), warp 1, thread 33 at add.cu:9: the load is carried out late, after what follows it": {
			decision.Decision{Kind: decision.Load, Warp: warp}, at},
		"GPU 1, add, block (2,0,0), warp 1, thread 33 at add.cu:9: the load gives a value that was overwritten": {
			decision.Decision{Kind: decision.Old, Warp: warp}, at},
		"GPU 1, add, block (2,0,0), warp 1, thread 33 at add.cu:9: the asynchronous copy of 4 bytes takes long": {
			decision.Decision{Kind: decision.Copy, Warp: warp}, at},
		"GPU 1, add, block (2,0,0), warp 1: thread 33 runs before the others of its warp, which have parted from it": {
			decision.Decision{Kind: decision.Part, Warp: warp}, at},
		"on its stream add begins late": {decision.Decision{Kind: decision.Start}, at},
	} {
		require.Equal(t, want, step.String())
	}
}
