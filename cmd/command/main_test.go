package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// ringoHere carries out a command line in this process.
func ringoHere(args ...string) (code int, stdout, stderr string) {
	var out, complaints bytes.Buffer
	code = ringoMain(context.Background(), args, &out, &complaints)
	return code, out.String(), complaints.String()
}

func TestMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "x")
	for want, args := range map[string][]string{
		"usage: ringo COMMAND":                                   {},
		`unknown command "bnech"; did you mean bench?`:           {"bnech"},
		`unknown collective "alreduce"; did you mean allreduce?`: {"bench", "alreduce"},
		"unknown flag -npp; did you mean -np?":                   {"bench", "allreduce", "-npp", "3"},
		"which program?":                                         {"run", "-np", "2"},
		"want 1 to 4096 ranks":                                   {"run", "-np", "0", "x"},
		"which collective?":                                      {"explain"},
		"sendrecv is one message":                                {"explain", "sendrecv"},
		"-r 9: the ranks are 0 to 3":                             {"explain", "reduce", "-r", "9"},
		"-steps 4: want auto":                                    {"explain", "reduce", "-steps", "4"},
		`unknown net "nvlnk"; did you mean nvlink?`:              {"sim", "allreduce", "-net", "nvlnk"},
		`-algo: unknown algorithm "rong"; did you mean ring?`:    {"sim", "allreduce", "-algo", "rong"},
		"parse size":                                             {"sim", "allreduce", "-s", "1Q"},
		"unexpected argument":                                    {"info", "x"},
		"which shell? give one of bash, ":                        {"completion"},
		"-restarts -1: want 0 or more":                           {"run", "-np", "2", "-restarts", "-1", "x"},
		"-hosts 3: want 1 to 2":                                  {"run", "-np", "2", "-hosts", "3", "x"},
		"-hosts 0: want 1 or more":                               {"run", "-np", "2", "-hosts", "0", "x"},
		"-np 0: want at least 1":                                 {"explain", "allreduce", "-np", "0"},
		"-node -1: want 0 to 1000000":                            {"explain", "allreduce", "-node", "-1"},
		"give -o FILE.svg":                                       {"plot", "x.json"},
		"-o " + none + ".svg: ":                                  {"plot", "x.json", "-o", none + ".svg"},
		`unknown algorithm "rnig"; did you mean ring?`:           {"explain", "allreduce", "-algo", "rnig"},
		`unknown type "flot32"; did you mean float32?`:           {"explain", "allreduce", "-d", "flot32"},
		`unknown device "emo"; did you mean emu?`:                {"info", "-device", "emo"},
		"-json " + none + ": ":                                   {"info", "-json", none},
	} {
		code, _, stderr := ringoHere(args...)
		require.Equal(t, 2, code, "%q", args)
		require.Contains(t, stderr, want, "%q", args)
	}
	code, _, stderr := ringoHere("plot", "-o", filepath.Join(t.TempDir(), "x.svg"), "absent.json")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "absent.json")
}

func TestHelp(t *testing.T) {
	for _, c := range commands {
		for _, args := range [][]string{{c.name, "-h"}, {"help", c.name}, {c.name, "x", "--help"}} {
			if (c.name == "run" || c.name == "emulate" || c.name == "swap") && args[1] == "x" {
				continue // --help is the program's own
			}
			code, stdout, stderr := ringoHere(args...)
			require.Zero(t, code, "%q %s", args, stderr)
			require.True(t, strings.HasPrefix(stdout, "usage: ringo "+c.name), "%q", args)
			require.Contains(t, stdout, "Example")
			require.LessOrEqual(t, strings.Count(stdout, "\n"), 40, "a screen: %q", args)
		}
		whole := c.whole()
		for _, f := range c.flags() {
			require.Regexp(t, `(?s)\nExample.*\n  `+f+`[ \n]`, whole, "%s: after the examples", c.name)
		}
		code, stdout, _ := ringoHere("help", c.name, "all")
		require.Zero(t, code)
		require.Equal(t, c.whole(), stdout)
		for _, line := range strings.Split(c.whole(), "\n") {
			require.LessOrEqual(t, len(line), 80, line)
		}
	}
	code, _, stderr := ringoHere("help", "nonsense", "all")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "unknown command")
	code, stdout, _ := ringoHere("help")
	require.Zero(t, code)
	require.Contains(t, stdout, "ringo bench allreduce -np 4")
	code, stdout, _ = ringoHere("version")
	require.Zero(t, code)
	require.Regexp(t, `^ringo \d+\.\d+`, stdout)
}

func TestExplain(t *testing.T) {
	code, out, stderr := ringoHere("explain", "allreduce", "-np", "4", "-s", "1M", "-algo", "ring")
	require.Zero(t, code, stderr)
	for _, want := range []string{"algorithm: ring", "because:", "others:", "cost:", "rank 3", "In[0]"} {
		require.Contains(t, out, want)
	}
	code, out, _ = ringoHere("explain", "broadcast", "-np", "64", "-steps", "17")
	require.Zero(t, code)
	require.Contains(t, out, "rank 17")
	require.NotContains(t, out, "rank 16\n")
	code, out, _ = ringoHere("explain", "all-gather", "-np", "9")
	require.Zero(t, code)
	require.Contains(t, out, "-steps all")
}

