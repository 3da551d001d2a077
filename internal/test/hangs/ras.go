package hangs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// perHost is the number of ranks on a host.
const perHost = 8

func host(r int) string { return fmt.Sprintf("10.0.0.%d", 1+r/perHost) }
func pid(r int) int     { return 4000 + r }

// title is NCCL's name of a kind of call.
func title(kind string) string {
	return map[string]string{
		"all_reduce": "AllReduce", "_all_gather_base": "AllGather", "broadcast": "Broadcast", "reduce": "Reduce",
		"barrier": "AllReduce", "send": "SendRecv", "recv": "SendRecv",
	}[kind]
}

// answers are those of RAS at a moment, asked twice: the counts of all ranks.
func (j *job) answers(at time.Duration, old bool) []byte {
	if old {
		return []byte(j.rasText(at))
	}
	var comms []any
	for g, members := range j.groups {
		var ranks, missing []any
		for i, r := range members {
			k := &j.ranks[r]
			if slices.Contains(k.unmade, g) {
				continue
			}
			one := map[string]any{"rank": i, "host": host(r), "pid": pid(r), "nvml_dev": r % perHost, "cuda_dev": r % perHost}
			if k.died <= at || k.stopped {
				one["status"] = map[string]any{"unresponsive": true, "considered_dead": k.died <= at}
				missing = append(missing, one)
				continue
			}
			one["status"] = map[string]any{"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false,
				"abort_flag": false}
			counts := map[string]int64{"AllReduce": 0, "AllGather": 0, "Broadcast": 0, "Reduce": 0, "ReduceScatter": 0,
				"SendRecv": 0}
			for _, c := range j.seen(r, at) {
				if c.group == g {
					counts[title(c.kind)]++
				}
			}
			one["collective_counts"] = counts
			ranks = append(ranks, one)
		}
		comms = append(comms, map[string]any{"hash": fmt.Sprintf("0x27a079b828ff1a%02x", g), "size": len(members),
			"ranks": ranks, "missing_ranks": missing})
	}
	var out []byte
	for i := range 2 {
		b, err := json.MarshalIndent(map[string]any{
			"nccl_version": "2.29.1", "cuda_runtime_version": 13000, "timestamp": fmt.Sprintf("2026-01-02 13:06:5%d", i),
			"communicators_count": len(comms), "communicators": comms,
		}, "", "  ")
		if err != nil {
			panic(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out
}

// rasText is the answer of NCCL before 2.28, of one communicator.
func (j *job) rasText(at time.Duration) string {
	n := len(j.ranks)
	var missing, warnings, problems strings.Builder
	counts := map[int][]int{}
	most := 0
	for r := range j.ranks {
		if k := &j.ranks[r]; k.died <= at || k.stopped {
			fmt.Fprintf(&missing, "  Rank %d -- GPU %d managed by process %d on node %s\n", r, r%perHost, pid(r), host(r))
			continue
		}
		c := 0
		for _, one := range j.seen(r, at) {
			if one.kind == "all_reduce" && one.group == 0 {
				c++
			}
		}
		counts[c] = append(counts[c], r)
		if len(counts[c]) > len(counts[most]) {
			most = c
		}
	}
	const line = "#0-0 (27a079b828ff1a75) "
	if missing.Len() > 0 {
		fmt.Fprintf(&problems, line+"INCOMPLETE\n  Missing communicator data from %d rank\n%s\n",
			strings.Count(missing.String(), "\n"), missing.String())
	}
	if len(counts) > 1 {
		warnings.WriteString(line + "MISMATCH\n  Communicator ranks have different AllReduce operation counts\n")
		fmt.Fprintf(&warnings, "  %d ranks have launched up to operation %d\n", len(counts[most]), most)
		for c, ranks := range counts {
			if c == most {
				continue
			}
			for _, r := range ranks {
				fmt.Fprintf(&warnings, "  Rank %d has launched up to operation %d -- GPU %d managed by process %d on node %s\n", r,
					c, r%perHost, pid(r), host(r))
			}
		}
	}
	one := fmt.Sprintf(`NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
%7d %10d            1 %10d %8d

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1 %9d %9d %9d %9d   RUNNING  OK

Errors
======

%s
Warnings
========

%s
`, (n+perHost-1)/perHost, min(n, perHost), n, n, (n+perHost-1)/perHost, min(n, perHost), n, n, problems.String(), warnings.String())
	return one + one
}
