package programs

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// A world is what a program has made so far, as far as it decides which steps make sense.
type world struct {
	p      *Program
	comms  map[int]*comm
	graphs map[int]*graph
	used   map[int]bool    // numbers of graphs that there have been
	taken  [streams]*graph // that captures the stream

	left     []int // ranks of a program with Kills
	deadline bool  // of one of them passes, which stays
}

// A comm is a communicator.
type comm struct {
	members []int // the device of each rank
	algo    string
	state   state
	windows [Buffers]bool
}

type state int

const (
	alive state = iota
	aborted
	closed
)

// A graph is a capture, and what becomes of it.
type graph struct {
	number   int
	stream   Stream
	ranks    []int // who captures, nil for all
	mode     string
	open     map[Stream]bool // streams that are to be joined
	calls    []Step          // in order; of groups, their calls
	ready    bool            // it can be launched
	launched bool
}

func newWorld(p *Program) *world {
	w := &world{p: p, comms: map[int]*comm{}, graphs: map[int]*graph{}, used: map[int]bool{}}
	if p.Kills {
		w.comms[0] = &comm{members: devices(p.Ranks)}
	}
	return w
}

// devices are the first n.
func devices(n int) []int {
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	return all
}

// captures are the graphs that are being captured.
func (w *world) captures() (list []*graph) {
	for _, g := range w.graphs {
		if !g.ready {
			list = append(list, g)
		}
	}
	return list
}

// Repair is the program without the steps that make no sense.
func Repair(p *Program) *Program {
	fixed := *p
	fixed.Steps = nil
	w := newWorld(&fixed)
	for _, s := range p.Steps {
		if w.step(&s) == nil {
			fixed.Steps = append(fixed.Steps, s)
		}
	}
	for _, g := range w.captures() { // each is to end
		for to := range g.open {
			fixed.Steps = append(fixed.Steps, Step{Do: Join, Graph: g.number, Stream: g.stream, To: to})
		}
		fixed.Steps = append(fixed.Steps, Step{Do: End, Graph: g.number, Stream: g.stream, Discard: g.ranks != nil})
	}
	return &fixed
}

// bad is the error of a step that makes no sense.
func (s *Step) bad(why string) error { return fmt.Errorf("programs: %s: %s", s.Do, why) }

// step takes a step, or says why it makes no sense.
func (w *world) step(s *Step) error {
	if err := w.possible(s); err != nil {
		return err
	}
	if w.p.Kills {
		return w.survival(s)
	}
	switch s.Do {
	case Open, Close, Split, Bad, Abort:
		return w.comm(s)
	case Call, Message, Group:
		return w.call(s)
	case Begin, Fork, Join, End:
		return w.capture(s)
	case Launch, Update, Destroy:
		return w.graph(s)
	case Register, Unregister:
		return w.window(s)
	case Renew:
		if s.Stream >= Legacy {
			return s.bad("the stream cannot be made")
		}
	case Sync, Check, Meet:
	default:
		return s.bad("unknown verb")
	}
	return nil
}

// possible checks a step whatever its verb: its numbers, and that its communicators and graphs are there.
func (w *world) possible(s *Step) error {
	switch s.Do {
	case Begin, Fork, Join, End, Launch, Call, Message, Group:
	default:
		if len(w.captures()) > 0 {
			return s.bad("a capture has begun")
		}
	}
	if !s.numbered() || s.To < 0 || s.To >= streams {
		return s.bad("no such stream or buffer")
	}
	if s.Times > 1 && !w.repeats(s) {
		return s.bad("this is done once")
	}
	c, g := w.comms[s.Comm], w.graphs[s.Graph]
	if s.Do == Split {
		c = w.comms[s.Parent]
	}
	switch s.Do {
	case Split, Register, Unregister, Bad, Abort:
		if c == nil || c.state != alive {
			return s.bad("no such communicator")
		}
	case Check:
		if c == nil || c.state == aborted {
			return s.bad("no such communicator")
		}
	case Close:
		if c == nil || c.state == closed {
			return s.bad("no such communicator")
		}
	case Update, Destroy, Launch:
		if g == nil || !g.ready {
			return s.bad("no such graph")
		}
	case Fork, Join, End:
		if g == nil || g.ready {
			return s.bad("no such capture")
		}
	}
	return nil
}

// numbered reports whether the step's stream and buffers are among those that there are.
func (s *Step) numbered() bool {
	return s.Stream >= 0 && s.Stream < streams && min(s.In, s.Out) >= 0 && max(s.In, s.Out) < Buffers
}

