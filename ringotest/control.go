package ringotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
)

// A message goes from a rank's process to the process that has started it, or back.
type message struct {
	Kind        kind
	Rank        int
	Pid         int           `json:",omitempty"`
	Token       string        `json:",omitempty"`
	Text        string        `json:",omitempty"`
	Whereabouts *whereabouts  `json:",omitempty"`
	For         time.Duration `json:",omitempty"`

	Failed, Early, Skipped bool  `json:",omitempty"` // of ended
	Culprits               []int `json:",omitempty"` // likewise
}

// A kind is what a message means.
type kind string

const (
	hello   kind = "hello"   // the process has come to its Run
	open    kind = "open"    // its communicator is open
	here    kind = "here"    // the answer to where
	played  kind = "played"  // the function has ended
	ended   kind = "ended"   // the process ends now, and how
	killed  kind = "killed"  // it kills itself now
	stalled kind = "stalled" // it is to be stopped for the time For
	meet    kind = "meet"    // it waits for the others
	where   kind = "where"   // where are you?
	abort   kind = "abort"   // the communicator is to be aborted
	heard   kind = "heard"   // the answer to a rank's message
)

// A home is the process that has started the ranks.
type home struct {
	trial    *trial
	listener net.Listener
	token    string
	work     sync.WaitGroup

	mu      sync.Mutex
	guests  map[int]*guest        // guarded by mu, as the rest
	gone    map[int]*launch.Error // ranks whose processes have ended, and how
	located map[int]whereabouts
	asked   chan struct{} // a token after an answer to where
	opened  chan struct{} // a token for each rank whose communicator is open
	early   bool          // a rank did not come to its end
	skipped bool
}

// A guest is a rank's process.
type guest struct {
	conn   net.Conn
	pid    int
	end    *message // its ended, nil before
	killed bool     // it has sent killed, or is killed for being late
	played bool     // it has sent played
}

func newHome(x *trial) (*home, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &home{
		trial: x, listener: l, token: newToken(),
		guests: map[int]*guest{}, gone: map[int]*launch.Error{}, located: map[int]whereabouts{},
		asked: make(chan struct{}, 1), opened: make(chan struct{}, x.size),
	}
	h.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.work.Go(func() { h.serve(c) })
		}
	})
	return h, nil
}

