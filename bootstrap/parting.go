package bootstrap

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Stages of parting. Ranks that have opened memory of each other part in stages: the next stage is safe when all ranks
// have come to the one before. A rank that has died, or that has closed its group, has come to all stages.
const (
	Left   = iota + 1 // the rank has said goodbye: its operations use no other rank's memory any more
	Apart             // the rank has closed the memory of other ranks that it had open
	stages            // one more than the last stage
)

// A parting is how far the ranks have parted.
type parting struct {
	stays []bool      // by rank: it has left, and waits for the others
	at    []int       // by rank: the last stage it has come to
	count [stages]int // by stage: the ranks that have come to it
}

func newParting(size int) parting { return parting{stays: make([]bool, size), at: make([]int, size)} }

// part notes that a rank has come to a stage. If it was the last rank, those that stay are told. Under mu.
func (r *coordinator) part(rank, stage int) {
	p := &r.parting
	for p.at[rank] < stage {
		p.at[rank]++
		if p.count[p.at[rank]]++; p.count[p.at[rank]] == r.size {
			r.tell(p.staying(), &parted{p.at[rank]})
		}
	}
}

// staying are the ranks that have left and wait for others to part.
func (p *parting) staying() (ranks []int) {
	for rank, stays := range p.stays {
		if stays {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Leave says goodbye, and keeps the connection to the others for Part.
func (m *member) Leave() { m.leave(true) }

// leave says goodbye, once.
func (m *member) leave(stays bool) {
	m.leaveOnce.Do(func() {
		m.mu.Lock()
		m.stays = stays
		close(m.closed)
		m.mu.Unlock()
		m.quits()
		m.send(&leave{stays, m.position()})
	})
}

// exitTime is how long Part waits at most in a process that ends.
const exitTime = time.Second

var (
	exit    = make(chan struct{}) // closed exitTime after Exit
	exiting sync.Once
)

// ErrExit is Part's error if it has not waited for the others because this process ends.
var ErrExit = errors.New("this process ends")

// Exit announces that this process ends: from now on Part waits for a second at most. That is safe, since memory of
// this process that others have open outlives the process until they close it.
func Exit() { exiting.Do(func() { time.AfterFunc(exitTime, func() { close(exit) }) }) }

// Part waits until all other ranks have come to the same stage.
func (m *member) Part(ctx context.Context, stage int) error {
	m.Leave()
	m.send(&parted{stage})
	for {
		m.mu.Lock()
		reached, heard := m.parted >= stage, m.parting
		m.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-heard:
		case <-m.ended:
			return errEnded
		case <-exit:
			return ErrExit
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hearParted notes that all ranks have come to a stage. Under mu.
func (m *member) hearParted(stage int) {
	m.parted = max(m.parted, stage)
	close(m.parting)
	m.parting = make(chan struct{})
}
