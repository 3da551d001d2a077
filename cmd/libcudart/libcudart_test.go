//go:build linux && (amd64 || arm64)

package libcudart

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// emulate runs ringo emulate, and gives its exit status and what it prints.
func emulate(t *testing.T, args ...string) (status int, text string) {
	t.Helper()
	cmd := exec.Command(ctest.Ringo(t), append([]string{"emulate", "-kit", ctest.Kit(t), "-time", "100s"}, args...)...)
	cmd.Env = slices.DeleteFunc(ctest.OnGPUs(1), func(v string) bool {
		return strings.Contains(v, "TIMEOUT=") // they come before -wait
	})
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func example(name string) string { return filepath.Join("..", "..", "examples", "cuda", name+".cu") }

// expected are the errors that a program makes in order to see them.
const expected = "-allow cudaMalloc=cudaErrorMemoryAllocation -allow cudaLaunchKernel=1 -allow cudaSetDevice=*"

// TestPrograms runs the programs of examples/cuda, in which nothing is wrong.
func TestPrograms(t *testing.T) {
	for _, p := range tier.Some(7, []struct {
		name string
		args string
		want []string
	}{
		{"vectoradd", "-g 1", []string{"10000 sums are right", "thread 7: 7.0 + 14.0 = 21.0", "1  add"}},
		{"runtime", "-g 1 " + expected, []string{"all is right", "1  reduce", "18  increment"}},
		{"runtime", "-g 1 -gpu a100 " + expected, []string{"all is right",
			"NVIDIA A100-SXM4-80GB, capability 8.0, 108 multiprocessors"}},
		{"multiply", "-g 1", []string{"2048 elements are right", "1  multiply"}},
		{"cluster", "-seeds 3 -allow *=cudaErrorInvalidClusterSize",
			[]string{"20000 bytes are counted by clusters of 4 blocks", "count"}},
		{"peers", "-g 3", []string{"3 GPUs have what they want", "3  fetch"}},
		{"allreduce", "-g 4", []string{"4 GPUs have the sum", "4  ncclAllReduce", "4  ncclCommDestroy",
			"1  ncclCommInitAll"}},
	}) {
		t.Run(p.name+p.args, func(t *testing.T) {
			options := []string{"-arch=sm_80"}
			switch p.name {
			case "allreduce":
				options = append(options, "-lnccl")
			case "multiply", "cluster":
				options = nil // of capability 9.0
			}
			program := ctest.CUDA(t, example(p.name), options...)
			status, text := emulate(t, append(strings.Fields(p.args), "--", program)...)
			require.Zero(t, status, "%s", text)
			for _, want := range append(p.want, "nothing was found") {
				require.Contains(t, text, want)
			}
		})
	}
}

// lineOf is the line of a file that has a mark.
func lineOf(t *testing.T, file, mark string) string {
	t.Helper()
	text := must.Get(os.ReadFile(file))
	before, _, ok := strings.Cut(string(text), mark)
	require.True(t, ok)
	return fmt.Sprint(filepath.Base(file), ":", strings.Count(before, "\n")+1)
}

// TestKernels has what kernels of other projects use: see testdata/kernels.cu.
func TestKernels(t *testing.T) {
	tier.Heavy(t)
	status, text := emulate(t, "-allow", "*=801", "--", ctest.CUDA(t, filepath.Join("testdata", "kernels.cu"), "-lcuda"))
	require.Zero(t, status, text)
	for _, want := range []string{"half: 0 wrong", "bfloat16: 0 wrong", "rest: 8 0x1010101 75 3 3", "graph: right; 1 1 8",
		"libcuda: cuArrayDestroy is not carried out", "missing: 0 0 801", "nothing was found"} {
		require.Contains(t, text, want)
	}
}

// TestTensorCores multiplies by mma.h: see testdata/wmma.cu.
func TestTensorCores(t *testing.T) {
	tier.Heavy(t)
	status, text := emulate(t, "--", ctest.CUDA(t, filepath.Join("testdata", "wmma.cu")))
	require.Zero(t, status, text)
	for _, want := range []string{"half", "bfloat16", "bytes", "tf32", "double"} {
		require.Contains(t, text, want+": 0 wrong")
	}
	require.Contains(t, text, "nothing was found")
}

// TestRace finds a race between two GPUs by its lines, under each seed, and none where the fence is right.
func TestRace(t *testing.T) {
	tier.Heavy(t)
	file := example("race")
	seeds := fmt.Sprint(tier.Count(2, 20))
	status, text := emulate(t, "--json", "-g", "2", "-seeds", seeds, "--", ctest.CUDA(t, file))
	require.Equal(t, 1, status, "%s", text)
	var r struct {
		Status   int
		Kernels  map[string]int
		Findings []struct {
			Kind, At, Other, Text string
			Seeds                 []int
		}
	}
	_, report, ok := strings.Cut(text, "{\n") // behind what the program prints
	require.True(t, ok, "%s", text)
	require.NoError(t, json.NewDecoder(strings.NewReader("{"+report)).Decode(&r), "%s", text)
	require.Len(t, r.Findings, 1, "%s", text)
	f := r.Findings[0]
	require.Equal(t, "race", f.Kind)
	require.ElementsMatch(t, []string{lineOf(t, file, "// THE STORE") + " in produce",
		lineOf(t, file, "// THE LOAD") + " in consume"}, []string{f.At, f.Other})
	require.Equal(t, seeds, fmt.Sprint(len(f.Seeds)))

	status, text = emulate(t, "-g", "2", "-seeds", seeds, "--", ctest.CUDA(t, file, "-DRIGHT"))
	require.Zero(t, status, "%s", text)
}

// TestBlockThatEndsEarly finds that a block's shared memory is used by another one that nothing orders with its end.
func TestBlockThatEndsEarly(t *testing.T) {
	tier.Heavy(t)
	file := example("cluster")
	status, text := emulate(t, "-seeds", fmt.Sprint(tier.Count(2, 20)), "--", ctest.CUDA(t, file, "-DWRONG"))
	require.Equal(t, 1, status, "%s", text)
	require.Contains(t, text, "race: "+lineOf(t, file, "// THE SUM"))
	require.Contains(t, text, "a barrier of the cluster has to come before")
}

// TestLinkedDeviceCode is refused by a sentence.
func TestLinkedDeviceCode(t *testing.T) {
	need.Tool(t, "clang++-19")
	for _, options := range []string{"-rdc=true", "-rdc true", "--relocatable-device-code=true", "-dc", "-dlink"} {
		args := append(strings.Fields(options), "-c", "-o", filepath.Join(t.TempDir(), "x.o"), example("vectoradd"))
		out, err := exec.Command(filepath.Join(ctest.Kit(t), "bin", "nvcc"), args...).CombinedOutput()
		require.Error(t, err)
		require.Equal(t, "nvcc: "+options+": device code that is linked is not carried out: compile each file on its own\n",
			string(out))
	}
}

// TestOptions gives nvcc options in their forms, with a compiler that only says what it was given.
func TestOptions(t *testing.T) {
	says := filepath.Join(t.TempDir(), "clang")
	require.NoError(t, os.WriteFile(says, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755))
	for options, want := range map[string][]string{
		"-arch=native": {"sm_90"}, "-arch native": {"sm_90"}, "--gpu-architecture=sm_80": {"sm_80"},
		"-arch=all-major": {"sm_90"},
		"-gencode arch=compute_80,code=[sm_80,compute_80]":   {"sm_80"},
		"--generate-code=arch=compute_80,code=sm_80":         {"sm_80"},
		"-gencode arch=compute_90,code=sm_90 -arch=sm_100":   {"sm_90"},
		"--default-stream per-thread":                        {"-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"},
		"-default-stream=per-thread":                         {"-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"},
		"--use_fast_math":                                    {"-fgpu-flush-denormals-to-zero -fgpu-approx-transcendentals"},
		"-std c++20 -O 3 -D X=1 -I d -DY=2 -std=c++17":       {"-std=c++20 -O3 -DX=1 -Id -DY=2 -std=c++17"},
		"--std=c++20 --optimize 2 --define-macro X":          {"-std=c++20 -O2 -DX"},
		"-Xcompiler -Wall,-fPIC --compiler-options=-pthread": {"-Wall -fPIC -pthread"},
		"-G -ftz=true -fmad=false":                           {"-g ", "-fgpu-flush-denormals-to-zero -ffp-contract=off"},
		"-x cu y.o z.so -l m -L d -o out":                    {"-o out y.o z.so -x cuda x.cpp -x none -lm -Ld"},
		"--x=c++ -Wno-unused-variable -isystem d -include y.h": {"-x c++ x.cpp",
			"-Wno-unused-variable -isystem d -include y.h"},
		"-Xlinker -rpath=/x -shared -MMD -MF y.d -c": {"-Wl,-rpath=/x -shared -MMD -MF y.d -c"},
		// What is of machine code alone, or makes no difference.
		"-Xptxas -v --ptxas-options=-v -Xptxas=-O3 -res-usage --resource-usage -maxrregcount=32 -maxrregcount 32": nil,
		"-allow-unsupported-compiler -t0 -t 0 --threads=4 -diag-suppress 177 -diag-suppress=20012":                nil,
		"-ccbin g++ -cudart static --cudart=shared -lineinfo --extended-lambda --expt-relaxed-constexpr":          nil,
		"-code=sm_80 -m64 --machine 64 -Werror all-warnings -dlto -rdc=false -rdc false --default-stream legacy":  nil,
	} {
		cmd := exec.Command(filepath.Join(ctest.Kit(t), "bin", "nvcc"), append(strings.Fields(options), "x.cpp")...)
		cmd.Env = append(os.Environ(), "CLANG="+says)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", options, out)
		for _, w := range want {
			require.Contains(t, string(out), w, options)
		}
		if want == nil {
			require.Regexp(t, `-gline-tables-only -Wno-unknown-cuda-version -Wno-unused-command-line-argument -I\S+ x\.cpp -L\S+ `+
				`-lcudart -pthread\n$`, string(out), options)
		}
	}
}

// TestImages makes files of a kernel in each form, which cuModuleLoad loads.
func TestImages(t *testing.T) {
	tier.Heavy(t)
	dir := t.TempDir()
	kernel := filepath.Join(dir, "kernel.cu")
	require.NoError(t, os.WriteFile(kernel, []byte("extern \"C\" __global__ void set(int *p) { *p = 7; }\n"), 0o644))
	args := []string{"--"}
	for _, form := range []string{"-ptx", "--ptx", "-cubin", "--fatbin"} {
		to := filepath.Join(dir, "kernel"+form)
		nvcc := filepath.Join(ctest.Kit(t), "bin", "nvcc")
		out, err := exec.Command(nvcc, form, "-arch=sm_80", "-o", to, kernel).CombinedOutput()
		require.NoError(t, err, "%s", out)
		args = append(args, to)
	}
	args[0] = ctest.CUDA(t, filepath.Join("testdata", "load.cu"), "-lcuda")
	status, text := emulate(t, append([]string{"-allow", "cuModuleLoad=*", "--"}, args...)...)
	require.Zero(t, status, text)
	require.Contains(t, text, "7 7 7 7 absent 301")
}

// TestDriverHeader wants cuda.h to declare each function that the driver's library carries out, for C and for C++, with
// streams of the process or of each thread, and nothing else.
func TestDriverHeader(t *testing.T) {
	missing := must.Get(os.ReadFile(filepath.Join("..", "libcuda", "missing.c")))
	f := must.Get(elf.Open(filepath.Join(ctest.Kit(t), "lib64", "libcuda.so.1")))
	defer f.Close()
	symbols := must.Get(f.DynamicSymbols())
	var names, twins []string
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF || strings.HasPrefix(s.Name, "ringo") ||
			bytes.Contains(missing, []byte("M("+s.Name+")")):
		case strings.HasSuffix(s.Name, "_ptsz") || strings.HasSuffix(s.Name, "_ptds"):
			twins = append(twins, s.Name)
		default:
			names = append(names, s.Name)
		}
	}
	require.Greater(t, len(names), 140)
	header := must.Get(os.ReadFile(filepath.Join("include", "cuda.h")))
	require.Len(t, regexp.MustCompile(`(?m)^CUresult `).FindAll(header, -1), len(names)-1) // cuGetProcAddress has two versions
	dir := t.TempDir()
	for _, language := range []string{"c", "c++"} {
		for _, define := range []string{"-UNONE", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"} {
			source := filepath.Join(dir, "all."+language)
			text := "#include <cuda.h>\n#include <cuda_runtime_api.h>\ntypedef void (*function)(void);\nextern function all[];\n" +
				"function all[] = {(function)" + strings.Join(names, ",\n(function)") + "};\nint main(void) { return !all[0]; }\n"
			require.NoError(t, os.WriteFile(source, []byte(text), 0o644))
			program := filepath.Join(dir, "all"+language+define)
			out, err := exec.Command("gcc", "-x", language, "-Wall", "-Wextra", "-Werror", define,
				"-I"+filepath.Join(ctest.Kit(t), "include"),
				"-o", program, source, "-x", "none", filepath.Join(ctest.Kit(t), "lib64", "libcuda.so.1")).CombinedOutput()
			require.NoError(t, err, "%s", out)
			p := must.Get(elf.Open(program))
			defer p.Close()
			bound := must.Get(p.DynamicSymbols())
			var got []string
			for _, s := range bound {
				if strings.HasSuffix(s.Name, "_ptsz") || strings.HasSuffix(s.Name, "_ptds") {
					got = append(got, s.Name)
				}
			}
			if define == "-UNONE" {
				require.Empty(t, got)
			} else {
				require.ElementsMatch(t, twins, got)
			}
		}
	}
}

