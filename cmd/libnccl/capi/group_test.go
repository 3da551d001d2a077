package capi

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

var inBackground = &Config{Blocking: false}

// within fails the test if f has not returned soon.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it still waits")
	}
}

// settled waits until nothing of a communicator is under way in the background.
func settled(t *testing.T, c *comm) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.state.jobs == 0
	}, tier.Patience, time.Millisecond)
}

// alone makes a communicator of one rank that does not block.
func alone(t *testing.T, l *Library) uintptr {
	t.Helper()
	id, err := l.UniqueID()
	require.NoError(t, err)
	h, err := l.InitRank(0, 1, 0, []bootstrap.ID{id}, inBackground)
	require.ErrorIs(t, err, errInProgress)
	c, err := l.comms.Get(h)
	require.NoError(t, err)
	settled(t, c)
	require.NotNil(t, c.opened())
	return h
}

// TestGroupThatIsThrownAway: a group that is not carried out leaves no communicator in progress.
func TestGroupThatIsThrownAway(t *testing.T) {
	l := onHost()
	parent := alone(t, l)
	for name, end := range map[string]func(g uintptr) (why error){
		"failed": func(g uintptr) error {
			require.ErrorContains(t, l.Do(g, parent, &Call{Kind: ringo.KindBroadcast, Type: 99}), "data type 99")
			_, err := l.GroupEnd(g)
			require.ErrorContains(t, err, "data type 99")
			return err
		},
		"simulated": func(g uintptr) error {
			_, err := l.GroupSimulateEnd(g, 0)
			require.NoError(t, err)
			return errUsage
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := l.GroupStart()
			child, err := l.Split(g, parent, 0, 0, nil)
			require.NoError(t, err)
			id, err := l.UniqueID()
			require.NoError(t, err)
			fresh, err := l.InitRank(g, 2, 0, []bootstrap.ID{id}, inBackground)
			require.NoError(t, err)
			why := end(g)
			within(t, func() {
				for _, h := range []uintptr{child, fresh} {
					state, _, err := l.AsyncError(h)
					require.NoError(t, err)
					require.Equal(t, ResultOf(why), state)
					require.NoError(t, l.Destroy(h))
				}
			})
		})
	}
	require.NoError(t, l.Destroy(parent))
}

// TestPanics: if a job fails or panics, the communicators of later jobs are settled too, and the panic ends neither
// the process nor the thread's groups.
func TestPanics(t *testing.T) {
	l := onHost()
	parent := alone(t, l)
	c, err := l.comms.Get(parent)
	require.NoError(t, err)
	g := l.GroupStart()
	require.NoError(t, l.job(g, job{c, nil, func() (*ringo.Comm, error) { panic("whoops") }}))
	child, err := l.Split(g, parent, 0, 0, nil)
	require.NoError(t, err)
	left, err := l.GroupEnd(g)
	require.ErrorIs(t, err, errInProgress)
	require.Zero(t, left)
	settled(t, c)
	for _, h := range []uintptr{parent, child} {
		state, _, err := l.AsyncError(h)
		require.NoError(t, err)
		require.Equal(t, InternalError, state)
		require.Contains(t, l.LastError(h), "whoops")
	}
	within(t, func() { require.NoError(t, l.Destroy(child)) })

	single := alone(t, l)
	s, err := l.comms.Get(single)
	require.NoError(t, err)
	require.ErrorIs(t, l.job(0, job{s, nil, func() (*ringo.Comm, error) { panic("alone") }}), errInProgress)
	settled(t, s)
	require.Contains(t, l.LastError(single), "alone")
	require.NoError(t, l.Destroy(single))

	g = l.GroupStart()
	inside, err := l.groups.Get(g)
	require.NoError(t, err)
	inside.comms = []*comm{nil}
	left, err = l.GroupEnd(g)
	require.ErrorIs(t, err, errFault)
	require.Zero(t, left, "the thread has no group any more")

	l.late = []allocation{{}} // of no GPU
	within(t, func() { require.NoError(t, l.Abort(parent)) })
	require.Contains(t, l.LastError(0), "fault of the library's own")
}

// TestGroupKeepsErrors: GroupEnd reports the error of any call in the group.
func TestGroupKeepsErrors(t *testing.T) {
	l := onHost()
	id, err := l.UniqueID()
	require.NoError(t, err)
	comms := initAll(t, l, 2)
	for name, call := range map[string]func(g uintptr) error{
		"InitRank":       func(g uintptr) error { _, err := l.InitRank(g, 2, 5, []bootstrap.ID{id}, nil); return err },
		"Split":          func(g uintptr) error { _, err := l.Split(g, 77, 0, 0, nil); return err },
		"Shrink":         func(g uintptr) error { _, err := l.Shrink(g, comms[0], []int{9}, nil, 0); return err },
		"Grow":           func(g uintptr) error { _, err := l.Grow(g, comms[0], 1, nil, -1, nil); return err },
		"WindowRegister": func(g uintptr) error { _, err := l.WindowRegister(g, comms[0], 1, 1); return err },
		"Finalize":       func(g uintptr) error { return l.Finalize(g, 77) },
	} {
		g := l.GroupStart()
		said := call(g)
		require.ErrorIs(t, said, ringo.ErrInvalid, name)
		_, err = l.GroupEnd(g)
		require.Equal(t, said, err, name)
	}
	destroy(t, l, comms...)
}

