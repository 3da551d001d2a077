//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// in is a file of cmd/libnccl.
func in(t testing.TB, file string) string {
	return filepath.Join(ctest.Root(t), "cmd", "libnccl", file)
}

// succeeds runs a program and wants "ok" as its last word.
func succeeds(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.True(t, strings.HasSuffix(string(text), "ok\n"), "%s", text)
	require.NotContains(t, string(text), "emulated GPU:")
}

// measured matches times that a program prints.
var measured = regexp.MustCompile(`over [0-9.]+ s after ncclCommAbort\n`)

// succeed runs a program in n processes, whose last argument is where they meet.
func succeed(t *testing.T, env []string, n int, name, mode string) {
	t.Helper()
	succeedEach(t, func(int) []string { return env }, n, name, mode)
}

// succeedEach is succeed with an environment for each rank.
func succeedEach(t *testing.T, env func(rank int) []string, n int, name, mode string) {
	t.Helper()
	meet := filepath.Join(t.TempDir(), "id")
	texts, errs := make([]bytes.Buffer, n), make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			cmd := exec.Command(name, mode, strconv.Itoa(rank), strconv.Itoa(n), meet)
			cmd.Env, cmd.Stdout, cmd.Stderr = env(rank), &texts[rank], &texts[rank]
			errs[rank] = cmd.Run()
		})
	}
	wg.Wait()
	for rank := range n { // report all that failed: one may have made the others fail
		text := measured.ReplaceAllStringFunc(texts[rank].String(),
			func(line string) string { t.Logf("rank %d: %s", rank, line); return "" })
		assert.NoError(t, errs[rank], "rank %d: %s", rank, &texts[rank])
		assert.Equal(t, "ok\n", text, "rank %d", rank)
	}
}

func TestCollectives(t *testing.T) {
	collectives(t, ctest.Program(t, "collectives", false), ctest.OnHost(), "process", "threads", "teams", "all")
}

// collectives runs the program of all collectives with 4 ranks, by processes, by threads, by threads with two ranks
// each, and by one thread: the first of these modes, or all.
func collectives(t *testing.T, p string, env []string, modes ...string) {
	for _, mode := range tier.Some(len(modes), modes) {
		t.Run(mode, func(t *testing.T) {
			switch mode {
			case "process":
				succeed(t, env, 4, p, mode)
			case "teams":
				succeeds(t, env, p, mode, "2", "2")
			default:
				succeeds(t, env, p, mode, "4")
			}
		})
	}
}

// TestCollectivesOnGPUs is TestCollectives on emulated GPUs, in graphs too: the program allocates, copies,
// captures and launches a kernel of its own by the driver's interface. The emulator would write the
// races that it finds beside the "ok".
func TestCollectivesOnGPUs(t *testing.T) {
	collectives(t, ctest.Program(t, "collectives", true), ctest.OnGPUs(4), "teams", "process", "threads", "all")
}

// TestDeviceOfRuntime: a thread without a context is on the device that it has chosen by its CUDA runtime: runtimes
// before 12 make the context later. Memory of a context that the program has made itself is refused.
func TestDeviceOfRuntime(t *testing.T) {
	p := ctest.Program(t, "runtime", true)
	runtime := ctest.C(t, "libcudart-d0da41ae.so.11.0", in(t, "testdata/cudart.c"), "-shared", "-fPIC")
	succeeds(t, ctest.OnGPUs(3), p, runtime)
}

// TestSymmetric runs a program whose kernels use windows and device communicators, in the layouts of several versions
// of NCCL's headers, with ranks in processes, in threads, in one thread, and several in each of several threads.
func TestSymmetric(t *testing.T) {
	p := ctest.Program(t, "symmetric", true)
	env := ctest.OnGPUs(3)
	t.Run("processes", func(t *testing.T) { succeed(t, env, 2, p, "process") })
	t.Run("processes that see a GPU each", func(t *testing.T) {
		succeedEach(t, func(rank int) []string {
			return append(slices.Clone(env),
				"CUDA_VISIBLE_DEVICES="+strconv.Itoa(rank))
		}, 2, p, "process")
	})
	t.Run("teams", func(t *testing.T) { succeeds(t, ctest.OnGPUs(4), p, "teams", "4") })
	for _, n := range tier.Some(2, []string{"3", "1"}) {
		t.Run("threads "+n, func(t *testing.T) { succeeds(t, env, p, "threads", n) })
	}
	for _, version := range tier.Some(6, []string{"22809", "22903", "22907", "23007", "23102", "23206"}) {
		t.Run("group "+version, func(t *testing.T) { succeeds(t, env, p, "group", "2", version) })
		t.Run("threads "+version, func(t *testing.T) { succeeds(t, env, p, "threads", "2", version) })
	}
}

