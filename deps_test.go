package ringo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
)

const module = "github.com/ringo-go/ringo"

// floors says which packages of this module each package may import; see
// ARCHITECTURE.md. "transport/*" stands for every package below. Tests are free.
// To make a build pass, change the build, not this table.
var floors = map[string]string{
	// Paper: what needs no machine.
	"sched":       "",
	"ring":        "sched",
	"ring/tree":   "sched",
	"ring/direct": "sched",
	"ring/hier":   "sched ring ring/*",
	"ring/book":   "sched ring ring/tree ring/direct ring/hier",
	"sched/sim":   "sched",

	// Iron: memory, queues, arithmetic, ways to move bytes.
	"mem":                "",
	"fifo":               "mem",
	"kernels":            "mem",
	"kernels/ptx":        "",
	"kernels/ptx/*":      "kernels kernels/ptx",
	"kernels/collective": "",
	"kernels/device":     "kernels kernels/ptx mem internal/cuda",
	"gpu":                "mem internal/cuda internal/emu/ptx",
	"gpu/dlpack":         "gpu mem kernels internal/dl",
	"gpu/emu":            "gpu internal/cuda internal/emu/*",
	"gpu/emu/ptxcheck":   "internal/emu/* kernels",
	"transport":          "mem fifo internal/secure",
	"transport/internal": "transport mem fifo",
	"transport/shm":      "transport mem fifo transport/internal/* internal/auth internal/secure internal/limit",
	"transport/p2p":      "transport mem fifo internal/cuda internal/auth internal/plain",
	"transport/plugin": "transport mem fifo transport/internal/* transport/socket internal/auth internal/secure " +
		"internal/dl",
	"transport/verbs": "transport mem fifo transport/internal/* transport/socket internal/auth internal/secure " +
		"internal/ibverbs",
	"transport/bridge": "transport mem fifo trace",
	"transport/transporttest": "transport mem fifo transport/internal/* transport/inproc internal/test/conntest " +
		"internal/test/payload internal/test/tier",
	"transport/*":          "transport mem fifo transport/internal/* internal/auth internal/secure",
	"trace":                "",
	"trace/judge":          "",
	"trace/history":        "internal/setting internal/given trace/judge",
	"bootstrap":            "bootstrap/rendezvous internal/auth internal/secure internal/setting trace/judge",
	"bootstrap/rendezvous": "trace/judge trace/history",
	"bootstrap/launch":     "bootstrap trace/history",
	"engine":               "sched mem fifo kernels trace transport",
	"engine/grid":          "engine sched mem fifo kernels kernels/* transport internal/cuda",

	// What a communicator is made of.
	"core/call": "ring/book mem fifo kernels internal/cuda",
	"core/choice": "core/call sched ring/book sched/sim kernels kernels/collective transport internal/plain " +
		"internal/given internal/setting",
	"core/life": "core/call fifo bootstrap engine trace/history trace/judge sched internal/goroutine",
	"core/paths": "core/call fifo sched mem transport transport/inproc transport/shm transport/socket " +
		"transport/verbs transport/plugin internal/built internal/plain",
	"core/gpupaths": "core/paths core/choice fifo sched mem engine engine/grid gpu internal/cuda internal/plain " +
		"transport transport/p2p transport/bridge",
	"core/request":   "core/call core/choice core/life engine kernels sched trace transport",
	"core/rankorder": "core/call core/choice core/request engine kernels mem",
	"core/hostcomm": "core/call core/choice core/life core/paths core/rankorder core/request engine kernels mem sched " +
		"transport",
	"core/gpucomm": "core/call core/choice core/life core/paths core/gpupaths core/rankorder core/request bootstrap " +
		"engine engine/grid " +
		"gpu internal/cuda internal/plain kernels kernels/collective kernels/device mem sched trace transport/p2p",
	".": "core/* trace trace/history bootstrap fifo gpu kernels mem transport internal/built internal/goroutine " +
		"internal/opened internal/plain internal/setting",

	// Programs on top.
	"bench": ". mem gpu kernels bootstrap bootstrap/launch trace bench/join bench/meter bench/chart " +
		"internal/cli internal/given internal/nccl internal/trusted",
	"bench/chart":  "",
	"bench/meter":  "gpu mem internal/cublas internal/cuda kernels/ptx",
	"bench/join":   ". trace",
	"bench/tune":   ". bench mem gpu bootstrap bootstrap/launch internal/cli internal/given",
	"bench/device": "bench bench/meter mem kernels kernels/* internal/cuda internal/dl internal/trusted",
	"ringotest": ". bootstrap bootstrap/launch gpu trace/history cmd/why/hang cmd/why/histories internal/opened " +
		"internal/relay internal/plain internal/test/transcript",
	"cmd/check":         ". mem gpu kernels kernels/* bootstrap bench/chart bench/meter cmd/check/nvml internal/*",
	"cmd/check/nvml":    "internal/dl",
	"cmd/play":          "sched ring/book sched/sim",
	"cmd/play/wasm":     "cmd/play",
	"cmd/play/page":     "cmd/play",
	"cmd/play/page/gen": "",
	"cmd/why/hang":      "trace/history trace/judge",
	"cmd/why/histories": "cmd/why/hang trace/history trace/judge",
	"cmd/why/flight":    "cmd/why/hang internal/given internal/pickle",
	"cmd/why/inspector": "cmd/why/hang internal/given",
	"cmd/why/ncclog":    "cmd/why/hang internal/given",
	"cmd/why/printed":   "cmd/why/hang internal/given",
	"cmd/why/ras":       "cmd/why/hang internal/given",
	"cmd/why/stacks":    "cmd/why/hang internal/given",
	"cmd/why/watch":     "cmd/why/hang cmd/why/ras trace/history",
	"cmd/command": ". trace trace/history cmd/why/* cmd/libnccl/kit gpu gpu/emu/ptxcheck bench bench/* cmd/check cmd/play cmd/play/page " +
		"sched ring ring/* sched/sim " +
		"mem kernels bootstrap bootstrap/launch transport transport/* internal/*",
	"cmd/ringo":        "cmd/command",
	"cmd/libnccl":      ". cmd/libnccl/capi cmd/libnccl/host internal/late bootstrap",
	"cmd/libnccl/host": ". bootstrap core/life mem",
	"cmd/libnccl/kit":  "internal/trusted",
	"cmd/libnccl/ras":  "internal/auth internal/secure",
	"cmd/libnccl/capi": ". cmd/libnccl/ras core/call core/life gpu mem bootstrap sched/sim internal/cuda internal/setting " +
		"kernels/collective",
	"cmd/libcuda":       "cmd/libcuda/cudac internal/late internal/cuda internal/emu/*",
	"cmd/libcudart":     "",
	"cmd/libcuda/cudac": "internal/cuda internal/emu/fatbin",
	"examples/*":        ". bootstrap/launch",
	"examples/elastic":  ". bootstrap",
	"examples/schedule": ". sched cmd/command",
	"examples/object":   ".",
	"examples/ongpu":    ". gpu mem",

	// Foreign ABIs, secrets, the emulator, and what tests share.
	"internal/*":           "",
	"internal/cli":         "internal/setting internal/given internal/limit",
	"internal/ibverbs":     "internal/dl",
	"internal/nccl":        "internal/dl",
	"internal/cublas":      "internal/dl",
	"internal/cuda":        "internal/dl",
	"internal/emu/ptx":     "",
	"internal/emu/alu":     "internal/emu/ptx",
	"internal/emu/weakmem": "internal/emu/alu internal/emu/decision",
	"internal/emu/library": "internal/emu/ptx internal/emu/alu",
	"internal/emu/simt": "internal/emu/ptx internal/emu/alu internal/emu/library internal/emu/decision " +
		"internal/emu/weakmem",
	"internal/emu/fatbin/zstd": "internal/emu/fatbin",
	"internal/emu/cudaemu":     "internal/cuda internal/emu/*",
	"internal/test/commtest": ". bootstrap core/call gpu internal/test/need internal/test/tier " +
		"internal/test/transcript kernels mem sched trace",
	"internal/test/conntest": "fifo internal/test/payload transport",
	"internal/test/ctest":    "cmd/libnccl/kit internal/test/need internal/test/tier",
	"internal/test/cudatest": "internal/cuda internal/test/must",
	"internal/test/hangs":    "",
	"internal/test/gpucommtest": ". gpu internal/emu/cudaemu internal/emu/weakmem internal/test/commtest " +
		"internal/test/gputest internal/test/need internal/test/tier",
	"internal/test/gputest":   "gpu internal/cuda internal/emu/cudaemu internal/test/need internal/test/tier",
	"internal/test/must":      "",
	"internal/test/rdma":      "internal/dl internal/ibverbs mem",
	"internal/test/schedtest": "sched",
	"internal/test/walked":    ". gpu gpu/emu",
}