// comm makes, breaks or ends a communicator.
func (w *world) comm(s *Step) error {
	c := w.comms[s.Comm]
	switch s.Do {
	case Open:
		if c != nil {
			return s.bad("there is one already")
		}
		w.comms[s.Comm] = &comm{members: devices(w.p.Ranks), algo: s.Algo}
	case Split:
		return w.split(s)
	case Bad, Abort:
		if s.Rank < 0 || s.Rank >= len(c.members) {
			return s.bad("no such rank")
		}
		if s.Do == Abort {
			c.state = aborted
		}
	case Close:
		c.state = closed
	}
	return nil
}

// call makes calls, alone or together.
func (w *world) call(s *Step) error {
	if s.Do == Group {
		if err := w.checkGroup(s); err != nil {
			return err
		}
		for i := range s.Calls {
			w.record(&s.Calls[i])
		}
		return nil
	}
	if err := w.checkCall(s); err != nil {
		return err
	}
	w.record(s)
	return nil
}

// capture begins a capture, has streams join it, or ends it.
func (w *world) capture(s *Step) error {
	g := w.graphs[s.Graph]
	switch s.Do {
	case Begin:
		return w.begin(s)
	case Fork:
		if s.Stream != g.stream || s.To == Legacy || w.taken[s.To] != nil {
			return s.bad("the stream is taken")
		}
		w.taken[s.To], g.open[s.To] = g, true
	case Join:
		if s.Stream != g.stream || w.taken[s.To] != g || !g.open[s.To] {
			return s.bad("the stream is no fork")
		}
		delete(g.open, s.To)
	case End:
		if s.Stream != g.stream || len(g.open) > 0 || g.ranks != nil && !s.Discard {
			return s.bad("a fork is open, or other ranks have no graph")
		}
		for i, t := range w.taken {
			if t == g {
				w.taken[i] = nil
			}
		}
		if g.ready = true; s.Discard {
			delete(w.graphs, s.Graph)
		}
	}
	return nil
}

// begin begins a capture.
func (w *world) begin(s *Step) error {
	if w.used[s.Graph] || w.taken[s.Stream] != nil || s.Stream == Legacy || s.Mode == "global" && w.p.Each {
		return s.bad("the graph is there, or the stream cannot be captured")
	}
	if len(s.Ranks) > 0 && (!slices.IsSorted(s.Ranks) || s.Ranks[0] < 0 || s.Ranks[len(s.Ranks)-1] >= w.p.Ranks) {
		return s.bad("no such ranks")
	}
	g := &graph{number: s.Graph, stream: s.Stream, ranks: s.Ranks, mode: s.Mode, open: map[Stream]bool{}}
	w.graphs[s.Graph], w.used[s.Graph], w.taken[s.Stream] = g, true, g
	return nil
}

// graph launches a graph, changes it or gives it up.
func (w *world) graph(s *Step) error {
	g := w.graphs[s.Graph]
	switch s.Do {
	case Launch:
		if w.taken[s.Stream] != nil || w.blocked(s.Stream) {
			return s.bad("the stream is being captured")
		}
		g.launched = true
	case Update:
		h := w.graphs[s.Parent]
		if h == nil || h == g || h.launched {
			return s.bad("no such graph that was never launched")
		}
		g.calls = h.calls
		delete(w.graphs, s.Parent)
	case Destroy:
		delete(w.graphs, s.Graph)
	}
	return nil
}

// window registers a buffer, or ends that.
func (w *world) window(s *Step) error {
	c := w.comms[s.Comm]
	if s.Do == Register {
		if c.windows[s.In] {
			return s.bad("it is a window")
		}
		c.windows[s.In] = true
		return nil
	}
	for _, g := range w.graphs {
		if g.uses(s.Comm) {
			return s.bad("a graph may use it")
		}
	}
	if !c.windows[s.In] {
		return s.bad("it is no window")
	}
	c.windows[s.In] = false
	return nil
}

// repeats reports whether a step may be done again and again.
func (w *world) repeats(s *Step) bool {
	switch s.Do {
	case Call, Message, Group, Launch:
		return w.taken[s.on()] == nil
	}
	return false
}

// uses reports whether a graph has calls of a communicator.
func (g *graph) uses(number int) bool {
	return slices.ContainsFunc(g.calls, func(s Step) bool { return s.Comm == number })
}

