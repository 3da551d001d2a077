package bench

import (
	"cmp"
	"flag"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/kernels"
)

// A Config says what to measure and how. Make one with NewConfig, set its fields
// by Register and a flag.FlagSet or by hand, and complete it with Complete.
type Config struct {
	Collectives []Collective
	// Processes is how many processes to start on this machine, 0 to be one rank
	// of a job that a launcher has started. PerProcess is the ranks of each.
	Processes, PerProcess int
	// Hosts, above 1, has the processes think that they are on so many hosts.
	Hosts int

	Sweep
	Types []ringo.DataType
	Ops   []ringo.RedOp
	Row   int64 // bytes of a row that a norm follows, 0 for none
	Root  int   // -1 for every rank in turn

	// Iterations of a measurement, 0 for as many as take some time, at
	// least minIterations; Warmup before each.
	Iterations, Warmup int
	Group              int  // operations of a group, which an iteration is
	Check              bool // verify every element
	Error              bool // compare sums of random floats with the exact ones

	Device, Transport, Algo string
	Graph                   int           // GPU: operations in a graph that is replayed, 0 for none
	Registered              bool          // GPU: the memory is registered with the communicator
	Deterministic           bool          // reductions in order of rank
	Beside                  bool          // GPU: computing beside the collectives
	BesideTime              time.Duration // how much of it, 0 for as long as they take
	BesideProduct           time.Duration // of a product of matrices that is computed, 0 for waves of short blocks
	CUBLAS                  string        // file of cuBLASLt, for products
	Unchecked               bool          // emulator: fast, without looking for races
	NCCL                    string        // file of the peer nccl
	Timeout                 time.Duration // of one operation

	Peers       []string
	Repetitions int           // of everything, when there are peers
	PeerTimeout time.Duration // of one run of a peer

	JSON, Plot string   // files to write, "" for none
	Trace      string   // the same, of the steps of the last calls of each measurement
	From       []string // reports to plot instead of measuring
	Quiet      bool     // no table

	Args           []string // the flags as given, for reports and for the processes that it starts
	Command        []string // starts a process of this program that understands Args
	Stdout, Stderr io.Writer

	traces *traces // nil without Trace

	// Flags as text, for Complete to parse.
	types, ops, check, registered, peers, from string
}

// NewConfig is a Config with the defaults.
func NewConfig() *Config {
	return &Config{
		Processes: 4, PerProcess: 1,
		Sweep:  Sweep{Min: 8, Max: 16 << 20, Step: 1 << 20, Factor: 4},
		Warmup: 5, Group: 1, Device: "auto", Transport: "auto", Algo: "auto", Timeout: 2 * time.Minute,
		Repetitions: 3, PeerTimeout: 2 * time.Minute,
		NCCL: "libnccl.so.2", types: "float32", ops: "sum", check: "1", registered: "0",
	}
}

// Complete checks what the flags have set and names the collectives to measure.
// Its errors are usage errors.
func (c *Config) Complete(fs *flag.FlagSet, names []string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["e"] && !given["maxbytes"] {
		c.Max = max(c.Max, c.Min)
	}
	if (given["i"] || given["stepbytes"]) && !given["f"] && !given["stepfactor"] {
		c.Factor = 0
	}
	for _, step := range []func() error{
		func() error { return c.collectives(names) }, c.typesAndOps, func() error { return c.device(given) },
		c.transportAndAlgo, func() error { return c.besides(given) }, c.numbers, c.peerNames, c.norms, c.files,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) collectives(names []string) error {
	c.from = strings.TrimSpace(c.from)
	if c.from != "" {
		c.From = strings.Split(c.from, ",")
	}
	if len(names) == 0 && len(c.From) == 0 {
		return cli.Usagef("which collective? give one of %s", strings.Join(append(Names(), "all"), ", "))
	}
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			c.Collectives = Collectives
			continue
		}
		coll, err := Find(name)
		if err != nil {
			return err
		}
		c.Collectives = append(c.Collectives, coll)
	}
	return nil
}

// allOps is what -o all stands for.
var allOps = []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg, ringo.PreMulSum(2), ringo.BitAnd,
	ringo.BitOr, ringo.BitXor}

