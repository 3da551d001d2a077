package command

import (
	"flag"
	"io"
	"math"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
)

// explainFlags are the values of explain's flags.
type explainFlags struct {
	ranks, root, node int
	size              int64
	typ               ringo.DataType
	algo              string
	steps, device     string
	plan              string
	ordered, drawn    bool
	policy            string
	most, least       int // blocks
	gpus              ringo.GPUs
	row               int64
	mbps              int
	out, json         string // files
}

func newExplainFlags() *explainFlags {
	return &explainFlags{ranks: 4, size: 1 << 20, typ: ringo.Float32, steps: "auto", device: "host"}
}

func (f *explainFlags) register(fs *flag.FlagSet) {
	paperRanks(fs, &f.ranks, &f.root, &f.node, "ranks of a host, for more than one host (default: all)")
	cli.Int(fs, &f.mbps, 0, math.MaxInt32, "Mbit/s of a host's network",
		"host-mbps `N` Mbit/s of a host's network (default: RINGO_HOST_MBPS, or 25000)")
	sizeFlag(fs, &f.size, "s `SIZE` bytes of the larger buffer of a rank (default 1M)")
	typeFlag(fs, &f.typ, "d `TYPE` element type (default float32)")
	algoFlag(fs, &f.algo, "algo `A` this algorithm instead of the one that would be chosen")
	fs.StringVar(&f.steps, "steps", f.steps, "`W` print the steps: auto (up to 8 ranks), all, none, or a rank")
	cli.Word(fs, &f.device, "device", []string{"host", "cuda", "emu"}, "device `D` host (default), cuda, or emu")
	fs.StringVar(&f.plan, "plan", "", "`FILE` of ringo tune (default: the built-in one)")
	fs.BoolVar(&f.ordered, "deterministic", false, "reductions in order of rank, of floats")
	fs.BoolVar(&f.drawn, "picture", false, "draw the messages in any case, up to 16 ranks; else where that is "+
		"short, unless -steps says otherwise")
	cli.Var(fs, func(text string) (err error) {
		if f.policy = text; len(text) != 1 || text > "3" { // NCCL's numbers
			f.policy, err = cli.OneOf("policy", text, values("explain", "policy"))
		}
		return err
	}, func() string { return f.policy },
		"policy `P` of blocks of the GPU: default, latency, efficiency, or zero")
	cli.Int(fs, &f.most, 0, mostBlocks, "1 to 128 blocks, or 0 for as many as there may be",
		"max-blocks `N` what it may have at most (default 128)")
	cli.Int(fs, &f.least, 0, mostBlocks, "1 to 128 blocks, or 0 for none", "min-blocks `N` what it has at least")
	fs.StringVar(&f.gpus.Name, "gpu", "", "`NAME` of all ranks (default \"NVIDIA H200\")")
	cli.Word(fs, &f.gpus.Path, "path", values("explain", "path"),
		"path `P` between GPUs: p2p (default), pcie, \"host memory\", bridge")
	fs.BoolVar(&f.gpus.Registered, "registered", false, "the memory is registered")
	sizeFlag(fs, &f.row, "row `SIZE` bytes of a row, of a call with a Norm (default: it has none)")
	fs.StringVar(&f.out, "o", "", "`FILE.svg` draw the messages there, up to 64 ranks")
	fs.StringVar(&f.json, "json", "", "`FILE` save it all; - writes JSON here instead of text")
}

// mostBlocks is the most blocks of a GPU that a communicator takes.
const mostBlocks = 128

// question makes the question for the choice of the flags, where names are the arguments.
func (f *explainFlags) question(names []string) (question, error) {
	q, err := ask(names, f.ranks, f.root, f.node, f.typ, notAuto(f.algo))
	if err != nil {
		return q, err
	}
	q.policy, q.most, q.least, q.mbps = f.policy, f.most, f.least, f.mbps
	if q.mbps == 0 && f.node > 0 {
		cfg, err := ringo.Config{}.FromEnv()
		if err != nil {
			return q, err
		}
		q.mbps = cfg.HostMbps
	}
	if f.ordered {
		q.order = "rank order"
	}
	f.gpus.Row = int(f.row)
	if f.device == "host" {
		if f.gpus != (ringo.GPUs{}) || f.plan != "" || f.policy != "" || f.most != 0 || f.least != 0 {
			return q, cli.Usagef("-gpu, -path, -registered, -row, -plan, -policy and numbers of blocks are for GPU memory: " +
				"give -device cuda")
		}
		return q, nil
	}
	var plan []byte
	if f.plan != "" {
		if plan, err = given.Read(f.plan); err != nil {
			return q, cli.Usagef("-plan: %v", err)
		}
	}
	switch {
	case f.gpus.Name != "":
		if f.gpus.Name, err = gpuNamed(f.gpus.Name, string(plan)); err != nil {
			return q, err
		}
	case f.device == "emu":
		f.gpus.Name = "Emulated GPU"
	}
	q.gpus, q.plan = &f.gpus, f.plan
	return q, nil
}

// outputs checks -o and -json, and returns where the text goes.
func (f *explainFlags) outputs(stdout io.Writer) (io.Writer, error) {
	return cli.Outputs(stdout, cli.Output{Flag: "-o", File: f.out, Ends: []string{".svg"}},
		cli.Output{Flag: "-json", File: f.json})
}
