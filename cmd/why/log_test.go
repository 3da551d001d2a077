package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
)

// lines are the log of a rank that has made calls calls of a communicator. TestWhyProof of package command has those of
// generated hangs, with the prefixes of launchers.
func lines(rank, ranks, calls int, kind func(n int) string) (out []string) {
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("node-%d:%d:%d [%d] NCCL INFO ", rank/8, 4000+rank, 5000+rank, rank%8)+
			fmt.Sprintf(format, args...))
	}
	who := fmt.Sprintf("comm 0x7f%04x rank %d nranks %d cudaDev %d nvmlDev %d busId %x", rank, rank, ranks, rank%8, rank%8,
		0x1000*rank)
	add("Bootstrap : Using eth0:10.0.0.%d<0>", rank)
	add("ncclCommInitRank %s commId 0xabc - Init START", who)
	add("ncclCommInitRank %s commId 0xabc - Init COMPLETE", who)
	for n := range calls {
		add("%s: opCount %x sendbuff 0x7f00 recvbuff 0x7f10 count %d datatype 7 op 0 root 0 comm 0x7f%04x [nranks=%d] "+
			"stream 0x55%x", kind(n), n, 1000+n, rank, ranks, rank)
		out = append(out, "step 12 loss 2.31\rstep 13")
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

// write puts the lines of each rank into a file of its own.
func write(t *testing.T, ranks [][]string) (files []string) {
	for _, all := range ranks {
		files = append(files, file(t, "log", []byte(strings.Join(all, "\n")+"\n")))
	}
	return files
}

// A rank without a line may have a log that was not copied; a log of messages accuses nobody.
func TestInitAndMessages(t *testing.T) {
	var ranks [][]string
	for rank := range 4 {
		all := lines(rank, 4, 0, same)
		if rank == 3 {
			all = nil
		} else {
			all = all[:2]
		}
		ranks = append(ranks, all)
	}
	j, _, err := ncclog.Read(write(t, [][]string{slices.Concat(ranks...)})...)
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "because the file of rank 3 is missing")

	ranks = nil
	for rank := range 4 {
		ranks = append(ranks,
			lines(rank, 4, 3,
				func(n int) string { return map[bool]string{true: "Recv", false: "AllReduce"}[n == 2 && rank == 1] }))
	}
	_, _, err = ncclog.Read(write(t, [][]string{slices.Concat(ranks...)})...)
	require.ErrorIs(t, err, ncclog.ErrMute)
	require.ErrorContains(t, err, "it carries messages")
}

// A rank that has printed nothing is silent. One whose last line is torn may have called more, and is not accused.
func TestLogsThatEnd(t *testing.T) {
	read := func(change func(last []string) []string) (*hang.Job, error) {
		var ranks [][]string
		for rank := range 4 {
			ranks = append(ranks, lines(rank, 4, 3, same))
		}
		ranks[3] = change(ranks[3])
		j, _, err := ncclog.Read(write(t, ranks)...)
		return j, err
	}
	j, err := read(func([]string) []string { return nil })
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Equal(t, hang.Silent, a.Reason, a.Sentence)
	require.Equal(t, []int{3}, a.Culprits)
	require.Contains(t, a.Sentence, "rank 3 left nothing")
	_, err = read(func(all []string) []string {
		call := all[len(all)-2]
		return append(all[:len(all)-2], call[:strings.Index(call, "sendbuff")])
	})
	require.ErrorIs(t, err, ncclog.ErrMute)
	require.ErrorContains(t, err, "lines are torn or missing")
}

func TestNoLog(t *testing.T) {
	require.True(t, ncclog.Is([]byte("[rank0]:h:1:2 [0] NCCL INFO cudaDriverVersion 12020\n")))
	require.False(t, ncclog.Is([]byte(`{"entries": []}`)))
	_, _, err := ncclog.Read(file(t, "f", []byte("nothing\n")))
	require.ErrorContains(t, err, "not a log of NCCL")
}

func FuzzLog(f *testing.F) {
	f.Add([]byte(strings.Join(append(lines(0, 2, 3, same), lines(1, 2, 2, same)...), "\n") + "\n"))
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
			all := lines(rank, 3, 4-rank/2, same)
			for i := range all {
				for _, s := range stamps {
					all[i] = at.Add(time.Duration(i)*20*time.Millisecond).Format(s) + all[i]
				}
			}
			ranks = append(ranks, append(all, more))
		}
		j, _, err := ncclog.Read(write(t, ranks)...)
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