// TestNorm has rows finished, on hosts and on emulated GPUs.
func TestNorm(t *testing.T) {
	succeed(t, ctest.OnHost(), 3, ctest.Program(t, "norm", false), "process")
	succeed(t, ctest.OnGPUs(2), 2, ctest.Program(t, "norm", true), "process")
}

// asked returns, by case of testdata/driver.c, the driver's functions that a call on a GPU uses, and the ns that the
// call takes without them.
func asked(t testing.TB, calls int) (functions map[string]string, ns map[string]float64) {
	p := ctest.Program(t, "driver", true)
	idle := ctest.C(t, "libidle.so", in(t, "testdata/idle.c"), "-shared", "-fPIC", "-O2", "-Wl,--no-as-needed",
		ctest.Driver(t))
	cmd := exec.Command(p, idle, strconv.Itoa(calls))
	cmd.Env = append(ctest.OnGPUs(2), "RINGO_CUDA_LIBRARY="+idle)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	functions, ns = map[string]string{}, map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		called, time, ok := strings.Cut(rest, " ns ")
		require.True(t, ok, "%s", text)
		functions[name] = called
		ns[name], err = strconv.ParseFloat(time, 64)
		require.NoError(t, err)
	}
	return functions, ns
}

// TestDriverCalls: calls use no more of the driver's functions than listed. The functions of look cross from Go to C
// once, and so does a launch with the record behind it. Of two ranks in a group of one thread, the thread's current
// context is the first rank's.
func TestDriverCalls(t *testing.T) {
	const (
		look = "cuCtxGetCurrent cuStreamIsCapturing cuStreamGetId"
		once = look + " cuEventRecord cuLaunchKernelEx"
		both = "cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 3×cuCtxGetCurrent 3×cuStreamIsCapturing 3×cuStreamGetId " +
			"2×cuEventRecord 2×cuLaunchKernelEx"
	)
	functions, _ := asked(t, 50)
	require.Equal(t, map[string]string{
		"all-reduce":        once,
		"misaligned":        once,
		"norm":              once,
		"registered":        once,
		"registered, 1 MiB": once,
		"all-gather":        once,
		"reduce-scatter":    once,
		"reduce":            once,
		"broadcast":         once,
		"send and receive":  once,
		"PreMulSum":         once,
		"all-reduce, 16":    "2×cuCtxGetCurrent 2×cuStreamIsCapturing 2×cuStreamGetId cuEventRecord cuLaunchKernelEx",
		"all-reduce, both":  both,
		"registered, both":  both,
		"PreMulSum, both":   both,
		"all-reduce, 16, both": "cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 5×cuCtxGetCurrent 5×cuStreamIsCapturing " +
			"5×cuStreamGetId 2×cuEventRecord 2×cuLaunchKernelEx",
		"send and receive, both": "cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 3×cuCtxGetCurrent 3×cuStreamIsCapturing " +
			"3×cuStreamGetId 2×cuEventRecord 2×cuLaunchKernelEx",
	}, functions)
}

// TestWatchdog makes the calls of PyTorch's watchdog, on emulated GPUs.
func TestWatchdog(t *testing.T) {
	p := ctest.Program(t, "watched", true)
	env := append(ctest.OnGPUs(3), "NCCL_DEBUG=NONE") // communicators fail here
	for _, mode := range tier.Some(2, []string{"abort", "background"}) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			succeeds(t, env, p, mode)
		})
	}
	for _, m := range tier.Some(3, []struct {
		name  string
		ranks int
	}{{"killed", 3}, {"leaves", 2}, {"partner", 2}, {"lengths", 2}, {"departs", 2}, {"returns", 3}}) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			succeed(t, env, m.ranks, p, m.name)
		})
	}
}

// TestSeams: rarely used sequences of calls have NCCL's results, on emulated GPUs.
func TestSeams(t *testing.T) {
	p := ctest.Program(t, "seams", true)
	for _, mode := range tier.Some(3, []string{"finalize", "aborted", "reset", "forked", "beside", "memory"}) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			succeeds(t, ctest.OnGPUs(2), p, mode)
		})
	}
}

func TestErrors(t *testing.T) {
	p := ctest.Program(t, "errors", false)
	for _, mode := range []string{"arguments", "abort", "background"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			succeeds(t, ctest.OnHost(), p, mode)
		})
	}
	t.Run("codes", func(t *testing.T) { succeeds(t, ctest.OnHost(), ctest.Program(t, "codes", false)) })
	quiet := append(ctest.OnHost(), "NCCL_DEBUG=NONE")
	t.Run("killed", func(t *testing.T) { succeed(t, quiet, 3, p, "killed") })
	t.Run("shrunk", func(t *testing.T) { succeed(t, quiet, 4, p, "shrunk") })
	t.Run("driver", func(t *testing.T) {
		succeeds(t, append(ctest.OnHost(), "RINGO_HOST=0", "RINGO_CUDA_LIBRARY=libnosuchcuda.so.1"), p, "driver")
	})
}

