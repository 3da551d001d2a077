package why

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// written is a report as RAS writes its JSON.
func written(t testing.TB, comms ...ras.Comm) []byte {
	t.Helper()
	b, err := json.MarshalIndent(map[string]any{"nccl_version": "2.29.1", "timestamp": "2025-12-19 13:06:53",
		"communicators_count": len(comms), "communicators": comms}, "", "  ")
	require.NoError(t, err)
	return b
}

// counted is a communicator of ranks with these counts of AllReduce and Broadcast.
func counted(hash string, peers []int, counts ...[2]int64) ras.Comm {
	c := ras.Comm{Hash: hash, Size: len(peers)}
	for i, p := range peers {
		c.Ranks = append(c.Ranks, ras.Rank{Rank: i, Peer: ras.Peer{Host: "10.0.0.1", Pid: 100 + p, GPU: p},
			Counts: map[string]int64{"AllReduce": counts[i][0], "Broadcast": counts[i][1], "SendRecv": int64(i)}})
	}
	return c
}

func judge(t testing.TB, b []byte) hang.Answer {
	t.Helper()
	require.True(t, ras.Is(b))
	all, err := ras.Parse(b)
	require.NoError(t, err)
	return hang.Judge(all[len(all)-1].Job("ras.json"))
}

// Messages are counted, and not matched: there is no all-clear, and nobody to blame. Nor is there one of ranks that
// have called nothing, or all as much.
func TestRASOfMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		counts []map[string]int64
		says   string
	}{
		"messages alone": {[]map[string]int64{{"Send": 2, "Recv": 1}, {"Recv": 1}, {"Send": 1, "Recv": 1}},
			"ranks have called messages alone, 3 Send, 3 Recv: in which of them ranks wait is not known"},
		"nothing": {[]map[string]int64{{}, {}, {}}, "no rank is known to have called fewer collectives than the others"},
		"zeros": {[]map[string]int64{{"AllReduce": 0}, {"AllReduce": 0}, {"AllReduce": 0, "Send": 1}},
			"ranks have called messages alone, 1 Send: in which"},
	} {
		c := ras.Comm{Hash: "0xab", Size: 3}
		for i, n := range tt.counts {
			c.Ranks = append(c.Ranks, ras.Rank{Rank: i, Peer: ras.Peer{Host: "10.0.0.1", Pid: 100 + i}, Counts: n})
		}
		all, err := ras.Parse(written(t, c))
		require.NoError(t, err)
		twice := append(slices.Clone(all), all...)
		a := ras.Judge(all[0].Job("ras.json"), twice)
		require.Equal(t, hang.Unknown, a.Reason, name)
		require.Empty(t, a.Culprits, name)
		require.Contains(t, a.Sentence, tt.says, name)
		require.NotEmpty(t, a.Remedy, name)
	}
	before, after := counted("0xab", []int{0, 1}, [2]int64{1, 1}, [2]int64{1, 1}),
		counted("0xab", []int{0, 1}, [2]int64{1, 1}, [2]int64{1, 1})
	after.Ranks[1].Counts["SendRecv"]++
	a := ras.Judge((&ras.Report{Comms: []ras.Comm{after}}).Job("x"), []ras.Report{{Comms: []ras.Comm{before}},
		{Comms: []ras.Comm{after}}})
	require.Equal(t, hang.Nothing, a.Reason, a.Sentence)
	require.Contains(t, a.Sentence, "the job moves")
}

