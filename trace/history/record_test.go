package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ranks lists 16 ranks at most, or 15 and how many more there are.
func TestRanks(t *testing.T) {
	first := func(n int) (list []int) {
		for r := range n {
			list = append(list, r)
		}
		return list
	}
	for n, want := range map[int]string{
		0: "no rank", 1: "rank 0", 2: "ranks 0 and 1", 3: "ranks 0, 1 and 2",
		16: "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 and 15",
		17: "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 and 2 more",
		99: "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 and 84 more",
	} {
		require.Equal(t, want, Ranks(first(n)))
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567: "1ms", 999_400_000: "999ms", time.Second: "1s", 1_234_567_890: "1.2s", 10 * time.Second: "10s",
		9_960_000_000: "10s", 10_600_000_000: "11s", 75*time.Second + 1: "1m15s",
	} {
		require.Equal(t, want, Spell(d).String())
	}
}

// A record names only ranks of its communicator, and its texts can be printed.
func TestCheck(t *testing.T) {
	good := func() *Record {
		return &Record{Comm: "c\x1b", Rank: 3, Size: 4, Host: "h\n", Cause: "\x00", Culprits: []int{0, 3},
			State: State{Peer: 3}, Calls: []Call{{What: "Barrier()\x07"}}}
	}
	r := good()
	require.NoError(t, r.check())
	for _, text := range []string{r.Comm, r.Host, r.Cause, r.Calls[0].What} {
		require.NotRegexp(t, `[[:cntrl:]]`, text)
	}
	r.Rank, r.Size, r.Culprits, r.State.Peer = 0, 1, nil, -1
	require.NoError(t, r.check())
	r.Size = maxSize
	require.NoError(t, r.check())
	for name, wrong := range map[string]func(r *Record){
		"no ranks": func(r *Record) { r.Size, r.Rank = 0, 0 }, "too many": func(r *Record) { r.Size = maxSize + 1 },
		"a rank below": func(r *Record) { r.Rank = -1 }, "a rank above": func(r *Record) { r.Rank = 4 },
		"a peer above":    func(r *Record) { r.State.Peer = 4 },
		"a culprit below": func(r *Record) { r.Culprits[1] = -1 }, "a culprit above": func(r *Record) { r.Culprits[1] = 4 },
	} {
		r := good()
		wrong(r)
		require.EqualError(t, r.check(), "not a rank's history", name)
	}
}

func TestReasons(t *testing.T) {
	var words []string
	for r := range Reasons + 1 {
		words = append(words, r.String())
	}
	require.Equal(t, []string{"unknown", "silent", "absent", "link", "circle", "?"}, words)
}
