package why

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/watch"
)

// A job shows looks by the time since it began.
type job struct {
	began time.Time
	at    func(time.Duration) (watch.Look, error)
}

func (j *job) look(context.Context) (watch.Look, error) { return j.at(time.Since(j.began)) }

func stands(ranks ...int) watch.Look {
	return watch.Look{Behind: ranks, Answer: hang.Answer{Ranks: 8, Reason: hang.Absent, Culprits: ranks,
		Sentence: fmt.Sprintf("rank %d never came", ranks[0]), Remedy: "look"}}
}

func moves(behind ...int) watch.Look {
	return watch.Look{Moves: true, Behind: behind, Answer: hang.Answer{Ranks: 8, Sentence: "the job moves"}}
}

// watched is the output of a watcher that looks at a job for the time d, and how often it poked the ranks.
func watched(t *testing.T, page bool, d time.Duration, at func(time.Duration) (watch.Look, error)) (text string,
	poked int) {
	synctest.Test(t, func(t *testing.T) {
		j := job{time.Now(), at}
		var out strings.Builder
		w := watch.Watcher{Sources: []watch.Source{{Name: "RAS", Look: j.look}}, Every: time.Second, Stall: 3 * time.Second,
			Out: &out, Page: page, Poke: func() { poked++ }}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		w.Run(ctx)
		text = out.String()
	})
	return text, poked
}

// A watcher is silent while all is well. It says once, within 5 s, which rank holds up which, and that the job moves
// again.
func TestStands(t *testing.T) {
	text, poked := watched(t, false, 50*time.Minute, func(d time.Duration) (watch.Look, error) {
		return moves(), nil
	})
	require.Empty(t, text)
	require.Zero(t, poked)

	var said time.Duration
	text, poked = watched(t, false, time.Hour, func(d time.Duration) (watch.Look, error) {
		switch {
		case d < 30*time.Minute:
			if int(d.Seconds())%2 == 0 { // at every other look rank 5 is late for a new call
				return moves(5), nil
			}
			return moves(), nil
		case d < 30*time.Minute+30*time.Second:
			return stands(3), nil
		}
		said = d
		return moves(), nil
	})
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 4, text)
	require.Regexp(t, `^\d\d:30:0[345] RAS: stands still since [345]s: rank 3 never came$`, lines[0])
	require.Regexp(t, `RAS: remedy: look$`, lines[1])
	require.Regexp(t, `RAS: rank 5 was the last, or among the last, in (49|50)% of the looks of the last hour$`, lines[2])
	require.Regexp(t, `^\d\d:30:3\d RAS: the job moves again, after 30s$`, lines[3])
	require.Equal(t, 1, poked)
	require.NotZero(t, said)
}

// A watcher waits longer if nobody is to blame, as the job may compute. It prints an error once.
func TestPatience(t *testing.T) {
	all := hang.Answer{Ranks: 8, Reason: hang.Unknown, Sentence: "I cannot say"}
	unsure := func(time.Duration) (watch.Look, error) { return watch.Look{Answer: all}, nil }
	text, _ := watched(t, false, 25*time.Second, unsure)
	require.Empty(t, text)
	text, _ = watched(t, false, time.Minute, unsure)
	require.Equal(t, 1, strings.Count(text, "I cannot say"), text)
	text, _ = watched(t, false, time.Minute, func(d time.Duration) (watch.Look, error) {
		if d > 20*time.Second && d < 40*time.Second {
			return watch.Look{}, errors.New("refused")
		}
		return moves(), nil
	})
	require.Regexp(t, `^\S+ RAS: refused\n\S+ RAS: answers again\n$`, text)
}

// The page shows the state at each look.
func TestPage(t *testing.T) {
	text, _ := watched(t, true, 20*time.Second, func(d time.Duration) (watch.Look, error) {
		switch {
		case d < 5*time.Second:
			return moves(), nil
		case d < 15*time.Second:
			return stands(3), nil
		}
		return watch.Look{}, errors.New("refused")
	})
	pages := strings.Split(text, "\x1b[H\x1b[2J")
	require.Contains(t, pages[1], "RAS: all is well with 8 ranks")
	require.Contains(t, text, "RAS: stands still since 3s\n\nrank 3 never came\nto blame: rank 3\nremedy: look\n")
	require.Contains(t, pages[len(pages)-1], "RAS: refused")
}

// Which rank was behind counts for an hour: rank 1 was in the first, rank 2 in the second.
func TestHour(t *testing.T) {
	text, _ := watched(t, false, 2*time.Hour+time.Minute, func(d time.Duration) (watch.Look, error) {
		switch behind := 1 + int(d/time.Hour); {
		case behind == 3:
			return watch.Look{Answer: stands(3).Answer}, nil
		case int(d.Seconds())%2 == 0:
			return moves(behind), nil
		}
		return moves(), nil
	})
	require.Regexp(t, `RAS: rank 2 was the last, or among the last, in 50% of the looks of the last hour\n$`, text)
	text, _ = watched(t, false, time.Minute, func(time.Duration) (watch.Look, error) {
		return watch.Look{Answer: stands(3).Answer}, nil
	})
	require.Contains(t, text, "rank 3 never came")
	require.NotContains(t, text, "looks of the last hour")
}

// Each look asks RAS. A rank that is behind is late while the job moves, and to blame when the job stands still.
func TestWatchRAS(t *testing.T) {
	var counts [2]atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	defer all.Wait()
	defer l.Close()
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewScanner(conn)
			ranks := ""
			for r := range counts {
				ranks += fmt.Sprintf(`,{"rank": %d, "host": "a", "pid": %d, "nvml_dev": %d, "status": {}, "collective_counts": {"AllReduce": %d}}`, r, 10+r, r, counts[r].Load())
			}
			answer := fmt.Sprintf(`{"communicators_count": 1, "communicators": [{"hash": "0xab", "size": 2, "ranks": [%s]}]}`,
				ranks[1:])
			for _, say := range []string{"SERVER PROTOCOL 2\n", "OK\n", answer} {
				if in.Scan() {
					fmt.Fprint(conn, say)
				}
			}
			conn.Close()
		}
	})
	s := watch.RAS(l.Addr().String())
	counts[0].Store(7)
	counts[1].Store(6)
	_, err = s.Look(t.Context())
	require.NoError(t, err)
	counts[0].Store(8)
	counts[1].Store(7)
	look, err := s.Look(t.Context())
	require.NoError(t, err)
	require.True(t, look.Moves)
	require.Equal(t, []int{1}, look.Behind)
	require.Empty(t, look.Answer.Culprits)
	look, err = s.Look(t.Context())
	require.NoError(t, err)
	require.False(t, look.Moves)
	require.Equal(t, []int{1}, look.Answer.Culprits)
	l.Close()
	_, err = s.Look(t.Context())
	require.Error(t, err)
}
