package programs

import (
	"math/rand/v2"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// Limits are what programs of Generate have at most.
type Limits struct {
	Ranks   int // at least 1
	MinRank int // at least so many, if not 0
	Steps   int
	Bytes   int
	Comms   int  // open at once
	Times   int  // how often the same is done again and again, with up to 4 KiB; once if 0
	Ring    bool // always the smallest FIFO, for everything
	Kills   bool // programs with Kills, which have limits of their own
	Apart   bool // and all with Apart
}

// A generator proposes steps.
type generator struct {
	*rand.Rand
	w     *world
	limit Limits
	next  int // number of the next communicator or graph
}

// Generate makes the program of a seed.
func Generate(seed uint64, l Limits) *Program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 20)), limit: l}
	if l.Kills {
		return g.killing(seed)
	}
	p := &Program{Seed: seed, Ranks: max(l.MinRank, 1, min(l.Ranks, 2+g.IntN(2)*g.IntN(3)-g.IntN(10)/9)),
		Each: g.IntN(2) == 0}
	p.Bytes = l.Bytes
	if g.IntN(4) > 0 {
		p.Bytes = min(p.Bytes, 4096)
	}
	if l.Ring {
		p.Ring, p.Args = 1, 1
	} else if g.IntN(2) == 0 {
		p.Ring, p.Args = []int{0, 1}[g.IntN(2)], []int{0, 1}[g.IntN(2)]
	}
	g.w = newWorld(p)
	g.take(p, Step{Do: Open, Comm: g.number(), Algo: g.algo(), Ordered: g.IntN(8) == 0})
	steps := 1 + g.IntN(l.Steps)
	for range steps * 4 {
		if len(p.Steps) >= steps {
			break
		}
		g.take(p, g.step())
	}
	p.Steps = Repair(p).Steps
	w := newWorld(p)
	for i := range p.Steps {
		if err := w.step(&p.Steps[i]); err != nil {
			panic(err)
		}
	}
	for c := range g.next {
		if k := w.comms[c]; k != nil && k.state != aborted {
			p.Steps = append(p.Steps, Step{Do: Check, Comm: c})
		}
	}
	return p
}

// take appends a step if it makes sense.
func (g *generator) take(p *Program, s Step) {
	if s.Do == Launch && g.w.graphs[s.Graph] == nil {
		return
	}
	if most := g.limit.Times * 4096 / max(p.Bytes, 4096); most > 1 && g.w.repeats(&s) && g.IntN(3) == 0 {
		s.Times = 2 + g.IntN(most-1)
	}
	if g.w.step(&s) == nil {
		p.Steps = append(p.Steps, s)
	}
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) number() int {
	g.next++
	return g.next - 1
}

func (g *generator) algo() string {
	return pick(g, "", "", "", "", "ring", "steps", "direct", "window", "copies")
}

// comm is the number of a communicator, alive most of the time.
func (g *generator) comm() int {
	var list []int
	for n := range g.next {
		if c := g.w.comms[n]; c != nil && (c.state == alive || g.IntN(30) == 0) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return -1
	}
	return pick(g, list...)
}