func TestRASInJSON(t *testing.T) {
	all := []int{0, 1, 2, 3}
	a := judge(t, written(t, counted("0xab", all, [2]int64{10, 1}, [2]int64{12, 1}, [2]int64{9, 1}, [2]int64{10, 1})))
	require.Equal(t, hang.Absent, a.Reason, a.Sentence)
	require.Equal(t, []int{2}, a.Culprits)
	require.Equal(t, "rank 2 (process 102 on node 10.0.0.1, GPU 2) never called AllReduce #11 of communicator 0xab, its "+
		"last call was collective #10 of communicator 0xab; ranks 0, 1 and 3 wait in AllReduce #11 of communicator 0xab",
		a.Sentence)

	a = judge(t, written(t, counted("0xab", all, [2]int64{10, 1}, [2]int64{9, 2}, [2]int64{10, 1}, [2]int64{10, 1})))
	require.Equal(t, hang.Different, a.Reason, a.Sentence)
	require.Equal(t, []int{1}, a.Culprits)

	// All ranks have called as much: RAS does not tell whether the last call has ended.
	same := counted("0xab", all, [2]int64{10, 1}, [2]int64{10, 1}, [2]int64{10, 1}, [2]int64{10, 1})
	a = judge(t, written(t, same))
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)

	same.Missing, same.Ranks = same.Ranks[3:], same.Ranks[:3]
	same.Missing[0].Status.Silent = true
	a = judge(t, written(t, same))
	require.Equal(t, hang.Silent, a.Reason, a.Sentence)
	require.Equal(t, []int{3}, a.Culprits)

	same.Ranks[1].Status.Async = 1
	a = judge(t, written(t, same))
	require.Equal(t, hang.Died, a.Reason, a.Sentence)
	require.Contains(t, a.Sentence, "has failed with an unhandled CUDA error")
}

// A rank that has not come to make a communicator is to blame.
func TestRASOfInit(t *testing.T) {
	c := counted("0xab", []int{0, 1, 2}, [2]int64{}, [2]int64{}, [2]int64{})
	c.Ranks[0].Status.Init, c.Ranks[1].Status.Init = 7, 7 // ncclInProgress
	c.Missing, c.Ranks = c.Ranks[2:], c.Ranks[:2]
	a := judge(t, written(t, c))
	require.Equal(t, []int{2}, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "never called CommInit #0 of communicator 0xab")
}

// Rank 3 is behind in its row and its column, and ranks 1 to 3 are behind in the world: the judge follows the waits to
// rank 3.
func TestRASGroups(t *testing.T) {
	world := counted("0xa", []int{0, 1, 2, 3}, [2]int64{6, 0}, [2]int64{5, 0}, [2]int64{5, 0}, [2]int64{5, 0})
	row := counted("0xb", []int{2, 3}, [2]int64{8, 0}, [2]int64{7, 0})
	column := counted("0xc", []int{1, 3}, [2]int64{4, 0}, [2]int64{3, 0})
	a := judge(t, written(t, world, row, column))
	require.Equal(t, []int{3}, a.Culprits, a.Sentence)

	// Ranks 2 and 3 may be in their row together: nobody is known to be late.
	world = counted("0xa", []int{0, 1, 2, 3}, [2]int64{6, 0}, [2]int64{6, 0}, [2]int64{5, 0}, [2]int64{5, 0})
	row = counted("0xb", []int{2, 3}, [2]int64{8, 0}, [2]int64{8, 0})
	a = judge(t, written(t, world, row))
	require.Empty(t, a.Culprits, a.Sentence)
	require.Equal(t, hang.Unknown, a.Reason)

	a = judge(t, written(t, counted("0xb", []int{2, 3}, [2]int64{8, 0}, [2]int64{7, 0}),
		counted("0xc", []int{0, 1}, [2]int64{7, 0}, [2]int64{7, 0})))
	require.Equal(t, []int{3}, a.Culprits, a.Sentence)
	require.Contains(t, a.Notes, "no communicator has all processes: ranks are numbered by node, process and GPU")
}

const text = `NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.01s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  %s

Errors
======

%s
Warnings
========

%s
`

