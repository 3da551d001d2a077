package hangs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// prefixes are what launchers write before a rank's lines: nothing, torchrun, srun --label, mpirun --tag-output, Ray,
// kubectl logs --prefix.
var prefixes = []string{"", "[rank%d]:", "[default%d]:", "%d: ", "[1,%d]<stdout>:", "\x1b[36m(worker rank=%d)\x1b[0m ",
	"[pod/train-worker-%d/pytorch] "}

// head is what NCCL writes before each of its lines.
func head(r int) string {
	return fmt.Sprintf("node-%d:%d:%d [%d]", r/perHost, pid(r), 9000+r, r%perHost)
}

// lines are what a rank prints: NCCL's lines, PyTorch's, and the program's.
func (s *Scenario) lines(r int, at time.Duration, launcher string, noise *rand.Rand) (out []string) {
	j := s.job
	if strings.Contains(launcher, "%d") {
		launcher = fmt.Sprintf(launcher, r)
	}
	say := func(format string, args ...any) {
		out = append(out, launcher+head(r)+" NCCL INFO "+fmt.Sprintf(format, args...))
	}
	handle := func(g int) string { return fmt.Sprintf("0x55d0%02x%04x", g, r) }
	for g, members := range j.groups {
		if !slices.Contains(members, r) || slices.Contains(j.ranks[r].unmade, g) {
			continue
		}
		who := fmt.Sprintf("comm %s rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0xab%02x", handle(g),
			slices.Index(members, r), len(members), r%perHost, r%perHost, 0x1000*(r+1), g)
		say("ncclCommInitRankConfig %s - Init START", who)
		say("Channel 00/02 : %s", strings.Trim(list(members[:min(8, len(members))]), "[]"))
		say("ncclCommInitRankConfig %s - Init COMPLETE", who)
	}
	counts := map[int]int{}
	for n, c := range j.seen(r, at) {
		kind, root := title(c.kind), c.root
		tail := ""
		if c.peer >= 0 {
			kind, root = map[bool]string{true: "Send", false: "Recv"}[c.send], slices.Index(j.groups[c.group], c.peer)
		}
		say("%s: opCount %x sendbuff 0x7f00%04x recvbuff 0x7f10%04x count %d datatype 7 op 0 root %d comm %s [nranks=%d] "+
			"stream 0x55%x%s",
			kind, counts[c.group], n, n, c.size, root, handle(c.group), len(j.groups[c.group]), c.group, tail)
		counts[c.group]++
		if noise.IntN(5) == 0 {
			out = append(out, launcher+fmt.Sprintf("epoch 0:  %d%%|███       | %d/400 [00:01<00:09]\repoch 0: %d loss %.4f", n,
				n, n+1, 2.3))
		}
	}
	return append(out, s.ends(r, at)...)
}

// ends is what PyTorch prints on a rank when calls have waited too long, or when the program raises an exception.
func (s *Scenario) ends(r int, at time.Duration) (out []string) {
	j := s.job
	k := &j.ranks[r]
	switch {
	case k.stopped:
		return nil
	case k.died <= at:
		if s.raised == "" {
			return nil
		}
		return []string{
			fmt.Sprintf("[rank%d]: Traceback (most recent call last):", r),
			fmt.Sprintf(`[rank%d]:   File "/home/u/main.py", line 12, in <module>`, r), fmt.Sprintf("[rank%d]:     main()", r),
			fmt.Sprintf(`[rank%d]:   File "/home/u/loss.py", line 88, in compute`, r),
			fmt.Sprintf("[rank%d]:     raise ValueError(text)", r),
			fmt.Sprintf("[rank%d]: %s", r, s.raised),
		}
	}
	for _, c := range j.seen(r, at) {
		if c.ended != never || c.peer >= 0 || c.at+j.limit > at {
			continue
		}
		enqueued, completed := int64(0), int64(0)
		for _, o := range j.seen(r, at) {
			if o.group == c.group && o.peer < 0 {
				enqueued = o.number
				if o.ended != never {
					completed = o.number
				}
			}
		}
		stamp := j.start.Add(c.at + j.limit + k.skew).UTC().Format("0102 15:04:05.000000000")
		return []string{
			fmt.Sprintf("[rank%d]:[E%s ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: "+
				"WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=%d, NumelOut=%d, Timeout(ms)=%d) ran for %d milliseconds before timing "+
				"out.",
				r, stamp, r, c.number, work(c.kind), c.size, c.size, j.limit.Milliseconds(), j.limit.Milliseconds()+17),
			fmt.Sprintf("[rank%d]:[E%s ProcessGroupNCCL.cpp:2271] [PG ID %d PG GUID %d(%s) Rank %d]  failure detected by "+
				"watchdog at work sequence id: %d PG status: last enqueued work: %d, last completed work: %d",
				r, stamp, c.group, c.group, desc(c.group), slices.Index(j.groups[c.group], r), c.number, enqueued, completed),
			fmt.Sprintf("[rank%d]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank %d.", r, r),
		}
	}
	return nil
}

