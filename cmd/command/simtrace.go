package command

import (
	"bytes"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/ringo-go/ringo/trace"
)

// modelSteps is the number of steps of a row, of all ranks together, that -trace keeps: the first ones.
const modelSteps = 1 << 18

// A simTrace is the trace that -trace writes: the model's steps beside the measured calls of -over.
// Times are nanoseconds.
type simTrace struct {
	whole trace.Trace
	over  int   // number of measured calls, the first of whole
	free  int64 // when a row begins that has no measured call
	ended int64 // when the row before ended
}

// newSimTrace reads -over. It is nil without -trace.
func newSimTrace(file, over string) (*simTrace, error) {
	if file == "" {
		if over != "" {
			return nil, cli.Usagef("-over %s: give -trace FILE too", over)
		}
		return nil, nil
	}
	t := &simTrace{}
	if over == "" {
		return t, nil
	}
	text, err := given.Read(over)
	if err != nil {
		return nil, cli.Usagef("-over: %v", err)
	}
	whole, err := trace.Read(bytes.NewReader(text))
	if err != nil {
		return nil, cli.Usagef("-over %s: %v", over, err)
	}
	t.whole, t.over = *whole, len(whole.Calls)
	for _, c := range whole.Calls {
		t.free = max(t.free, c.End)
	}
	return t, nil
}

// A modelled is the calls of a row, one for each rank, and how many more steps they may keep.
type modelled struct {
	calls []trace.Call
	room  int
}

// begin makes the calls of a row. The simulation passes each step of the row to see.
func (t *simTrace) begin(q question, algo string, bytes int64, s sched.Schedule) (row *modelled, see func(sim.Timed)) {
	if t == nil {
		return nil, nil
	}
	call := trace.Call{Comm: "model", Size: q.ranks, Model: true, Kind: q.Kind.String(), Algo: algo, Bytes: int(bytes),
		Peer: -1, Start: t.free}
	if q.Kind.Rooted() {
		call.Peer = q.root
	}
	t.measured(&call)
	row = &modelled{calls: make([]trace.Call, q.ranks), room: modelSteps}
	for r := range row.calls {
		row.calls[r] = call
		row.calls[r].Rank = r
	}
	at := func(seconds float64) int64 { return call.Start + int64(seconds*1e9) }
	return row, func(x sim.Timed) {
		c := &row.calls[x.Rank]
		if c.End = at(x.End); row.room == 0 {
			c.Lost++
			return
		}
		row.room--
		step := s.At(x.Rank, x.Step)
		whole := trace.Span{Start: at(x.Start), End: c.End, Round: int32(x.Round), Step: int32(x.Step),
			Recv: int32(step.Recv), Send: int32(step.Send)}
		c.Steps = append(c.Steps, whole)
		wait := whole
		wait.What = trace.Wait
		if wait.Send, wait.End = -1, min(whole.End, at(x.Start+x.Recv)); wait.End > wait.Start {
			c.Steps = append(c.Steps, wait)
		}
		wait.Start = wait.End
		if wait.Recv, wait.Send, wait.End = -1, whole.Send, min(whole.End, at(x.Start+x.Recv+x.Send)); wait.End > wait.Start {
			c.Steps = append(c.Steps, wait)
		}
	}
}

// measured has the row of c begin with the last measured call like it, if there is one, when that call's last rank
// came.
func (t *simTrace) measured(c *trace.Call) {
	type ranks struct {
		n, bytes int
		came     int64
	}
	seen := map[uint32]*ranks{}
	for _, m := range t.whole.Calls[:t.over] {
		if m.Size != c.Size || m.Kind != c.Kind || m.Algo != c.Algo || m.Number == 0 {
			continue
		}
		x := seen[m.Number]
		if x == nil {
			x = new(ranks)
			seen[m.Number] = x
		}
		x.n, x.bytes, x.came = x.n+1, max(x.bytes, m.Bytes), max(x.came, m.Start)
		if x.n == c.Size && x.bytes == c.Bytes && m.Number > c.Number && x.came >= t.ended {
			c.Comm, c.Number, c.Start = m.Comm, m.Number, x.came
		}
	}
}

// end adds the calls of a row to the trace.
func (t *simTrace) end(row *modelled) {
	if t == nil {
		return
	}
	for _, c := range row.calls {
		c.End = max(c.End, c.Start)
		t.free, t.ended = max(t.free, c.End), max(t.ended, c.End)
		t.whole.Calls = append(t.whole.Calls, c)
	}
}
