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
	text := func(p *string, name string) { fs.StringVar(p, name, *p, "") }
	cli.Int(fs, &c.Processes, 0, mostRanks, "1 to 1024 processes, or 0 to join a job that a launcher has started", "np")
	cli.Int(fs, &c.Hosts, 0, mostRanks, "1 to 1024 hosts", "hosts")
	cli.Int(fs, &c.PerProcess, 1, mostRanks, "1 to 1024 ranks a process", "g", "ngpus")
	size(&c.Min, "b", "minbytes")
	size(&c.Max, "e", "maxbytes")
	size(&c.Step, "i", "stepbytes")
	cli.Float(fs, &c.Factor, func(x float64) bool { return x == 0 || x > 1 && x < 1e9 },
		"a factor, which must be above 1, or 0 for -i", "f", "stepfactor")
	cli.Int(fs, &c.Iterations, 0, maxIterations,
		fmt.Sprintf("1 to %d iterations, or 0 to have them chosen", maxIterations), "n", "iters")
	cli.Int(fs, &c.Warmup, 0, maxIterations, fmt.Sprintf("0 to %d warm-ups", maxIterations), "w", "warmup_iters")
	cli.Int(fs, &c.Group, 1, maxGroup, fmt.Sprintf("groups of 1 to %d operations", maxGroup), "m", "agg_iters")
	cli.Int(fs, &c.Root, -1, math.MaxInt32, "a rank, or -1 for all in turn", "r", "root")
	cli.Int(fs, &c.Graph, 0, maxGraph, fmt.Sprintf("1 to %d operations in a graph, or 0 for none", maxGraph), "G",
		"cudagraph")
	fs.BoolVar(&c.Beside, "beside", false, "")
	cli.Duration(fs, &c.BesideTime, 0, "beside-time")
	cli.Duration(fs, &c.BesideProduct, 0, "beside-product")
	text(&c.CUBLAS, "cublas")
	yesNo(fs, &c.Registered, "R", "local_register")
	cli.Var(fs, c.setTypes, func() string { return "" }, "d", "datatype")
	cli.Var(fs, c.setOps, func() string { return "" }, "o", "op")
	size(&c.Row, "row")
	yesNo(fs, &c.Check, "c", "check")
	fs.BoolVar(&c.Error, "error", false, "")
	fs.BoolVar(&c.Deterministic, "deterministic", false, "")
	cli.Word(fs, &c.Device, "device", []string{"auto", "host", "cuda", "emu"}, "device")
	cli.Var(fs, c.setTransport, func() string { return c.Transport }, "transport")
	cli.Word(fs, &c.Algo, "algorithm", ringo.Algorithms(), "algo")
	cli.Duration(fs, &c.Timeout, cli.Moment, "timeout")
	cli.Var(fs, c.setPeers, func() string { return strings.Join(c.Peers, ",") }, "peer")
	text(&c.NCCL, "nccl")
	fs.BoolVar(&c.Unchecked, "unchecked", false, "")
	cli.Int(fs, &c.Repetitions, 1, maxRepetitions, fmt.Sprintf("1 to %d repetitions", maxRepetitions), "reps")
	cli.Duration(fs, &c.PeerTimeout, cli.Moment, "peer-timeout")
	text(&c.JSON, "json")
	text(&c.Plot, "plot")
	text(&c.Trace, "trace")
	text(&c.from, "from")
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

func (c *Config) setTypes(list string) error {
	c.Types = nil
	for _, s := range strings.Split(list, ",") {
		if s == "all" {
			c.Types = append(c.Types, kernels.Types()...)
			continue
		}
		t, err := kernels.ParseType(s)
		if err != nil {
			known := []string{"all"}
			for _, t := range kernels.Types() {
				known = append(known, t.String())
			}
			return cli.Unknown("type", s, known)
		}
		c.Types = append(c.Types, t)
	}
	return nil
}

func (c *Config) setOps(list string) error {
	c.Ops = nil
	for _, s := range strings.Split(list, ",") {
		if s == "all" {
			c.Ops = append(c.Ops, allOps...)
			continue
		}
		op, err := kernels.ParseOp(s)
		if err != nil {
			known := []string{"all"}
			for _, op := range allOps {
				known = append(known, op.String())
			}
			return cli.Unknown("operator", s, known)
		}
		c.Ops = append(c.Ops, op)
	}
	return nil
}

func (c *Config) setTransport(list string) error {
	known := []string{"auto", "inproc", "shm", "socket", "tcp", "unix", "ib", "plugin", "p2p"}
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(known, name) {
			return cli.Unknown("transport", name, known)
		}
	}
	c.Transport = list
	return nil
}

func (c *Config) setPeers(list string) error {
	c.Peers = nil
	if list == "" {
		return nil
	}
	known := []string{"openmpi", "mpich", "gloo", "nccl"}
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(known, name) {
			return cli.Unknown("peer", name, known)
		}
		if !slices.Contains(c.Peers, name) {
			c.Peers = append(c.Peers, name)
		}
	}
	return nil
}