// split makes the parts of a communicator.
func (w *world) split(s *Step) error {
	parent := w.comms[s.Parent]
	seen := map[int]bool{}
	for number, part := range s.parts() {
		if w.comms[number] != nil || len(part) == 0 {
			return fmt.Errorf("programs: split: a part is there, or empty")
		}
		for _, r := range part {
			if r < 0 || r >= len(parent.members) || seen[r] {
				return fmt.Errorf("programs: split: rank %d", r)
			}
			seen[r] = true
		}
	}
	for number, part := range s.parts() {
		c := &comm{algo: parent.algo}
		for _, r := range part {
			c.members = append(c.members, parent.members[r])
		}
		w.comms[number] = c
	}
	return nil
}

// blocked reports whether a stream would become part of a capture of streams that wait for it.
func (w *world) blocked(s Stream) bool {
	return s == Legacy && (w.taken[Blocking] != nil || w.taken[Thread] != nil)
}

// record notes a call in the graph that captures its stream, if there is one.
func (w *world) record(s *Step) {
	if g := w.taken[s.Stream]; g != nil {
		g.calls = append(g.calls, *s)
		if s.Stream != g.stream {
			g.open[s.Stream] = true
		}
	}
}

// checkGroup says what is wrong with calls that are made together.
func (w *world) checkGroup(s *Step) error {
	if len(s.Calls) == 0 {
		return fmt.Errorf("programs: group: no calls")
	}
	on, within := map[int]Stream{}, w.taken[s.Calls[0].Stream]
	for i := range s.Calls {
		k := &s.Calls[i]
		if err := w.checkCall(k); err != nil && (k.Do != Message || err != errAlone) {
			return err
		}
		if was, ok := on[k.Comm]; ok && was != k.Stream || w.comms[k.Comm].state != alive || w.taken[k.Stream] != within {
			return fmt.Errorf("programs: group: calls on other streams")
		}
		on[k.Comm] = k.Stream
		for j := range s.Calls[:i] {
			if k.collides(&s.Calls[j]) {
				return fmt.Errorf("programs: group: calls without an order use the same memory")
			}
		}
	}
	return nil
}

// collides reports whether one of two messages, or of two all-reduces that are alike, writes what the other reads or
// writes.
func (s *Step) collides(o *Step) bool {
	alike := s.Kind == call.AllReduce && o.Kind == call.AllReduce && s.Type == o.Type && s.Op == o.Op
	if s.Do != o.Do || s.Comm != o.Comm || s.Do != Message && !alike {
		return false
	}
	type extent struct{ rank, buffer, at, end int }
	region := func(s *Step, rank, buffer, at int) extent {
		if s.Do == Call { // on all ranks alike
			rank = 0
		}
		return extent{rank, buffer, at * s.Type.Size(), (at + s.Count) * s.Type.Size()}
	}
	in := func(s *Step) extent {
		switch {
		case s.Do == Call && s.Fill > 0:
			return extent{rank: -1} // memory of its own
		case s.Do == Call && s.inPlace():
			return region(s, s.Sender, s.In, s.OutAt)
		}
		return region(s, s.Sender, s.In, s.InAt)
	}
	out := func(s *Step) extent { return region(s, s.Recver, s.Out, s.OutAt) }
	meet := func(a, b extent) bool {
		return a.rank == b.rank && a.buffer == b.buffer && a.at < b.end && b.at < a.end
	}
	return meet(out(s), out(o)) || meet(out(s), in(o)) || meet(in(s), out(o))
}

var errAlone = fmt.Errorf("programs: message: a rank's own, outside of a group")

// checkCall says what is wrong with a collective or a message.
func (w *world) checkCall(s *Step) error {
	c := w.comms[s.Comm]
	if c == nil || !s.numbered() {
		return s.bad("no such communicator, stream or buffer")
	}
	if c.state != alive && w.taken[s.Stream] != nil || w.blocked(s.Stream) {
		return s.bad("the stream is being captured")
	}
	if s.Do == Call && s.Kind == call.Barrier {
		return nil
	}
	if !s.Type.Valid() || s.Count < 0 || s.InAt < 0 || s.OutAt < 0 || s.Fill < 0 {
		return s.bad("type, count or offset")
	}
	if s.Do == Message {
		return w.checkMessage(s, len(c.members))
	}
	return w.checkCollective(s, c)
}

// fits reports whether so many elements of the step's type fit into a buffer.
func (w *world) fits(s *Step, elements int) bool { return elements*s.Type.Size() <= w.p.Bytes }

// checkMessage says what is wrong with a message among n ranks.
func (w *world) checkMessage(s *Step, n int) error {
	if min(s.Sender, s.Recver) < 0 || max(s.Sender, s.Recver) >= n || !w.fits(s, s.InAt+s.Count) ||
		!w.fits(s, s.OutAt+s.Count) {
		return s.bad("ranks or size")
	}
	if s.collides(&Step{Do: Message, Comm: s.Comm, Type: s.Type, Count: s.Count, Sender: s.Sender, In: s.In, InAt: s.InAt,
		Recver: -1}) {
		return s.bad("a message to itself")
	}
	if s.Sender == s.Recver {
		return errAlone
	}
	return nil
}