// A count that is lost is no race; the schedule says between which two lines of one block the other runs.
func TestShrink(t *testing.T) {
	tier.Heavy(t)
	file := example("lost")
	status, text := emulate(t, "-seeds", "20", "-shrink", "--", ctest.CUDA(t, file))
	require.Equal(t, 1, status, "%s", text)
	require.Contains(t, text, "nothing else was found")
	require.Regexp(t, `schedule of exit status 1\n    needs 1 of \d+ decisions of seed \d+; all else is in the plain order\n`+
		`    1\. GPU 0, count, block \(\d,0,0\), warp 0 stands at lost\.cu:\d+`+
		`: GPU 0, count, block \(\d,0,0\), warp 0 runs from lost\.cu:\d+\n    came 3 times in 3 runs\n`, text)
}

// TestWrong has one mistake after the other found, by its line.
func TestWrong(t *testing.T) {
	tier.Heavy(t)
	source := filepath.Join("testdata", "wrong.cu")
	at := func(mark string) string { return lineOf(t, source, mark) }
	for mistake, want := range map[string]string{
		"beyond":    "out of bounds: " + at("__global__ void beyond") + " in beyond",
		"unwritten": "read of unwritten memory: " + at("__global__ void unwritten") + " in unwritten",
		"shared": "race: " + at("tile[threadIdx.x] = threadIdx.x") + " in shared and " + at("v[threadIdx.x] = tile") +
			" in shared",
		"assert": `assertion "n == 3 && \"three\"" failed at `,
		"leak":   "256 bytes of MemAlloc (" + at("cudaMalloc(&w") + ")",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			status, text := emulate(t, "--", ctest.CUDA(t, source), mistake)
			require.Equal(t, 1, status, "%s", text)
			require.Contains(t, text, want)
			require.Contains(t, text, "1 finding: ")
		})
	}
}

