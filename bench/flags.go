package bench

import "flag"

// sizeFlag is a flag.Value for a size in bytes.
type sizeFlag struct{ n *int64 }

func (f sizeFlag) Set(s string) (err error) { *f.n, err = ParseSize(s); return err }
func (f sizeFlag) String() string {
	if f.n == nil {
		return ""
	}
	return FormatSize(*f.n)
}

// Register makes the flags in fs that set the Config. Most have nccl-tests' long
// name too.
func (c *Config) Register(fs *flag.FlagSet) {
	size := func(p *int64, names ...string) {
		for _, n := range names {
			fs.Var(sizeFlag{p}, n, "")
		}
	}
	number := func(p *int, names ...string) {
		for _, n := range names {
			fs.IntVar(p, n, *p, "")
		}
	}
	text := func(p *string, names ...string) {
		for _, n := range names {
			fs.StringVar(p, n, *p, "")
		}
	}
	number(&c.Processes, "np")
	number(&c.Hosts, "hosts")
	number(&c.PerProcess, "g", "ngpus")
	size(&c.Min, "b", "minbytes")
	size(&c.Max, "e", "maxbytes")
	size(&c.Step, "i", "stepbytes")
	for _, n := range []string{"f", "stepfactor"} {
		fs.Float64Var(&c.Factor, n, c.Factor, "")
	}
	number(&c.Iterations, "n", "iters")
	number(&c.Warmup, "w", "warmup_iters")
	number(&c.Group, "m", "agg_iters")
	number(&c.Root, "r", "root")
	number(&c.Graph, "G", "cudagraph")
	fs.BoolVar(&c.Beside, "beside", false, "")
	fs.DurationVar(&c.BesideTime, "beside-time", 0, "")
	fs.DurationVar(&c.BesideProduct, "beside-product", 0, "")
	fs.StringVar(&c.CUBLAS, "cublas", "", "")
	text(&c.registered, "R", "local_register")
	text(&c.types, "d", "datatype")
	text(&c.ops, "o", "op")
	size(&c.Row, "row")
	text(&c.check, "c", "check")
	fs.BoolVar(&c.Error, "error", false, "")
	fs.BoolVar(&c.Deterministic, "deterministic", false, "")
	text(&c.Device, "device")
	text(&c.Transport, "transport")
	text(&c.Algo, "algo")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "")
	text(&c.peers, "peer")
	text(&c.NCCL, "nccl")
	fs.BoolVar(&c.Unchecked, "unchecked", false, "")
	number(&c.Repetitions, "reps")
	fs.DurationVar(&c.PeerTimeout, "peer-timeout", c.PeerTimeout, "")
	text(&c.JSON, "json")
	text(&c.Plot, "plot")
	text(&c.Trace, "trace")
	text(&c.from, "from")
	fs.BoolVar(&c.Quiet, "quiet", false, "")
}
