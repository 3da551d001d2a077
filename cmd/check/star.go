package check

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A star connects the ranks of a job: rank 0, the hub, has a connection to each other rank.
type star interface {
	// gather is job.Gather. Lost in its answer has the ranks newly lost; some may have been in an earlier answer.
	gather(ctx context.Context, seq int, data []byte) (message, error)
	// outlast returns when rank 0 has ended, or when done is closed.
	outlast(done <-chan struct{})
	close() error
}

// A message goes from a rank to the hub, or back as the answer.
type message struct {
	Seq  int
	Data []byte `json:",omitempty"` // of a rank
	// Of the hub:
	Parts    [][]byte      `json:",omitempty"` // by rank, nil if none came; nil if only rank 0 gets them
	Lost     []loss        `json:",omitempty"`
	Ended    bool          `json:",omitempty"` // rank 0 has ended the stage
	Excluded bool          `json:",omitempty"` // the receiver is one of the lost
	Left     time.Duration `json:",omitempty"` // at the end of a stage: the time left for further stages
}

// answerTime bounds how long an answer may take to be sent, and how long after the end of
// its own context a rank waits for it: rank 0's context ends about then too.
const answerTime = 8 * time.Second

// A wire is one end of a connection between the hub and another rank.
type wire struct {
	net.Conn
	enc    *json.Encoder
	in     chan *message // what has come; closed when no more comes
	end    error         // why no more comes, once in is closed
	heard  atomic.Int64  // when bytes have come last
	reader sync.WaitGroup
}

// mostAhead is the most gathers of a stage that may be held without a late rank, which later gets all their answers at
// once and then takes part in them.
const mostAhead = 1024

// errNothing is the error of a take to which nothing has come in time.
var errNothing = errors.New("check: nothing has come")

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, enc: json.NewEncoder(conn), in: make(chan *message, mostAhead)}
	w.reader.Go(func() {
		defer close(w.in)
		for dec := json.NewDecoder(w); ; {
			m := new(message)
			if w.end = dec.Decode(m); w.end == nil && len(w.in) == mostAhead {
				w.end = errors.New("it says more than it should")
			}
			if w.end != nil {
				return
			}
			w.in <- m
		}
	})
	return w
}

// Read notes when bytes come.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.heard.Store(time.Now().UnixNano())
	return n, err
}

// take waits for the next message. The error is errNothing once done is closed, or the reason why no more messages
// come. A message that has come is returned before either.
func (w *wire) take(done <-chan struct{}) (*message, error) {
	m, more := (*message)(nil), false
	select {
	case m, more = <-w.in:
	default:
		select {
		case m, more = <-w.in:
		case <-done:
			return nil, errNothing
		}
	}
	if !more {
		return nil, w.end
	}
	return m, nil
}

func (w *wire) say(m message) error {
	_ = w.SetWriteDeadline(time.Now().Add(answerTime))
	return w.enc.Encode(m)
}

func (w *wire) close() error {
	err := w.Close()
	w.reader.Wait()
	return err
}

// A spoke is the hub's wire to a rank.
type spoke struct {
	*wire
	next *message // that has come before its gather
	late int      // the stage in which the rank missed a gather: the stage's other gathers do not wait for it
}

// A hub is rank 0's star.
type hub struct {
	spokes []*spoke // by rank; nil for its own and the lost
	size   int
	first  int       // its own rank
	missed []loss    // ranks that have not connected: the others learn of them at the first gather
	out    []*spoke  // of lost ranks, which wait for their end: see ray.outlast
	end    time.Time // of all stages; zero is never
}

func newHub(size, first int, conns map[int]net.Conn) *hub {
	h := &hub{size: size, first: first, spokes: make([]*spoke, size)}
	for rank, conn := range conns {
		h.spokes[rank] = &spoke{wire: newWire(conn)}
	}
	return h
}

// aliveTime is how long ago a rank that lives was heard, though its report has not come: packets may be lost.
const aliveTime = 4 * time.Second

func (h *hub) gather(ctx context.Context, seq int, data []byte) (message, error) {
	parts := make([][]byte, h.size)
	parts[h.first] = data
	lost := h.missed
	h.missed = nil
	lose := func(rank int, l loss) {
		l.Rank = rank
		lost = append(lost, l)
		h.drop(rank)
	}
	var silent []int
	for rank, s := range h.spokes {
		if s == nil {
			continue
		}
		switch part, loss := s.part(ctx, seq); {
		case loss == nil:
			parts[rank] = part
		case !loss.Stopped:
			lose(rank, *loss)
		case isLast(seq):
			silent = append(silent, rank)
		default:
			s.late = stageOf(seq)
		}
	}
	h.nudge(silent)
	for _, rank := range silent {
		if part, loss := h.spokes[rank].part(ctx, seq); loss == nil {
			parts[rank] = part
		} else {
			lose(rank, *h.spokes[rank].examined(loss))
		}
	}
	a := message{Seq: seq, Lost: lost, Left: forever}
	if !h.end.IsZero() {
		a.Left = time.Until(h.end)
	}
	if !isQuiet(seq) {
		a.Parts = parts
	}
	var wg sync.WaitGroup
	for _, s := range h.spokes {
		if s != nil && s.next == nil {
			wg.Go(func() {
				if s.say(a) != nil { // the others learn of the loss at the next gather
					s.Close()
				}
			})
		}
	}
	wg.Wait()
	a.Parts = parts
	return a, nil
}

// nudgeTime is how long the kernels of silent ranks' hosts may take to acknowledge a message: it is sent three times.
const nudgeTime = time.Second

