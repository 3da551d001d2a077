package hangs

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Large writes the dumps of a job of many ranks, with a number of entries each: data parallel over all, tensor parallel
// in groups of eight, and pipelines' columns. The rank odd has not made the last call of its column.
func Large(dir string, ranks, entries int) (odd int, err error) {
	j := newJob(1, ranks, Grid(ranks/perHost, perHost)...)
	odd = ranks * 2 / 3
	var line op
	for r := range ranks {
		k := &j.ranks[r]
		rows := ranks / perHost
		numbers := map[int]int64{}
		for i := range entries {
			line = []op{
				collective(1+r/perHost, "all_reduce", 4096, "layer.py:210 in forward"),
				collective(1+rows+r%perHost, "_reduce_scatter_base", 1<<20, "optim.py:77 in reduce"),
				collective(0, "all_reduce", 1, "train.py:50 in norm"),
			}[map[bool]int{true: 0, false: 1 + i/8%2}[i%8 != 0]]
			if i == entries-1 {
				line = collective(1+rows+r%perHost, "_reduce_scatter_base", 1<<20, "optim.py:77 in reduce")
				if r == odd {
					break
				}
			}
			numbers[line.group]++
			at := time.Duration(i)*time.Millisecond + time.Duration(j.r.IntN(1000))*time.Microsecond
			c := call{op: line, number: numbers[line.group], at: at, begun: at, ended: at + time.Millisecond}
			if i == entries-1 && r%perHost == odd%perHost {
				c.ended = never
			}
			k.calls = append(k.calls, c)
		}
		b := Pickle(j.dump(r, "2.10", time.Hour, entries))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", r)), b, 0o600); err != nil {
			return 0, err
		}
		k.calls = nil
	}
	return odd, nil
}
