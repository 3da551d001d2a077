package bootstrap

import (
	"net"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// peers is what a member knows of ranks that have left.
type peers struct {
	gone     map[int]bool           // ranks that have said goodbye
	hosts    []int                  // ranks here whose process serves the hub
	departed []rendezvous.Departure // of hosts
	silent   []int                  // see Silent
	orphan   bool                   // all hosts left in order: the hub may end any time
}

// note notes another rank's goodbye.
func (p *peers) note(l *rendezvous.Gone) {
	p.gone[l.Rank] = true
	if i := slices.Index(p.hosts, l.Rank); i >= 0 {
		p.hosts = slices.Delete(p.hosts, i, i+1)
		p.departed = append(p.departed, rendezvous.Departure{Rank: l.Rank, Last: l.Last})
		p.orphan = len(p.hosts) == 0
	}
}

// shutdown is how far a member knows that all ranks have parted.
type shutdown struct {
	leave sync.Once
	stays bool          // this rank has left by Leave, and waits for the others
	stage int           // the last that all ranks have come to
	heard chan struct{} // closed and replaced when stage grows
}

// reach notes that all ranks have come to a stage.
func (s *shutdown) reach(stage int) {
	s.stage = max(s.stage, stage)
	close(s.heard)
	s.heard = make(chan struct{})
}

// A succession holds the means of a rank to go on without the hub.
type succession struct {
	successors []rendezvous.RankAddr
	port       net.Listener  // nil if this rank is no successor
	opt        JoinOptions   // for the group that goes on
	known      chan struct{} // closed when it is known why the connection to the hub has ended, as far as possible
	once       sync.Once
	hubDied    bool // the process that serves the hub has died
}

// tell says that it is known why the connection to the hub has ended.
func (s *succession) tell() { s.once.Do(func() { close(s.known) }) }