// nudge sends ranks a message that says nothing, and waits.
func (h *hub) nudge(ranks []int) {
	for _, rank := range ranks {
		s := h.spokes[rank]
		_ = s.SetWriteDeadline(time.Now().Add(nudgeTime))
		_ = s.enc.Encode(message{})
	}
	if len(ranks) > 0 {
		time.Sleep(nudgeTime)
	}
}

// examined is the loss of a silent rank that has been nudged. The kernel of a stopped process acknowledges messages; a
// host that is cut off does not.
func (s *spoke) examined(l *loss) *loss {
	if !l.Stopped {
		return l
	}
	if time.Since(time.Unix(0, s.heard.Load())) < aliveTime {
		return &loss{Late: true, Why: "it lives, and its report has not come in time"}
	}
	switch known, answers := acknowledges(s.Conn, nudgeTime); {
	case known && answers:
		l.Why = "its host answers, and the process says nothing"
	case known:
		*l = loss{Cut: true, Why: "its host does not answer the first one any more"}
	}
	return l
}

// part waits for what the rank says in a gather: nil if it has ended the stage.
func (s *spoke) part(ctx context.Context, seq int) ([]byte, *loss) {
	if s.late == stageOf(seq) && !isLast(seq) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	for {
		m, loss := s.receive(ctx)
		switch {
		case loss != nil:
			return nil, loss
		case m.Seq == seq:
			return append([]byte{}, m.Data...), nil
		case m.Seq > seq:
			s.next = m
			return nil, nil
		}
		// It is at a gather of this stage that rank 0 did not come to.
		if s.say(message{Seq: m.Seq, Ended: true}) != nil {
			s.Close()
		}
	}
}

// receive is the rank's next message. A message that has come is returned even if the context has ended.
func (s *spoke) receive(ctx context.Context) (*message, *loss) {
	if m := s.next; m != nil {
		s.next = nil
		return m, nil
	}
	switch m, err := s.take(ctx.Done()); err {
	case nil:
		return m, nil
	case errNothing:
		return nil, &loss{Stopped: true, Why: "it says nothing"}
	default:
		return nil, &loss{Why: howEnded(err)}
	}
}

// drop tells a rank that it is out of the job, without waiting until the rank reads that.
func (h *hub) drop(rank int) {
	s := h.spokes[rank]
	h.spokes[rank] = nil
	_ = s.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if s.enc.Encode(message{Excluded: true}) != nil {
		s.Close()
	}
	h.out = append(h.out, s)
}

func (h *hub) close() error {
	for _, s := range append(h.spokes, h.out...) {
		if s != nil {
			_ = s.close()
		}
	}
	return nil
}

func (h *hub) outlast(<-chan struct{}) {}

func howEnded(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return "its process has ended"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "its host does not take what is sent to it"
	}
	return fmt.Sprintf("its connection broke (%v)", err)
}

// A ray is another rank's star.
type ray struct {
	*wire
	hub, me component
}

func newRay(conn net.Conn, hub, me component) *ray { return &ray{newWire(conn), hub, me} }

func (r *ray) gather(ctx context.Context, seq int, data []byte) (message, error) {
	if err := r.say(message{Seq: seq, Data: data}); err != nil {
		r.Close()
		for { // its last word may have come before
			a, end := r.take(nil)
			if end != nil {
				return message{}, r.gone(err)
			}
			if a.Excluded {
				return message{}, r.excluded()
			}
		}
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(answerTime, func() { close(late) })
	})()
	for {
		a, err := r.take(late)
		switch {
		case err == errNothing:
			return message{}, &absentError{Who: r.hub,
				Why: fmt.Sprintf("it leads the check, and says nothing for %v after the end of the stage: is its process stopped?",
					answerTime)}
		case err != nil:
			return message{}, r.gone(err)
		case a.Excluded:
			return message{}, r.excluded()
		case a.Seq == seq && a.Ended:
			return message{Lost: a.Lost}, fmt.Errorf("check: %v has ended this stage", r.hub)
		case a.Seq == seq:
			return *a, nil
		}
	}
}

func (r *ray) outlast(done <-chan struct{}) {
	for {
		if _, err := r.take(done); err != nil {
			return
		}
	}
}

func (r *ray) excluded() error {
	return &absentError{Who: r.me,
		Why: "the others have taken it for lost, for it said nothing in time: was its process stopped?"}
}

func (r *ray) gone(err error) error {
	return &absentError{Who: r.hub,
		Why: fmt.Sprintf("it leads the check, and is gone: %s; look into its output and its host's kernel log",
			howEnded(err))}
}

// local are jobs of ranks in this process, for tests: hosts names the host of each rank. Without
// hosts it is one rank on this machine.
func local(hosts ...string) []*job {
	if len(hosts) == 0 {
		name, _ := os.Hostname()
		hosts = []string{name}
	}
	key := make([]byte, 32)
	rand.Read(key)
	members := make([]member, len(hosts))
	for r, h := range hosts {
		members[r] = member{Rank: r, Host: h, ID: fmt.Sprint("local ", h)}
	}
	jobs := make([]*job, len(hosts))
	conns := map[int]net.Conn{}
	for r := range hosts {
		jobs[r] = newJob(r, members, key)
		if r > 0 {
			near, far := net.Pipe()
			conns[r] = near
			jobs[r].star = newRay(far, jobs[r].component(0), jobs[r].component(r))
		}
	}
	jobs[0].star = newHub(len(hosts), 0, conns)
	return jobs
}

// alone is the job of this process, for a check of one host.
func alone() *job { return local()[0] }