// checkCollective says what is wrong with a collective.
func (w *world) checkCollective(s *Step, c *comm) error {
	n := len(c.members)
	if !s.Kind.Valid() || s.Kind.Pairwise() || s.Kind.Rooted() && (s.Root < 0 || s.Root >= n) {
		return s.bad("kind or root")
	}
	if s.Kind.Reduces() {
		if err := s.checkReduction(n); err != nil {
			return err
		}
	}
	rows := map[call.Kind]int{call.AllGatherv: 1, call.AlltoAllv: n}[s.Kind]
	if len(s.Counts) != rows ||
		slices.ContainsFunc(s.Counts, func(row []int) bool { return len(row) != n || slices.Min(row) < 0 }) {
		return s.bad("counts")
	}
	if s.Fill > 0 && s.inPlace() || s.inPlace() && s.InAt > 0 {
		return s.bad("in place")
	}
	if (c.algo == "window" || c.algo == "copies") && s.inPlace() && (s.Kind == call.Gather || s.Kind == call.Scatter) &&
		c.windows[s.In] {
		return s.bad("ranks use other offsets of a window")
	}
	for r := range n {
		in, out := s.extents(r, n, false)
		if !w.fits(s, s.Fill+in.at+in.n) || !w.fits(s, out.at+out.n) {
			return s.bad("size")
		}
	}
	return nil
}

// checkReduction says what is wrong with the operator: there is none, or the order of ranks decides.
func (s *Step) checkReduction(n int) error {
	if _, err := kernels.NewReducer(s.Type, s.op(), n); err != nil {
		return err
	}
	if !exact(s.Type, s.Op, n) && s.Fill == 0 || float(s.Type) && s.Op == kernels.KindAvg && n == 3 {
		return s.bad("the result depends on the order")
	}
	return nil
}

// exact reports whether the result of a reduction of any bytes does not depend on the order.
func exact(t kernels.DataType, op kernels.Kind, n int) bool {
	return !float(t) || op == kernels.KindMax || op == kernels.KindMin || n == 1 && op == kernels.KindSum
}

// inPlace reports whether a collective's In and Out are the same buffer.
func (s *Step) inPlace() bool { return s.In == s.Out && s.Fill == 0 }

// op is the operator of a reduction.
func (s *Step) op() kernels.RedOp {
	op := kernels.RedOp{Kind: s.Op}
	if s.Op == kernels.KindPreMulSum {
		op.Scale = 2
	}
	return op
}

// An extent is elements of a buffer.
type extent struct{ at, n int }

// call is the call of a rank of n, without memory.
func (s *Step) call(rank, n int) call.Call {
	c := call.Call{Kind: s.Kind, Type: s.Type, Op: s.op(), Count: s.Count, Root: s.Root}
	switch {
	case s.Kind == call.Barrier:
		return call.Call{Kind: call.Barrier}
	case s.Kind == call.AllGatherv:
		c.OutCounts = s.Counts[0]
	case s.Kind == call.AlltoAllv:
		c.InCounts = s.Counts[rank]
		for _, row := range s.Counts {
			c.OutCounts = append(c.OutCounts, row[rank])
		}
	}
	if c.Kind.Variable() {
		c.Count = 0
	}
	return c
}

// extents is where a rank's In and Out are in their buffers. With wide a rank that is not the
// root of a Reduce has an Out too.
func (s *Step) extents(rank, n int, wide bool) (in, out extent) {
	c := s.call(rank, n)
	if s.Kind == call.Barrier {
		return extent{}, extent{}
	}
	in.n, out.n = c.Shape(rank, n)
	if s.Kind == call.Reduce && (wide || s.inPlace()) {
		out.n = c.Count
	}
	in.at, out.at = s.InAt, s.OutAt
	if !s.inPlace() {
		return in, out
	}
	in.at = s.OutAt
	switch s.Kind {
	case call.AllGather:
		in.at += rank * s.Count
	case call.Gather:
		if rank == s.Root {
			in.at += rank * s.Count
		}
	case call.ReduceScatter:
		out.at += rank * s.Count
	case call.Scatter:
		if rank == s.Root {
			out.at += rank * s.Count
		}
	case call.AllGatherv:
		for _, k := range s.Counts[0][:rank] {
			in.at += k
		}
	}
	return in, out
}
