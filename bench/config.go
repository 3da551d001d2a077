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

	from   string    // -from, for Complete to divide
	output io.Writer // of files that are "-"
}

// NewConfig is a Config with the defaults.
func NewConfig() *Config {
	return &Config{
		Processes: 4, PerProcess: 1,
		Sweep:  Sweep{Min: 8, Max: 16 << 20, Step: 1 << 20, Factor: 4},
		Warmup: 5, Group: 1, Device: "auto", Transport: "auto", Algo: "auto", Timeout: 2 * time.Minute,
		Repetitions: 3, PeerTimeout: 2 * time.Minute,
		NCCL: "libnccl.so.2", Types: []ringo.DataType{ringo.Float32}, Ops: []ringo.RedOp{ringo.Sum}, Check: true,
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
		func() error { return c.collectives(names) }, c.defined, func() error { return c.device(given) },
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

// defined refuses operators of which none is for one of the types.
func (c *Config) defined() error {
	for _, t := range c.Types {
		if slices.ContainsFunc(c.Ops, func(op ringo.RedOp) bool { return possible(op, t) }) {
			return nil
		}
	}
	return cli.Usagef("no operator of -o is defined for -d %v: bitwise operators need integers", c.Types)
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

// numbers checks what one number alone does not tell.
func (c *Config) numbers() error {
	n := c.Ranks()
	switch {
	case c.Hosts > 1 && c.Hosts > c.Processes && c.Processes > 0:
		return cli.Usagef("-hosts %d: want 1 to %d, as many as there are processes", c.Hosts, c.Processes)
	case c.Processes > 0 && c.Root >= n:
		return cli.Usagef("-r %d: the ranks are 0 to %d; -1 is all in turn", c.Root, n-1)
	case c.Registered && c.Device == "host":
		return cli.Usagef("-R 1: memory of GPUs is registered: give -device cuda or emu, or leave -R out")
	}
	if n > mostJob {
		return cli.Usagef("-np %d with -g %d: %d ranks, want at most %d on a machine", c.Processes, c.PerProcess, n, mostJob)
	}
	if _, err := c.Sizes(); err != nil {
		return cli.Usagef("%v", err)
	}
	// A rank has what it gives and what it gets.
	return cli.Fits(2*bufferBytes(c.Max, c.Group)*int64(max(1, c.Processes)*c.PerProcess),
		"-e %s of %d ranks", FormatSize(c.Max), max(1, n))
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
	}
	if c.Graph > 0 && c.Device == "host" {
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

// transportAndAlgo checks the transport, and has "" for the algorithm that is chosen.
func (c *Config) transportAndAlgo() error {
	if c.Device == "host" && slices.Contains(strings.Split(c.Transport, ","), "p2p") {
		return cli.Usagef("-transport p2p is for GPU memory: give -device cuda or emu")
	}
	if c.Algo == "auto" {
		c.Algo = ""
	}
	return nil
}

// mostProduct is the longest time of a product of matrices: the matrices have to fit on the GPU.
const mostProduct = 10 * time.Millisecond

// besides checks the flags of computing beside the collectives.
func (c *Config) besides(given map[string]bool) error {
	if c.BesideProduct > mostProduct {
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
	for _, name := range c.Peers {
		switch {
		case name != "nccl" && c.Device != "host":
			return cli.Usagef("-peer %s moves host memory: with -device %s the peer is nccl", name, c.Device)
		case name == "nccl" && c.Device != "cuda":
			return cli.Usagef("-peer nccl moves GPU memory: give -device cuda; host peers are openmpi, mpich, gloo")
		}
	}
	if len(c.Peers) == 0 {
		return nil
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
	text, err := cli.Outputs(c.Stdout, cli.Output{Flag: "-json", File: c.JSON}, cli.Output{Flag: "-trace", File: c.Trace},
		cli.Output{Flag: "-plot", File: c.Plot, Ends: plotEnds})
	if err != nil {
		return err
	}
	if c.output, c.Quiet = c.Stdout, c.Quiet || text == io.Discard; len(c.From) > 0 {
		c.Stdout = text
	}
	return nil
}

// Ranks is the number of ranks that Run will start; 0 if a launcher decides.
func (c *Config) Ranks() int { return c.Processes * c.PerProcess }
