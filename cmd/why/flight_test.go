package why

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/flight"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/test/hangs"
)

// A dump of rank 1 of 3, in the format of version 2.10.
func dump() map[string]any {
	entry := func(id int, more map[string]any) map[string]any {
		e := map[string]any{
			"frames": []any{
				map[string]any{"name": "all_reduce",
					"filename": "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", "line": 2900},
				map[string]any{"name": "step", "filename": "/home/u/train.py", "line": 40},
				map[string]any{"name": "<module>", "filename": "/home/u/train.py", "line": 99},
			},
			"record_id": id, "pg_id": 0, "process_group": []any{"0", "default_pg"}, "collective_seq_id": id + 1, "p2p_seq_id": 0,
			"op_id":          id + 1,
			"profiling_name": "nccl:all_reduce", "time_created_ns": 1_700_000_000_000_000_000 + id,
			"input_sizes": []any{[]any{3, 4}}, "input_dtypes": []any{"Float"},
			"output_sizes": []any{[]any{3, 4}}, "output_dtypes": []any{"Float"}, "state": "completed",
			"time_discovered_started_ns": 1, "time_discovered_completed_ns": 2,
			"retired": true, "timeout_ms": 600000, "is_p2p": false,
		}
		maps.Copy(e, more)
		return e
	}
	return map[string]any{
		"version": "2.10", "comm_lib_version": "2.29.7",
		"pg_config": map[string]any{
			"0": map[string]any{"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"},
			"1": map[string]any{"name": "1", "desc": "mesh_tp", "ranks": "[0, 1]"},
		},
		"pg_status": map[string]any{"0": map[string]any{"last_enqueued_collective": 2}},
		"entries": []any{
			entry(0, nil),
			entry(1, map[string]any{"state": "started", "time_discovered_completed_ns": nil,
				"process_group": []any{"1", "mesh_tp"}}),
			entry(2, map[string]any{"profiling_name": "nccl:send 1->2", "state": "scheduled", "p2p_seq_id": 7, "is_p2p": true}),
			entry(3, map[string]any{"profiling_name": "nccl:recv 1<-0", "state": "scheduled", "p2p_seq_id": 7, "is_p2p": true}),
			entry(4, map[string]any{"profiling_name": "nccl:coalesced", "state": "started", "p2p_seq_id": 7, "is_p2p": true,
				"input_sizes": []any{}, "input_dtypes": []any{}}),
		},
	}
}

func TestFlight(t *testing.T) {
	text, err := json.Marshal(dump())
	require.NoError(t, err)
	whole := hangs.Pickle(dump())
	for name, b := range map[string][]byte{"pickle": whole, "JSON": text} {
		require.True(t, flight.Is(b), name)
		path := file(t, "nccl_trace_rank_1", b)
		j, _, err := flight.Read(path)
		require.NoError(t, err, name)
		j.Sort()
		require.Len(t, j.Ranks, 3, name)
		require.Empty(t, j.Ranks[0].Source)
		r := &j.Ranks[1]
		require.Equal(t, path, r.Source)
		require.Equal(t, []int{0, 1}, r.Made)
		tp := slices.IndexFunc(j.Groups, func(g hang.Group) bool { return g.Name == "1" })
		require.Equal(t, hang.Group{Name: "1", Desc: "mesh_tp", Ranks: []int{0, 1}}, j.Groups[tp])
		require.Len(t, r.Calls, 4)
		require.Equal(t, hang.Call{
			Group: 1 - tp, Number: 1, Kind: "all_reduce", Peer: -1, In: "Float[3, 4]", Out: "Float[3, 4]", Type: "Float",
			Sizes: hang.Sizes{In: 12, Out: 12}, State: hang.Ended,
			At: time.Unix(0, 1_700_000_000_000_000_000), Ends: time.Unix(0, 2), Limit: 10 * time.Minute,
			Where: "train.py:40 in step",
		}, r.Calls[0])
		require.Equal(t, hang.Begun, r.Calls[1].State)
		require.Equal(t, tp, r.Calls[1].Group)
		for i, peer := range []int{2, 0} { // messages of a coalesced group have its state
			c := r.Calls[2+i]
			require.Equal(t, peer, c.Peer)
			require.Equal(t, i == 0, c.Send)
			require.Equal(t, hang.Begun, c.State, name)
			require.Equal(t, int64(7), c.Number)
		}
	}
}

