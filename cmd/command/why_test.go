package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

func TestWhy(t *testing.T) {
	dir := t.TempDir()
	comms, err := ringo.OpenLocal(2, ringo.Config{History: dir})
	require.NoError(t, err)
	comms[1].Abort(nil)
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Regexp(t, `^communicator \w{8} of 2 ranks: .*aborted\nto blame: rank 1\n`, out.String())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ringo-x-rank7.json"), []byte("{"), 0o600))
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs))
	require.Regexp(t, `^left out: .*ringo-x-rank7.json: unexpected end of JSON input\n$`, errs.String())
	require.Equal(t, 2, ringoMain(t.Context(), []string{"why"}, &out, &errs))
	require.Equal(t, 1, ringoMain(t.Context(), []string{"why", filepath.Join(t.TempDir(), "none")}, &out, &errs))
	require.Contains(t, errs.String(), "which files?")
}

// What ringo run and the kernel print beside histories says how a rank has died: its process is in the others'
// histories.
func TestWhyJoinsLogs(t *testing.T) {
	dir := t.TempDir()
	for rank := range 3 {
		r := history.Record{Comm: "abcd1234", Rank: rank, Size: 4, Host: "a", Pid: 100 + rank, Cause: "rank 3 died: killed",
			Culprits: []int{3}, State: judge.State{Heard: true, Last: 1, At: 1, Peer: -1}}
		for q := range 4 {
			r.Members = append(r.Members, history.Member{Host: "a", Pid: 100 + q})
		}
		_, err := r.Write(dir)
		require.NoError(t, err)
	}
	for name, tt := range map[string]struct{ text, says string }{
		"oom.log": {"[3] 2026/11/28 21:00:00 step 4\nringo run: rank 3: killed by signal 9\n",
			"rank 3 (process 103 on host a) was killed by SIGKILL, as ringo run says; "},
		"dmesg.txt": {"[ 12.5] Memory cgroup out of memory: Killed process 103 (job) total-vm:1kB\n",
			"rank 3 (process 103 on host a) was killed because memory was short, as the kernel says; "},
		"job.log": {"[3] 2026/11/28 21:00:00 step 4\n", ""},
	} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
		var out, errs strings.Builder
		require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir, file}, &out, &errs), name)
		require.Empty(t, errs.String(), name)
		require.True(t, strings.HasPrefix(out.String(), tt.says+"communicator abcd1234 of 4 ranks: rank 3 died: killed\n"+
			"to blame: rank 3\n"), out.String())
	}
}

// The page has a picture of this library's histories too: who is in the same call, and for whom they wait.
func TestWhyPictureOfHistories(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "why.html")
	for _, r := range []history.Record{
		{Rank: 0, State: judge.State{Heard: true, Last: 5, At: 5, Peer: 3}},
		{Rank: 1, State: judge.State{Rank: 1, Heard: true, Last: 4, Peer: -1}},
		{Rank: 3, State: judge.State{Rank: 3, Heard: true, Last: 5, At: 5, Peer: 1}, Cause: "timed out",
			Culprits: []int{1}},
		{Rank: 4, State: judge.State{Rank: 4, Heard: true, Last: 4, Peer: 0}},
	} {
		r.Comm, r.Size, r.Total = "abcd1234", 5, r.State.Last
		for n := range r.State.Last {
			r.Calls = append(r.Calls, history.Call{Number: n + 1, What: "AllReduce(count 4, float32, sum)"})
		}
		_, err := r.Write(dir)
		require.NoError(t, err)
	}
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", "-json", "-html", page, dir}, &out, &errs), errs.String())
	var answers []whyAnswer
	require.NoError(t, json.Unmarshal([]byte(out.String()), &answers), out.String())
	require.Len(t, answers, 1)
	const call = "AllReduce(count 4, float32, sum) #5 of communicator abcd1234"
	idle := "in no call, its last call was " + strings.Replace(call, "#5", "#4", 1)
	late := []int{1, 2, 4}
	require.Equal(t, []whyClass{{[]int{0}, "begun " + call + ", step 0.0, from rank 3", late}, {[]int{1}, idle, []int{}},
		{[]int{2}, "left no file", []int{}}, {[]int{3}, "begun " + call + ", step 0.0, from rank 1", late},
		{[]int{4}, "begun recv from rank 0", []int{0}}}, answers[0].Classes)
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, 7, strings.Count(string(b), `marker-end="url(#tip)"`), "arrows")
	require.Contains(t, string(b), "rank 0: begun "+call)
	require.Regexp(t, `class="blamed".*rank 1: in no call`, string(b))
	require.Contains(t, string(b), "Who waits for whom")
}

