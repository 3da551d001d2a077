package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace"
)

// carryOut tells an Observer of a call as a communicator does: two steps, of which each waits once.
func carryOut(o trace.Observer, c *trace.Call, number uint32) {
	c.Reset()
	c.Number, c.Kind, c.Algo, c.Bytes = number, "AllReduce", "ring", 4096
	o.Begin(c)
	c.Run()
	for i := range 2 {
		c.Enter(0, i, 1, 1)
		c.WaitedRecv(1, c.Clock())
		c.Leave()
	}
	c.WaitedSend(1, c.Clock()) // until lent memory is free
	c.End = trace.Now()
	o.End(c)
}

func newCall(rank int) *trace.Call {
	return &trace.Call{Comm: "c0ffee00", Rank: rank, Size: 2, Host: "a", Waits: make([]time.Duration, 2)}
}

func TestRecorderKeepsTheLastCalls(t *testing.T) {
	r := trace.NewRecorder(4, 100)
	a, b := newCall(0), newCall(1)
	for n := range uint32(11) {
		carryOut(r, a, n+1)
		carryOut(r, b, n+1)
	}
	got := r.Trace()
	of := map[int][]uint32{}
	for _, c := range got.Calls {
		of[c.Rank] = append(of[c.Rank], c.Number)
		require.Len(t, c.Steps, 5)
		require.Equal(t, []trace.What{trace.Step, trace.Wait, trace.Step, trace.Wait, trace.Wait},
			[]trace.What{c.Steps[0].What, c.Steps[1].What, c.Steps[2].What, c.Steps[3].What, c.Steps[4].What})
		for i, s := range c.Steps {
			require.LessOrEqual(t, c.Start, s.Start)
			require.LessOrEqual(t, s.Start, s.End)
			require.LessOrEqual(t, s.End, c.End)
			require.Equal(t, []int32{0, 0, 1, 1, -1}[i], s.Step)
		}
	}
	require.Equal(t, []uint32{5, 6, 7, 8, 9, 10, 11}, of[0])
	require.Equal(t, of[0], of[1])
	r.Forget()
	require.Empty(t, r.Trace().Calls)
}

// A call with more Spans than there is room for loses the last ones, and its steps end.
func TestRecorderIsBounded(t *testing.T) {
	r, c := trace.NewRecorder(100, 3), newCall(0)
	for n := range uint32(9) {
		carryOut(r, c, n+1)
	}
	calls := r.Trace().Calls
	require.NotEmpty(t, calls)
	spans := 0
	for _, c := range calls {
		require.Equal(t, 5, len(c.Steps)+c.Lost)
		require.GreaterOrEqual(t, len(c.Steps), 3)
		spans += len(c.Steps)
	}
	require.LessOrEqual(t, spans, 12)
}

func TestRecordingAllocatesNothing(t *testing.T) {
	r, c := trace.NewRecorder(8, 16), newCall(0)
	carryOut(r, c, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { carryOut(r, c, 1) }))
}

func TestNobodyObserves(t *testing.T) {
	var c *trace.Call
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Run()
		c.Enter(0, 0, 1, 1)
		c.WaitedRecv(1, c.Clock())
		c.WaitedSend(1, c.Clock())
		c.Connected(1, -1, c.Clock())
		c.Leave()
	}))
	require.Zero(t, c.Clock())
}

// example is calls of two ranks, with everything that a file can have.
func example() *trace.Trace {
	const t0 = 1_800_000_000_000_000_000
	call := func(rank int, number uint32, from, to int64) trace.Call {
		return trace.Call{Comm: "c0ffee00", Rank: rank, Size: 2, Host: "a", Number: number, Kind: "AllReduce", Algo: "ring",
			Bytes: 4096, Peer: -1, Start: t0 + from, End: t0 + to}
	}
	a, b, c, d, e := call(0, 1, 0, 9_001), call(1, 1, 4_000, 9_500), call(0, 2, 30_000, 40_000),
		call(1, 0, 50_000, 51_000), call(0, 1, 0, 8_000)
	a.Steps = []trace.Span{
		{Start: t0 + 10, End: t0 + 8_999, What: trace.Step, Recv: 1, Send: 1},
		{Start: t0 + 20, End: t0 + 4_100, What: trace.Wait, Recv: 1, Send: -1},
		{Start: t0 + 4_200, End: t0 + 4_300, What: trace.Connect, Recv: -1, Send: 1},
		{Start: t0 + 9_000, End: t0 + 9_001, What: trace.Wait, Part: 1, Round: 3, Step: -1, Recv: -1, Send: 1},
	}
	a.Lost = 7
	c.GPU, c.Queued, c.Issued = true, t0+20_000, t0+22_000
	d.Kind, d.Peer, d.Track, d.Err = "Send", 0, 2, errors.New("send to rank 0: a peer has failed")
	e.Model = true
	return &trace.Trace{Calls: []trace.Call{a, b, c, d, e}}
}

