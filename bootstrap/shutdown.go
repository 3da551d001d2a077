package bootstrap

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// Stages of Part. Ranks that have opened memory of each other part in stages: the next stage is safe when all ranks
// have come to the one before. A rank that has died, or that has closed its group, has come to all stages.
const (
	Left  = rendezvous.Left  // the rank has said goodbye: its operations use no other rank's memory any more
	Apart = rendezvous.Apart // the rank has closed the memory of other ranks that it had open
)

// Leave says goodbye, and keeps the connection to the others for Part.
func (m *member) Leave() { m.leave(true) }

// leave says goodbye, once.
func (m *member) leave(stays bool) {
	m.shutdown.leave.Do(func() {
		m.mu.Lock()
		m.shutdown.stays = stays
		m.uplink.leave()
		m.mu.Unlock()
		m.uplink.quits()
		m.uplink.send(&rendezvous.Leave{Stays: stays, Known: m.position()})
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
	m.uplink.send(&rendezvous.Parted{Stage: stage})
	for {
		m.mu.Lock()
		reached, heard := m.shutdown.stage >= stage, m.shutdown.heard
		m.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-heard:
		case <-m.uplink.ended:
			return errEnded
		case <-exit:
			return ErrExit
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