// What strangers' files say is text on the page, wherever it stands.
func TestWhyPageEscapes(t *testing.T) {
	var page strings.Builder
	require.NoError(t, whyPage(&page, []whyAnswer{{Sentence: "<b>one", text: "<b>two",
		Classes: []whyClass{{Ranks: []int{0}, Is: "<b>three"}}}}))
	for _, word := range []string{"one", "two", "three"} {
		require.Contains(t, page.String(), "&lt;b&gt;"+word)
	}
}

// Dumps of PyTorch's flight recorder: rank 2 has not made the call in which the others wait.
func TestWhyFlightRecorder(t *testing.T) {
	dir := t.TempDir()
	writeDumps(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("none"), 0o600))
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Equal(t, dumpsAnswer, out.String())
}

// writeDumps writes dumps of three ranks. Rank 2 has not made the call in which the others wait.
func writeDumps(t *testing.T, dir string) {
	for rank := range 3 {
		entries := ""
		for n := range 3 - rank/2 {
			state := "completed"
			if n == 2 {
				state = "started"
			}
			entries += fmt.Sprintf(`{"record_id": %d, "process_group": ["0", "default_pg"], "collective_seq_id": %d, "profiling_name": "nccl:all_reduce",
				"input_sizes": [[4]], "input_dtypes": ["Float"], "time_created_ns": %d, "state": %q, "timeout_ms": 10000,
				"frames": [{"name": "step", "filename": "/home/u/train.py", "line": 4%d}]},`, n, n+1, 1_700_000_000_000_000_000+n, state, n)
		}
		text := fmt.Sprintf(`{"version": "2.4", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1, 2]"}}, "entries": [%s]}`, strings.TrimSuffix(entries, ","))
		name, at := filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), time.Unix(1_700_000_015, 0)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, at, at))
	}
}

const dumpsAnswer = `rank 2 never called all_reduce #3 of the default group, its last call was all_reduce #2 of the default group (train.py:41 in step); ranks 0 and 1 wait in all_reduce #3 of the default group (train.py:42 in step)
to blame: rank 2
remedy: see what rank 2 does there: py-spy dump --pid PID; if it is only slow, the time-out of 10s is too short

ranks  are
0-1    begun all_reduce #3 of the default group, train.py:42 in step
2      in no call, its last call was all_reduce #2 of the default group (train.py:41 in step)
`

// writeLogs writes NCCL's logs of a job of n ranks, whose process odd has died.
func writeLogs(t *testing.T, dir string, n, odd int) {
	text := "starting\n"
	for r := range n {
		head := fmt.Sprintf("node:%d:%d [%d] NCCL INFO ", 100+r, 200+r, r)
		text += fmt.Sprintf("%[1]sncclCommInitRank comm 0x%[2]d rank %[2]d nranks %[3]d cudaDev %[2]d busId 1 commId 0xab "+
			"- Init START\n"+
			"%[1]sncclCommInitRank comm 0x%[2]d rank %[2]d nranks %[3]d cudaDev %[2]d busId 1 commId 0xab - Init COMPLETE\n",
			head, r, n)
	}
	text += fmt.Sprintf("  traceback : Signal 9 (SIGKILL) received by PID %d\n", 100+odd)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("job%d.log", n)), []byte(text), 0o600))
}

// A folder has files of several kinds: of one job the surest is the answer, another job has an answer of its own.
func TestWhySeveralKinds(t *testing.T) {
	dir := t.TempDir()
	writeDumps(t, dir)
	writeLogs(t, dir, 3, 2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ras.json"), []byte(rasAnswer(3, 2, 2)), 0o600))
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Regexp(t, `^rank 2 \(process 102 on node node, GPU 2\) was killed by SIGKILL, as torchrun says; ranks 0 and 1 wait in all_reduce #3 .*\nto blame: rank 2\n`, out.String())
	require.Contains(t, out.String(), "note: NCCL's log and NCCL's RAS blame rank 2 too\n")
	require.Equal(t, 1, strings.Count(out.String(), "to blame:"))

	writeLogs(t, dir, 5, 4)
	out.Reset()
	require.Equal(t, 3, ringoMain(t.Context(),
		[]string{"why", dir + "/job5.log", dir + "/nccl_trace_rank_0", dir + "/nccl_trace_rank_1", dir +
			"/nccl_trace_rank_2"}, &out, &errs), errs.String())
	require.Equal(t, 2, strings.Count(out.String(), "to blame:"), out.String())
	require.Contains(t, out.String(), dumpsAnswer)
}

// Logs without calls, as NCCL_DEBUG=INFO alone writes them, are not left out: they tell the late rank's process.
func TestWhyLogsWithoutCalls(t *testing.T) {
	dir := t.TempDir()
	writeDumps(t, dir)
	writeLogs(t, dir, 3, 1)
	name := filepath.Join(dir, "job3.log")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	text, _, _ := strings.Cut(string(b), "  traceback")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), "rank 2 (process 102 on node node, GPU 2) never called all_reduce #3")
	require.Contains(t, out.String(),
		"remedy: see what rank 2 does (process 102 on node node, GPU 2): py-spy dump --pid 102")
	require.Equal(t, 1, ringoMain(t.Context(), []string{"why", name}, &out, &errs))
	require.Contains(t, errs.String(), "the logs do not show all calls of all ranks")
}