// graph is the number of a graph that can be launched, -1 if there is none.
func (g *generator) graph() int {
	var list []int
	for n := range g.next {
		if k := g.w.graphs[n]; k != nil && k.ready {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return -1
	}
	return pick(g, list...)
}

func (g *generator) stream() Stream {
	return pick(g, Own, Own, Own, Own2, Own2, Blocking, Legacy, Thread)
}

// step proposes the next step.
func (g *generator) step() Step {
	if list := g.w.captures(); len(list) > 0 {
		slices.SortFunc(list, func(a, b *graph) int { return a.number - b.number })
		return g.captureStep(pick(g, list...))
	}
	switch n := g.IntN(100); {
	case n < 40:
		return g.collective(g.comm(), g.stream())
	case n < 47:
		return g.message(g.comm(), g.stream())
	case n < 53:
		return g.group(g.stream())
	case n < 63:
		s := Step{Do: Begin, Graph: g.number(), Stream: g.stream(), Mode: pick(g, "", "", "global", "relaxed")}
		if g.IntN(4) == 0 {
			for r := range g.w.p.Ranks {
				if g.IntN(2) == 0 {
					s.Ranks = append(s.Ranks, r)
				}
			}
		}
		return s
	case n < 80:
		return Step{Do: Launch, Graph: g.graph(), Stream: g.stream()}
	case n < 82:
		return Step{Do: Update, Graph: g.graph(), Parent: g.graph()}
	case n < 84:
		return Step{Do: Destroy, Graph: g.graph()}
	case n < 86:
		return g.open()
	case n < 88:
		return Step{Do: Register, Comm: g.comm(), In: g.IntN(Buffers)}
	case n < 89:
		return Step{Do: Unregister, Comm: g.comm(), In: g.IntN(Buffers)}
	case n < 91:
		return Step{Do: Renew, Stream: g.stream()}
	case n < 93:
		return Step{Do: Sync, Stream: g.stream()}
	case n < 97:
		return Step{Do: Check, Comm: g.comm()}
	case n < 98:
		if g.IntN(4) == 0 {
			return Step{Do: Meet}
		}
		return Step{Do: Bad, Comm: g.comm(), Rank: g.IntN(g.w.p.Ranks)}
	case g.IntN(3) == 0:
		return Step{Do: Abort, Comm: g.comm(), Rank: g.IntN(g.w.p.Ranks)}
	}
	return Step{Do: Close, Comm: g.comm()}
}

// open proposes a communicator.
func (g *generator) open() Step {
	n := 0
	for _, c := range g.w.comms {
		if c.state == alive {
			n++
		}
	}
	parent := g.comm()
	switch {
	case n >= g.limit.Comms:
		return Step{Do: Sync}
	case parent < 0 || g.IntN(2) == 0:
		return Step{Do: Open, Comm: g.number(), Algo: g.algo(), Ordered: g.IntN(8) == 0}
	}
	order := g.Perm(len(g.w.comms[parent].members))
	s := Step{Do: Split, Comm: g.number(), Parent: parent}
	cut := 1 + g.IntN(len(order))
	s.Members = [][]int{order[:cut]}
	if cut < len(order) && g.IntN(2) == 0 {
		g.number()
		s.Members = append(s.Members, order[cut:])
	}
	return s
}

// captureStep proposes a step while a graph is being captured.
func (g *generator) captureStep(k *graph) Step {
	stream := k.stream
	for s, taken := range g.w.taken {
		if taken == k && g.IntN(2) == 0 {
			stream = Stream(s)
		}
	}
	switch n := g.IntN(100); {
	case n < 35:
		return g.collective(g.comm(), stream)
	case n < 42:
		return g.message(g.comm(), stream)
	case n < 50:
		return g.group(stream)
	case n < 55: // beside the capture
		return g.collective(g.comm(), g.stream())
	case n < 60:
		return Step{Do: Launch, Graph: g.graph(), Stream: g.stream()}
	case n < 68:
		return Step{Do: Fork, Graph: k.number, Stream: k.stream, To: g.stream()}
	case n < 80:
		for s := range streams {
			if k.open[s] {
				return Step{Do: Join, Graph: k.number, Stream: k.stream, To: s}
			}
		}
	case n < 82:
		return Step{Do: Begin, Graph: g.number(), Stream: g.stream(), Mode: k.mode, Ranks: k.ranks}
	}
	return Step{Do: End, Graph: k.number, Stream: k.stream, Discard: k.ranks != nil || g.IntN(5) == 0}
}

var kinds = []call.Kind{call.AllReduce, call.AllReduce, call.AllReduce, call.Reduce, call.Broadcast, call.AllGather,
	call.ReduceScatter,
	call.AlltoAll, call.Gather, call.Scatter, call.AllGatherv, call.AlltoAllv, call.Barrier}

// types has a few types several times, so that most programs use few: each has a kernel to load for each operator.
var types = []kernels.DataType{kernels.Int32, kernels.Int32, kernels.Int32, kernels.Float32, kernels.Float32,
	kernels.BFloat16, kernels.Uint8,
	kernels.Float16, kernels.Int64, kernels.Float64, kernels.Float8E4M3, kernels.Uint32}

var operators = []kernels.Kind{kernels.KindSum, kernels.KindSum, kernels.KindSum, kernels.KindSum, kernels.KindMax,
	kernels.KindMin,
	kernels.KindProd, kernels.KindAvg, kernels.KindBitXor, kernels.KindPreMulSum}

// count is a number of elements, small ones more often.
func (g *generator) count(most int) int {
	if most <= 0 {
		return 0
	}
	if g.IntN(2) == 0 {
		most = min(most, 64)
	}
	return g.IntN(most + 1)
}

// collective proposes a collective.
func (g *generator) collective(c int, on Stream) Step {
	s := Step{Do: Call, Comm: c, Stream: on, Kind: pick(g, kinds...)}
	k := g.w.comms[c]
	if k == nil || s.Kind == call.Barrier {
		return s
	}
	n := len(k.members)
	s.Type = pick(g, types...)
	if s.Kind.Reduces() {
		s.Op = pick(g, operators...)
	}
	if s.Kind.Rooted() {
		s.Root = g.IntN(n)
	}
	if g.IntN(3) == 0 || s.Kind.Reduces() && !exact(s.Type, s.Op, n) {
		s.Fill = 1 + g.IntN(64)
	}
	s.In, s.Out = g.IntN(Buffers), g.IntN(Buffers)
	if s.Fill > 0 {
		s.In = 0
	} else if s.In != s.Out {
		s.InAt = g.IntN(4)
	}
	s.OutAt = g.IntN(4)
	room := g.w.p.Bytes/s.Type.Size() - 70
	switch s.Kind {
	case call.AllGatherv:
		s.Counts = [][]int{g.counts(n, room/n)}
	case call.AlltoAllv:
		for range n {
			s.Counts = append(s.Counts, g.counts(n, room/n))
		}
	default:
		s.Count = g.count(room / s.Kind.Shares(n))
	}
	return s
}

func (g *generator) counts(n, most int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = g.count(most)
	}
	return list
}

