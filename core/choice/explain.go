package choice

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Choice is an Answer for a reader: how a communicator of Size ranks carries out a
// collective.
type Choice struct {
	Kind   call.Kind
	Size   int
	Bytes  int // of Count elements
	Algo   string
	Reason string
	// Blocks are how many blocks of a GPU each kernel takes at most, 0 on a host.
	Blocks    int
	WhyBlocks string
	Carrier   string // what carries it out, "steps" for a Schedule
	// Bulk reports whether the GPUs move the data by bulk copies, where it lies in multiples of 16 bytes.
	Bulk bool
	// Lingers reports whether a kernel carries it out with the calls just before and after, outside of graphs.
	Lingers bool
	Phases  int // programs that carry it out one after the other, 0 if one does it all

	// Modelled is the size, near Bytes, for which the model of Alternatives has chosen; 0 where measurements have, or the
	// user.
	Modelled int

	Others   []string       // algorithms that could be asked for instead
	Schedule sched.Schedule // nil for a kernel that has no steps
	// Then follows when the ranks have combined, in order of rank, the contributions that
	// Schedule has moved; nil if nothing follows.
	Then sched.Schedule

	paper *paper // nil where there are no alternatives
}

// Options are what a user's configuration says of the choice.
type Options struct {
	Algo    string
	InOrder bool
	Plan    string // file
	Budget  Budget // of blocks of GPUs

	HostMbps int // of all cards of a host together, 0 if not known
}

// GPUs are what ExplainGPU is asked about. The zero GPUs are those of the built-in
// plan.
type GPUs struct {
	Name       string // "NVIDIA H200" if empty
	Path       string // of ranks on one host: "p2p" (NVLink) if empty, "pcie", "host memory" or "bridge"
	Registered bool   // the memory lies in windows
	Row        int    // bytes of a row, of a call with a Norm; 0: it has none
}

// Explain says how n ranks, in blocks of local on a host (0: all on one), would
// carry out a collective of float32 whose Count elements take bytes, and why, without
// doing it. root is the Root of rooted collectives. Errors wrap call.ErrInvalid.
func Explain(kind call.Kind, n, local, bytes, root int, o Options) (Choice, error) {
	c, err := o.chooser(kind, n, local, bytes, root)
	if err != nil {
		return Choice{}, err
	}
	q := Question{Kind: kind, Bytes: bytes, Type: kernels.Float32}
	ans := c.Choose(q)
	ch := c.choice(q, ans, root, WholeOnHost)
	if ans.By == ByFold {
		return ch, nil
	}
	ch.compare(c.on(q, root, nil))
	return ch, nil
}