func TestRASInText(t *testing.T) {
	for name, c := range map[string]struct {
		errors, warnings string
		reason           hang.Reason
		culprits         []int
		want             string
	}{
		"one is behind": {"", `#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 6650
  Rank 5 has launched up to operation 6649 -- GPU 1 managed by process 483077 on node 172.16.64.210
`, hang.Absent, []int{5}, "rank 5 (process 483077 on node 172.16.64.210, GPU 1) never called AllReduce #6650"},
		"two are behind, of an older version": {"", `#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  6 ranks have launched up to operation 2
  2 ranks have not launched any operations
  Rank 6 -- GPU 2 (NVML 6) managed by process 483077 on node 172.16.64.210
  Rank 7 -- GPU 3 managed by process 483078 on node 172.16.64.210
`, hang.Absent, []int{6, 7}, "GPU 6; process 483078"},
		"one does not answer": {`#0-0 (27a079b828ff1a75) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 3
`, `#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  4 ranks have launched up to operation 10
  3 ranks have launched up to operation 9
  Rank 0 -- GPU 1 managed by process 483077 on node 172.16.64.210
  Rank 1 -- GPU 2 managed by process 483078 on node 172.16.64.210
  Rank 2 -- GPU 3 managed by process 483079 on node 172.16.64.210
`, hang.Absent, []int{0, 1, 2}, "never called AllReduce #10"},
		"one reports an error": {`#0-0 (27a079b828ff1a75) ERROR
  Asynchronous error on 1 rank
  Rank 2 reported Unhandled CUDA error -- GPU 2 managed by process 11 on node 10.0.0.1
`, "", hang.Died, []int{2}, "rank 2 (process 11 on node 10.0.0.1, GPU 2) has failed with an unhandled CUDA error"},
		"halves": {"", `#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  4 ranks have launched up to operation 10
  4 ranks have launched up to operation 9
`, hang.Unknown, nil, "I cannot say"},
	} {
		t.Run(name, func(t *testing.T) {
			a := judge(t, fmt.Appendf(nil, text, "MISMATCH", c.errors, c.warnings))
			require.Equal(t, c.reason, a.Reason, a.Sentence)
			require.Equal(t, c.culprits, a.Culprits, a.Sentence)
			require.Contains(t, a.Sentence, c.want)
		})
	}
}

// serve answers one client as RAS does; an old RAS answers with text only.
func serve(t *testing.T, old bool, said []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		answer(conn, old, said)
	}()
	return l.Addr().String()
}

func answer(conn net.Conn, old bool, said []byte) {
	for in := bufio.NewScanner(conn); in.Scan(); {
		switch line := in.Text(); {
		case line == "CLIENT PROTOCOL 2":
			fmt.Fprint(conn, "SERVER PROTOCOL 2\n")
		case line == "SET FORMAT json" && !old:
			fmt.Fprint(conn, "OK\n")
		case line == "STATUS" && !old, line == "VERBOSE STATUS" && old:
			conn.Write(said)
			return
		default:
			fmt.Fprintf(conn, "ERROR: Unknown command %s\n", line)
		}
	}
}

func TestAsk(t *testing.T) {
	said := written(t, counted("0xa", []int{0, 1}, [2]int64{2, 0}, [2]int64{1, 0}))
	r, err := ras.Ask(t.Context(), serve(t, false, said))
	require.NoError(t, err)
	require.Equal(t, []int{1}, hang.Judge(r.Job("RAS")).Culprits)
	r, err = ras.Ask(t.Context(), serve(t, true, fmt.Appendf(nil, text, "OK", "", "")))
	require.NoError(t, err)
	require.Equal(t, 8, r.GPUs)
	_, err = ras.Ask(t.Context(), serve(t, false, []byte("no")))
	require.ErrorContains(t, err, "not an answer of NCCL's RAS")
	_, err = ras.Ask(t.Context(), "127.0.0.1:1")
	require.ErrorContains(t, err, "NCCL_RAS_ENABLE")
}