func TestFloors(t *testing.T) {
	if _, err := os.Stat("go.mod"); err != nil {
		t.Skip("the source is not here")
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); d.IsDir() && err == nil && file != "." {
			return filepath.SkipDir // a module of its own
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == "vendor" || d.Name() == "testdata" ||
			file != "." && strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		seen[pkg] = true
		allowed, ok := match(pkg)
		require.True(t, ok, "package %s is on no floor: add it to the table here and in ARCHITECTURE.md", pkg)
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			require.False(t, imp == "C" && pkg != "cmd/libnccl" &&
				pkg != "cmd/libcuda" && pkg != "internal/late", "%s: cgo is for cmd/libnccl and cmd/libcuda alone", file)
			if imp == module {
				imp = module + "/."
			}
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
				require.True(t, permits(allowed, ours), "%s imports %s; package %s may import only: %s", file, ours, pkg, allowed)
			}
		}
		return nil
	})
	require.NoError(t, err)
	for _, pkg := range []string{".", "sched", "ring", "engine", "transport/shm", "cmd/ringo"} {
		require.True(t, seen[pkg], "%s was not looked at", pkg)
	}
}

// A program that imports package ringo compiles three modules of others, none of what draws, measures or tests, and no
// emulator; tests on host memory are without one too.
func TestImporterCompiles(t *testing.T) {
	if _, err := os.Stat("go.mod"); err != nil {
		t.Skip("the source is not here")
	}
	modules := list(t, "-f", "{{if .Module}}{{.Module.Path}}{{end}}", ".")
	slices.Sort(modules)
	require.Equal(t, []string{"github.com/ebitengine/purego", "github.com/libp2p/go-reuseport", module,
		"golang.org/x/sys"}, slices.Compact(modules))
	for _, free := range [][]string{{"."}, {"-test", "."}, {"-test", "./internal/test/e2e/host"}} {
		for _, pkg := range list(t, free...) {
			require.False(t, strings.HasPrefix(pkg, module+"/internal/emu/") && pkg != module+"/internal/emu/ptx",
				"go list %s: %s: only what runs emulated GPUs links the emulator", free, pkg)
		}
	}
	require.Contains(t, list(t, "./gpu/emu"), module+"/internal/emu/cudaemu")
}

// A program that asks for emulated GPUs and does not link the emulator, as this one, is told what to import.
func TestNoEmulator(t *testing.T) {
	_, err := gpu.Open(gpu.Options{Emulate: 2})
	require.ErrorIs(t, err, gpu.ErrNoEmulator)
	require.ErrorContains(t, err, `import _ "`+module+`/gpu/emu"`)
}

// list is what go list -deps prints.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func match(pkg string) (string, bool) {
	if a, ok := floors[pkg]; ok {
		return a, true
	}
	for p := pathpkg.Dir(pkg); p != "."; p = pathpkg.Dir(p) {
		if a, ok := floors[p+"/*"]; ok {
			return a, true
		}
	}
	return "", false
}

func permits(allowed, pkg string) bool {
	for _, a := range strings.Fields(allowed + " internal/process") { // all may share what a process has
		if below, ok := strings.CutSuffix(a, "*"); a == pkg || ok && strings.HasPrefix(pkg, below) {
			return true
		}
	}
	return false
}