func TestWriteAndRead(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Write(&b))
	want, err := os.ReadFile("testdata/example.json")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "the format has changed")
	var doc map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	got, err := trace.Read(&b)
	require.NoError(t, err)
	require.EqualExportedValues(t, *example(), *got)
}

func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Write(&b))
	good := b.String()
	for old, bad := range map[string]string{
		`"ringo trace 1"`:  `"ringo trace 2"`,
		`"start":"18`:      `"start":"x8`,
		`"start":"180`:     `"start":"9180`,
		`"dur":8.989`:      `"dur":-8.989`,
		`"size":2,"host"`:  `"size":2000000000,"host"`,
		`"ts":0.010`:       `"ts":1e99`,
		`"call":1,"comm"`:  `"call":3,"comm"`,
		`"rank":1,"size":`: `"rank":2,"size":`,
		`"recv":1,"send":`: `"recv":2,"send":`,
		`{"call":0,"part"`: `{"call":1,"part"`,
	} {
		require.Contains(t, good, old)
		_, err := trace.Read(strings.NewReader(strings.Replace(good, old, bad, 1)))
		require.ErrorContains(t, err, "trace: ", bad)
	}
	_, err := trace.Read(strings.NewReader("{"))
	require.Error(t, err)
}

func TestCheck(t *testing.T) {
	require.NoError(t, example().Check())
	for _, spoil := range []func(c *trace.Call){
		func(c *trace.Call) { c.End = c.Start - 1 },
		func(c *trace.Call) { c.Steps[0].Start = c.Start - 1 },
		func(c *trace.Call) { c.Steps[1].End = c.Steps[2].Start + 1 },
		func(c *trace.Call) { c.Steps[2].End = c.Steps[0].End + 1 },
		func(c *trace.Call) { c.Steps[2].Round = 1 },
		func(c *trace.Call) { c.Steps[3].Start = c.Steps[0].End - 1 },
		func(c *trace.Call) { c.Steps[3].What = trace.Step; c.Steps[3].Start = c.Steps[0].End - 1 },
		func(c *trace.Call) { c.Steps = c.Steps[1:] },
	} {
		x := example()
		spoil(&x.Calls[0])
		require.Error(t, x.Check())
	}
	x := example()
	x.Calls = append(x.Calls, x.Calls[0])
	require.ErrorContains(t, x.Check(), "begins before")
}

func TestArrivals(t *testing.T) {
	a := example().Arrivals("c0ffee00")
	require.Equal(t, trace.Arrivals{Calls: 1, Last: []int{0, 1}, Late: []time.Duration{0, 4 * time.Microsecond}}, a)
	require.Equal(t, "rank 1 came last to 100 % of 1 calls, 4µs after the first", a.String())
	late := example().Of("c0ffee00", 0)
	late.Shift(func(at int64) int64 { return at + 5_000 })
	late.Calls = append(late.Calls, example().Of("c0ffee00", 1).Calls...)
	require.Equal(t, []int{1, 0}, late.Arrivals("c0ffee00").Last)
	require.Equal(t, "no call is known of all ranks", example().Arrivals("other").String())
}

func ExampleRecorder() {
	r := trace.NewRecorder(0, 0) // ringo.Config{Observer: r} has a communicator do what follows
	c := &trace.Call{Comm: "c0ffee00", Rank: 0, Size: 2, Waits: make([]time.Duration, 2)}
	carryOut(r, c, 17)
	for _, c := range r.Trace().Calls {
		fmt.Println(c.Title())
		for _, s := range c.Steps {
			fmt.Println(" ", s.Title())
		}
	}
	// Output:
	// AllReduce #17 ring 4096 B
	//   step 0 from 1 to 1
	//   wait for 1
	//   step 1 from 1 to 1
	//   wait for 1
	//   wait for room at 1
}

// Other programs may add events of their own to a file, in whatever shape.
func TestReadOthers(t *testing.T) {
	r := trace.NewRecorder(4, 100)
	carryOut(r, newCall(0), 1)
	var own bytes.Buffer
	require.NoError(t, r.Trace().Write(&own))
	text := strings.Replace(own.String(), `"traceEvents":[`,
		`"traceEvents":[{"ph":"X","cat":"kernel","ts":1.5e3,"dur":"long","pid":"a"},{"ph":"X","cat":7,"ts":0},`, 1)
	require.NotEqual(t, own.String(), text)
	got, err := trace.Read(strings.NewReader(text))
	require.NoError(t, err)
	require.Len(t, got.Calls, 1)
}
