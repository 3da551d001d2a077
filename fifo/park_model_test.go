package fifo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// parkModel is a state of the parking protocol of waiter.doze: one peer that
// stores messages and looks for sleepers, one end that waits for them. Stores
// of the word go through a store buffer, as on amd64, and are seen later; a
// compare-and-swap empties the buffer first.
type parkModel struct {
	// memory
	word, buffered int8 // messages that are visible, and stored but not visible yet
	parked         bool
	// the peer
	peerAt peerAt
	stored int8
	// the waiting end
	endAt endAt
	taken int8
	long  bool // the sleep has no end but a wake
}

type peerAt int8

const (
	peerStores peerAt = iota
	peerLooks
	peerSwaps
	peerWakes
	peerDone
)

type endAt int8

const (
	endWaits endAt = iota // has not looked yet, or polls in vain
	endLooks              // parked is set
	endParks              // about to sleep if still parked
	endSleeps
	endWoken // looks again
	endUnparks
	endDone
)

const modelMessages = 3

// next is every state that one step of one party leads to. drain says that the
// first sleep is short.
func (s parkModel) next(drain bool) (all []parkModel) {
	step := func(change func(*parkModel)) {
		n := s
		change(&n)
		all = append(all, n)
	}
	if s.buffered > 0 {
		step(func(n *parkModel) { n.word += n.buffered; n.buffered = 0 })
	}

	switch s.peerAt {
	case peerStores:
		step(func(n *parkModel) { n.buffered++; n.stored++; n.peerAt = peerLooks })
	case peerLooks:
		step(func(n *parkModel) {
			n.peerAt = peerStores
			if n.stored == modelMessages {
				n.peerAt = peerDone
			}
			if n.parked {
				n.peerAt = peerSwaps
			}
		})
	case peerSwaps:
		step(func(n *parkModel) {
			n.word += n.buffered
			n.buffered = 0
			n.peerAt = peerWakes
			if !n.parked {
				n.peerAt = peerStores
				if n.stored == modelMessages {
					n.peerAt = peerDone
				}
			}
			n.parked = false
		})
	case peerWakes:
		step(func(n *parkModel) {
			if n.endAt == endSleeps {
				n.endAt = endWoken
			}
			n.peerAt = peerStores
			if n.stored == modelMessages {
				n.peerAt = peerDone
			}
		})
	}

	switch s.endAt {
	case endWaits:
		step(func(n *parkModel) {
			if n.word > n.taken {
				n.take()
			} else {
				n.parked, n.long, n.endAt = true, !drain, endLooks
			}
		})
	case endLooks, endWoken:
		step(func(n *parkModel) {
			switch {
			case n.word > n.taken:
				n.endAt = endUnparks
			case n.parked:
				n.endAt = endParks
			default:
				n.endAt = endWaits
			}
		})
	case endParks:
		step(func(n *parkModel) {
			n.endAt = endWoken
			if n.parked {
				n.endAt = endSleeps
			}
		})
	case endSleeps:
		if !s.long && s.buffered == 0 { // drainTime is longer than a store takes to be seen
			step(func(n *parkModel) { n.long, n.endAt = true, endWoken })
		}
	case endUnparks:
		step(func(n *parkModel) { n.parked = false; n.take() })
	}
	return all
}

func (s *parkModel) take() {
	s.endAt = endWaits
	if s.taken++; s.taken == modelMessages {
		s.endAt = endDone
	}
}

// explore visits every state and returns the first one with a lost wake, in
// which nothing more can happen although not every message was taken.
func explore(drain bool) (states int, lost *parkModel) {
	seen := map[parkModel]bool{{}: true}
	for todo := []parkModel{{}}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next := s.next(drain)
		if len(next) == 0 && s.endAt != endDone {
			return len(seen), &s
		}
		for _, n := range next {
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	return len(seen), nil
}

// TestParkModel explores all interleavings: no wake is lost. Without the short
// first sleep one is, so the model can tell.
func TestParkModel(t *testing.T) {
	states, lost := explore(true)
	require.Nil(t, lost, fmt.Sprintf("%+v", lost))
	require.Greater(t, states, 100)
	t.Logf("%d states", states)

	_, lost = explore(false)
	require.NotNil(t, lost, "the model does not see the store buffer")
}
