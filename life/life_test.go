package life

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
)

// A fakeGroup is rank 1 of 4 in a group whose other ranks say what a test wants.
type fakeGroup struct {
	bootstrap.Group
	failed  chan struct{}
	failure *bootstrap.Failure

	mu   sync.Mutex
	told []string // to Fail
}

func newFakeGroup() *fakeGroup { return &fakeGroup{failed: make(chan struct{})} }

// say has the others report a failure.
func (g *fakeGroup) say(f bootstrap.Failure) {
	g.failure = &f
	close(g.failed)
}

func (g *fakeGroup) Rank() int                                { return 1 }
func (g *fakeGroup) Size() int                                { return 4 }
func (g *fakeGroup) Failed() <-chan struct{}                  { return g.failed }
func (g *fakeGroup) Locate(func() (bootstrap.Position, bool)) {}
func (g *fakeGroup) Inquire(bootstrap.Position)               {}
func (g *fakeGroup) Silent() []int                            { return nil }

func (g *fakeGroup) Failure() *bootstrap.Failure {
	select {
	case <-g.failed:
		return g.failure
	default:
		return nil
	}
}

func (g *fakeGroup) Fail(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, reason)
}

// A peer whose call was cut short by a death may be seen at a later one: the death
// is what counts, whether the group's word or the mismatch comes first.
func TestDeathBeforeMismatch(t *testing.T) {
	at := func(seq uint32) [2]uint64 {
		return call.Sign{Kind: call.AllReduce, Seq: seq, Count: 4, Type: kernels.Float32, Root: -1}.Stamp()
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
		for _, wordFirst := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", word first", false: ", word second"}[wordFirst], func(t *testing.T) {
				g := newFakeGroup()
				l := New(g, "h", time.Minute)
				defer l.Close()
				word := bootstrap.Failure{Rank: 2, Died: test.died, Reason: "x"}
				if wordFirst {
					g.say(word)
					<-l.Stopped()
				} else {
					defer time.AfterFunc(time.Millisecond, func() { g.say(word) }).Stop()
				}
				cause := &engine.StepError{Peer: 3, Phase: "recv", Err: &engine.MismatchError{Want: at(7), Got: at(test.theirs)}}
				err := l.Fail(&call.Call{Kind: call.AllReduce}, 7, cause, nil)
				require.ErrorIs(t, err, test.want)
				require.ErrorIs(t, l.Err(), test.want)
			})
		}
	}
}
