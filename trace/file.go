package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Trace is calls of any number of ranks and communicators, on one clock.
type Trace struct {
	Calls []Call
}

// Format is the format that a file names.
const Format = "ringo trace 1"

// Threads of a rank, see the package's documentation.
const (
	hostThread  = 1
	gpuThread   = 10001
	modelThread = 20001
)

func (c *Call) thread() int {
	switch {
	case c.Model:
		return modelThread + c.Track
	case c.GPU:
		return gpuThread + c.Track
	}
	return hostThread + c.Track
}

// A document is a file.
type document struct {
	Unit   string  `json:"displayTimeUnit"`
	Other  other   `json:"otherData"`
	Events []event `json:"traceEvents"`
}

type other struct {
	Format string `json:"format"`
	Start  string `json:"start"`
}

// An event is one of Chrome's trace events.
type event struct {
	Name     string      `json:"name"`
	Category string      `json:"cat,omitempty"`
	Phase    string      `json:"ph"`
	At       json.Number `json:"ts,omitempty"`
	Lasts    json.Number `json:"dur,omitempty"`
	Rank     int         `json:"pid"`
	Thread   int         `json:"tid"`
	Args     any         `json:"args,omitempty"`
}

type callArgs struct {
	Call   int    `json:"call"`
	Comm   string `json:"comm"`
	Rank   int    `json:"rank"`
	Size   int    `json:"size"`
	Host   string `json:"host,omitempty"`
	Number uint32 `json:"number"`
	Kind   string `json:"kind"`
	Algo   string `json:"algo"`
	Bytes  int    `json:"bytes"`
	Peer   int    `json:"peer"`
	Track  int    `json:"lane,omitempty"`
	GPU    bool   `json:"gpu,omitempty"`
	Model  bool   `json:"model,omitempty"`
	Lost   int    `json:"lost,omitempty"`
	Error  string `json:"error,omitempty"`
}

type spanArgs struct {
	Call  int   `json:"call"`
	Part  int32 `json:"part"`
	Round int32 `json:"round"`
	Step  int32 `json:"step"`
	Recv  int32 `json:"recv"`
	Send  int32 `json:"send"`
}

type nameArgs struct {
	Name string `json:"name"`
}

type sortArgs struct {
	Index int `json:"sort_index"`
}

// Write writes the Trace as a file, a line an event.
func (t *Trace) Write(w io.Writer) error {
	start := int64(math.MaxInt64)
	for i := range t.Calls {
		start = min(start, t.Calls[i].first())
	}
	if len(t.Calls) == 0 {
		start = 0
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":%q,\"start\":\"%d\"},\"traceEvents\":[",
		Format, start)
	x := writer{b: b, start: start, comma: "\n", named: map[[2]int]bool{}}
	pids := t.pids()
	for i := range t.Calls {
		c := &t.Calls[i]
		x.call(c, i, pids[member{c.Comm, c.Rank}])
	}
	b.WriteString("\n]}\n")
	return cmp.Or(x.failed, b.Flush())
}

// A writer writes the events of a file.
type writer struct {
	b      *bufio.Writer
	start  int64
	comma  string          // before the next event
	named  map[[2]int]bool // processes, as thread 0, and threads that have names
	failed error
}

func (x *writer) put(e event) {
	line, err := json.Marshal(&e)
	x.failed = errors.Join(x.failed, err)
	x.b.WriteString(x.comma)
	x.b.Write(line)
	x.comma = ",\n"
}

