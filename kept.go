package ringo

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

// A lineage is of which communicators one was made, for its history: numbers of ranks differ from one to the next.
type lineage struct {
	after  string // that had failed, and that Shrink has replaced by this one
	origin string // the first, "" of the first
	size   int    // its ranks
	rank   int    // this rank's number there
	name   string // Config.Name of the communicator of which this one was made
}

// line is the lineage of communicators that are made of this one.
func (c *Comm) line() lineage {
	l := c.cfg.made
	if l.after, l.name = "", c.cfg.Name; l.origin == "" {
		l.origin, l.size, l.rank = c.life.ID(), c.Size(), c.Rank()
	}
	return l
}

// ownName is Config.Name, unless that is only taken over from the communicator of which this one was made.
func (c *Comm) ownName() string {
	if c.cfg.made.origin != "" && c.cfg.Name == c.cfg.made.name {
		return ""
	}
	return c.cfg.Name
}

// calledName is the name in errors: one that was made of another, and has no name of its own, has the ID that
// "ringo why" prints.
func (c *Comm) calledName(id string) string {
	switch name := c.ownName(); {
	case name != "" || c.cfg.made.origin == "":
		return name
	case c.cfg.Name != "":
		return fmt.Sprintf("%s (communicator %s)", c.cfg.Name, id)
	}
	return "communicator " + id
}

// longWait is how long a call waits before other communicators' histories tell of it.
const longWait = time.Second

// record is what this rank knows of its communicator, with its place among others.
func (c *Comm) record() HistoryRecord {
	r := c.life.Record()
	l := c.cfg.made
	r.Name, r.After, r.Origin, r.OriginSize = c.ownName(), l.after, l.origin, l.size
	if c.net != nil {
		for _, p := range c.net.Profiles {
			m := history.Member{Host: p.Hostname, Pid: p.Pid, Number: -1}
			if p.Origin == r.Origin && r.Origin != "" {
				m.Number = p.Number
			}
			r.Members = append(r.Members, m)
		}
	}
	for _, other := range keeping.others(c) {
		if o, mine := other.line(), c.line(); (o.origin == mine.origin && o.rank == mine.rank) && !other.closed.Load() &&
			other.life.Guard.Waited() >= longWait {
			r.Beside = append(r.Beside, other.life.ID())
		}
	}
	return r
}

// keeping are the communicators of this process that write histories. One that fails has the others write theirs too:
// its program may end on the error, and where this process was in the others is part of the answer.
var keeping keepers

type keepers struct {
	mu  sync.Mutex
	all map[*Comm]*keeper
}

// A keeper writes the history of one rank.
type keeper struct {
	mu sync.Mutex // a record that was made earlier must not replace a later one
	c  *Comm
	at time.Time // guarded by mu; when it was written last
}

// others are the communicators beside c, not other ranks of the same one.
func (k *keepers) others(c *Comm) (list []*Comm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other := range k.all {
		if other != c && other.life.ID() != c.life.ID() {
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *Comm) int { return a.Rank() - b.Rank() })
	return list
}

func (k *keepers) add(c *Comm) *keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[*Comm]*keeper{}
	}
	k.all[c] = &keeper{c: c}
	return k.all[c]
}

func (k *keepers) drop(c *Comm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, c)
}

func (k *keepers) of(c *Comm) *keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[c]
}

// write writes the record, unless it was written after since.
func (k *keeper) write(since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !since.IsZero() && k.at.After(since) {
		return
	}
	k.at = time.Now()
	r := k.c.record()
	if file, err := r.Write(k.c.cfg.History); err != nil {
		k.c.log.Warn("history not written", "subsys", "CALL", "err", err)
	} else {
		k.c.log.Info("history written", "subsys", "CALL", "file", file)
	}
}

// keepHistory arranges that the last calls are written to the place that the Config names.
func keepHistory(c *Comm) (err error) {
	c.quiet = func() {}
	if c.cfg.History == "" {
		return nil
	}
	own := keeping.add(c)
	c.quiet = func() { keeping.drop(c) }
	write := func() { own.write(time.Time{}) }
	c.life.OnEnd(func() {
		write()
		since := time.Now().Add(-longWait) // of many that fail at once each need not write all
		for _, other := range keeping.others(c) {
			if k := keeping.of(other); k != nil { // one that has failed too may be writing just now: this waits for it
				k.write(since)
			}
		}
	})
	if c.cfg.HistorySignal != "" {
		stop, err := history.OnSignal(c.cfg.HistorySignal, write)
		if err != nil {
			return fmt.Errorf("%w: %w (RINGO_HISTORY_SIGNAL)", ErrInvalid, err)
		}
		c.quiet = func() { stop(); keeping.drop(c) }
	}
	return nil
}
