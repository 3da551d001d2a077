package bench

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/kernels"
)

// Register makes the flags in fs that set the Config. Most have nccl-tests' long
// name too.
func (c *Config) Register(fs *flag.FlagSet) {
	size := func(p *int64, names ...string) {
		cli.Var(fs, func(s string) (err error) { *p, err = ParseSize(s); return err },
			func() string { return FormatSize(*p) }, names...)
	}
	text := func(p *string, name, usage string) { fs.StringVar(p, name, *p, usage) }
	cli.Int(fs, &c.Processes, 0, mostRanks, "1 to 1024 processes, or 0 to join a job that a launcher has started",
		"np `N` processes to start (default 4, on GPUs 1); 0: be one rank of a job that \"ringo run\", mpirun, torchrun or "+
			"srun has started")
	cli.Int(fs, &c.Hosts, 0, mostRanks, "1 to 1024 hosts", "hosts `H` have the processes think that they are on H "+
		"hosts; in equal blocks, between which what goes takes the network")
	cli.Int(fs, &c.PerProcess, 1, mostRanks, "1 to 1024 ranks a process", "g `N` ranks of each process, as goroutines "+
		"(default 1); on GPUs one each (default all there are, 4 emulated)", "ngpus")
	size(&c.Min, "b `SIZE` first size (default 8); -b 0 works too", "minbytes")
	size(&c.Max, "e `SIZE` last size (default 16M)", "maxbytes")
	size(&c.Step, "i `SIZE` instead of -f: each size is SIZE more than the one before", "stepbytes")
	cli.Float(fs, &c.Factor, func(x float64) bool { return x == 0 || x > 1 && x < 1e9 },
		"a factor, which must be above 1, or 0 for -i",
		"f `FACTOR` each size is FACTOR times the one before (default 4)", "stepfactor")
	cli.Int(fs, &c.Iterations, 0, maxIterations,
		fmt.Sprintf("1 to %d iterations, or 0 to have them chosen", maxIterations),
		"n `N` iterations (default 0: as many as take 20 ms, at least 5)", "iters")
	cli.Int(fs, &c.Warmup, 0, maxIterations, fmt.Sprintf("0 to %d warm-ups", maxIterations),
		"w `N` warm-ups (default 5)", "warmup_iters")
	cli.Int(fs, &c.Group, 1, maxGroup, fmt.Sprintf("groups of 1 to %d operations", maxGroup),
		"m `N` operations that each iteration makes in one group (default 1), in memory of their own as far as 64 MiB go; "+
			"times are of one", "agg_iters")
	cli.Int(fs, &c.Root, -1, math.MaxInt32, "a rank, or -1 for all in turn",
		"r `ROOT` root of broadcast, reduce, gather, scatter; -1: every rank in turn (default 0)", "root")
	cli.Int(fs, &c.Graph, 0, maxGraph, fmt.Sprintf("1 to %d operations in a graph, or 0 for none", maxGraph),
		"G `N` GPUs: replay a graph of N operations", "cudagraph")
	fs.BoolVar(&c.Beside, "beside", false, "GPUs: -n collectives (default 20) on one stream, and beside them, on "+
		"another, kernels that fill all multiprocessors. Columns: collectives alone, computing alone, both, the ideal "+
		"(the longer of the two), their sum, both in units of the ideal, how much slower computing and collectives "+
		"were. Peer nccl has the same computing. -reps rounds in turn (default 9), medians count")
	cli.Duration(fs, &c.BesideTime, 0, "beside-time `D` of computing (default: as long as the collectives take)")
	cli.Duration(fs, &c.BesideProduct, 0, "beside-product `D` the computing is products of matrices that take so "+
		"long, up to 10ms, by cuBLASLt where there is one")
	text(&c.CUBLAS, "cublas", "`FILE` cuBLASLt, for products")
	yesNo(fs, &c.Registered, "R `0|1` GPUs: register the buffers, so that ranks read and write each other's where "+
		"they can (default 0); with peer nccl there too", "local_register")
	cli.Var(fs, c.setTypes, func() string { return "" }, "d `TYPE,...` int8 uint8 int32 uint32 int64 uint64 float16 "+
		"bfloat16 float32 float64 float8e4m3 float8e5m2, or all (default float32)", "datatype")
	cli.Var(fs, c.setOps, func() string { return "" }, "o `OP,...` sum prod max min avg bitand bitor bitxor "+
		"premulsum(NUMBER), or all (default sum)", "op")
	size(&c.Row, "row `SIZE` allreduce, reducescatter: a residual, an RMSNorm and a weight follow, of rows of SIZE "+
		"bytes, in the same call (default: none)")
	yesNo(fs, &c.Check, "c `0|1` verify every element (default 1)", "check")
	fs.BoolVar(&c.Error, "error", false, "compare sums of random floats with the exact ones: greatest and "+
		"root-mean-square error, in units in the last place")
	fs.BoolVar(&c.Deterministic, "deterministic", false, "reductions in order of rank: bits that depend on nothing else")
	cli.Word(fs, &c.Device, "device", []string{"auto", "host", "cuda", "emu"}, "device `D` host (or auto), cuda, or emu: "+
		"GPUs that are emulated; what they compute is right, what they take means nothing")
	cli.Var(fs, c.setTransport, func() string { return c.Transport }, "transport `T` auto, inproc (all ranks in one "+
		"process), shm, socket (tcp or unix to insist); on GPUs p2p, shm (queues in host memory), or socket, tcp, unix "+
		"(host memory and a bridge)")
	cli.Word(fs, &c.Algo, "algorithm", ringo.Algorithms(),
		"algo `A` auto, ring, tree, oneshot, twoshot, doubling, halving, ...")
	cli.Duration(fs, &c.Timeout, cli.Moment, "timeout `D` of one operation (default 2m)")
	cli.Var(fs, c.setPeers, func() string { return strings.Join(c.Peers, ",") }, "peer `P,...` openmpi, mpich, gloo or, "+
		"on GPUs, nccl: measure these beside ours; on the same sizes, in turn with ours. Columns: their time, and how many "+
		"times ours it is")
	text(&c.NCCL, "nccl", "`FILE` the library of peer nccl (default libnccl.so.2)")
	fs.BoolVar(&c.Unchecked, "unchecked", false, "emu: faster, without looking for races")
	cli.Int(fs, &c.Repetitions, 1, maxRepetitions, fmt.Sprintf("1 to %d repetitions", maxRepetitions),
		"reps `N` repetitions with peers; medians count (default 3)")
	cli.Duration(fs, &c.PeerTimeout, cli.Moment, "peer-timeout `D` of one run of a peer (default 2m)")
	text(&c.JSON, "json", "`FILE` save a report")
	text(&c.Plot, "plot", "`FILE` draw time and bandwidth: .svg or .html")
	text(&c.Trace, "trace", "`FILE` save what each rank did at each step of the last calls, for ui.perfetto.dev; of each "+
		"measurement, and for whom it waited. Says which ranks came last. Times are some 0.1 us a step longer")
	text(&c.from, "from", "`A.json,B.json` with -plot: draw reports saved before")
	fs.BoolVar(&c.Quiet, "quiet", false, "")
}