// TestSplitInARow has ranks of a communicator that blocks make several that do not, and use it straight
// afterwards: the order is the same on all ranks.
func TestSplitInARow(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	var children [2][6]uintptr
	data := [][]int32{{1}, {10}}
	errs := make(chan error, len(comms))
	for i, c := range comms {
		go func() {
			errs <- func() (err error) {
				for k := range children[i] {
					if children[i][k], err = l.Split(0, c, 0, 0, inBackground); err != nil {
						return err
					}
				}
				return l.Do(0, c, allReduce(data[i]))
			}()
		}()
	}
	within(t, func() {
		for range comms {
			require.NoError(t, <-errs)
		}
	})
	require.Equal(t, [][]int32{{11}, {11}}, data)
	for k := range children[0] { // the k-th of one rank is the k-th of the other
		for i := range children {
			data[i][0] = int32(i + 1)
			if err := l.Do(0, children[i][k], allReduce(data[i])); err != errInProgress { // the last rank's call may end at once
				require.NoError(t, err)
			}
		}
		for i := range children {
			require.Eventually(t, func() bool {
				state, _, err := l.AsyncError(children[i][k])
				require.NoError(t, err)
				return state == Success
			}, tier.Patience, time.Millisecond)
			require.NoError(t, l.Destroy(children[i][k]))
		}
		require.Equal(t, [][]int32{{3}, {3}}, data)
	}
	destroy(t, l, comms...)
}

// The null handle is no error where a communicator ends, and one whose peers do not come is given up at once.
func TestEnds(t *testing.T) {
	l := onHost()
	require.NoError(t, errors.Join(l.Finalize(0, 0), l.Destroy(0), l.Abort(0)))
	id, err := l.UniqueID()
	require.NoError(t, err)
	h, err := l.InitRank(0, 2, 0, []bootstrap.ID{id}, inBackground)
	require.ErrorIs(t, err, errInProgress)
	within(t, func() { require.NoError(t, l.Destroy(h)) })
}

// A part of Split is opened with what the program's ncclConfig_t says, and its log lines name the GPU.
func TestSplitWithConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	l := with(map[string]string{"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": file})
	var err error
	l.machine, err = gpu.Open(gpu.Options{Emulate: 2})
	require.NoError(t, err)
	comms := initAll(t, l, 2, 1, 0)
	split := func(given *Config) (parts [2]uintptr, err error) {
		g := l.GroupStart()
		for i, c := range comms {
			parts[i], err = l.Split(g, c, i, 0, given)
			require.NoError(t, err)
		}
		_, err = l.GroupEnd(g)
		return parts, err
	}
	parts, err := split(&Config{Blocking: true, Policy: "9"}) // ReadConfig would refuse this policy
	require.ErrorContains(t, err, `policy "9" is none of`)
	require.NoError(t, errors.Join(l.Destroy(parts[0]), l.Destroy(parts[1])))
	parts, err = split(&Config{Blocking: true, MaxCTAs: 3, Policy: "1", Net: "Socket"})
	require.NoError(t, err)
	for i, c := range comms {
		require.NoError(t, errors.Join(l.Destroy(parts[i]), l.Destroy(c)))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `\[1\] NCCL INFO comm \S+ rank 0 nranks 1 cudaDev 1 - Init COMPLETE`, string(text))
	require.NoError(t, l.machine.Close())
}

// TestAnswersAsNCCL: arguments without effect, given twice, or given in part have NCCL's results.
func TestAnswersAsNCCL(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	none, err := l.WindowRegister(0, comms[0], 0, 64)
	require.NoError(t, err)
	require.Zero(t, none)
	none, err = l.WindowRegister(0, comms[0], 4096, 0)
	require.NoError(t, err)
	require.NoError(t, l.Deregister(comms[0], none))
	buffer := make([]byte, 64)
	send := &Call{Kind: ringo.KindSend, In: addressOf(buffer), Count: 8, Type: 0, Peer: 0}
	require.Equal(t, InvalidUsage, ResultOf(l.Do(0, comms[0], send)), "nobody will receive it")
	g := l.GroupStart()
	require.NoError(t, l.Do(g, comms[0], send))
	require.NoError(t, l.Do(g, comms[0], &Call{Kind: ringo.KindRecv, Out: addressOf(buffer), Count: 4, Type: 0, Peer: 0}))
	_, err = l.GroupEnd(g)
	require.Equal(t, InvalidUsage, ResultOf(err), "%v", err)
	require.NoError(t, l.Finalize(0, comms[0]))
	require.Equal(t, InvalidArgument, ResultOf(l.Finalize(0, comms[0])))
	destroy(t, l, comms...)
}
