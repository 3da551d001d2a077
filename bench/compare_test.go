package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/stretchr/testify/require"
)

// script writes a program of the shell.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755))
	return file
}

// A peer's program is compiled once, of its whole source, and again when its source has changed.
func TestPeerBuild(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	p := *peers["mpich"]
	p.name, p.source = "some", []byte("int main;\n")
	p.tools = []string{script(t, dir, "cc", `echo "$@" >> `+dir+`/log; case "$6" in "") cp "$4" "$3";; esac`+"\n")}
	first, err := p.build(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, string(errorSource)+"int main;\n", string(text))
	require.Regexp(t, `/ringo/peers/some-[0-9a-f]{16}$`, first)
	again, err := p.build(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)
	log := func() []string {
		text, err := os.ReadFile(dir + "/log")
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	require.Len(t, log(), 1)
	require.Regexp(t, `^-O2 -o \S+/build-\d+/some \S+/build-\d+/some\.c -lm$`, log()[0])
	p.source = []byte("int other;\n")
	other, err := p.build(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	require.Len(t, log(), 2)
	left, err := filepath.Glob(filepath.Dir(first) + "/*")
	require.NoError(t, err)
	require.Len(t, left, 2, "no folder of the compiler is left")

	p.source = []byte("int wrong;\n")
	p.tools = []string{script(t, dir, "broken", "echo; echo 'some.c:1: error: no'; echo more; exit 1\n")}
	_, err = p.build(t.Context())
	require.EqualError(t, err, dir+"/broken: exit status 1: some.c:1: error: no; apt-get install mpich libmpich-dev")
}

// A peer's program is told what to measure; if it fails, the error has its words.
func TestPeerRun(t *testing.T) {
	dir := t.TempDir()
	cfg := NewConfig()
	cfg.Iterations, cfg.Warmup, cfg.PeerTimeout = 7, 3, time.Minute
	p := *peers["mpich"]
	p.tools = []string{"",
		script(t, dir, "mpirun",
			`echo "$WHO: $@" > `+dir+`/log; test -d "$TMPDIR" && echo "$TMPDIR" > `+dir+"/tmp; echo row 5 2 1.5 1; echo end\n")}
	s := oneSeries("reduce", 5, 6)
	s.root = 1
	rows, err := p.run(t.Context(), cfg, variant{args: []string{"--all"}, env: []string{"WHO=me"}}, "binary", 3, s,
		20*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, 1, rows[0].Root)
	text, err := os.ReadFile(dir + "/log")
	require.NoError(t, err)
	require.Equal(t, "me: --all -np 3 binary reduce float32 sum 1 3 7 20000000 5 0 5 6\n", string(text))
	text, err = os.ReadFile(dir + "/tmp")
	require.NoError(t, err)
	require.NoDirExists(t, strings.TrimSpace(string(text)), "it is removed")
	cfg.Error = true
	_, err = p.run(t.Context(), cfg, variant{}, "binary", 3, s, time.Second)
	require.NoError(t, err)
	text, err = os.ReadFile(dir + "/log")
	require.NoError(t, err)
	require.Contains(t, string(text), " 1000000000 5 1 5 6\n")

	p.tools[1] = script(t, dir, "mpirun", "echo row 5 2 1.5 1; echo ------- >&2; echo no such fabric >&2; exit 3\n")
	rows, err = p.run(t.Context(), cfg, variant{}, "binary", 3, s, time.Second)
	require.EqualError(t, err, "rank 0: exit status 3: no such fabric")
	require.Empty(t, rows)

	gloo := *peers["gloo"]
	binary := script(t, dir, "gloo",
		`test "$1" = "$TMPDIR" || exit 4; test "$RANK" = 1 && echo row 5 2 "$WORLD_SIZE" 1; exit 0`+"\n")
	rows, err = gloo.run(t.Context(), cfg, variant{}, binary, 2, s, time.Second)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, 2.0, rows[0].OutOfPlace.Time, "it is a process of each rank, that meet in a folder")
}

// Of a peer's variants the fastest counts, a variant that fails is reported once, and the ratio is to the best.
func TestRunWithPeer(t *testing.T) {
	tier.Long(t)
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	peers["some"] = &peer{
		name: "some", packages: "none",
		tools: []string{
			script(t, dir, "cc", "echo > $1\n"),
			script(t, dir, "run",
				"echo $US >> "+dir+"/log; test $US = no && { echo no such fabric >&2; exit 3; }; echo row 2 10 $US $US; echo end\n"),
		},
		compile: func(cc, _, binary string) []string { return []string{cc, binary} },
		variants: func(bool) (list []variant) {
			for _, us := range []string{"8000000", "no", "4000000", "6000000"} {
				list = append(list, variant{name: us, env: []string{"US=" + us}})
			}
			return list
		},
	}
	defer delete(peers, "some")
	file := filepath.Join(dir, "report.json")
	cfg, err := parse("allreduce", "-np", "2", "-b", "8", "-e", "8", "-n", "1", "-reps", "2", "-json", file)
	require.NoError(t, err)
	cfg.Peers = []string{"some"}
	var out, complaints bytes.Buffer
	cfg.Stdout, cfg.Stderr = &out, &complaints
	require.NoError(t, Run(context.Background(), cfg), complaints.String())
	why := "peer some (no): allreduce float32 sum: rank 0: exit status 3: no such fabric"
	require.Equal(t, 1, strings.Count(complaints.String(), "# "+why+"\n"), complaints.String())
	log, err := os.ReadFile(dir + "/log")
	require.NoError(t, err)
	require.Equal(t, "8000000 no 4000000 6000000 8000000 4000000 6000000", strings.Join(strings.Fields(string(log)), " "))
	r, err := Load(file)
	require.NoError(t, err)
	require.Len(t, r.Rows, 2)
	require.Equal(t, []string{"ringo", "some"}, []string{r.Rows[0].Program, r.Rows[1].Program})
	require.Equal(t, 4e6, r.Rows[1].OutOfPlace.Time)
	require.Contains(t, r.Notes, why)
	require.Contains(t, r.Notes,
		"peer some: 8000000 US=8000000; or no US=no; or 4000000 US=4000000; or 6000000 US=6000000")
	require.Contains(t, out.String(), "at worst (allreduce of 8)")

	plot := filepath.Join(dir, "p.svg")
	again, err := parse("-from", file+","+file, "-plot", plot)
	require.NoError(t, err)
	out.Reset()
	again.Stdout = &out
	require.NoError(t, Run(context.Background(), again))
	require.Equal(t, fmt.Sprintf("# %s from 2 reports\n", plot), out.String())
	require.FileExists(t, plot)
}

// The defaults of flags that are not given depend on -device and -beside.
func TestDefaultsOfDevices(t *testing.T) {
	for flags, want := range map[string]Config{
		"": {Processes: 4, PerProcess: 1, Sweep: Sweep{Max: 16 << 20}, Warmup: 5, Repetitions: 3,
			Device: "host"},
		"-device emu": {Processes: 1, PerProcess: 4, Sweep: Sweep{Max: 64 << 10}, Iterations: 1, Warmup: 1,
			Repetitions: 3, Device: "emu"},
		"-device emu -np 2": {Processes: 2, PerProcess: 1, Sweep: Sweep{Max: 64 << 10}, Iterations: 1, Warmup: 1,
			Repetitions: 3, Device: "emu"},
		"-device emu -b 1M": {Processes: 1, PerProcess: 4, Sweep: Sweep{Max: 1 << 20}, Iterations: 1, Warmup: 1,
			Repetitions: 3, Device: "emu"},
		"-device emu -beside": {Processes: 1, PerProcess: 4, Sweep: Sweep{Max: 64 << 10}, Iterations: 1, Warmup: 1,
			Repetitions: 1, Device: "emu"},
		"-device emu -n 0 -w 0 -g 3 -e 5 -beside-time 1ms": {
			Processes: 1, PerProcess: 3, Sweep: Sweep{Max: 8}, Iterations: 20, Repetitions: 1, Device: "emu",
		},
		"-device cuda -g 2 -beside": {Processes: 1, PerProcess: 2, Sweep: Sweep{Max: 16 << 20}, Iterations: 20,
			Warmup: 5, Repetitions: 9, Device: "cuda"},
		"-device cuda -g 2 -beside -reps 2": {Processes: 1, PerProcess: 2, Sweep: Sweep{Max: 16 << 20}, Iterations: 20,
			Warmup: 5, Repetitions: 2, Device: "cuda"},
	} {
		args := append([]string{"allreduce"}, strings.Fields(flags)...)
		if strings.Contains(flags, "-e 5") {
			args = append(args[:len(args):len(args)], "-e", "8")
		}
		c, err := parse(args...)
		require.NoError(t, err, flags)
		got := Config{Processes: c.Processes, PerProcess: c.PerProcess, Sweep: Sweep{Max: c.Max}, Iterations: c.Iterations,
			Warmup: c.Warmup, Repetitions: c.Repetitions, Device: c.Device}
		require.Equal(t, want, got, flags)
		require.Equal(t, strings.Contains(flags, "beside"), c.Beside)
	}
}

// Numbers are taken up to their bounds and not beyond.
func TestBounds(t *testing.T) {
	t.Chdir(t.TempDir()) // files are tried
	for _, test := range []struct{ good, bad, want string }{
		{"-np 1024 -e 8", "-np 1025", "-np 1025: want 1 to 1024 processes, or 0 to join a job that a launcher has started"},
		{"-np 0", "-np -1", "-np -1: want 1 to 1024 processes, or 0 to join a job that a launcher has started"},
		{"-g 1024 -e 8", "-g 1025", "-g 1025: want 1 to 1024 ranks a process"},
		{"-np 4 -g 1024 -e 8", "-np 8 -g 1024", "-np 8 with -g 1024: 8192 ranks, want at most 4096 on a machine"},
		{"-g 1", "-g 0", "-g 0: want 1 to 1024 ranks a process"},
		{"-hosts 4", "-hosts 5", "-hosts 5: want 1 to 4, as many as there are processes"},
		{"-hosts 0", "-hosts -1", "-hosts -1: want 1 to 1024 hosts"},
		{"-hosts 5 -np 0", "-hosts 2 -np 1", "-hosts 2: want 1 to 1, as many as there are processes"},
		{"-r 3", "-r 4", "-r 4: the ranks are 0 to 3; -1 is all in turn"},
		{"-r -1", "-r -2", "-r -2: want a rank, or -1 for all in turn"},
		{"-r 4 -np 0", "-r 7 -g 1", "-r 7: the ranks are 0 to 3; -1 is all in turn"},
		{"-n 4194304", "-n 4194305", "-n 4194305: want 1 to 4194304 iterations, or 0 to have them chosen"},
		{"-n 0", "-n -1", "-n -1: want 1 to 4194304 iterations, or 0 to have them chosen"},
		{"-m 100000", "-m 100001", "-m 100001: want groups of 1 to 100000 operations"},
		{"-m 1", "-m 0", "-m 0: want groups of 1 to 100000 operations"},
		{"-w 0", "-w -1", "-w -1: want 0 to 4194304 warm-ups"},
		{"-reps 1", "-reps 0", "-reps 0: want 1 to 10000 repetitions"},
		{"-timeout 1ns", "-timeout 0s", "-timeout 0s: want more than 0, such as 30s or 5m"},
		{"-peer-timeout 1ns", "-peer-timeout 0s", "-peer-timeout 0s: want more than 0, such as 30s or 5m"},
		{"-G 10000 -device emu", "-G 10001 -device emu", "-G 10001: want 1 to 10000 operations in a graph, or 0 for none"},
		{"-G 0", "-G -1", "-G -1: want 1 to 10000 operations in a graph, or 0 for none"},
		{"-transport p2p,shm -device emu", "-transport shm,p2p",
			"-transport p2p is for GPU memory: give -device cuda or emu"},
		{"-R 1 -device emu", "-R 1", "-R 1: memory of GPUs is registered: give -device cuda or emu, or leave -R out"},
		{"-peer mpich", "-peer mpich -device emu", "-peer mpich moves host memory: with -device emu the peer is nccl"},
		{"-peer nccl -device cuda -g 2 -m 2", "-peer gloo,nccl",
			"-peer nccl moves GPU memory: give -device cuda; host peers are openmpi, mpich, gloo"},
		{"-peer gloo -m 1", "-peer gloo -np 0",
			"-peer starts one process a rank on this machine: leave -g at 1 and -np above 0"},
		{"-trace x", "-trace x -peer gloo", "-trace measures this library alone: leave -from, -peer and -beside out"},
	} {
		_, err := parse(append([]string{"allreduce"}, strings.Fields(test.good)...)...)
		require.NoError(t, err, test.good)
		_, err = parse(append([]string{"allreduce"}, strings.Fields(test.bad)...)...)
		require.EqualError(t, err, test.want)
	}
	c, err := parse("allreduce", "-peer", "mpich,gloo,mpich")
	require.NoError(t, err)
	require.Equal(t, []string{"mpich", "gloo"}, c.Peers)
}

// NCCL has sum, product, minimum, maximum and average, and all collectives that do not reduce.
func TestNCCLOffers(t *testing.T) {
	has := func(name string) (list []string) {
		c, err := Find(name)
		require.NoError(t, err)
		for _, op := range allOps {
			if (*ncclPeer)(nil).offers(&series{Collective: c, op: op}) {
				list = append(list, op.String())
			}
		}
		return list
	}
	require.Equal(t, []string{"sum", "prod", "max", "min", "avg"}, has("allreduce"))
	require.Len(t, has("allgather"), len(allOps))
	for number, op := range []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg} {
		// as ncclRedOp_t counts
		require.EqualValues(t, number, ncclOps[op.Kind])
	}
}