// TestSettings: what a program has set when it makes a communicator counts, whatever it was before, and what is read
// once says so.
func TestSettings(t *testing.T) {
	lib, p := ctest.Library(t), ctest.Program(t, "errors", false)
	succeeds := func(t *testing.T, program string, args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(ctest.OnHost(), "RINGO_ALGO=before", "RINGO_LIBRARY="+lib, "PYTHONDONTWRITEBYTECODE=1")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
		require.Equal(t, 1, strings.Count(string(text), `NCCL WARN NCCL_RAS_ADDR="later:1" has no effect`), "%s", text)
		require.Contains(t, string(text), "NCCL INFO path chosen")
		require.True(t, strings.HasSuffix(string(text), "ok\n"), "%s", text)
	}
	t.Run("C", func(t *testing.T) { succeeds(t, p, "settings") })
	t.Run("Python", func(t *testing.T) {
		succeeds(t, need.Tool(t, "python3"), in(t, "testdata/settings.py"), lib,
			filepath.Join(ctest.Root(t), "bindings", "python", "torch_ringo", "library.py"))
	})
}

// TestSwap runs programs by ringo swap, on host memory and on emulated GPUs, and one that uses a missing function.
func TestSwap(t *testing.T) {
	lib, ringo := ctest.Library(t), ctest.Ringo(t)
	swap := func(args ...string) string {
		cmd := exec.Command(ringo, append([]string{"swap", "-nccl", lib}, args...)...)
		cmd.Env = slices.DeleteFunc(ctest.OnHost(), func(v string) bool { return strings.HasPrefix(v, "RINGO_HOST=") })
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
		require.Contains(t, string(text), "ok\n")
		require.Contains(t, string(text), lib+": Ringo's, which answers as NCCL 2.28.9 (processes: 1)")
		return string(text)
	}
	text := swap("-host", "--", ctest.Program(t, "collectives", false), "threads", "2")
	require.Regexp(t, `(?m)^ *\d+ +[0-9.e+-]+ +\S+ +\S+ +\d* +ncclAllReduce$`, text)
	require.Contains(t, text, `no call was answered by "not there"`)
	text = swap("-host", "--", ctest.Program(t, "errors", false), "arguments")
	require.Regexp(t, `answered by "not there": .*ncclDevCommCreate`, text)
	kit := t.TempDir() // all that this program needs of one
	require.NoError(t, os.Symlink(filepath.Dir(ctest.Driver(t)), filepath.Join(kit, "lib64")))
	text = swap("-g", "2", "-kit", kit, "--", ctest.Program(t, "watched", true), "abort")
	require.Contains(t, text, "ncclCommAbort")
}

func TestManners(t *testing.T) {
	lib, p := ctest.Library(t), ctest.Program(t, "manners", false)
	other := filepath.Join(t.TempDir(), "libother.so")
	text, err := os.ReadFile(lib)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, text, 0o755))
	succeeds(t, ctest.OnHost(), p, lib, other)
}

func TestVersion(t *testing.T) {
	p := ctest.Program(t, "version", false)
	for _, test := range []struct{ variable, want string }{
		{"", "22809"},
		{"2.30.7", "23007"},
		{"22700", "22700"},
		{"new", `4 invalid argument: RINGO_NCCL_VERSION="new": want a version such as 2.30.7 or 23007`},
	} {
		cmd := exec.Command(p)
		cmd.Env = append(ctest.OnHost(), "RINGO_NCCL_VERSION="+test.variable)
		text, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, test.want+"\n", string(text))
	}
}

