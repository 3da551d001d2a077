package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
	"github.com/ringo-go/ringo/cmd/why/printed"
)

// said reads texts, each in a file of its own.
func said(t testing.TB, texts ...string) *printed.Said {
	var files []string
	for i, text := range texts {
		require.True(t, printed.Is([]byte(text)), text)
		files = append(files, file(t, string(rune('a'+i)), []byte(text)))
	}
	s, skipped := printed.Read(files...)
	require.Empty(t, skipped)
	return s
}

const failures = `E0102 13:07:31.000000 3999 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 3 (pid: 4711) of binary: /usr/bin/python
train.py FAILED
Failures:
  <NO_OTHER_FAILURES>
Root Cause (first observed failure):
[0]:
  time      : 2026-01-02_13:07:00
  host      : node-0
  rank      : 11 (local_rank: 3)
  exitcode  : -9 (pid: 4711)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4711
`

// How processes have ended, by the words of launchers and the kernel.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []hang.Hint
	}{
		"torchrun": {failures, []hang.Hint{
			{Rank: -1, Pid: 4711, Death: "was killed by SIGKILL, as torchrun says"},
			{Rank: 11, Pid: 4711, Death: "was killed by SIGKILL, as torchrun says"},
			{Rank: 11, Pid: 4711, Death: "was killed by SIGKILL, as torchrun says"},
		}},
		"the launcher's own signals": {"W Sending process 4711 closing signal SIGTERM\n" + failures, nil},
		"an abort is the watchdog's": {"failed (exitcode: -6) local_rank: 0 (pid: 4711)\n", nil},
		"the kernel": {"[1.2] Out of memory: Killed process 77 (python) total-vm:1kB\nMemory cgroup out of memory: Killed " +
			"process 78 (python)\n", []hang.Hint{
			{Rank: -1, Pid: 77, Death: "was killed because memory was short, as the kernel says"},
			{Rank: -1, Pid: 78, Death: "was killed because memory was short, as the kernel says"},
		}},
		"srun, of which the first counts": {"srun: error: node3: task 5: Out Of Memory\nsrun: error: node3: task 6: Killed\n",
			[]hang.Hint{
				{Rank: 5, Death: "was killed because memory was short, as srun says"},
			}},
		"mpirun": {"mpirun noticed that process rank 7 with PID 0 on node n0 exited on signal 9 (Killed).\nprterun noticed " +
			"that process rank 2 with PID 5 on node n0 exited on signal 6 (Aborted).\n", []hang.Hint{
			{Rank: 7, Death: "was killed by SIGKILL, as mpirun says"},
		}},
		"srun after an end": {"slurmstepd: error: *** STEP 1.0 CANCELLED DUE TO TIME LIMIT ***\nsrun: error: node3: task " +
			"6: Killed\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, append([]hang.Hint(nil), said(t, c.text).Hints...))
		})
	}
}

// Exceptions of ranks. An exception that only echoes another rank's end does not count.
func TestRaised(t *testing.T) {
	trace := func(rank, last string) string {
		return strings.ReplaceAll("R Traceback (most recent call last):\nR   File \"/home/u/train.py\", line 90, in "+
			"main\nR     step()\n"+
			"R   File \"/home/u/loss.py\", line 8, in f\nR     x()\nR   File "+
			"\"/opt/lib/python3.12/site-packages/torch/nn/functional.py\", line 1, in g\nR "+last+"\n", "R", "[rank"+rank+"]:")
	}
	s := said(t, trace("3", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")+trace("4",
		"torch.distributed.DistBackendError: NCCL error in: x.cpp:1")+
		trace("5", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "+
			"[10.0.0.4]:23690")+trace("6", "KeyError: '\x1b[31mbad'")+trace("7", "no exception"))
	require.Equal(t, []hang.Hint{
		{Rank: 3, Raised: "ended with torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (loss.py:8 in " +
			"f)"},
		{Rank: 6, Raised: "ended with KeyError: 'bad' (loss.py:8 in f)"},
	}, s.Hints)
	j, err := s.Job()
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Equal(t, hang.Died, a.Reason, a.Sentence)
	require.Equal(t, []int{3, 6}, a.Culprits)
}