// close ends all connections.
func (h *home) close() {
	h.listener.Close()
	h.mu.Lock()
	for _, g := range h.guests {
		g.conn.Close()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// helloTime is how long a new connection may take to send its hello.
const helloTime = 10 * time.Second

// serve hears one process until it ends.
func (h *home) serve(c net.Conn) {
	defer c.Close()
	in := json.NewDecoder(c)
	c.SetReadDeadline(time.Now().Add(helloTime))
	var m message
	if err := in.Decode(&m); err != nil || m.Kind != hello || m.Token != h.token || m.Rank < 0 || m.Rank >= h.trial.size {
		return
	}
	c.SetReadDeadline(time.Time{})
	g := &guest{conn: c, pid: m.Pid}
	h.mu.Lock()
	h.guests[m.Rank] = g
	h.mu.Unlock()
	for {
		m := message{}
		if err := in.Decode(&m); err != nil {
			return
		}
		h.hear(g, &m)
	}
}

func (h *home) hear(g *guest, m *message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.Kind {
	case here:
		if m.Whereabouts != nil {
			h.located[m.Rank] = *m.Whereabouts
			h.trial.saw(m.Rank, m.Whereabouts.Stack)
			select {
			case h.asked <- struct{}{}:
			default: // there are enough
			}
		}
	case killed:
		g.killed = true
		g.say(message{Kind: heard})
	case stalled:
		h.work.Go(func() { h.stall(m.Rank, g, m.For) })
	case played:
		g.played = true
	case meet:
		h.trial.meeting.come(func() { g.say(message{Kind: heard}) })
	case open:
		h.opened <- struct{}{}
	case ended:
		g.end = m
		if m.Failed {
			h.trial.fail(m.Rank, m.Culprits)
			for _, c := range m.Culprits {
				if g := h.guests[c]; g != nil && g.end == nil {
					g.say(message{Kind: where})
				}
			}
		}
		g.say(message{Kind: heard})
	}
}

// startTime is how long processes may take to come to their Run. From then on Config.JoinTimeout counts.
const startTime = 2 * time.Minute

// gather waits, for startTime at most, until the communicators of all ranks are open. It returns true and sets *err if
// the processes have ended instead.
func (h *home) gather(over <-chan error, err *error) bool {
	late := time.After(startTime)
	for range h.trial.size {
		select {
		case <-h.opened:
		case *err = <-over:
			return true
		case <-late:
			return false
		}
	}
	return false
}

// left notes how a process has ended.
func (h *home) left(rank int, err *launch.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[rank] = err
	h.trial.meeting.leave()
	if g := h.guests[rank]; err != nil && (g == nil || g.end == nil && !g.killed) {
		h.trial.fail(rank, nil)
	}
}

// stall stops a process for d, or until all others have ended.
func (h *home) stall(rank int, g *guest, d time.Duration) {
	stop(g.pid)
	defer g.say(message{Kind: heard})
	defer wake(g.pid)
	for since := time.Now(); d <= 0 || time.Since(since) < d; time.Sleep(lookTime) {
		h.mu.Lock()
		_, gone := h.gone[rank]
		over := gone || d <= 0 && h.alone(rank)
		h.mu.Unlock()
		if over {
			return
		}
	}
}

// alone reports whether the functions of all other ranks have ended. The caller holds mu.
func (h *home) alone(rank int) bool {
	for r := range h.trial.size {
		g := h.guests[r]
		if _, gone := h.gone[r]; r != rank && !gone && (g == nil || !g.played) {
			return false
		}
	}
	return true
}

const lookTime = 10 * time.Millisecond

func (g *guest) say(m message) {
	g.conn.SetWriteDeadline(time.Now().Add(time.Second))
	json.NewEncoder(g.conn).Encode(m) // a process that has gone needs to hear nothing
}

// say sends a message to all processes that are here.
func (h *home) say(m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for rank, g := range h.guests {
		if _, gone := h.gone[rank]; !gone {
			g.say(m)
		}
	}
}

// answerTime is how long processes may take to say where they are.
const answerTime = 2 * time.Second

// where asks all processes that are here where they are.
func (h *home) where() map[int]whereabouts {
	h.mu.Lock()
	clear(h.located)
	h.mu.Unlock()
	h.say(message{Kind: where})
	for late := time.After(answerTime); ; {
		h.mu.Lock()
		all := maps.Clone(h.located)
		h.mu.Unlock()
		if !slices.ContainsFunc(h.behind(), func(r int) bool { _, ok := all[r]; return !ok }) {
			return all
		}
		select {
		case <-h.asked:
		case <-late:
			return all
		}
	}
}

// behind are the ranks whose processes have not ended.
func (h *home) behind() (list []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.trial.size {
		if _, gone := h.gone[r]; !gone {
			list = append(list, r)
		}
	}
	return list
}

// kill kills the processes that have not ended.
func (h *home) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for rank, g := range h.guests {
		if _, gone := h.gone[rank]; !gone {
			g.killed, h.early = true, true
			if p, err := os.FindProcess(g.pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

// verdicts fails the test for all processes that have not ended well. All have ended.
func (h *home) verdicts() {
	t := h.trial.t
	t.Helper()
	h.listener.Close()
	h.work.Wait() // until all their messages have been heard
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.trial.size {
		g, err, why := h.guests[r], h.gone[r], ""
		switch {
		case g == nil && err == nil:
			why = "ended without coming to this Run: does what the test does before depend on the process?"
		case g == nil:
			why = fmt.Sprintf("ended before it came to this Run: %v", err)
		case g.killed:
			continue
		case g.end == nil:
			why = fmt.Sprintf("ended before its function did: %v", err)
		case g.end.Failed:
			h.early = h.early || g.end.Early
			continue
		case err != nil:
			why = fmt.Sprintf("ended badly after its function: %v", err)
		default:
			h.skipped = h.skipped || g.end.Skipped
			h.trial.saw(r, "")
			continue
		}
		h.trial.fail(r, nil)
		h.early = true
		t.Errorf("ringotest: rank %d of %d over %s, seed %d: its process %s", r, h.trial.size, h.trial.setup,
			h.trial.seed, why)
	}
}