func TestExplainDeterministic(t *testing.T) {
	code, out, stderr := ringoHere("explain", "allreduce", "-np", "4", "-s", "1M", "-deterministic")
	require.Zero(t, code, stderr)
	for _, want := range []string{"algorithm: rank order\n", "combined in order of rank", "In[0]   Out[0]", "\nthen: "} {
		require.Contains(t, out, want)
	}
	code, out, stderr = ringoHere("explain", "allreduce", "-np", "4", "-s", "1G", "-deterministic", "-device", "cuda")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "algorithm: twoshot\nbecause:   Deterministic: a kernel")
	code, out, stderr = ringoHere("explain", "reduce", "-np", "16", "-deterministic", "-device", "cuda")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "algorithm: rank order\n")
	require.NotContains(t, out, "then:")
}

func TestInfo(t *testing.T) {
	code, out, stderr := ringoHere("info")
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^inproc +works: 8 bytes`, out)
	require.Regexp(t, `(?m)^gpu `, out)
	require.Regexp(t, `(?m)^cpu .* cores$`, out)
	if _, err := os.Stat("/dev/shm"); err == nil && runtime.GOOS == "linux" {
		require.Regexp(t, `(?m)^memory +[\d.]+ GiB, [\d.]+ GiB available$`, out)
		require.Regexp(t, `(?m)^/dev/shm +[\d.]+ GiB, [\d.]+ GiB free$`, out)
	}
	require.Regexp(t, `(?m)^network +plugin +`, out)
	require.Regexp(t, `(?m)^network +socket +\S+ .*<- hosts that have it too`, out)
	require.Regexp(t, `(?m)^interface .*<- TCP between hosts goes here`, out)
	require.Regexp(t, `(?m)^TLS +off: `, out)
	t.Setenv("RINGO_TLS", "1")
	_, out, _ = ringoHere("info", "-quick")
	require.Regexp(t, `(?m)^TLS +on, by the job's key: `, out)
	require.Regexp(t, `(?m)^network +ib +not here: RINGO_TLS is on, and it moves data in clear`, out)
}

func TestInfoOfGPUs(t *testing.T) {
	code, stdout, stderr := ringoHere("info", "-quick", "-device", "emu")
	require.Equal(t, 0, code, stderr)
	for _, want := range []string{"emulated driver of CUDA 13.0", "gpu 3       Emulated GPU, compute capability 9.0",
		"every device reaches every other's memory", "IPC handles of memory"} {
		require.Contains(t, stdout, want)
	}

	t.Setenv("RINGO_CUDA_LIBRARY", filepath.Join(t.TempDir(), "libcuda.so.1"))
	code, stdout, stderr = ringoHere("info", "-quick")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "none can be used: no CUDA:")
	code, _, stderr = ringoHere("info", "-quick", "-device", "cuda")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no CUDA:")
	code, stdout, stderr = ringoHere("info", "-device", "gpu")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "known are auto, cuda, emu")
	require.Empty(t, stdout, "nothing before the mistake")
}

func TestInfoAsJSON(t *testing.T) {
	code, stdout, stderr := ringoHere("info", "-quick", "-device", "emu", "-json", "-")
	require.Zero(t, code, stderr)
	var v inventory
	require.NoError(t, json.Unmarshal([]byte(stdout), &v))
	require.NotEmpty(t, v.Interfaces)
	require.Equal(t, "socket", v.Networks[len(v.Networks)-1].Name)
	require.NotEmpty(t, v.Networks[len(v.Networks)-1].Devices)
	require.Len(t, v.GPU.Devices, emulated)
	require.Equal(t, "9.0", v.GPU.Devices[3].Capability)
	require.Equal(t, []int{0, 0, 0, 0}, v.GPU.Links[1])
	require.Contains(t, v.GPU.Features, gpuFeature{Name: "peer access", Has: "yes"})
	require.Contains(t, v.GPU.Features, gpuFeature{"memory pools", "no", "device 0 has no memory pools"})
	require.Empty(t, v.Transports)

	t.Setenv("RINGO_CUDA_LIBRARY", filepath.Join(t.TempDir(), "libcuda.so.1"))
	file := filepath.Join(t.TempDir(), "info.json")
	code, stdout, stderr = ringoHere("info", "-json", file)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "\nhost ")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	v = inventory{}
	require.NoError(t, json.Unmarshal(b, &v))
	require.Contains(t, v.NoGPU, "no CUDA:")
	require.Len(t, v.Transports, 4)
	require.Equal(t, "inproc", v.Transports[0].Name)
	require.Positive(t, v.Transports[0].Time)
}

func TestRunProgram(t *testing.T) {
	need.Tool(t, "sh")
	code, out, stderr := ringoHere("run", "-np", "2", "--", "sh", "-c", "echo $RINGO_RANK of $WORLD_SIZE")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "[0] 0 of 2\n")
	require.Contains(t, out, "[1] 1 of 2\n")
	code, _, stderr = ringoHere("run", "-np", "1", "sh", "-c", "exit 7")
	require.Equal(t, 7, code)
	require.Contains(t, stderr, "rank 0: exit status 7")
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no program"), 0o644))
	for program, want := range map[string]int{text + "none": 127, "no-such-program": 127, text: 126} {
		code, _, stderr = ringoHere("run", "-np", "2", "--", program)
		require.Equal(t, want, code, stderr)
	}
}

func TestBenchAndPlot(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html")
	code, out, stderr := ringoHere("bench", "-n", "3", "allreduce", "-transport", "inproc", "-np", "2", "-e", "4K",
		"-json", file)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "#wrong")
	require.Contains(t, out, "0 OK")
	code, _, stderr = ringoHere("plot", file, "-o", picture)
	require.Zero(t, code, stderr)
	b, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(b), "<svg")
}
