package ringo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ringo-go/ringo"

// floors says which packages of this module each package may import; see
// ARCHITECTURE.md. "transport/*" stands for every package below. Tests are free.
// To make a build pass, change the build, not this table.
var floors = map[string]string{
	"sched":              "",
	"ring":               "sched",
	"tree":               "sched",
	"direct":             "sched",
	"hier":               "sched ring tree direct",
	"sim":                "sched",
	"play":               "sched ring tree direct hier sim",
	"play/wasm":          "play",
	"play/page":          "play",
	"play/page/gen":      "",
	"mem":                "",
	"fifo":               "mem",
	"kernels":            "mem",
	"kernels/ptx":        "",
	"kernels/ptx/*":      "kernels kernels/ptx",
	"kernels/collective": "",
	"kernels/device":     "kernels kernels/ptx mem internal/cuda",
	"bootstrap":          "internal/auth internal/secure history",
	"history":            "",
	"trace":              "",
	"trace/join":         ". trace",
	"gpu":                "mem internal/cuda internal/cudaemu internal/ptx",
	"emu":                "gpu internal/cuda internal/cudaemu internal/simt internal/weakmem",
	"emu/ptxcheck":       "internal/ptx internal/simt internal/weakmem kernels",
	"engine/grid":        "engine sched mem fifo kernels kernels/* transport internal/cuda",
	"transport/p2p":      "transport mem fifo internal/cuda internal/auth",
	"transport":          "mem fifo internal/secure",

	"transport/plugin":        "transport mem fifo transport/internal/* transport/socket internal/auth internal/secure internal/dl",
	"transport/verbs":         "transport mem fifo transport/internal/* transport/socket internal/auth internal/secure internal/ibverbs",
	"transport/bridge":        "transport mem fifo trace",
	"transport/transporttest": "transport mem fifo transport/internal/* transport/inproc",
	"transport/*":             "transport mem fifo transport/internal/* internal/auth internal/secure",
	"engine":                  "sched mem fifo kernels trace transport",
	"call":                    "mem fifo kernels internal/cuda",
	"choice":                  "call sched ring tree direct hier sim kernels kernels/collective transport",
	"life":                    "call fifo bootstrap engine history sched",
	"paths":                   "call fifo sched mem transport transport/inproc transport/shm transport/socket transport/verbs transport/plugin",
	"paths/gpupaths":          "paths choice fifo sched mem engine engine/grid gpu internal/cuda transport transport/p2p transport/bridge",
	"request":                 "call choice life kernels trace transport",
	"rankorder":               "call choice engine kernels mem request",
	"hostcomm":                "call choice engine life mem paths rankorder request sched transport",
	"gpucomm":                 "bootstrap call choice engine engine/grid gpu hostcomm internal/cuda kernels kernels/collective kernels/device life mem paths paths/gpupaths rankorder request sched trace transport/p2p",
	".":                       "call choice life history paths paths/gpupaths request trace hostcomm gpucomm bootstrap fifo gpu kernels mem transport",
	"internal/launch":         "bootstrap",
	"bench":                   ". mem gpu kernels bootstrap trace trace/join bench/compute internal/chart internal/launch internal/cli internal/nccl",
	"bench/compute":           "gpu internal/cuda",
	"bench/*":                 ". bench mem gpu kernels internal/launch internal/dl",
	"bench/tune":              ". bench mem gpu bootstrap internal/launch",
	"bench/device":            "bench mem kernels kernels/* internal/cuda internal/dl",
	"check":                   ". mem gpu kernels kernels/* bootstrap bench/compute internal/auth internal/secure internal/nccl internal/cuda internal/cudaemu internal/nvml internal/meter internal/dl",
	"command":                 ". trace check emu/ptxcheck history gpu bench bench/* sched ring tree direct hier sim play play/page mem kernels bootstrap transport transport/* internal/*",
	"cmd/ringo":               "command",
	"object":                  ".",
	"ongpu":                   ". gpu mem",
	"ringotest":               ". bootstrap gpu history internal/launch internal/relay",
	"examples/*":              ". internal/launch",
	"examples/elastic":        ". bootstrap",
	"examples/schedule":       ". sched command",
	"examples/fifo-leak":      ". gpu internal/nccl",
	"sched/*":                 "sched",
	"internal/*":              "",

	"internal/auth":      "",
	"internal/dl":        "",
	"internal/ibverbs":   "internal/dl",
	"internal/nccl":      "internal/dl",
	"internal/nvml":      "internal/dl",
	"internal/meter":     "internal/cuda",
	"internal/cuda":      "internal/dl",
	"internal/capi":      ". gpu mem bootstrap sim internal/cuda kernels/collective",
	"cmd/libnccl":        "internal/capi bootstrap .",
	"internal/cudac":     "internal/cuda",
	"cmd/libcuda":        "internal/cudac internal/cuda internal/cudaemu internal/weakmem",
	"internal/cuda/*":    "internal/cuda",
	"internal/ptx":       "",
	"internal/alu":       "internal/ptx",
	"internal/alu/*":     "internal/alu internal/ptx internal/cuda",
	"internal/weakmem":   "internal/alu",
	"internal/simt":      "internal/ptx internal/alu internal/weakmem",
	"internal/cudaemu":   "internal/cuda internal/ptx internal/simt internal/weakmem internal/alu",
	"internal/gputest":   "internal/cuda internal/cudaemu",
	"internal/programs":  ". call gpu internal/cuda kernels mem",
	"transport/internal": "transport mem fifo",
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
		if d.IsDir() && (d.Name() == "build" || d.Name() == "testdata" || file != "." && strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
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
			require.False(t, imp == "C" && pkg != "cmd/libnccl" && pkg != "cmd/libcuda", "%s: cgo is for cmd/libnccl and cmd/libcuda alone", file)
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
	for _, a := range strings.Fields(allowed) {
		if below, ok := strings.CutSuffix(a, "*"); a == pkg || ok && strings.HasPrefix(pkg, below) {
			return true
		}
	}
	return false
}