// message proposes a message.
func (g *generator) message(c int, on Stream) Step {
	s := Step{Do: Message, Comm: c, Stream: on, Type: pick(g, types...), In: g.IntN(Buffers), Out: g.IntN(Buffers)}
	if k := g.w.comms[c]; k != nil {
		s.Sender, s.Recver = g.IntN(len(k.members)), g.IntN(len(k.members))
		s.Count, s.InAt = g.count(g.w.p.Bytes/s.Type.Size()-8), g.IntN(4)
		s.OutAt = g.IntN(4)
		if g.IntN(2) == 0 { // several fit into a buffer
			s.Count = min(s.Count, 40)
			s.InAt, s.OutAt = 40*g.IntN(4), 40*g.IntN(4)
		}
	}
	return s
}

// group proposes calls that are made together: messages, collectives, or both, of one
// communicator or several.
func (g *generator) group(on Stream) Step {
	s := Step{Do: Group}
	comms, what := []int{g.comm()}, g.IntN(3)
	if g.IntN(3) == 0 {
		comms = append(comms, g.comm())
	}
	for range 1 + g.IntN(6) {
		c := pick(g, comms...)
		k := g.message(c, on)
		if what == 0 || what == 1 && g.IntN(3) == 0 {
			k = g.collective(c, on)
		}
		try := s
		try.Calls = append(slices.Clone(s.Calls), k)
		if g.w.checkGroup(&try) == nil {
			s = try
		}
	}
	return s
}
