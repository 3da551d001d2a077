// Package transporttest is the conformance suite that every transport must pass. It is
// for writers of transports. The trap: Processes starts the test binary again, so it
// must be called by the test function itself. A transport's test is five lines:
//
//	func open(tb testing.TB, cfg transport.Config) transport.Transport { return inproc.New(cfg) }
//
//	func TestConformance(t *testing.T) { transporttest.Conformance(t, open) }
//	func TestProcesses(t *testing.T)   { transporttest.Processes(t, open) }
package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// Open makes the transport under test, not yet listening.
type Open func(tb testing.TB, cfg transport.Config) transport.Transport

// Options relax what a transport must do.
type Options struct {
	// Loose says that something between the two ends (the kernel's socket buffers)
	// holds messages too, so a sender may be more than Slots ahead.
	Loose bool
	// Allocs is how many allocations one message may cost, 0 for none.
	Allocs float64
}

// Conformance runs the whole suite in one process.
func Conformance(t *testing.T, open Open, options ...Options) {
	s := suite{open: open}
	if len(options) > 0 {
		s.Options = options[0]
	}
	runAll(t, []check{
		{"idle", s.idle},
		{"sizes", s.sizes},
		{"limits", s.limits},
		{"order", s.order},
		{"depth", s.depth},
		{"back-pressure", s.backPressure},
		{"room", s.room},
		{"misuse", s.misuse},
		{"close", s.close},
		{"waits", s.waits},
		{"slow waits", s.slowWaits},
		{"reach", s.reach},
		{"self", s.self},
		{"many pairs", s.manyPairs},
		{"into", s.into},
		{"from", s.from},
		{"close after deadline", s.closeAfterDeadline},
		{"allocations", s.allocations},
	})
}

// A check is one test of a suite.
type check struct {
	name string
	run  func(*testing.T)
}

func runAll(t *testing.T, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			c.run(t)
		})
	}
}

type suite struct {
	open Open
	Options
}

// many is n in the full tier, else a part of it.
func (s suite) many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return tier.Count(n/4, n)
}

var small = transport.Limits{SlotBytes: 300, Slots: 4}

// idle: making, listening and closing without a peer leaks nothing.
func (s suite) idle(t *testing.T) {
	tr := s.open(t, conntest.Config(0, small))
	require.NotEmpty(t, tr.Name())
	require.NoError(t, tr.Close(), "close without listen")

	tr = s.open(t, conntest.Config(0, small))
	_, err := tr.Listen()
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	require.NoError(t, tr.Close(), "close again")
}