// TestNCCL has mistakes around calls of NCCL told by these calls and their lines, one finding for each pair of places,
// and nothing of what the library has for itself.
func TestNCCL(t *testing.T) {
	tier.Heavy(t)
	source := filepath.Join("testdata", "nccl.cu")
	at := func(mark string) string { return lineOf(t, source, mark) }
	for mistake, want := range map[string][]string{
		"none": {"nothing was found", "2  ncclGroupStart"},
		"race": {"race: " + at("__global__ void add") + " in add and ncclAllReduce at " + at("// THE SUM") + ", ",
			"race: " + at("__global__ void add") + " in add and ncclSend at " + at("// THE SEND") + ", ncclRecv at " +
				at("// THE RECV") + ", ", "2 findings: 2 × race"},
		"memory":       {"device 1: 1 × 1024 bytes of MemAlloc (" + at("cudaMalloc(&a") + ")", "1 finding: "},
		"communicator": {"communicator of ncclCommInitAll at " + at("// THE COMM"), "1 finding: "},
		"window":       {"memory of ncclMemAlloc at " + at("// THE WINDOW"), "1 finding: "},
	} {
		t.Run(mistake, func(t *testing.T) {
			status, text := emulate(t, "-g", "2", "--", ctest.CUDA(t, source, "-lnccl"), mistake)
			require.Equal(t, mistake != "none", status == 1, "%s", text)
			for _, w := range want {
				require.Contains(t, text, w)
			}
		})
	}
}

