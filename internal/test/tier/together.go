package tier

import (
	"sync"
	"testing"
)

// atOnce is how many cases of a Group run at once: their waits for real time overlap, and a busy machine keeps up.
const atOnce = 16

// A Group runs cases of a test side by side, as subtests. It is for cases that wait for real time: t.Parallel runs as
// many at once as there are cores.
type Group struct {
	t    *testing.T
	work sync.WaitGroup
	free chan struct{}
}

// Together is a Group of subtests of t, which must call Wait before it returns.
func Together(t *testing.T) *Group { return &Group{t: t, free: make(chan struct{}, atOnce)} }

// Run starts a case, when fewer than atOnce run.
func (g *Group) Run(name string, f func(t *testing.T)) {
	g.free <- struct{}{}
	g.work.Go(func() {
		defer func() { <-g.free }()
		g.t.Run(name, f)
	})
}

// Wait waits until all cases have ended.
func (g *Group) Wait() { g.work.Wait() }