const waits = `[rank%R]:[E709 17:05:38.162814866 ProcessGroupNCCL.cpp:632] [Rank %R] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank%R]:[E709 17:05:38.162814866 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank %R]  failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 13, last completed work: 11
`

// PyTorch's watchdogs tell that one rank has enqueued less. Nothing is known of ranks without a watchdog's line.
func TestWatchdog(t *testing.T) {
	of := func(rank string) string { return strings.ReplaceAll(waits, "%R", rank) }
	behind := "[rank2]:[E709 17:05:39.1 ProcessGroupNCCL.cpp:1700] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a " +
		"dump signal due to a collective timeout from rank 0. " +
		"PG status: last enqueued work: 11, last completed work: 11\n"
	j, err := said(t, of("0"), of("1")+behind).Job()
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, j.Ranks[0].Calls[0].Limit)
	a := hang.Judge(j)
	require.Equal(t, hang.Absent, a.Reason, a.Sentence)
	require.Equal(t, []int{2}, a.Culprits)
	require.Contains(t, a.Sentence, "rank 2 never called ALLREDUCE #12 of the default group")

	j, err = said(t, of("0")+of("1")).Job()
	require.NoError(t, err)
	a = hang.Judge(j)
	require.Equal(t, hang.Unknown, a.Reason, a.Sentence)
	require.Empty(t, a.Culprits)

	// An older version names the group in another line, or not at all.
	j, err = said(t, "[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: "+
		"WorkNCCL(SeqNum=5, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800100 milliseconds\n").Job()
	require.NoError(t, err)
	require.Equal(t, "BROADCAST", j.Ranks[1].Calls[0].Kind)
	require.Equal(t, hang.Unknown, hang.Judge(j).Reason)

	_, err = said(t, "[E ProcessGroupNCCL.cpp:474] Watchdog caught collective operation timeout\n").Job()
	require.ErrorIs(t, err, printed.ErrMute)
}

// Gloo's barrier names the ranks that did not come.
func TestMonitoredBarrier(t *testing.T) {
	j, err := said(t, "RuntimeError: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms\n").Job()
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Empty(t, a.Culprits, "most have not come")
	j, err = said(t, "RuntimeError: Rank 1 failed to pass monitoredBarrier in 2000 ms\n").Job()
	require.NoError(t, err)
	a = hang.Judge(j)
	require.Equal(t, []int{1}, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "rank 1 never called monitoredBarrier")
}

func TestPrintedBounds(t *testing.T) {
	require.False(t, printed.Is([]byte("epoch 1\n")))
	require.False(t, printed.Is([]byte("Traceback (most recent call last)\x00")))
	const maxLine, maxHints = 16 << 10, 1 << 12
	var files []string
	for _, text := range []string{
		strings.Repeat("[rank99999]:Traceback (most recent call last)\n[rank99999]:ValueError: "+
			strings.Repeat("x", 3*maxLine)+"\n", 100),
		strings.Repeat("Out of memory: Killed process 1\n", 2*maxHints),
		strings.Repeat("[rank999999]:[PG ID 0 Rank 999999] last enqueued work: 99999999999999999999, last completed work: "+
			"1\n", 10),
	} {
		files = append(files, file(t, "f", []byte(text)))
	}
	s, skipped := printed.Read(files...)
	require.Empty(t, skipped)
	require.LessOrEqual(t, len(s.Hints), maxHints)
	for _, h := range s.Hints {
		require.Less(t, len(h.Raised), 300)
	}
}

func FuzzPrinted(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(waits, "%R", "3") + failures))
	f.Add([]byte("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 3, in f\n[rank1]: " +
		"ValueError: x\nRank 1 failed to pass monitoredBarrier in 5 ms\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := printed.Read(file(t, "f", b))
		if j, err := s.Job(); err == nil {
			a := hang.Judge(j)
			_ = a.Print(&strings.Builder{})
		}
	})
}