// TestFork: the child of a fork ends like any process, and only its parent sums up.
func TestFork(t *testing.T) {
	tier.Heavy(t)
	status, text := emulate(t, "--", ctest.CUDA(t, filepath.Join("testdata", "wrong.cu")), "fork")
	require.Zero(t, status, "%s", text)
	require.Contains(t, text, "nothing was found")
}

// TestDeadlock has a kernel that nobody answers stopped and named.
func TestDeadlock(t *testing.T) {
	tier.Heavy(t)
	t.Parallel() // the emulator waits 10 s until it believes it
	status, text := emulate(t, "--", ctest.CUDA(t, filepath.Join("testdata", "wrong.cu")), "wait")
	require.Equal(t, 1, status, "%s", text)
	require.Regexp(t, `deadlock: wrong\.cu:\d+ in polls`, text)
}

// TestC compiles a program by gcc, without CUDA C++, and runs it with each version of the runtime.
func TestC(t *testing.T) {
	kit := ctest.Kit(t)
	for _, version := range tier.Some(2, []string{"12", "13"}) {
		program := ctest.C(t, "plain"+version, filepath.Join("testdata", "plain.c"), "-std=c11",
			"-I"+filepath.Join(kit, "include"), filepath.Join(kit, "lib64", "libcudart.so."+version),
			filepath.Join(kit, "lib64", "libcuda.so.1"))
		status, text := emulate(t, "-g", "2", "--", program)
		require.Equal(t, 1, status, "%s", text)
		require.Contains(t, text, "4 findings: 2 × failed call, 2 × refused")
		status, text = emulate(t, "-g", "2", "-allow", "*=*", "--", program)
		require.Zero(t, status, "%s", text)
		require.Contains(t, text, "5 calls failed as -allow says")
		require.Contains(t, text, "all is right")
		require.Equal(t, 1, strings.Count(text, "cudaMallocArray is not carried out"), "%s", text)
		require.Equal(t, 1, strings.Count(text, "relink it with -cudart shared"), "%s", text)
		require.Contains(t, text, "machine code alone")
	}
}

