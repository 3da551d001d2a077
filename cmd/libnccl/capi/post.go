package capi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// A post carries one-sided messages on host memory. It has a communicator for each pair of ranks and
// direction, and for each peer a goroutine that stores the peer's messages in the windows. So the receiving program
// takes no part, and need not be in a call.
type post struct {
	ring *ringo.Comm
	rank int
	out  []*channel // by rank, nil to itself
	in   []*ringo.Comm

	mu      sync.Mutex
	changed *sync.Cond   // with mu
	windows []mem.Region // guarded by mu; by number, empty after Deregister
	came    []int        // guarded by mu; by rank: signals that arrived and were not waited for
	errs    []error      // guarded by mu; by rank: why no more signals come
}

// A channel leads to a peer.
type channel struct {
	mu   sync.Mutex // held while a letter and its data are sent, so that nothing comes between
	comm *ringo.Comm
}

// A letter is sent before the data of a put. window is -1 for a signal without data; the length goodbye ends the
// channel.
type letter struct{ window, offset, bytes int64 }

const goodbye = -1

// channelTime is the timeout of a channel's operations: a peer may send nothing for as long as it lives.
const channelTime = 100 * 365 * 24 * time.Hour

// openPost connects all pairs. All ranks call it together. In round k of n, two ranks are a pair if their
// numbers add up to k, modulo n.
func openPost(ctx context.Context, ring *ringo.Comm, cfg ringo.Config) (_ *post, err error) {
	n, rank := ring.Size(), ring.Rank()
	p := &post{ring: ring, rank: rank, out: make([]*channel, n), in: make([]*ringo.Comm, n), came: make([]int, n),
		errs: make([]error, n)}
	p.changed = sync.NewCond(&p.mu)
	cfg.Timeout = channelTime
	for k := range n {
		peer := (k - rank + n) % n
		color := min(rank, peer)
		if peer == rank {
			color = ringo.NoColor
		}
		for way := range 2 { // the lower rank's way, then the higher one's
			pair, err := ring.SplitWith(ctx, color, rank, cfg)
			if err != nil {
				p.close(err, true)
				for _, c := range p.in { // no goroutine has begun that would close it
					if c != nil {
						c.Close()
					}
				}
				return nil, err
			}
			switch {
			case peer == rank:
			case (rank < peer) == (way == 0):
				p.out[peer] = &channel{comm: pair}
			default:
				p.in[peer] = pair
			}
		}
	}
	for peer, c := range p.in {
		if c != nil {
			go p.receive(peer, c)
		}
	}
	return p, nil
}

// add gives memory the next number, the same on all ranks.
func (p *post) add(r mem.Region) (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.windows = append(p.windows, r)
	return len(p.windows) - 1
}

// remove ends a window: data that are still put into it are thrown away.
func (p *post) remove(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.windows[number] = mem.Region{}
}

// put sends local memory, and a signal.
func (p *post) put(w *window, offset int, local mem.Region, peer int) error {
	l := [1]letter{{window: -1, offset: int64(offset), bytes: int64(local.Len())}}
	if w != nil {
		l[0].window = int64(w.number)
	}
	if peer == p.rank {
		copy(p.destination(l[0]).Bytes(), local.Bytes())
		p.arrived(peer)
		return nil
	}
	if err := p.out[peer].send(l, local); err != nil {
		return fmt.Errorf("one-sided message to rank %d: %w", peer, err)
	}
	return nil
}

// send sends a letter and the data after it.
func (l *channel) send(what [1]letter, data mem.Region) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	head, there := mem.Of(what[:]), 1-l.comm.Rank()
	err := l.comm.Do(&ringo.Call{Kind: ringo.KindSend, In: head, Count: head.Len(), Type: ringo.Uint8, Peer: there})
	if err == nil && data.Len() > 0 {
		err = l.comm.Do(&ringo.Call{Kind: ringo.KindSend, In: data, Count: data.Len(), Type: ringo.Uint8, Peer: there})
	}
	return err
}