// PyTorch 2.11's watchdog repeats a call without its group when it ends the process. That is the call of the group
// before.
func TestCaughtAgain(t *testing.T) {
	const caught = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, " +
		"NumelIn=16, NumelOut=16, Timeout(ms)=12000) ran for 12028 milliseconds before timing out.\n"
	s := said(t, "[rank0]:[E1126 05:38:48.4 ProcessGroupNCCL.cpp:689] "+caught+
		"[rank0]:[E1126 05:38:48.4 ProcessGroupNCCL.cpp:2303] [PG ID 1 PG GUID 1 Rank 0]  failure detected by watchdog at "+
		"work sequence id: 2 PG status: last enqueued work: 2, last completed work: 1\n"+
		"[rank0]:[E1126 05:39:11.4 ProcessGroupNCCL.cpp:2119] [PG ID 1 PG GUID 1 Rank 0] Process group watchdog thread "+
		"terminated with exception: "+caught+
		"  what():  [PG ID 1 PG GUID 1 Rank 0] Process group watchdog thread terminated with exception: "+caught)
	j, err := s.Job()
	require.NoError(t, err)
	require.Len(t, j.Groups, 1)
	require.Equal(t, "1", j.Groups[0].Name)
	require.Len(t, j.Ranks[0].Calls, 1)
}

// A send or recv that makes a communicator is in no dump. Only the warning before the call tells of it.
func TestUnbatched(t *testing.T) {
	s := said(t, "[rank0]:[W1126 05:39:30.1 ProcessGroupNCCL.cpp:4094] Warning: An unbatched P2P op (send/recv) was "+
		"called on this ProcessGroup with size 2.\n")
	require.Equal(t, []hang.Hint{{Rank: 0, Alone: true}}, s.Hints)
	of := func(c hang.Call) string {
		j := &hang.Job{Groups: []hang.Group{{Name: "0", Desc: "default_pg", Ranks: []int{0, 1}}},
			Ranks: []hang.Rank{{Source: "f", Calls: []hang.Call{c}}, {Source: "f"}}}
		for n := range int64(2) {
			j.Ranks[1].Calls = append(j.Ranks[1].Calls,
				hang.Call{Number: n + 1, Kind: "all_reduce", Peer: -1, State: map[int64]hang.State{0: hang.Ended, 1: hang.Open}[n]})
		}
		require.Equal(t, []bool{true}, j.Hear(s.Hints))
		a := hang.Judge(j)
		require.Equal(t, []int{0}, a.Culprits)
		return a.Sentence
	}
	require.Contains(t, of(hang.Call{Number: 1, Kind: "all_reduce", Peer: -1, State: hang.Ended}),
		"its log tells of a send or recv")
	require.NotContains(t, of(hang.Call{Number: 1, Kind: "send", Peer: 1, Send: true, State: hang.Ended}), "its log tells")
}

// Groups are told apart by the names that all ranks share, not by the numbers that each process gives them.
func TestGroupsByName(t *testing.T) {
	line := func(rank, own, guid, number, done int) string {
		return fmt.Sprintf("[rank%d]:[E218 04:54:22.86 ProcessGroupNCCL.cpp:2268] [PG ID 2 PG GUID %d(mesh) Rank %d]  failure "+
			"detected by watchdog at work sequence id: %d PG status: last enqueued work: %d, last completed work: %d\n", rank,
			guid, own, number, number, done)
	}
	waits := func(rank, own, guid, number int) string {
		return fmt.Sprintf("[rank%d]:[E218 04:54:22.86 ProcessGroupNCCL.cpp:632] [PG ID 2 PG GUID %d(mesh) Rank %d] Watchdog "+
			"caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "+
			"Timeout(ms)=600000) ran for 600045 milliseconds before timing out.\n", rank, guid, own, number)
	}
	j, err := said(t, waits(0, 0, 3, 216)+waits(1, 1, 3, 216)+line(2, 0, 4, 57, 57)+line(3, 1, 4, 57, 57)).Job()
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Empty(t, a.Culprits, a.Sentence)
	require.Contains(t, a.Sentence, "ranks 0 and 1 wait in ALLREDUCE #216 of group 3")
	require.Len(t, j.Groups, 2)
}

