package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

func TestEmulateMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"which program?":             {"-g", "4"},
		"-g 0: want 1 to 64 GPUs":    {"-g", "0", "x"},
		"known are a100, h100, h200": {"-gpu", "h300", "x"},
		"-time -1s: want 0 or more":  {"-time", "-1s", "x"},
	} {
		code, _, stderr := ringoHere(append([]string{"emulate"}, args...)...)
		require.Equal(t, 2, code, "%q", args)
		require.Contains(t, stderr, want)
	}
	code, _, stderr := ringoHere("emulate", "-kit", t.TempDir(), "x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no lib64/libcuda.so.1 in it: scripts/cuda-kit builds it")
	t.Chdir(t.TempDir())
	code, _, stderr = ringoHere("emulate", "x")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the kit of emulated GPUs is not here: scripts/cuda-kit of Ringo's sources builds it (Go and gcc)")
}

// The loader divides its lists at spaces, colons and semicolons: such a folder gets a link.
func TestForLoader(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("wants symbolic links")
	}
	for _, name := range []string{"plain", "it's a \"clone", "a:b", "a;b", "$ORIGIN"} {
		folder := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(folder, 0o755))
		t.Setenv("TMPDIR", folder)
		link, remove, err := forLoader(folder)
		require.NoError(t, err)
		require.True(t, sameFile(link, folder))
		require.False(t, strings.ContainsAny(link, " :;$"), link)
		require.Equal(t, name == "plain", link == folder)
		remove()
		require.Equal(t, name == "plain", isFile(link))
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	_, err := temporary("x")
	require.ErrorContains(t, err, "set TMPDIR to a folder that you alone can write to")
}

// kitWith is a kit whose only library is an empty file, for programs that use no GPU.
func kitWith(t *testing.T) string {
	kit := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(kit, "lib64"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(kit, "lib64", "libcuda.so.1"), nil, 0o644))
	return kit
}

// TestEmulateProgram runs shells in the place of CUDA programs, and checks their environment, the report that they
// write, and their exit statuses.
func TestEmulateProgram(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS == "windows" {
		t.Skip("wants a shell")
	}
	kit := kitWith(t)
	run := func(args ...string) (int, string, string) {
		return ringoHere(append([]string{"emulate", "-kit", kit}, args...)...)
	}
	code, out, _ := run("-g", "3", "-gpu", "a100", "-seed", "5", "-seeds", "2", "--", "sh", "-c",
		`echo "$RINGO_EMULATE $RINGO_EMULATE_GPU $RINGO_EMULATE_SEED ${LD_LIBRARY_PATH%%:*}"`)
	require.Zero(t, code)
	lib := filepath.Join(kit, "lib64")
	require.Contains(t, out, "3 a100 5 "+lib+"\n3 a100 6 "+lib+"\n")
	require.Contains(t, out, "sh on 3 a100 GPUs, 2 seeds\n\nno process of the program has called the GPU's driver")
	code, out, _ = run("sh", "-c", `echo '{"process":1,"ended":true}' >"$RINGO_EMULATE_REPORT"`)
	require.Zero(t, code)
	require.Contains(t, out, "nothing was found")
	code, out, _ = run("-seeds", "2", "sh", "-c", `for n in one one; do echo '{"process":1,"nccl":{},"note":"'$n GPU'"}'; done `+
		`>"$RINGO_EMULATE_REPORT"; echo '{"process":1,"ended":true}' >>"$RINGO_EMULATE_REPORT"`)
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, "\none GPU\n"), "a note is no finding")

	code, out, _ = run("sh", "-c", "exit 7")
	require.Equal(t, 1, code)
	require.Contains(t, out, "the program failed: exit status 7")

	code, _, stderr := run("./no-such-program")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no-such-program")
	code, _, stderr = run("-time", "50ms", "sleep", "60")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "ran out of time after 50ms (-time)")

	code, out, stderr = run("-time", "1s", "sh", "-c", `echo '{"process":1,"fault":{"Kind":2,"Device":0,"Kernel":"add","Source":"add.cu:9","Count":1}}' \
		>"$RINGO_EMULATE_REPORT"; exec sleep 60`)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "ran out of time after 1s (-time)")
	require.Contains(t, out, "the program was ended: ran out of time after 1s (-time)\n1 finding: 1 × race")
	require.Contains(t, out, "did not come to its end")
	require.NotContains(t, out, "no process of the program")

	code, out, stderr = run("--json", "sh", "-c",
		`echo hello; echo '{"process":1,"ended":true,"leaks":["device 0: 8 bytes"]}' >"$RINGO_EMULATE_REPORT"`)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "hello")
	var r emulateReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, "leak", r.Findings[0].Kind)

	// Memory that a program has not freed when it failed is no leak.
	code, out, _ = run("--json", "sh", "-c", `echo '{"process":1,"ended":true,"leaks":["8 bytes"]}' >"$RINGO_EMULATE_REPORT"; exit 3`)
	require.Equal(t, 1, code)
	r = emulateReport{}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Empty(t, r.Findings)
	require.Equal(t, 3, r.Status)
}