func (c *Config) typesAndOps() error {
	c.Types, c.Ops = nil, nil
	for _, s := range strings.Split(c.types, ",") {
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
	for _, s := range strings.Split(c.ops, ",") {
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
	for _, t := range c.Types {
		if slices.ContainsFunc(c.Ops, func(op ringo.RedOp) bool { return possible(op, t) }) {
			return nil
		}
	}
	return cli.Usagef("no operator of -o %s is defined for -d %s: bitwise operators need integers", c.ops, c.types)
}

// possible reports whether op is defined for elements of type t.
func possible(op ringo.RedOp, t ringo.DataType) bool {
	switch op.Kind {
	case kernels.KindBitAnd, kernels.KindBitOr, kernels.KindBitXor:
		return !elements[t].float()
	case kernels.KindPreMulSum:
		return elements[t].float() || op.Int != 0 || op.Scale == float64(int64(op.Scale))
	}
	return true
}

func (c *Config) numbers() error {
	n := c.Ranks()
	switch {
	case c.Processes < 0 || c.Processes > 1024:
		return cli.Usagef("-np %d: want 1 to 1024 processes, or 0 to join a job that a launcher has started", c.Processes)
	case c.Hosts < 0 || c.Hosts > 1 && c.Hosts > c.Processes && c.Processes > 0:
		return cli.Usagef("-hosts %d: want 1 to %d, as many as there are processes", c.Hosts, c.Processes)
	case c.PerProcess < 1 || c.PerProcess > 1024:
		return cli.Usagef("-g %d: want 1 to 1024 ranks a process", c.PerProcess)
	case c.Processes > 0 && (c.Root < -1 || c.Root >= n):
		return cli.Usagef("-r %d: the ranks are 0 to %d; -1 is all in turn", c.Root, n-1)
	case c.Iterations < 0 || c.Iterations > maxIterations:
		return cli.Usagef("-n %d: want 1 to %d iterations, or 0 to have them chosen", c.Iterations, maxIterations)
	case c.Group < 1 || c.Group > maxGroup:
		return cli.Usagef("-m %d: want groups of 1 to %d operations", c.Group, maxGroup)
	case c.Warmup < 0:
		return cli.Usagef("-w %d: cannot be negative", c.Warmup)
	case c.Repetitions < 1:
		return cli.Usagef("-reps %d: want at least 1", c.Repetitions)
	case c.Timeout <= 0 || c.PeerTimeout <= 0:
		return cli.Usagef("timeouts must be positive")
	}
	switch c.check {
	case "0":
		c.Check = false
	case "1":
		c.Check = true
	default:
		return cli.Usagef("-c %s: want 0 or 1", c.check)
	}
	switch {
	case c.registered != "0" && c.registered != "1":
		return cli.Usagef("-R %s: want 0 or 1", c.registered)
	case c.registered == "1" && c.Device == "host":
		return cli.Usagef("-R 1: memory of GPUs is registered: give -device cuda or emu, or leave -R out")
	}
	c.Registered = c.registered == "1"
	_, err := c.Sizes()
	if err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

// emulated is how many GPUs the emulator has where -g does not say, and
// emulatedMax the last size where -e does not: it executes each instruction.
const (
	emulated    = 4
	emulatedMax = 64 << 10
)

// device checks the flags of the device, and sets those that depend on it and are not given.
func (c *Config) device(given map[string]bool) error {
	switch c.Device {
	case "auto", "":
		c.Device = "host"
	case "host":
	case "cuda", "emu":
		if err := c.gpuDefaults(given); err != nil {
			return err
		}
	default:
		return cli.Unknown("device", c.Device, []string{"auto", "host", "cuda", "emu"})
	}
	switch {
	case c.Graph < 0 || c.Graph > 10000:
		return cli.Usagef("-G %d: want 1 to 10000 operations in a graph, or 0 for none", c.Graph)
	case c.Graph > 0 && c.Device == "host":
		return cli.Usagef("-G %d: graphs are for GPUs: give -device cuda or emu, or leave -G out", c.Graph)
	}
	return nil
}

// gpuDefaults sets what is not given: the ranks, one a GPU, and on the emulator sizes and repetitions.
func (c *Config) gpuDefaults(given map[string]bool) error {
	if !given["np"] {
		c.Processes = 1
	}
	if !given["g"] && !given["ngpus"] && c.Processes == 1 {
		n := emulated
		if c.Device == "cuda" {
			m, err := c.gpus(0)
			if err != nil {
				return err
			}
			n = m.Count()
		}
		c.PerProcess = n
	}
	if c.Device == "cuda" {
		return nil
	}
	if !given["e"] && !given["maxbytes"] {
		c.Max = max(c.Min, emulatedMax)
	}
	if !given["n"] && !given["iters"] {
		c.Iterations = 1
	}
	if !given["w"] && !given["warmup_iters"] {
		c.Warmup = 1
	}
	return nil
}

// transportAndAlgo checks the names of transports and of the algorithm.
func (c *Config) transportAndAlgo() error {
	known := []string{"auto", "inproc", "shm", "socket", "tcp", "unix", "ib", "plugin", "p2p"}
	for _, name := range strings.Split(c.Transport, ",") {
		switch {
		case !slices.Contains(known, name):
			return cli.Unknown("transport", name, known)
		case name == "p2p" && c.Device == "host":
			return cli.Usagef("-transport p2p is for GPU memory: give -device cuda or emu")
		}
	}
	if c.Algo == "auto" || c.Algo == "" {
		c.Algo = ""
		return nil
	}
	if !slices.Contains(ringo.Algorithms(), c.Algo) {
		return cli.Unknown("algorithm", c.Algo, ringo.Algorithms())
	}
	return nil
}

// mostProduct is the longest time of a product of matrices: the matrices have to fit on the GPU.
const mostProduct = 10 * time.Millisecond

// besides checks the flags of computing beside the collectives.
func (c *Config) besides(given map[string]bool) error {
	switch {
	case c.BesideTime < 0:
		return cli.Usagef("-beside-time %v: cannot be negative", c.BesideTime)
	case c.BesideProduct < 0 || c.BesideProduct > mostProduct:
		return cli.Usagef("-beside-product %v: want the time of a product, up to %v", c.BesideProduct, mostProduct)
	}
	c.Beside = c.Beside || c.BesideTime > 0 || c.BesideProduct > 0
	switch {
	case c.CUBLAS != "" && c.BesideProduct == 0:
		return cli.Usagef("-cublas is for -beside-product")
	case !c.Beside:
		return nil
	case c.Device == "host":
		return cli.Usagef("-beside computes on GPUs: give -device cuda or emu")
	case c.Error:
		return cli.Usagef("-beside measures no rounding errors: leave -error out")
	}
	c.Iterations = cmp.Or(c.Iterations, besideEach)
	if !given["reps"] {
		if c.Repetitions = besideRounds; c.Device == "emu" {
			c.Repetitions = 1
		}
	}
	return nil
}

func (c *Config) peerNames() error {
	c.Peers = nil
	if c.peers == "" {
		return nil
	}
	for _, name := range strings.Split(c.peers, ",") {
		switch name {
		case "openmpi", "mpich", "gloo":
			if c.Device != "host" {
				return cli.Usagef("-peer %s moves host memory: with -device %s the peer is nccl", name, c.Device)
			}
			if !slices.Contains(c.Peers, name) {
				c.Peers = append(c.Peers, name)
			}
		case "nccl":
			if c.Device != "cuda" {
				return cli.Usagef("-peer nccl moves GPU memory: give -device cuda; host peers are openmpi, mpich, gloo")
			}
			c.Peers = []string{name}
		default:
			return cli.Unknown("peer", name, []string{"openmpi", "mpich", "gloo", "nccl"})
		}
	}
	if c.Device != "host" {
		return nil
	}
	if c.Group > 1 {
		return cli.Usagef("-m %d: of the peers only nccl has groups: leave -m or -peer out", c.Group)
	}
	if c.PerProcess > 1 || c.Processes == 0 {
		return cli.Usagef("-peer starts one process a rank on this machine: leave -g at 1 and -np above 0")
	}
	return nil
}

func (c *Config) files() error {
	if c.Plot != "" && plotFormat(c.Plot) == "" {
		return cli.Usagef("-plot %s: the name must end in .svg or .html", c.Plot)
	}
	if c.Plot != "" && len(c.From) == 0 && c.Max == 0 {
		return cli.Usagef("-plot %s: rows of 0 bytes have no place in it: set -e above 0", c.Plot)
	}
	if len(c.From) > 0 && c.Plot == "" {
		return cli.Usagef("-from needs -plot FILE.svg or .html")
	}
	if c.Trace != "" {
		if len(c.From) > 0 || len(c.Peers) > 0 || c.Beside {
			return cli.Usagef("-trace measures this library alone: leave -from, -peer and -beside out")
		}
		c.traces = newTraces()
	}
	if err := cli.Writable("-json", c.JSON); err != nil {
		return err
	}
	if err := cli.Writable("-trace", c.Trace); err != nil {
		return err
	}
	return cli.Writable("-plot", c.Plot)
}

// Ranks is the number of ranks that Run will start; 0 if a launcher decides.
func (c *Config) Ranks() int { return c.Processes * c.PerProcess }