// An error of this library is no death of the rank that prints it. It accuses the rank that it names, if that is known
// to have the number in the program too and all errors say the same.
func TestOwnErrors(t *testing.T) {
	raises := func(rank, self int, text string) string {
		return fmt.Sprintf("[rank%d]: Traceback (most recent call last):\n[rank%[1]d]:   File \"/home/u/train.py\", line 31, in "+
			"main\n[rank%[1]d]: RuntimeError: AllReduce: rank %d on vm: %s\n", rank, self, text)
	}
	const died = "rank 1 died: its process ended without goodbye"
	s := said(t, raises(0, 0, died), raises(2, 2, "recv from rank 1 over shm: "+died))
	require.Equal(t, []hang.Hint{{Rank: 1, Death: "died: its process ended without goodbye, as rank 0 says"}}, s.Hints)
	j, err := s.Job()
	require.NoError(t, err)
	a := hang.Judge(j)
	require.Equal(t, []int{1}, a.Culprits, a.Sentence)
	for _, texts := range [][]string{
		{raises(4, 0, died), raises(6, 2, died)}, {raises(0, 0, died)}, {raises(0, 0, "timed out in AllReduce #5")},
		{raises(0, 0, died), raises(3, 3, strings.ReplaceAll(died, "rank 1", "rank 2"))},
	} {
		require.Empty(t, said(t, texts...).Hints, texts)
	}
}

// Of several attempts in one log the newest counts: by the times of the watchdogs' lines, and by what torchrun says.
func TestPrintedAttempts(t *testing.T) {
	waits := func(rank, number, hour int) string {
		return fmt.Sprintf("[rank%d]:[E1102 %02d:54:22.86 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective "+
			"operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for "+
			"600045 milliseconds before timing out.\n"+
			"[rank%[1]d]:[E1102 %02[2]d:54:22.86 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank %[3]d]  failure "+
			"detected by watchdog at work sequence id: %[4]d PG status: last enqueued work: %[4]d, last completed work: %[5]d\n",
			rank, hour, rank, number, number-1)
	}
	late := func(rank, number, hour int) string {
		return fmt.Sprintf("[rank%d]:[E1102 %02d:54:22.86 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank %[1]d] "+
			" failure detected by watchdog at work sequence id: %[3]d PG status: last enqueued work: %[3]d, last completed "+
			"work: %[3]d\n", rank, hour, number)
	}
	const anew = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"
	first := waits(0, 100, 3) + late(1, 99, 3) + waits(2, 100, 3)
	second := waits(0, 50, 4) + waits(1, 50, 4) + late(2, 49, 4)
	for name, texts := range map[string][]string{
		"by times": {first + second}, "files": {first, second}, "older last": {second, first},
		"torchrun": {strings.ReplaceAll(first, "E1102 03", "E1102 04") + anew + second},
	} {
		s := said(t, texts...)
		j, err := s.Job()
		require.NoError(t, err)
		a := hang.Judge(j)
		require.Equal(t, []int{2}, a.Culprits, "%s: %s", name, a.Sentence)
		require.Contains(t, a.Sentence, "ALLREDUCE #50")
	}
	j, err := said(t, first+waits(0, 50, 4)).Job() // what ranks 1 and 2 do in the second is not known
	require.NoError(t, err)
	require.Empty(t, hang.Judge(j).Culprits)
	s := said(t, failures+anew+second)
	require.Empty(t, s.Hints, "a rank that died in the first attempt lives")
}

// Texts that name no rank, but say what went wrong, are answered with that, and not with how to make other files.
func TestTold(t *testing.T) {
	for _, line := range []string{
		"slurmstepd: error: Detected 1 oom_kill event in StepId=38.batch. Some of the step tasks have been OOM Killed.",
		"[E930 15:23:00.05 ProcessGroupNCCL.cpp:1487] [PG ID 4 PG GUID  Rank 2] ProcessGroupNCCL's watchdog got stuck for 10 " +
			"seconds without making progress",
	} {
		_, err := said(t, line+"\n").Job()
		require.ErrorIs(t, err, printed.ErrMute)
		require.EqualError(t, err, line)
	}
	_, _, err := ncclog.Read(file(t, "f", []byte("gpu-1:22:23 [0] bootstrap.cc:37 NCCL WARN Bootstrap : no socket interface "+
		"found\ngpu-1:22:23 [0] NCCL INFO init.cc:128 -> 3\n")))
	require.ErrorIs(t, err, ncclog.ErrMute)
	require.EqualError(t, err, "process 22 on node gpu-1, GPU 0: Bootstrap : no socket interface found")
}