// TestEmulateReport reads the lines of three processes: one ended, one was killed, one was killed within a line. Of the
// one that was killed there are the kernels, too.
func TestEmulateReport(t *testing.T) {
	const race = `{"Kind":2,"Device":0,"Kernel":"_ZN3abc3addIfEEvPT_","Line":7,"Source":"add.cu:9","Count":%,"Size":4,` +
		`"Other":{"Device":1,"Kernel":"set","Line":3,"Source":"add.cu:4","Size":4,"Write":true}}`
	const sends = `{"Kind":2,"Device":0,"Kernel":"add","Line":7,"Source":"add.cu:9","Count":%,"Size":4,` +
		`"Other":{"Device":1,"Kernel":"notes","Line":51%,"For":"ncclSend at add.cu:20","Size":4}}`
	lines := []string{
		`{"process":1,"fault":` + strings.ReplaceAll(race, "%", "1") + `}`,
		`{"process":1,"ended":true,"faults":[` + strings.ReplaceAll(race, "%", "12") +
			`,` + strings.ReplaceAll(sends, "%", "1") + `,` + strings.ReplaceAll(sends, "%", "3") + `],"opened":3}`,
		`{"process":1,"nccl":{"ncclAllReduce":4}}`,
		`{"process":2,"counts":"COUNTS"}`, `{"process":2,"kernel":"_ZN3abc3addIfEEvPT_","at":3}`, `{"process":2,"kernel":"set","at":4}`,
		`{"process":2,"fault":{"Kind":0,"Device":-1,"Kernel":"cuMemcpyHtoD","Count":1}}`,
		`{"process":3,"fau`,
	}
	file, counts := filepath.Join(t.TempDir(), "report"), filepath.Join(t.TempDir(), "counts")
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "COUNTS", filepath.ToSlash(counts))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	var numbers []byte
	for _, n := range []uint64{100, 0, 0, 2, 1} {
		numbers = binary.NativeEndian.AppendUint64(numbers, n)
	}
	r := newEmulateReport(&emulation{program: []string{"add"}, GPUs: 2, Seeds: 2})
	for seed := range uint64(2) {
		require.NoError(t, os.WriteFile(counts, numbers, 0o644))
		require.NoError(t, r.read(file, seed, true))
		require.NoFileExists(t, counts)
		r.Ran++
	}
	require.NoError(t, r.read(file+"-absent", 2, true))
	require.Equal(t, map[string]int{"abc::add": 4, "set": 2}, r.Kernels)
	require.Equal(t, map[string]int{"ncclAllReduce": 8}, r.NCCL)
	require.EqualValues(t, 200, r.Instructions)
	require.Len(t, r.Findings, 3)
	require.Equal(t, emulateFound{Kind: "race", At: "add.cu:9 in add", Other: "ncclSend at add.cu:20", Times: 8,
		Seeds: []uint64{0, 1}, Text: r.Findings[1].Text}, *r.Findings[1])
	f := *r.Findings[0]
	f.Text = ""
	require.Equal(t, emulateFound{Kind: "race", At: "add.cu:4 in set", Other: "add.cu:9 in abc::add", Times: 24,
		Seeds: []uint64{0, 1}}, f)
	require.Equal(t, "cuMemcpyHtoD of the host", r.Findings[2].At)
	var b bytes.Buffer
	require.NoError(t, r.print(&b))
	for _, want := range []string{"race: add.cu:4 in set and add.cu:9 in abc::add, 24 times, 2 of 2 seeds, the first is " +
		"0\n", "  8  ncclAllReduce\n",
		"a process did not come to its end", "fewer races are found between processes than within one; run all ranks in one process", "3 findings: 1 × out of bounds, 2 × race"} {
		require.Contains(t, b.String(), want)
	}
}