func work(kind string) string {
	return map[string]string{"all_reduce": "ALLREDUCE", "_all_gather_base": "_ALLGATHER_BASE", "broadcast": "BROADCAST",
		"reduce": "REDUCE", "barrier": "BARRIER"}[kind]
}

// torchrun is what torchrun prints at the end. It ends the other ranks, some of which need a second signal.
func torchrun(s *Scenario, r, code int, how string) []string {
	other := (r + 1) % s.Ranks
	return []string{
		fmt.Sprintf("W0102 13:07:00.000000 3999 torch/distributed/elastic/multiprocessing/api.py:900] Sending process %d "+
			"closing signal SIGTERM", pid(other)),
		fmt.Sprintf("W0102 13:07:30.000000 3999 torch/distributed/elastic/multiprocessing/api.py:919] Unable to shutdown "+
			"process %d via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL", pid(other)),
		fmt.Sprintf("E0102 13:07:31.000000 3999 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: "+
			"%d) local_rank: %d (pid: %d) of binary: /usr/bin/python", code, r%perHost, pid(r)),
		"============================================================", "train.py FAILED",
		"------------------------------------------------------------",
		"Failures:", "  <NO_OTHER_FAILURES>", "------------------------------------------------------------",
		"Root Cause (first observed failure):", "[0]:",
		"  time      : 2026-01-02_13:07:00", fmt.Sprintf("  host      : node-%d", r/perHost),
		fmt.Sprintf("  rank      : %d (local_rank: %d)", r, r%perHost),
		fmt.Sprintf("  exitcode  : %d (pid: %d)", code, pid(r)), "  error_file: <N/A>", "  traceback : " + how,
		"============================================================",
	}
}

// mixed puts lines of all ranks into one file, a few of each at a time.
func mixed(r *rand.Rand, ranks [][]string) (all []string) {
	for left := true; left; {
		left = false
		for i := range ranks {
			n := min(len(ranks[i]), r.IntN(4))
			all, ranks[i] = append(all, ranks[i][:n]...), ranks[i][n:]
			left = left || len(ranks[i]) > 0
		}
	}
	return all
}

// tear has one line of NCCL's broken by another process's, as happens where several write into one file.
func tear(r *rand.Rand, lines []string) []string {
	for range 100 {
		i := r.IntN(len(lines) - 1)
		if strings.Contains(lines[i], "opCount") && strings.Contains(lines[i+1], "opCount") {
			at := len(lines[i]) / 2
			return slices.Replace(slices.Clone(lines), i, i+2, lines[i][:at]+lines[i+1], lines[i][at:])
		}
	}
	return lines
}

// stack is py-spy's text about a rank's process.
func (j *job) stack(r int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Process %d: /usr/bin/python -u train.py --config a.yaml\nPython v3.12.4 "+
		"(/usr/bin/python3.12)\n\nThread %d (idle): \"MainThread\"\n", pid(r), pid(r))
	switch j.ranks[r].where {
	case "loader":
		b.WriteString("    select (selectors.py:415)\n    _poll (multiprocessing/connection.py:1136)\n    get " +
			"(multiprocessing/queues.py:113)\n" +
			"    _try_get_data (torch/utils/data/dataloader.py:1251)\n    __next__ (torch/utils/data/dataloader.py:701)\n    " +
			"batches (train.py:31)\n")
	case "checkpoint":
		b.WriteString("    _save (torch/serialization.py:1211)\n    save (torch/serialization.py:944)\n    save " +
			"(train.py:71)\n")
	case "loop":
		b.WriteString("    retry (client.py:17)\n    fetch (client.py:40)\n")
	default:
		b.WriteString("    all_reduce (torch/distributed/distributed_c10d.py:2938)\n    wrapper " +
			"(torch/distributed/c10d_logger.py:81)\n    step (train.py:40)\n")
	}
	b.WriteString("    main (train.py:90)\n    <module> (train.py:99)\n")
	fmt.Fprintf(&b, "Thread %d (idle): \"pt_tcpstore_uv\"\n", pid(r)+5000)
	return b.String()
}