// call writes a call, number of the file, with the time of its queueing and its steps.
func (x *writer) call(c *Call, number, pid int) {
	thread := c.thread()
	x.name(c, pid, thread)
	span := func(name, category string, from, to int64, args any) event {
		return event{
			Name: name, Category: category, Phase: "X", At: micros(from - x.start), Lasts: micros(to - from),
			Rank: pid, Thread: thread, Args: args,
		}
	}
	args := callArgs{number, c.Comm, c.Rank, c.Size, c.Host, c.Number, c.Kind, c.Algo, c.Bytes, c.Peer, c.Track, c.GPU,
		c.Model, c.Lost, ""}
	if c.Err != nil {
		args.Error = c.Err.Error()
	}
	x.put(span(c.Title(), "call", c.Start, c.End, args))
	if c.Queued != 0 {
		x.name(c, pid, hostThread)
		q := span("queue "+c.Title(), "queue", c.Queued, c.Issued, spanArgs{Call: number, Step: -1, Recv: -1, Send: -1})
		q.Thread = hostThread
		x.put(q)
	}
	for j := range c.Steps {
		s := &c.Steps[j]
		x.put(span(s.Title(), s.What.String(), s.Start, s.End, spanArgs{number, s.Part, s.Round, s.Step, s.Recv, s.Send}))
	}
}

// name gives a process and its thread names, unless they have them.
func (x *writer) name(c *Call, pid, thread int) {
	if !x.named[[2]int{pid, 0}] {
		x.named[[2]int{pid, 0}] = true
		x.put(event{Name: "process_name", Phase: "M", Rank: pid, Args: nameArgs{c.title(pid)}})
		x.put(event{Name: "process_sort_index", Phase: "M", Rank: pid, Args: sortArgs{pid}})
	}
	if !x.named[[2]int{pid, thread}] {
		x.named[[2]int{pid, thread}] = true
		x.put(event{Name: "thread_name", Phase: "M", Rank: pid, Thread: thread, Args: nameArgs{threadName(thread)}})
		x.put(event{Name: "thread_sort_index", Phase: "M", Rank: pid, Thread: thread, Args: sortArgs{thread}})
	}
}

// first is when the call is first heard of.
func (c *Call) first() int64 {
	if c.Queued != 0 {
		return min(c.Queued, c.Start)
	}
	return c.Start
}

// Title names a call: "AllReduce #17 ring 4096 B".
func (c *Call) Title() string {
	number := ""
	if c.Number > 0 {
		number = fmt.Sprintf(" #%d", c.Number)
	}
	return fmt.Sprintf("%s%s %s %d B", c.Kind, number, c.Algo, c.Bytes)
}

// Title names a step or wait: "step 3 from 0 to 2", "wait for 0".
func (s *Span) Title() string {
	var b strings.Builder
	switch {
	case s.What == Step:
		fmt.Fprintf(&b, "step %d", s.Step)
		if s.Recv >= 0 {
			fmt.Fprintf(&b, " from %d", s.Recv)
		}
		if s.Send >= 0 {
			fmt.Fprintf(&b, " to %d", s.Send)
		}
	case s.What == Connect:
		fmt.Fprintf(&b, "connect %d", s.Peer())
	case s.Recv >= 0:
		fmt.Fprintf(&b, "wait for %d", s.Recv)
	default:
		fmt.Fprintf(&b, "wait for room at %d", s.Send)
	}
	return b.String()
}

// A member is a rank of a communicator.
type member struct {
	comm string
	rank int
}

// perComm is the distance of the pids of two communicators.
const perComm = 1 << 20

// pids gives each rank a number: in the first communicator the rank itself.
func (t *Trace) pids() map[member]int {
	comms, pids := map[string]int{}, map[member]int{}
	for i := range t.Calls {
		c := &t.Calls[i]
		if _, ok := comms[c.Comm]; !ok {
			comms[c.Comm] = len(comms)
		}
		pids[member{c.Comm, c.Rank}] = perComm*comms[c.Comm] + c.Rank
	}
	return pids
}

func (c *Call) title(pid int) string {
	name := fmt.Sprintf("rank %d", c.Rank)
	if pid >= perComm {
		name += " of " + c.Comm
	}
	if c.Host != "" {
		name += " on " + c.Host
	}
	return name
}

func threadName(thread int) string {
	name, lane := "host", thread-hostThread
	switch {
	case thread >= modelThread:
		name, lane = "model", thread-modelThread
	case thread >= gpuThread:
		name, lane = "GPU", thread-gpuThread
	}
	if lane > 0 {
		name += fmt.Sprintf(" lane %d", lane)
	}
	return name
}

// micros is ns as µs.
func micros(ns int64) json.Number {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000))
}

