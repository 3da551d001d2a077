package fifo

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A yard is a Space with a device that carries out launches in order, and a plain
// account of which bytes are in use.
type yard struct {
	t     testing.TB
	word  atomic.Uint64
	space *Space
	now   Guard // its deadline has passed: a Reserve that waits fails
	live  []launch
}

type launch struct {
	off, n int
	token  uint64
}

func newYard(t testing.TB, capacity int) *yard {
	y := &yard{t: t}
	y.space = NewSpace(capacity, &y.word)
	y.now.SetDeadline(1)
	return y
}

// reserve checks the bytes that a Reserve returns, or that there was a reason to wait.
func (y *yard) reserve(n int) (launch, bool) {
	off, token, err := y.space.Reserve(n, &y.now)
	if err != nil {
		require.ErrorIs(y.t, err, ErrDeadline)
		require.NotEmpty(y.t, y.live, "an empty ring has room for %d bytes: %v", n, err)
		return launch{}, false
	}
	require.True(y.t, off >= 0 && off+n <= int(y.space.capacity), "bytes %d to %d", off, off+n)
	for _, l := range y.live {
		require.False(y.t, off < l.off+l.n && l.off < off+n, "bytes %d to %d are in use: %d to %d", off, off+n, l.off,
			l.off+l.n)
		require.Greater(y.t, token, l.token)
	}
	return launch{off, n, token}, true
}

func (y *yard) commit(l launch) {
	y.space.Commit(l.token)
	y.live = append(y.live, l)
	y.look()
}

// done has the device end the first launches.
func (y *yard) done(launches int) {
	y.word.Store(y.live[launches-1].token)
	y.live = y.live[launches:]
	y.look()
}

func (y *yard) look() {
	require.NoError(y.t, y.space.Look())
	off, ok := y.space.Oldest()
	require.Equal(y.t, len(y.live) > 0, ok)
	if ok {
		require.Equal(y.t, y.live[0].off, off, "the oldest launch")
	}
	require.LessOrEqual(y.t, y.space.produced-y.space.consumed, y.space.capacity)
}

// move does what x chooses: reserve and commit, reserve and fail, or be done.
func (y *yard) move(x uint64) {
	switch what, n := x%4, int(x/4); {
	case what == 0 && len(y.live) > 0:
		y.done(1 + n%len(y.live))
	case what == 1:
		y.reserve(1 + n%int(y.space.capacity))
	default:
		if l, ok := y.reserve(1 + n%int(y.space.capacity)); ok {
			y.commit(l)
		}
	}
}

// TestSpaceModel tries all short sequences of launches, failed ones and ends in the smallest rings. model/space.pml
// adds the device, captures, replays, destroyed graphs, aborts and Close, and breaks each rule above Space.
func TestSpaceModel(t *testing.T) {
	for capacity := 1; capacity <= 3; capacity++ {
		var try func(y *yard, depth int)
		try = func(y *yard, depth int) {
			if depth == 0 {
				return
			}
			for x := range uint64(4 * capacity) {
				if x%4 == 3 || x%4 == 0 && int(x/4) >= len(y.live) {
					continue // as another x
				}
				next := &yard{t: t, live: slices.Clone(y.live)}
				next.word.Store(y.word.Load())
				next.space = &Space{y.space.ledger, &next.word}
				next.now.SetDeadline(1)
				next.move(x)
				try(next, depth-1)
			}
		}
		depth := 5
		if tier.Pairs() {
			depth = 7
		}
		try(newYard(t, capacity), depth)
	}
}

func TestSpaceKeepsApart(t *testing.T) {
	for capacity := 1; capacity < 40; capacity++ {
		y, rnd := newYard(t, capacity), rand.New(rand.NewPCG(1, uint64(capacity)))
		for range 2000 {
			y.move(uint64(rnd.Uint32()) >> rnd.IntN(30))
		}
	}
}

func FuzzSpace(f *testing.F) {
	f.Add(uint8(4), []byte{6, 10, 0, 6, 2, 0})
	f.Fuzz(func(t *testing.T, capacity uint8, moves []byte) {
		y := newYard(t, int(capacity)+1)
		for _, x := range moves {
			y.move(uint64(x))
		}
	})
}

func TestSpaceWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		y := newYard(t, 64)
		for range 3 {
			l, ok := y.reserve(20)
			require.True(t, ok)
			y.commit(l)
		}
		var g Guard
		g.Begin(time.Second)
		_, _, err := y.space.Reserve(40, &g)
		require.ErrorIs(t, err, ErrDeadline)
		require.EqualError(t, err, "work fifo full: no room for 40 bytes: produced 60, consumed 0, capacity 64: i/o timeout")

		g.Begin(time.Minute)
		second := y.live[1].token
		y.live = y.live[2:]
		time.AfterFunc(time.Second, func() { y.word.Store(second) })
		start := time.Now()
		off, _, err := y.space.Reserve(40, &g) // 60 to 64 are left out, 40 to 60 are in use
		require.NoError(t, err)
		require.Zero(t, off)
		require.Less(t, time.Since(start), time.Second+2*longNap)

		l, _ := y.reserve(40)
		y.commit(l)
		time.AfterFunc(time.Second, func() {
			g.Abort(errBroken)
			y.word.Store(l.token) // the launches end too, and yet the Reserve that waits for them fails
		})
		_, _, err = y.space.Reserve(4, &g)
		require.EqualError(t, err, "work fifo full: no room for 4 bytes: produced 104, consumed 40, capacity 64: broken")
		synctest.Wait()
	})
}

func TestSpaceWrong(t *testing.T) {
	require.Panics(t, func() { NewSpace(0, nil) })
	y := newYard(t, 8)
	for _, n := range []int{-1, 0, 9} {
		_, _, err := y.space.Reserve(n, &y.now)
		require.ErrorContains(t, err, "want 1 to 8")
	}
	y.word.Store(7)
	_, _, err := y.space.Reserve(1, &y.now)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "done with token 7: produced 0")
}

func TestSpaceDoesNotAllocate(t *testing.T) {
	y := newYard(t, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, token, _ := y.space.Reserve(33, &y.now)
		y.space.Commit(token)
		y.word.Store(token)
	}))
}