// TestNames wants exactly the names of testdata: one that is missing makes a program that binds it not begin.
func TestNames(t *testing.T) {
	for _, version := range []string{"12", "13"} {
		f := must.Get(elf.Open(filepath.Join(ctest.Kit(t), "lib64", "libcudart.so."+version)))
		defer f.Close()
		symbols := must.Get(f.DynamicSymbols())
		var got []string
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
				got = append(got, s.Name)
				require.Equal(t, "libcudart.so."+version, s.Version, s.Name)
			}
		}
		slices.Sort(got)
		text := must.Get(os.ReadFile(filepath.Join("testdata", "names"+version+".txt")))
		require.Equal(t, strings.Fields(string(text)), got)
	}
}

// TestHeaders wants each function that a header declares to be in the library, and carried out.
func TestHeaders(t *testing.T) {
	missing := must.Get(os.ReadFile(filepath.Join("src", "missing.c")))
	text := must.Get(os.ReadFile(filepath.Join("include", "cuda_runtime_api.h")))
	names := must.Get(os.ReadFile(filepath.Join("testdata", "names12.txt")))
	have := strings.Fields(string(names))
	missing = missing[:bytes.LastIndex(missing, []byte("#else"))] // of CUDA 12
	declared := regexp.MustCompile(`(?m)^(?:cudaError_t|const char \*)\s*(cuda\w+)\(`).FindAllSubmatch(text, -1)
	require.Greater(t, len(declared), 120)
	for _, d := range declared {
		require.Contains(t, have, string(d[1]))
		require.False(t, bytes.Contains(missing, []byte("M("+string(d[1])+")")), "%s", d[1])
	}
}

// TestNoDriver has a program say what is missing where there is no libcuda.so.1.
func TestNoDriver(t *testing.T) {
	program := ctest.CUDA(t, example("vectoradd"), "-arch=sm_80")
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(ctest.Kit(t), "lib64", "libcudart.so.12"),
		filepath.Join(dir, "libcudart.so.12")))
	cmd := exec.Command(program)
	cmd.Env = append(ctest.OnHost(), "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	if bytes.Contains(out, []byte("sums are right")) {
		t.Skip("this machine has a GPU's driver")
	}
	require.Contains(t, string(out), "start the program with ringo emulate")
}