// ExplainGPU is Explain for GPU memory. A *PlanError says what is wrong with the file o.Plan.
func ExplainGPU(kind call.Kind, n, local, bytes, root int, gpus GPUs, o Options) (Choice, error) {
	c, err := o.chooser(kind, n, local, bytes, root)
	if err != nil {
		return Choice{}, err
	}
	path := transport.GPUPath(max(0, slices.Index(transport.GPUPathNames[:],
		cmp.Or(gpus.Path, transport.OverP2P.String()))))
	if path == transport.NoPath {
		return Choice{}, fmt.Errorf("%w: path %q is none of p2p, pcie, host memory, bridge", call.ErrInvalid, gpus.Path)
	}
	source := LoadPlan(o.Plan)
	given, err := source.Parse()
	if err != nil {
		return Choice{}, err
	}
	f := &Fabric{Near: path, Far: path, Topo: c.Topo}
	if f.Topo.Nodes() > 1 {
		f.Far = transport.OverBridge
	}
	for range n {
		f.GPUs = append(f.GPUs, cmp.Or(gpus.Name, "NVIDIA H200"))
	}
	var k paperKernels
	if n >= 2 && n <= collective.MaxRanks {
		k.reach = f.Far.Peer()
		switch f.Far {
		case transport.OverP2P:
			k.longest = collective.MaxMessage
		case transport.OverPCIe, transport.OverHost:
			k.longest = collective.TornMessage(n)
		}
	}
	c.Kernels = k
	c.Rows = RowsFor(given, f, k.longest)
	if reduces := kind == call.AllReduce ||
		kind == call.ReduceScatter; gpus.Row != 0 && (!reduces || gpus.Row < 8 || gpus.Row > kernels.MaxNormRow) {
		return Choice{}, fmt.Errorf("%w: rows of %d bytes of %v: want an AllReduce or a ReduceScatter, and 8 to %d bytes",
			call.ErrInvalid, gpus.Row, kind, kernels.MaxNormRow)
	}
	gpu := productOf(f.GPUs[0])
	c.Budget = Agree(gpu.members(n, local, o.Budget))
	q := Question{Kind: kind, Bytes: bytes, Type: kernels.Float32, OnGPU: true, Registered: gpus.Registered, Row: gpus.Row}
	ans := c.Choose(q)
	ch := c.choice(q, ans, root, WholeOnGPU)
	way := ans.Way(&collective.Facts{Lanes: ans.Blocks, LingerLanes: c.Budget.LingerLanes(), Vectors: true,
		Bulk: f.Far.Peer() && gpu.bulk})
	ch.Lingers = way == collective.ByLinger
	ch.Bulk = ch.Lingers || way == collective.ByBulk
	if ans.Why != ordered && ans.By != ByFold && q.Row == 0 {
		if ans.Why == fromSim || ans.Why == fromSimNear {
			f = nil
		}
		ch.compare(c.on(q, root, f))
	}
	return ch, nil
}

// compare has Alternatives and Differences go by a model.
func (ch *Choice) compare(p *paper) {
	ch.paper = p
	ch.Others = slices.DeleteFunc(p.names(ch.Bytes), func(name string) bool { return name == ch.Algo })
}

// chooser is that of a communicator which need not exist.
func (o Options) chooser(kind call.Kind, n, local, bytes, root int) (*Chooser, error) {
	forced, err := call.ParseAlgo(o.Algo)
	if err != nil {
		return nil, err
	}
	if !kind.Valid() || kind.Pairwise() || n < 1 || local < 0 || bytes < 0 || root < 0 || root >= n {
		return nil, fmt.Errorf("%w: explain %v of %d bytes on %d ranks, root %d", call.ErrInvalid, kind, bytes, n, root)
	}
	topo := Blocks(n, local).Over(Wire{Mbps: o.HostMbps})
	return &Chooser{Topo: topo, Forced: forced, InOrder: o.InOrder, Budget: o.Budget}, nil
}

// choice puts an answer into words and tables.
func (c *Chooser) choice(q Question, ans Answer, root, whole int) Choice {
	ch := Choice{Kind: q.Kind, Size: c.Topo.Ranks, Bytes: q.Bytes, Algo: ans.Algo.String(), Reason: ans.reason(),
		Blocks: ans.Blocks, WhyBlocks: ans.WhyBlocks, Carrier: ans.By.String(), Phases: int(ans.Phases),
		Modelled: lookedAt(&ans, q.Bytes)}
	if ans.By == ByKernel || ans.By == ByWindow || ans.By == ByNorm {
		ch.Carrier += " " + ans.Kernel.String()
	}
	schedule := func(kind call.Kind, a call.Algo) sched.Schedule {
		return Key{Kind: kind, Algo: a, Peer: int32(root)}.Schedule(c.Topo)
	}
	switch ans.By {
	case BySchedule:
		ch.Schedule = schedule(q.Kind, ans.Algo)
	case ByFold:
		first, then := Parts(q.Kind, q.Bytes, whole)
		chunk := q.Bytes
		if then != 0 {
			chunk /= c.Topo.Ranks
		}
		part := func(kind call.Kind) sched.Schedule {
			a, _ := Threshold(kind, c.Topo, chunk, call.Auto)
			return schedule(kind, a)
		}
		ch.Schedule = part(first)
		if then != 0 {
			ch.Then = part(then)
		}
	}
	return ch
}
