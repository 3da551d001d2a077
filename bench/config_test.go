package bench

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/stretchr/testify/require"
)

// parse is the Config that a command line gives.
func parse(args ...string) (*Config, error) {
	cfg := NewConfig()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	cfg.Register(fs)
	names, err := cli.Parse(fs, args)
	if err != nil {
		return nil, err
	}
	cfg.Args = args
	return cfg, cfg.Complete(fs, names)
}

func TestFlags(t *testing.T) {
	t.Chdir(t.TempDir()) // files are tried
	cfg, err := parse("all-reduce", "-np", "2", "-g", "3", "-b", "1K", "-e", "4K", "-f", "2", "-d", "half,int8", "-o",
		"all",
		"-c", "0", "-n", "7", "-w", "1", "-transport", "shm", "-algo", "ring", "-json", "x.json", "-plot", "x.svg")
	require.NoError(t, err)
	require.Equal(t, []Collective{Collectives[0]}[0].Name, cfg.Collectives[0].Name)
	require.Equal(t, 6, cfg.Ranks())
	require.Equal(t, Sweep{Min: 1024, Max: 4096, Step: 1 << 20, Factor: 2}, cfg.Sweep)
	require.Equal(t, []ringo.DataType{ringo.Float16, ringo.Int8}, cfg.Types)
	require.Len(t, cfg.Ops, len(allOps))
	require.False(t, cfg.Check)
	require.Equal(t, 7, cfg.Iterations)
	require.Equal(t, 1, cfg.Warmup)
	require.Len(t, cfg.plan(6), 6+9, "half has no bitwise operators")

	cfg, err = parse("--minbytes=64M", "sendrecv", "--ngpus", "2")
	require.NoError(t, err)
	require.Equal(t, cfg.Min, cfg.Max, "-e follows -b")

	cfg, err = parse("broadcast", "-b", "4", "-e", "12", "-i", "4", "-r", "-1", "-np", "3")
	require.NoError(t, err)
	plan := cfg.plan(3)
	require.Len(t, plan, 3, "every root")
	require.Equal(t, []int{1, 2, 3}, plan[2].counts)
	require.Equal(t, 2, plan[2].rootNumber())

	cfg, err = parse("all", "-d", "all", "-o", "all", "-b", "0", "-e", "64K", "-f", "16")
	require.NoError(t, err)
	ints, floats := 6, 6
	require.Len(t, cfg.plan(3), 3*(ints*9+floats*6)+6*12)
	require.Equal(t, []int{0, 1, 4, 64, 1024, 16384}, cfg.plan(3)[2*9].counts)
}

func TestFlagMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "x")
	for want, args := range map[string][]string{
		"which collective? give one of allreduce":                {},
		`unknown collective "alreduce"; did you mean allreduce?`: {"alreduce"},
		`unknown type "flot32"; did you mean float32?`:           {"allreduce", "-d", "flot32"},
		`unknown operator "summ"; did you mean sum?`:             {"allreduce", "-o", "summ"},
		"bitwise operators need integers":                        {"allreduce", "-o", "bitxor"},
		`unknown transport "shn"; did you mean shm?`:             {"allreduce", "-transport", "shn"},
		`unknown transport "pigeon"; known are auto, inproc`:     {"allreduce", "-transport", "pigeon"},
		"-json " + none + ": ":                                   {"allreduce", "-json", none},
		"-plot " + none + ".svg: ":                               {"allreduce", "-plot", none + ".svg"},
		"unknown flag -iterz; did you mean -iters?":              {"allreduce", "-iterz", "3"},
		"parse size":                                               {"allreduce", "-b", "8Q"},
		"-b 1M is more than -e 1K":                                 {"allreduce", "-b", "1M", "-e", "1K"},
		"graphs are for GPUs":                                      {"allreduce", "-G", "3"},
		"-beside computes on GPUs":                                 {"allreduce", "-beside"},
		"-beside-time -1s":                                         {"allreduce", "-beside-time", "-1s"},
		"measures no rounding":                                     {"allreduce", "-device", "emu", "-beside-time", "1ms", "-error"},
		"of the peers only nccl":                                   {"allreduce", "-m", "2", "-peer", "gloo"},
		"-R 2: want 0 or 1":                                        {"allreduce", "-R", "2"},
		"-c 2: want 0 or 1":                                        {"reduce", "-c", "2"},
		`unknown peer "openmp"; did you mean openmpi?`:             {"reduce", "-peer", "openmp"},
		"leave -g at 1":                                            {"reduce", "-peer", "gloo", "-g", "2"},
		"must end in .svg":                                         {"reduce", "-plot", "x.gif"},
		"-plot x.svg: rows of 0 bytes":                             {"reduce", "-plot", "x.svg", "-b", "0", "-e", "0"},
		"-from needs -plot":                                        {"-from", "x.json"},
		`unknown algorithm "rnig"; did you mean ring?`:             {"allreduce", "-algo", "rnig"},
		`unknown device "gpu"; known are auto, host, cuda, emu`:    {"allreduce", "-device", "gpu"},
		"-f 1: want a factor, which must be above 1":               {"allreduce", "-f", "1"},
		`unknown collective "xyzzy"; known are allreduce, allgath`: {"xyzzy"},
	} {
		_, err := parse(args...)
		require.ErrorContains(t, err, want, "%q", args)
		require.IsType(t, &cli.UsageError{}, err, "%q", args)
	}
}