func TestKernelName(t *testing.T) {
	for linked, want := range map[string]string{
		"plain": "plain", "_Z3addPfS_i": "add", "_ZN2ns3fooIiEEvPT_": "ns::foo", "_ZN12_GLOBAL__N_16reduceEPf": "reduce",
		"_ZL4fillPi": "fill",
		"_Z":         "_Z", "_Z99x": "_Z99x",
	} {
		require.Equal(t, want, kernelName(linked))
	}
}

// A signal that ends the command ends its program too.
func TestEmulateInterrupted(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS == "windows" {
		t.Skip("wants a shell")
	}
	ctx, cancel := context.WithCancel(context.Background())
	began := make(chan struct{})
	e := emulation{GPUs: 1, Seeds: 1, kit: kitWith(t), program: []string{"sh", "-c", "echo here; exec sleep 60"},
		environment: os.Environ()}
	go func() {
		<-began
		cancel()
	}()
	_, err := e.run(ctx, writerFunc(func(b []byte) (int, error) { close(began); return len(b), nil }), os.Stderr)
	require.ErrorIs(t, err, context.Canceled)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Failed calls are findings, those of one cause one, and none if they are allowed.
func TestEmulateFailedCalls(t *testing.T) {
	line := func(text string) string { return `{"process":1,` + text + `}` }
	failed := func(call string, result int, name, text, at string, follows bool, times int) string {
		return line(fmt.Sprintf(`"failed":{"call":%q,"error":%q,"result":%d,"text":%q,"at":%q,"follows":%v},"times":%d`,
			call, name, result, text, at, follows, times))
	}
	lines := strings.Join([]string{
		line(`"fault":{"Kind":0,"Device":0,"Kernel":"k","Line":3,"Source":"a.cu:3","Count":1}`),
		failed("cudaFree", 1, "cudaErrorInvalidValue", "freed already", "a.cu:4", false, 1),
		failed("cudaFree", 1, "cudaErrorInvalidValue", "freed already", "a.cu:4", false, 5),
		failed("cudaLaunchKernel", 801, "cudaErrorNotSupported", "kernel _Z1kPi: tex", "a.cu:6", false, 2),
		failed("cudaFuncGetAttributes", 801, "cudaErrorNotSupported", "kernel _Z1kPi: tex", "a.cu:5", false, 1),
		failed("cudaMalloc", 2, "cudaErrorMemoryAllocation", "2 bytes", "a.cu:7", false, 3),
		failed("cudaDeviceSynchronize", 700, "cudaErrorIllegalAddress", "out of bounds", "a.cu:8", true, 2),
		line(`"comm":{"id":"c0ffee","call":"AllReduce","at":"ncclAllReduce at a.cu:9","text":"ranks disagree"}`),
		line(`"comm":{"id":"c0ffee","call":"AllReduce","text":"another rank"}`),
		failed("ncclCommDestroy", 5, "ncclInvalidUsage", "ranks disagree", "a.cu:10", true, 2),
	}, "\n")
	file := filepath.Join(t.TempDir(), "report")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o644))
	of := func(allow ...string) (r *emulateReport, kinds []string) {
		r = newEmulateReport(&emulation{program: []string{"a"}, GPUs: 1, Seeds: 1, allow: allow})
		require.NoError(t, r.read(file, 1, true))
		for _, f := range r.Findings {
			kinds = append(kinds, fmt.Sprintf("%s: %s, %d + %d", f.Kind, f.At, f.Times, f.Followed))
		}
		return r, kinds
	}
	_, kinds := of()
	require.Equal(t, []string{
		"failed communicator: ncclAllReduce at a.cu:9, 1 + 2", "out of bounds: a.cu:3 in k, 1 + 2",
		"failed call: cudaFree at a.cu:4, 5 + 0", "refused: cudaLaunchKernel at a.cu:6, 3 + 0",
		"failed call: cudaMalloc at a.cu:7, 3 + 0"}, kinds)
	r, kinds := of("cudaMalloc=cudaErrorMemoryAllocation", "cudaFree=*", "*=801")
	require.Equal(t, []string{"failed communicator: ncclAllReduce at a.cu:9, 1 + 2", "out of bounds: a.cu:3 in k, 1 + 2"},
		kinds)
	require.Equal(t, 11, r.Allowed)
	code, _, stderr := ringoHere("emulate", "-allow", "cudaMalloc", "x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "want CALL=ERROR")
}