// rasAnswer is the answer of ncclras for ranks that have made these numbers of all-reduces.
func rasAnswer(counts ...int) string {
	var ranks []string
	for r, n := range counts {
		ranks = append(ranks,
			fmt.Sprintf(`{"rank": %d, "host": "10.0.0.1", "pid": %d, "nvml_dev": %d, "status": {}, "collective_counts": {"AllReduce": %d}}`, r, 100+r, r, n))
	}
	return fmt.Sprintf(`{"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [{"hash": "0xab", "size": %d, "ranks": [%s]}]}`, len(counts), strings.Join(ranks, ","))
}

// RAS's answers, in a file and from a living job: rank 1 has called one collective less.
func TestWhyRAS(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ras.json"), []byte(rasAnswer(7, 6, 7)), 0o600))
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir}, &out, &errs), errs.String())
	const late = "rank 1 (process 101 on node 10.0.0.1, GPU 1) never called AllReduce #7 of communicator 0xab"
	require.Contains(t, out.String(), late)
	require.Contains(t, out.String(), "note: RAS was asked once")

	for want, answers := range map[string][]string{late: {rasAnswer(7, 6, 7), rasAnswer(7, 6, 7)},
		"the job moves": {rasAnswer(7, 6, 7), rasAnswer(8, 7, 8)}} {
		out.Reset()
		require.Equal(t, map[bool]int{want == late: 3}[true],
			ringoMain(t.Context(), []string{"why", "-ras", serveRAS(t, answers), "-for", "1ms"}, &out, &errs), errs.String())
		require.Contains(t, out.String(), want)
	}
	require.Equal(t, 1, ringoMain(t.Context(), []string{"why", "-ras", "127.0.0.1:1"}, &out, &errs))
	require.Contains(t, errs.String(), "NCCL_RAS_ENABLE")
}

// serveRAS answers clients one after the other, as RAS does.
func serveRAS(t *testing.T, answers []string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for _, answer := range answers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewScanner(conn)
			for _, say := range []string{"SERVER PROTOCOL 2\n", "OK\n", answer} {
				if in.Scan() {
					fmt.Fprint(conn, say)
				}
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// The answers as JSON and as a page. The exit status tells the kind of answer.
func TestWhyOutputs(t *testing.T) {
	dir := t.TempDir()
	writeDumps(t, dir)
	page := filepath.Join(t.TempDir(), "page.html")
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", dir, "-json", "-html", page}, &out, &errs), errs.String())
	var all []struct {
		Ranks    int    `json:"ranks"`
		Reason   string `json:"reason"`
		Culprits []int  `json:"culprits"`
		Missing  []int  `json:"missing"`
		Classes  []struct {
			Ranks []int `json:"ranks"`
			For   []int `json:"wait_for"`
		} `json:"classes"`
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &all), out.String())
	require.Len(t, all, 1)
	require.Equal(t, 3, all[0].Ranks)
	require.Equal(t, "absent", all[0].Reason)
	require.Equal(t, []int{2}, all[0].Culprits)
	require.Equal(t, []int{}, all[0].Missing)
	require.Equal(t, []int{0, 1}, all[0].Classes[0].Ranks)
	require.Equal(t, []int{2}, all[0].Classes[0].For)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<h2>rank 2 never called all_reduce #3")
	require.Contains(t, string(html), `<g class="blamed">`)
	require.Equal(t, 1, strings.Count(string(html), "marker-end"), "an arrow from ranks 0 and 1 to rank 2")
	require.NotContains(t, string(html), "http", "it needs nothing else")

	for counts, want := range map[int]int{7: 5, 6: 3} { // all have called as many; one has called less
		file := filepath.Join(t.TempDir(), "ras.json")
		require.NoError(t, os.WriteFile(file, []byte(rasAnswer(7, counts, 7)), 0o600))
		require.Equal(t, want, ringoMain(t.Context(), []string{"why", file}, &out, &errs), out.String())
	}
	for reason, want := range map[hang.Reason]int{hang.Nothing: 0, hang.Stuck: 4, hang.Unknown: 5} {
		a := answerOf(&hang.Answer{Reason: reason})
		require.Equal(t, want, int(a.status))
	}
	page = filepath.Join(dir, "none", "page")
	require.Equal(t, 2, ringoMain(t.Context(), []string{"why", dir, "-html", page}, &out, &errs))
}
