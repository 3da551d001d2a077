package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
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
		require.Equal(t, want, history.Ranks(first(n)))
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567: "1ms", 999_400_000: "999ms", time.Second: "1s", 1_234_567_890: "1.2s", 10 * time.Second: "10s",
		9_960_000_000: "10s", 10_600_000_000: "11s", 75*time.Second + 1: "1m15s",
	} {
		require.Equal(t, want, history.Spell(d).String())
	}
}

// reread is a record as it is read from its file.
func reread(t *testing.T, r *history.Record) (*history.Record, error) {
	t.Helper()
	file, err := r.Write(t.TempDir())
	require.NoError(t, err)
	got, _, err := history.Read(file)
	if err != nil {
		return nil, err
	}
	require.Len(t, got, 1)
	return &got[0], nil
}

// A record names only ranks of its communicator, and its texts can be printed.
func TestHistoryCheck(t *testing.T) {
	const maxSize = 1 << 17
	good := func() *history.Record {
		return &history.Record{Comm: "c", Rank: 3, Size: 4, Host: "h\n", Cause: "\x00", Culprits: []int{0, 3},
			State: judge.State{Peer: 3}, Calls: []history.Call{{What: "Barrier()\x07"}}}
	}
	r := good()
	file, err := r.Write(t.TempDir())
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte(`"c"`), []byte(`"c\u001b"`), 1), 0o600))
	read, _, err := history.Read(file)
	require.NoError(t, err)
	for _, text := range []string{read[0].Comm, read[0].Host, read[0].Cause, read[0].Calls[0].What} {
		require.NotRegexp(t, `[[:cntrl:]]`, text)
	}
	require.Contains(t, read[0].Comm, `\x1b`)
	r.Rank, r.Size, r.Culprits, r.State.Peer = 0, 1, nil, -1
	_, err = reread(t, r)
	require.NoError(t, err)
	r.Size = maxSize
	_, err = reread(t, r)
	require.NoError(t, err)
	for name, wrong := range map[string]func(r *history.Record){
		"no ranks":     func(r *history.Record) { r.Size, r.Rank = 0, 0 },
		"too many":     func(r *history.Record) { r.Size = maxSize + 1 },
		"a rank below": func(r *history.Record) { r.Rank = -1 }, "a rank above": func(r *history.Record) { r.Rank = 4 },
		"a culprit below": func(r *history.Record) { r.Culprits[1] = -1 },
		"a culprit above": func(r *history.Record) { r.Culprits[1] = 4 },
	} {
		r := good()
		wrong(r)
		_, err := reread(t, r)
		require.ErrorContains(t, err, "json: not a rank's history", name)
	}
}

// A record whose State is missing, or cannot be, tells what it tells otherwise.
func TestHistoryWithoutState(t *testing.T) {
	for name, state := range map[string]judge.State{"none": {}, "a peer above": {Heard: true, At: 3, Peer: 4},
		"a peer below": {Heard: true, Peer: -2}} {
		r, err := reread(t, &history.Record{Comm: "c", Rank: 1, Size: 4, Cause: "rank 2 died", Culprits: []int{2},
			State: state})
		require.NoError(t, err, name)
		require.Equal(t, judge.State{Rank: 1, Peer: -1}, r.State, name)
		require.Equal(t, []int{2}, r.Culprits, name)
	}
}

// Members are a line a host in the file; what names a rank twice, or none, is no list.
func TestHistoryMembers(t *testing.T) {
	members := history.Members{{Host: "a", Pid: 7, Number: 2}, {Host: "b", Pid: 8, Number: -1}, {Host: "a", Pid: 9}}
	r, err := reread(t, &history.Record{Comm: "c", Size: 3, Members: members, Origin: "o", OriginSize: 4,
		State: judge.State{Heard: true, Peer: -1}})
	require.NoError(t, err)
	require.Equal(t, members, r.Members)
	for _, text := range []string{`{"a":"0:1:0 0:2:0"}`, `{"a":"0:1:0 2:2:0"}`, `{"a":"0:1"}`, `{"a":"x:1:1"}`, `{"a":"-1:1:1"}`} {
		m := history.Members{{}}
		require.NoError(t, json.Unmarshal([]byte(text), &m), text)
		require.Empty(t, m, text)
	}
	r, err = reread(t, &history.Record{Comm: "c", Size: 2, Members: members, State: judge.State{Heard: true, Peer: -1}})
	require.NoError(t, err)
	require.Empty(t, r.Members, "of another size")
}

// The name of a file that cannot be read says of which rank it is.
func TestHistoryOfWhom(t *testing.T) {
	dir := t.TempDir()
	for name, rank := range map[string]int{history.FileOf("c0ffee00", 12): 12, "ringo-x.json": -1, "ringo-x-rank.json": -1,
		"ringo-x-rank-1.json": -1, "dump-rank1.json": -1} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
		_, _, err := history.Read(file)
		u, is := errors.AsType[*history.Unreadable](err)
		require.True(t, is, "%v", err)
		if rank < 0 {
			require.Empty(t, u.Comm, name)
			continue
		}
		require.Equal(t, "c0ffee00", u.Comm)
		require.Equal(t, rank, u.Rank)
	}
}

func TestReasons(t *testing.T) {
	var words []string
	for r := range judge.Reasons + 1 {
		words = append(words, r.String())
	}
	require.Equal(t, []string{"unknown", "silent", "absent", "link", "circle", "slow", "?"}, words)
}
func TestHistoryRing(t *testing.T) {
	var r history.Ring
	require.Empty(t, r.Messages())
	for n := range uint64(3 * history.Depth / 2) {
		r.Add(history.Message{After: n})
		kept := r.Messages()
		require.Len(t, kept, int(min(n+1, history.Depth)))
		require.Equal(t, n, kept[len(kept)-1].After)
	}
	require.EqualValues(t, history.Depth/2, r.Messages()[0].After)
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Add(history.Message{Peer: 2}) }))
}