// Bounds on numbers that are read: ranks, and ns, some 70 years.
const (
	maxSize = 1 << 20
	maxTime = 1 << 61
)

// nanos is the inverse of micros.
func nanos(us json.Number) (int64, error) {
	whole, part, _ := strings.Cut(us.String(), ".")
	part = (part + "000")[:3]
	n, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil || n < -maxTime || n > maxTime {
		return 0, fmt.Errorf("%s is not a number of µs", us)
	}
	return n, nil
}

// categories are the values of cat in our events: each What, then the others.
var categories = []string{Step: Step.String(), Wait: Wait.String(), Connect: Connect.String(), Connect + 1: "queue",
	Connect + 2: "call"}

// Read reads a file that Write has written. Events of other programs are left out.
func Read(r io.Reader) (*Trace, error) {
	type raw struct {
		event
		Args json.RawMessage `json:"args"`
	}
	var doc struct {
		document
		Events []json.RawMessage `json:"traceEvents"`
	}
	if err := json.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if doc.Other.Format != Format {
		return nil, fmt.Errorf("trace: format is %q, want %q", doc.Other.Format, Format)
	}
	start, err := strconv.ParseInt(doc.Other.Start, 10, 64)
	if err != nil || start < -maxTime || start > maxTime {
		return nil, fmt.Errorf("trace: start is %q, want a Unix time in ns", doc.Other.Start)
	}
	t := &Trace{}
	for i, text := range doc.Events {
		var kind struct {
			Category string `json:"cat"`
			Phase    string `json:"ph"`
		}
		if json.Unmarshal(text, &kind) != nil || kind.Phase != "X" || !slices.Contains(categories, kind.Category) {
			// others may write what they like
			continue
		}
		var e raw
		err := json.Unmarshal(text, &e)
		if err == nil {
			err = t.add(e.event, e.Args, start)
		}
		if err != nil {
			return nil, fmt.Errorf("trace: event %d: %w", i, err)
		}
	}
	return t, nil
}

// add adds an event of phase X that Read has met.
func (t *Trace) add(e event, raw json.RawMessage, start int64) error {
	at, err := nanos(e.At)
	if err != nil {
		return err
	}
	lasts, err := nanos(e.Lasts)
	if err != nil {
		return err
	}
	if lasts < 0 {
		return fmt.Errorf("it lasts %s µs", e.Lasts)
	}
	from, to := start+at, start+at+lasts
	if e.Category == "call" {
		return t.addCall(raw, from, to)
	}
	what := slices.Index(categories[:Connect+1], e.Category)
	var a spanArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	if a.Call != len(t.Calls)-1 || a.Call < 0 {
		return fmt.Errorf("does not follow its call: %s", raw)
	}
	c := &t.Calls[a.Call]
	if a.Recv < -1 || a.Send < -1 || int(max(a.Recv, a.Send)) >= c.Size {
		return fmt.Errorf("a peer is no rank: %s", raw)
	}
	if what < 0 {
		c.Queued, c.Issued = from, to
		return nil
	}
	c.Steps = append(c.Steps, Span{from, to, What(what), a.Part, a.Round, a.Step, a.Recv, a.Send})
	return nil
}

// addCall adds a call that began at from and ended at to.
func (t *Trace) addCall(raw json.RawMessage, from, to int64) error {
	var a callArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	if a.Call != len(t.Calls) || a.Size < 1 || a.Size > maxSize || a.Rank < 0 || a.Rank >= a.Size || a.Peer < -1 ||
		a.Peer >= a.Size {
		return fmt.Errorf("not a call of ringo's: %s", raw)
	}
	c := Call{Comm: a.Comm, Rank: a.Rank, Size: a.Size, Host: a.Host, Track: a.Track, GPU: a.GPU, Model: a.Model,
		Number: a.Number, Kind: a.Kind, Algo: a.Algo, Bytes: a.Bytes, Peer: a.Peer, Start: from, End: to, Lost: a.Lost}
	if a.Error != "" {
		c.Err = errors.New(a.Error)
	}
	t.Calls = append(t.Calls, c)
	return nil
}
