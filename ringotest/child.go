package ringotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// A phone is a rank's connection to the process that has started it.
type phone struct {
	rank  int
	conn  net.Conn
	mu    sync.Mutex    // held while writing
	heard chan struct{} // a token for each answer to ask
}

// ask sends a message and waits for heard.
func (p *phone) ask(m message) {
	p.say(m)
	<-p.heard
}

func (p *phone) say(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.Rank = p.rank
	json.NewEncoder(p.conn).Encode(m) // a process that has gone needs to hear nothing
}

// sit makes this process the rank of its seat, and ends the process.
func (x *trial) sit(s *seats) {
	x.t.Helper()
	x.seed = s.Seed
	spec, ok, err := bootstrap.FromEnv(os.Getenv)
	if err != nil || !ok || spec.Rank >= x.size {
		x.t.Fatalf("ringotest: this process does not know its rank: %v", err)
	}
	conn, err := net.Dial("tcp", s.Control)
	if err != nil { // the test is over
		os.Exit(1)
	}
	p := &phone{rank: spec.Rank, conn: conn, heard: make(chan struct{})}
	p.say(message{Kind: hello, Token: s.Token, Pid: os.Getpid()})
	r := newRank(x, spec.Rank)
	x.ranks = []*Rank{r}
	r.phone = p
	mark := newMark()
	cfg := x.setup.config(x.cfg)
	cfg.Device, cfg.Devices = nil, nil
	err = mark.within(func() error {
		if x.faults {
			if err := r.wire(&cfg); err != nil {
				return err
			}
		}
		c, err := ringo.OpenEnv(context.Background(), cfg)
		if err == nil {
			r.adopt(c)
		}
		return err
	})
	if err != nil {
		x.t.Errorf("ringotest: rank %d: %v", r.rank, err)
		p.say(message{Kind: ended, Failed: true, Early: true})
		os.Exit(1)
	}
	p.say(message{Kind: open})
	go p.answer(r)
	mark.within(func() error {
		go r.run()
		return nil
	})
	<-r.ended
	p.say(message{Kind: played})
	if x.faults && !r.early { // messages of this rank may still be on their way through its relays
		r.Meet()
		r.wires.close()
	}
	for _, left := range x.leftovers(mark) {
		x.t.Errorf("ringotest: left by rank %d over %s: %s", r.rank, x.setup, left)
	}
	failed := x.t.Failed() || len(x.failed) > 0
	p.ask(message{Kind: ended, Failed: failed, Culprits: x.blames[r.rank], Early: r.early && failed,
		Skipped: x.t.Skipped()})
	if failed {
		os.Exit(1)
	}
	os.Exit(0)
}

// answer does what the home asks for.
func (p *phone) answer(r *Rank) {
	in := json.NewDecoder(p.conn)
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			os.Stderr.WriteString(fmt.Sprintln("ringotest: the test has ended before rank", p.rank))
			os.Exit(1)
		}
		switch m.Kind {
		case where:
			at := r.whereabouts()
			p.say(message{Kind: here, Whereabouts: &at})
		case heard:
			p.heard <- struct{}{}
		case abort:
			go r.comm.Abort(errors.New(m.Text))
		}
	}
}
