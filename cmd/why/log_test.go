package why

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
)

// prefixes are the prefixes that launchers write before a line of a rank.
var prefixes = []string{"", "[rank%d]:", "[default%d]:", "%d: ", "[1,%d]<stdout>:", "\x1b[36m(worker rank=%d)\x1b[0m ",
	"2026-01-02T03:04:05.678901234Z stdout F [%d] "}

// lines are the log of a rank that has made calls calls of a communicator.
func lines(r *rand.Rand, prefix string, rank, ranks, calls int, kind func(n int) string) (out []string) {
	if strings.Contains(prefix, "%d") {
		prefix = fmt.Sprintf(prefix, rank)
	}
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%snode-%d:%d:%d [%d] NCCL INFO ", prefix, rank/8, 4000+rank, 5000+rank,
			rank%8)+fmt.Sprintf(format, args...))
	}
	who := fmt.Sprintf("comm 0x7f%04x rank %d nranks %d cudaDev %d nvmlDev %d busId %x", rank, rank, ranks, rank%8, rank%8,
		0x1000*rank)
	add("Bootstrap : Using eth0:10.0.0.%d<0>", rank)
	add("ncclCommInitRank %s commId 0xabc - Init START", who)
	add("ncclCommInitRank %s commId 0xabc - Init COMPLETE", who)
	for n := range calls {
		add("%s: opCount %x sendbuff 0x7f00 recvbuff 0x7f10 count %d datatype 7 op 0 root 0 comm 0x7f%04x [nranks=%d] "+
			"stream 0x55%x", kind(n), n, 1000+n, rank, ranks, rank)
		if r.IntN(3) == 0 {
			out = append(out, prefix+"step 12 loss 2.31\rstep 13")
		}
	}
	return out
}

// A line that claims the most ranks, a log of many lines and a log of long lines are read in seconds, not minutes.
func TestLogBounds(t *testing.T) {
	j, _, err := ncclog.Read(file(t, "f",
		fmt.Appendf(nil, "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks %d cudaDev 0 busId 1 - Init START\n", hang.MaxRanks)))
	require.NoError(t, err)
	require.Equal(t, hang.MaxRanks, len(j.Ranks))

	line := "h:1:2 [0] NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
	_, _, err = ncclog.Read(file(t, "f", []byte(strings.Repeat(line, int(seeds(20000))))))
	require.ErrorIs(t, err, ncclog.ErrMute)
	j, _, err = ncclog.Read(file(t, "f", []byte(strings.Repeat(strings.Repeat("a", 16<<10)+"\n", 500))))
	require.ErrorContains(t, err, "not a log of NCCL")
	require.Nil(t, j)
}

func same(n int) string { return []string{"AllReduce", "AllGather", "Broadcast"}[n%3] }

// write puts the lines of ranks into one file, mixed, or into a file for each rank.
func write(t *testing.T, r *rand.Rand, one bool, ranks [][]string) (files []string) {
	dir := t.TempDir()
	put := func(name string, all []string) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(all, "\n")+"\n"), 0o600))
		files = append(files, name)
	}
	if !one {
		for i, all := range ranks {
			put(fmt.Sprint(i), all)
		}
		return files
	}
	var all []string
	for left := true; left; {
		left = false
		for i := range ranks {
			n := min(len(ranks[i]), r.IntN(4))
			all, ranks[i] = append(all, ranks[i][:n]...), ranks[i][n:]
			left = left || len(ranks[i]) > 0
		}
	}
	put("all", all)
	return files
}