func TestNoDump(t *testing.T) {
	for name, b := range map[string]string{
		"nothing": "", "a number": "\x80\x02K\x01.", "an empty dictionary": "\x80\x02}.",
		"JSON that is none": "{\"pg_config\":", "a list": "[1]",
		"an entry that is none": `{"entries": [1]}`, "an entry without a group": `{"entries": [{"record_id": 1}]}`,
	} {
		_, _, err := flight.Read(file(t, "f0", []byte(b)))
		require.Error(t, err, name)
	}
	_, _, err := flight.Read(file(t, "dump", nil))
	require.ErrorContains(t, err, "its rank in its name")
	require.Equal(t, 12, flight.RankOf("/a/b7/comm_lib_trace_rank_12.json"))
	require.Equal(t, -1, flight.RankOf("99999999999999999999"))
	require.False(t, flight.Is([]byte(`{"Comm": "1", "State": {}}`)))
}

// A dump that is cut off accuses nobody, and another pickle with a number in its name makes no rank.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	whole := hangs.Pickle(dump())
	var files []string
	for name, b := range map[string][]byte{"trace_1": whole, "trace_2": whole[:len(whole)/2],
		"shard_5000.pkl": []byte("\x80\x02K\x01.")} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, b, 0o600))
		files = append(files, name)
	}
	j, skipped, err := flight.Read(files...)
	require.NoError(t, err)
	require.Len(t, skipped, 2)
	j.Sort()
	require.Len(t, j.Ranks, 3)
	require.True(t, j.Ranks[2].Torn)
	require.False(t, j.Ranks[0].Torn)
	require.False(t, j.Ranks[1].Taken.IsZero())
	a := hang.Judge(j)
	require.Empty(t, a.Culprits, a.Sentence)
}

// The newest calls that have ended are kept, and all calls that have not. The more dumps there are, the fewer are kept
// of each.
func TestForget(t *testing.T) {
	const ended, kept = 300, 256
	d := dump()
	list := d["entries"].([]any)
	var entries []any
	for i := range ended {
		e := maps.Clone(list[0].(map[string]any))
		e["collective_seq_id"] = i + 1
		entries = append(entries, e)
	}
	d["entries"] = append(entries, list[1:]...)
	files := slices.Repeat([]string{filepath.Join(t.TempDir(), "none")}, 1<<20/kept)
	files[7] = file(t, "rank_1", hangs.Pickle(d))
	j, skipped, err := flight.Read(files...)
	require.NoError(t, err)
	require.Len(t, skipped, len(files)-1)
	calls := j.Ranks[1].Calls
	require.Len(t, calls, kept+3)
	for i, c := range calls[:kept] {
		require.Equal(t, hang.Ended, c.State)
		require.EqualValues(t, ended-kept+i+1, c.Number)
	}
	for _, c := range calls[kept:] {
		require.NotEqual(t, hang.Ended, c.State)
	}
}

// A dump without start times, PyTorch's default, does not count as one of a GPU that has not begun its calls.
func TestUntimed(t *testing.T) {
	entry := func(state string, began any) any {
		return map[string]any{
			"process_group": []any{"0", "default_pg"}, "profiling_name": "nccl:all_reduce", "collective_seq_id": 1,
			"state":           state,
			"time_created_ns": 1, "time_discovered_started_ns": began,
		}
	}
	for name, c := range map[string]struct {
		entries []any
		last    hang.State
	}{
		"no start times":          {[]any{entry("completed", nil), entry("scheduled", nil)}, hang.Open},
		"start times":             {[]any{entry("completed", 7), entry("scheduled", nil)}, hang.Called},
		"one that has begun":      {[]any{entry("started", nil), entry("scheduled", nil)}, hang.Called},
		"the first of all begins": {[]any{entry("scheduled", nil)}, hang.Open},
	} {
		b := hangs.Pickle(map[string]any{"entries": c.entries})
		j, _, err := flight.Read(file(t, "rank_0", b))
		require.NoError(t, err, name)
		calls := j.Ranks[0].Calls
		require.Equal(t, c.last, calls[len(calls)-1].State, name)
	}
}

// Ranks without a dump are in the job too, for what other files know of them.
func TestMissingIsThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nccl_trace_rank_0")
	d := map[string]any{"pg_config": map[string]any{"0": map[string]any{"ranks": "[0, 1, 2]", "desc": "default_pg"}},
		"entries": []any{}}
	require.NoError(t, os.WriteFile(name, hangs.Pickle(d), 0o600))
	j, _, err := flight.Read(name)
	require.NoError(t, err)
	require.Len(t, j.Ranks, 3)
}

func FuzzFlight(f *testing.F) {
	f.Add(hangs.Pickle(dump()))
	text, _ := json.Marshal(dump())
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, _, err := flight.Read(file(t, "rank_1", b)); err == nil {
			hang.Judge(j)
		}
	})
}