// receive takes what a peer sends, until it leaves.
func (p *post) receive(peer int, c *ringo.Comm) {
	err := p.deliver(peer, c)
	p.mu.Lock()
	if p.errs[peer] == nil {
		p.errs[peer] = err
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	c.Close()
}

func (p *post) deliver(peer int, c *ringo.Comm) (err error) {
	defer caught(&err)
	there := 1 - c.Rank()
	for {
		var l [1]letter
		if err := c.Do(&ringo.Call{Kind: ringo.KindRecv, Out: mem.Of(l[:]), Count: mem.Of(l[:]).Len(), Type: ringo.Uint8,
			Peer: there}); err != nil {
			return err
		}
		if l[0].bytes == goodbye {
			return ringo.ErrLeft
		}
		if n := int(l[0].bytes); n > 0 {
			if err := c.Do(&ringo.Call{Kind: ringo.KindRecv, Out: p.destination(l[0]), Count: n, Type: ringo.Uint8,
				Peer: there}); err != nil {
				return err
			}
		}
		p.arrived(peer)
	}
}

// destination is the memory for a letter's data: unused memory, if the window has ended.
func (p *post) destination(l letter) mem.Region {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := int(l.window); i >= 0 && i < len(p.windows) {
		if w := p.windows[i]; l.offset >= 0 && l.bytes <= int64(w.Len())-l.offset {
			return w.Slice(int(l.offset), int(l.bytes))
		}
	}
	return mem.Of(make([]byte, l.bytes))
}

// arrived counts a signal.
func (p *post) arrived(peer int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came[peer]++
	p.changed.Broadcast()
}

// lookTime is how often a wait looks at the clock and at the communicator, which another rank may have ended
// without the peer's channel being told.
const lookTime = 20 * time.Millisecond

// wait waits for signals.
func (p *post) wait(list []ringo.Arrival, timeout time.Duration) error {
	end := time.Now().Add(timeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range list {
		if p.came[a.Peer] < a.Count {
			if err := p.await(a, end); err != nil {
				return fmt.Errorf("signals of rank %d: %d of %d have come: %w", a.Peer, p.came[a.Peer], a.Count, err)
			}
		}
		p.came[a.Peer] -= a.Count
	}
	return nil
}

// await waits for the signals of a peer. mu is held.
func (p *post) await(a ringo.Arrival, end time.Time) error {
	look, done := time.NewTicker(lookTime), make(chan struct{})
	defer close(done)
	defer look.Stop()
	go func() {
		for {
			select {
			case <-look.C:
				p.mu.Lock()
				p.changed.Broadcast()
				p.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	for p.came[a.Peer] < a.Count {
		switch err := p.ring.Failure(); {
		case p.errs[a.Peer] != nil:
			return p.errs[a.Peer]
		case err != nil:
			return err
		case time.Now().After(end):
			return fmt.Errorf("%w: RINGO_TIMEOUT says how long to wait", ringo.ErrTimeout)
		}
		p.changed.Wait()
	}
	return nil
}

// close ends all channels, and this rank's waits with the error why. Earlier puts still arrive, unless atOnce is set.
func (p *post) close(why error, atOnce bool) error {
	p.mu.Lock()
	p.windows = nil
	for i := range p.errs {
		if p.errs[i] == nil {
			p.errs[i] = why
		}
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	var errs []error
	for peer := range p.out {
		if l := p.out[peer]; l != nil {
			if atOnce {
				l.comm.Abort(why)
			} else {
				_ = l.send([1]letter{{bytes: goodbye}}, mem.Region{}) // an error means that the peer has left
			}
			errs = append(errs, l.comm.Close())
		}
		if c := p.in[peer]; c != nil {
			c.Abort(why) // the goroutine of the peer closes it
		}
	}
	return errors.Join(errs...)
}
