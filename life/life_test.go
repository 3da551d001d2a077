package life

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/mem"
)

// toldGroup is a group that has failed.
type toldGroup struct {
	bootstrap.Group
	failure *bootstrap.Failure
	failed  chan struct{}
}

func (g *toldGroup) Failed() <-chan struct{}     { return g.failed }
func (g *toldGroup) Failure() *bootstrap.Failure { return g.failure }
func (g *toldGroup) Fail(string)                 {}

// A peer whose call was cut short by a death may be seen at a later one: the death
// is what counts.
func TestDeathBeforeMismatch(t *testing.T) {
	at := func(seq uint32) sign {
		return sign{kind: call.AllReduce, seq: seq, count: 4, typ: Float32, op: Sum.Kind, root: -1}
	}
	for name, test := range map[string]struct {
		theirs uint32
		died   bool
		want   error
	}{
		"death":               {8, true, call.ErrPeer},
		"complaint":           {8, false, call.ErrMismatch},
		"same number":         {7, true, call.ErrMismatch},
		"peer is behind":      {6, true, call.ErrMismatch},
		"peer has no numbers": {0, true, call.ErrMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			g := &toldGroup{failure: &bootstrap.Failure{Rank: 2, Died: test.died, Reason: "x"}, failed: make(chan struct{})}
			close(g.failed)
			c := &Comm{group: g, dev: &device{net: &deviceNet{rank: 1, size: 1}}}
			cause := &engine.StepError{Peer: 1, Phase: "recv", Err: &engine.MismatchError{Want: at(7).stamp(), Got: at(test.theirs).stamp()}}
			c.end(c.errorOf(&Call{Kind: call.Barrier, In: mem.Device(0, 0, 0)}, 7, cause), cause)
			require.ErrorIs(t, c.Err(), test.want)
		})
	}
}