// Bounds of flags: ranks of a process and processes, ranks of both, operations of a graph, and repetitions.
const (
	mostRanks      = 1024
	mostJob        = 4096
	maxGraph       = 10_000
	maxRepetitions = 10_000
)

// yesNo defines a flag for 0 or 1.
func yesNo(fs *flag.FlagSet, p *bool, names ...string) {
	cli.Var(fs, func(s string) error {
		if s != "0" && s != "1" {
			return fmt.Errorf("want 0 or 1")
		}
		*p = s == "1"
		return nil
	}, func() string { return "" }, names...)
}

// allOps is what -o all stands for.
var allOps = []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg, ringo.PreMulSum(2), ringo.BitAnd,
	ringo.BitOr, ringo.BitXor}

// listOf reads a list of words that parse knows, in which "all" stands for all.
func listOf[T fmt.Stringer](what, list string, all []T, parse func(string) (T, error)) (out []T, err error) {
	for _, s := range strings.Split(list, ",") {
		if s == "all" {
			out = append(out, all...)
			continue
		}
		x, err := parse(s)
		if err != nil {
			known := []string{"all"}
			for _, x := range all {
				known = append(known, x.String())
			}
			return nil, cli.Unknown(what, s, known)
		}
		out = append(out, x)
	}
	return out, nil
}

func (c *Config) setTypes(list string) (err error) {
	c.Types, err = listOf("type", list, kernels.Types(), kernels.ParseType)
	return err
}

func (c *Config) setOps(list string) (err error) {
	c.Ops, err = listOf("operator", list, allOps, kernels.ParseOp)
	return err
}

func (c *Config) setTransport(list string) error {
	words := strings.Split(list, ",")
	err := known("transport", words, "auto", "inproc", "shm", "socket", "tcp", "unix", "ib", "plugin", "p2p")
	c.Transport = strings.Join(words, ",")
	return err
}

func (c *Config) setPeers(list string) error {
	c.Peers = nil
	for name := range strings.SplitSeq(list, ",") {
		if name != "" && !slices.Contains(c.Peers, name) {
			c.Peers = append(c.Peers, name)
		}
	}
	return known("peer", c.Peers, "openmpi", "mpich", "gloo", "nccl")
}

// known refuses words that are not in a list, and spells the others as it does.
func known(what string, words []string, list ...string) (err error) {
	for i := 0; i < len(words) && err == nil; i++ {
		words[i], err = cli.OneOf(what, words[i], list)
	}
	return err
}