// A process that was stopped as it took the connection never greets. Another process takes the next one.
func TestAskStopped(t *testing.T) {
	tier.Long(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	said := written(t, counted("0xa", []int{0, 1}, [2]int64{2, 0}, [2]int64{1, 0}))
	stopped := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		stopped <- conn
		if err != nil {
			return
		}
		if conn, err = l.Accept(); err == nil {
			defer conn.Close()
			answer(conn, false, said)
		}
	}()
	r, err := ras.Ask(t.Context(), l.Addr().String())
	require.NoError(t, err)
	require.Equal(t, []int{1}, hang.Judge(r.Job("RAS")).Culprits)
	require.NoError(t, (<-stopped).Close())
}

// Nobody is late in a job that moves. One answer alone does not show whether the job moves.
func TestMoved(t *testing.T) {
	one := ras.Report{Comms: []ras.Comm{counted("0xa", []int{0, 1}, [2]int64{2, 0}, [2]int64{1, 0})}}
	two := ras.Report{Comms: []ras.Comm{counted("0xa", []int{0, 1}, [2]int64{3, 0}, [2]int64{2, 0})}}
	a := ras.Judge(two.Job("ras"), []ras.Report{one, two})
	require.Equal(t, hang.Nothing, a.Reason)
	require.Empty(t, a.Culprits)
	require.Contains(t, a.Sentence, "the job moves")
	require.Equal(t, "NCCL's RAS", a.Source)
	a = ras.Judge(one.Job("ras"), []ras.Report{one, one})
	require.Equal(t, []int{1}, a.Culprits)
	require.Empty(t, a.Notes)
	a = ras.Judge(one.Job("ras"), []ras.Report{one})
	require.Equal(t, []int{1}, a.Culprits)
	require.Contains(t, a.Notes[0], "asked once")
	two.Comms[0].Ranks[1].Status.Async = 2
	require.Equal(t, hang.Died, ras.Judge(two.Job("ras"), []ras.Report{one, two}).Reason)
}

func TestNoRAS(t *testing.T) {
	for _, b := range []string{"", "{}", "text", `{"communicators_count": 1, "communicators": [{"size": 99999999}]}`,
		`{"communicators_count": 1, "communicators": [{"size": 1, "ranks": [{"rank": 1}]}]}`} {
		_, err := ras.Parse([]byte(b))
		require.Error(t, err, b)
	}
}

func FuzzRAS(f *testing.F) {
	f.Add(written(f, counted("0xa", []int{0, 1}, [2]int64{2, 0}, [2]int64{1, 0})))
	f.Add(fmt.Appendf(nil, text, "MISMATCH", "",
		strings.Repeat("#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n "+
			" Rank 5 has launched up to operation 6649 -- GPU 1 managed by process 7 on node a\n", 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := ras.Parse(b)
		if err != nil {
			return
		}
		for i := range all {
			hang.Judge(all[i].Job("f"))
		}
	})
}

// A few lines of text that claim too many ranks, or too many kinds of calls, are an error.
func TestRASBombs(t *testing.T) {
	head := "Job summary\n===\nCommunicators... (0.01s)\n" +
		fmt.Sprintf("    0         1         2         4    %d         8   RUNNING  OK\n", hang.MaxRanks)
	var comms, kinds strings.Builder
	for i := range 64 {
		fmt.Fprintf(&comms, "#0-0 (%x) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  %d "+
			"ranks have launched up to operation 7\n", i, hang.MaxRanks)
	}
	kinds.WriteString("#0-0 (1) MISMATCH\n")
	for i := range 100 {
		fmt.Fprintf(&kinds, "  Communicator ranks have different K%d operation counts\n  %d ranks have launched up to "+
			"operation 7\n", i, hang.MaxRanks)
	}
	for _, lines := range []string{comms.String(), kinds.String()} {
		_, err := ras.Parse([]byte(head + lines))
		require.ErrorContains(t, err, "not an answer of NCCL's RAS")
	}
}