// TestLogScenarios generates hangs with the prefixes of launchers: the reader and the judge name the right rank.
func TestLogScenarios(t *testing.T) {
	for seed := range seeds(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := 3 + r.IntN(14)
		odd, stop, prefix := r.IntN(n), 1+r.IntN(20), prefixes[r.IntN(len(prefixes))]
		begin := func(kind int) (ranks [][]string) {
			for rank := range n {
				calls, kinds := stop+1, same
				if rank == odd {
					switch kind {
					case 0: // stands still
						calls = stop
					case 1: // calls another
						kinds = func(k int) string {
							if k == stop {
								return "Reduce"
							}
							return same(k)
						}
					}
				}
				ranks = append(ranks, lines(r, prefix, rank, n, calls, kinds))
			}
			return ranks
		}
		for kind, reason := range []hang.Reason{hang.Absent, hang.Different, hang.Silent} {
			ranks := begin(kind)
			if kind == 2 {
				ranks[odd] = nil
			}
			files := write(t, r, r.IntN(2) == 0, ranks)
			j, _, err := ncclog.Read(files...)
			require.NoError(t, err, "seed %d", seed)
			a := hang.Judge(j)
			require.Equal(t, reason, a.Reason, "seed %d: %s", seed, a.Sentence)
			require.Equal(t, []int{odd}, a.Culprits, "seed %d: %s", seed, a.Sentence)
		}
		// A rank's lines are torn: nobody is accused.
		ranks := begin(0)
		last := &ranks[odd][len(ranks[odd])-1]
		*last = (*last)[:len(*last)/2]
		files := write(t, r, true, ranks)
		if j, _, err := ncclog.Read(files...); err == nil {
			a := hang.Judge(j)
			require.True(t, len(a.Culprits) == 0 || a.Culprits[0] == odd, "seed %d: %s", seed, a.Sentence)
		}
	}
}

// A rank without a line may have a log that was not copied; a log of messages accuses nobody.
func TestInitAndMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var ranks [][]string
	for rank := range 4 {
		all := lines(r, "", rank, 4, 0, same)
		if rank == 3 {
			all = nil
		} else {
			all = all[:2]
		}
		ranks = append(ranks, all)
	}
	j, _, err := ncclog.Read(write(t, r, true, ranks)...)
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "because the file of rank 3 is missing")

	ranks = nil
	for rank := range 4 {
		ranks = append(ranks,
			lines(r, "", rank, 4, 3,
				func(n int) string { return map[bool]string{true: "Recv", false: "AllReduce"}[n == 2 && rank == 1] }))
	}
	_, _, err = ncclog.Read(write(t, r, true, ranks)...)
	require.ErrorIs(t, err, ncclog.ErrMute)
	require.ErrorContains(t, err, "it carries messages")
}

func TestNoLog(t *testing.T) {
	require.True(t, ncclog.Is([]byte("[rank0]:h:1:2 [0] NCCL INFO cudaDriverVersion 12020\n")))
	require.False(t, ncclog.Is([]byte(`{"entries": []}`)))
	_, _, err := ncclog.Read(file(t, "f", []byte("nothing\n")))
	require.ErrorContains(t, err, "not a log of NCCL")
}

func FuzzLog(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	f.Add([]byte(strings.Join(append(lines(r, "", 0, 2, 3, same), lines(r, "", 1, 2, 2, same)...), "\n") + "\n"))
	f.Add([]byte("h:1:2 [0] NCCL INFO ncclCommSplit comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1 parent 0x2 " +
		"childCount 1 color 3 key 0- Init START\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, _, _ := ncclog.Read(file(t, "f", b)); j != nil {
			a := hang.Judge(j)
			_ = a.Print(&strings.Builder{})
		}
	})
}

// Logs that have times accuse a rank once they show that others have waited for it.
func TestLogTimes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log := func(more string, stamps ...string) *hang.Job {
		ranks := [][]string{}
		for rank := range 3 {
			all := lines(rand.New(rand.NewPCG(1, 1)), "", rank, 3, 4-rank/2, same)
			for i := range all {
				for _, s := range stamps {
					all[i] = at.Add(time.Duration(i)*20*time.Millisecond).Format(s) + all[i]
				}
			}
			ranks = append(ranks, append(all, more))
		}
		j, _, err := ncclog.Read(write(t, rand.New(rand.NewPCG(1, 1)), false, ranks)...)
		require.NoError(t, err)
		return j
	}
	for _, stamp := range []string{
		"[2006-01-02 15:04:05.000] ", "2006-01-02T15:04:05.000000000Z stdout F ", "[1] 2006/01/02 15:04:05.000000 ",
	} {
		a := hang.Judge(log("", stamp))
		require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
		require.Contains(t, a.Sentence, "rank 2 (process 4002 on node node-0, GPU 2) never called")
		require.Empty(t, a.Culprits)
		for _, more := range []string{at.Add(5*time.Second).Format(stamp) + "epoch 7",
			"WorkNCCL(SeqNum=4) ran for 600045 milliseconds before timing out."} {
			require.Equal(t, []int{2}, hang.Judge(log(more, stamp)).Culprits, more)
		}
	}
	require.Equal(t, []int{2}, hang.Judge(log("")).Culprits, "a log without times")
}