// TestConfFile: settings of a file count where the environment does not set them, also for the program's own getenv.
func TestConfFile(t *testing.T) {
	p, conf := ctest.Program(t, "version", false), filepath.Join(t.TempDir(), "conf")
	require.NoError(t, os.WriteFile(conf, []byte("# of a test\nNCCL_NET=IB\nNCCL_NET=Socket\n"), 0o644))
	for want, own := range map[string][]string{"IB IB\n": nil, "Plugin Plugin\n": {"NCCL_NET=Plugin"},
		" \n": {"NCCL_NET="}} {
		cmd := exec.Command(p, "NCCL_NET")
		cmd.Env = append(append(ctest.OnHost(), "NCCL_CONF_FILE="+conf), own...)
		text, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// TestNames wants exactly the names of testdata/names.txt: one that is missing makes
// "import torch" fail, and one too many may replace a name of the program's.
func TestNames(t *testing.T) {
	f, err := elf.Open(ctest.Library(t))
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	var got []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
		}
	}
	text, err := os.ReadFile(in(t, "testdata/names.txt"))
	require.NoError(t, err)
	var want []string
	version := "" // of the names that come now
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if of, ok := strings.CutPrefix(line, "# 2."); ok {
			require.Greater(t, "2."+of, version, "versions in order")
			version = "2." + of
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, alone := strings.CutPrefix(line, "!")
		require.NotContains(t, want, name, "%s", version)
		require.Contains(t, got, name, "%s", version)
		want = append(want, name)
		if !alone {
			want = append(want, "p"+name)
		}
	}
	require.ElementsMatch(t, want, got)
	soname, err := f.DynString(elf.DT_SONAME)
	require.NoError(t, err)
	require.Equal(t, []string{"libnccl.so.2"}, soname)
	needed, err := f.DynString(elf.DT_NEEDED)
	require.NoError(t, err)
	for _, lib := range needed {
		require.Regexp(t, `^(libc|libpthread|libdl|libresolv|ld-linux.*)\.so\.`, lib)
	}
	info, err := os.Stat(ctest.Library(t))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(17<<20))
}

// TestExamples runs the examples that need no GPU, and one on emulated GPUs, which are visible all.
func TestExamples(t *testing.T) {
	lib, examples := ctest.Library(t), filepath.Join(ctest.Root(t), "examples", "libnccl")
	cmd := exec.Command(ctest.C(t, "allreduce", filepath.Join(examples, "allreduce.c"), lib))
	cmd.Env = ctest.OnHost()
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Equal(t, "sums of 4 ranks: 6 10 14 …\n", string(text))

	python := need.Tool(t, "python3")
	cmd = exec.Command(python, filepath.Join(examples, "sum.py"), lib)
	cmd.Env = ctest.OnHost()
	text, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Equal(t, "sums of 4 ranks: [6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0, 34.0]\n", string(text))

	cmd = exec.Command(python, filepath.Join(examples, "visible.py"), lib)
	cmd.Env = append(ctest.OnGPUs(2), "PYTHONDONTWRITEBYTECODE=1", "LD_LIBRARY_PATH="+filepath.Dir(ctest.Driver(t)))
	text, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "sums of 2 ranks: [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]\n")
	require.NotContains(t, string(text), "emulated GPU:")
}

// TestHeader compares our header with NVIDIA's of 2.27 or newer, where one is installed.
func TestHeader(t *testing.T) {
	theirs := "" // the folder
	for _, dir := range append(filepath.SplitList(os.Getenv("CPATH")), "/usr/include", "/usr/local/cuda/include") {
		if _, err := os.Stat(filepath.Join(dir, "nccl.h")); err == nil {
			theirs = dir
			break
		}
	}
	if theirs == "" {
		need.Missing(t, "nccl.h", "no nccl.h in CPATH, /usr/include, /usr/local/cuda/include")
	}
	gcc := need.Tool(t, "gcc")
	if out, err := exec.Command(gcc, "-w", "-E", "-I"+theirs, "-o", os.DevNull,
		filepath.Join(theirs, "nccl.h")).CombinedOutput(); err != nil {
		need.Missing(t, "nccl.h", "nccl.h of "+theirs+" includes what is not there: "+string(out))
	}
	layout := func(include string) string {
		out := filepath.Join(t.TempDir(), "layout")
		require.NoError(t, ctest.Run(gcc, "-w", "-I"+include, "-o", out, in(t, "testdata/layout.c")))
		text, err := exec.Command(out).Output()
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, layout(theirs), layout(in(t, ".")))
}

// BenchmarkCall is the time of calls from C, with one rank on the host.
func BenchmarkCall(b *testing.B) {
	p := ctest.Program(b, "overhead", false)
	cmd := exec.Command(p, strconv.Itoa(max(b.N, 1000)))
	cmd.Env = ctest.OnHost()
	b.ResetTimer()
	text, err := cmd.Output()
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		queued, err := strconv.ParseFloat(f[len(f)-2], 64)
		require.NoError(b, err)
		b.ReportMetric(queued, strings.Join(f[:len(f)-2], "_")+"-ns")
	}
}

// BenchmarkDriver is the time of calls on GPUs without the driver's part.
func BenchmarkDriver(b *testing.B) {
	_, ns := asked(b, max(b.N, 1000))
	for name, v := range ns {
		b.ReportMetric(v, strings.ReplaceAll(name, " ", "_")+"-ns")
	}
}
