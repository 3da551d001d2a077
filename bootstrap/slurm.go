package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// slurmLocalSize picks this node's number out of a list like "4(x2),3".
func (e env) slurmLocalSize() (int, error) {
	name := e.name("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
	if e.get(name) == "" || e.get("SLURM_NODEID") == "" {
		return 0, nil
	}
	node, err := e.number(0, rendezvous.MaxRanks, "SLURM_NODEID")
	if err != nil {
		return 0, err
	}
	n, err := tasksOf(node, e.get(name))
	if err != nil {
		return 0, fmt.Errorf("%s=%q: %w", name, e.get(name), err)
	}
	return n, nil
}

var errTasks = errors.New("want the tasks of each node, such as 4(x2),3")

// tasksOf reads Slurm's list of tasks a node.
func tasksOf(node int, list string) (int, error) {
	for part := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(part, "(x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return 0, errTasks
		}
		k := 1
		if repeated {
			times, closed := strings.CutSuffix(times, ")")
			if k, err = strconv.Atoi(times); err != nil || !closed || k < 1 {
				return 0, errTasks
			}
		}
		if node < k {
			return n, nil
		}
		node -= k
	}
	return 0, fmt.Errorf("no node %d: %w", node, errTasks)
}

// firstHost is the first name of a Slurm node list: "n01" of "n[01-03,7],m5".
// It is empty for a malformed list.
func firstHost(list string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(list, "[],")
		if i < 0 {
			b.WriteString(list)
			return b.String()
		}
		b.WriteString(list[:i])
		switch list[i] {
		case ',':
			return b.String()
		case ']':
			return ""
		}
		inside, rest, closed := strings.Cut(list[i+1:], "]")
		end := strings.IndexAny(inside, "-,")
		if end < 0 {
			end = len(inside)
		}
		if !closed || end == 0 || strings.Contains(inside, "[") {
			return ""
		}
		b.WriteString(inside[:end])
		list = rest
	}
}

// slurmHosts are the nodes of all ranks, by rank; nil if they are not known.
func (e env) slurmHosts(size int) []string {
	if how := e.get("SLURM_DISTRIBUTION"); how != "" && how != "block" && !strings.HasPrefix(how, "block:") {
		return nil
	}
	var hosts []string
	for node, name := range hostList(e.first("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST")) {
		n, err := tasksOf(node, e.first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
		if err != nil || len(hosts)+n > size {
			return nil
		}
		hosts = append(hosts, slices.Repeat([]string{name}, n)...)
	}
	if len(hosts) < size {
		return nil
	}
	return hosts
}

// hostList are the names of a Slurm node list: n01, n02 and m5 of "n[01-02],m5". It is nil for a malformed list, and
// for one with more than one list of numbers in a name.
func hostList(list string) (names []string) {
	for list != "" {
		i := strings.IndexAny(list, "[,")
		if i < 0 || list[i] == ',' {
			name, rest, _ := strings.Cut(list, ",")
			names, list = append(names, name), rest
			continue
		}
		prefix := list[:i]
		inside, rest, closed := strings.Cut(list[i+1:], "]")
		suffix, rest, _ := strings.Cut(rest, ",")
		if !closed || strings.ContainsAny(suffix, "[]") {
			return nil
		}
		for part := range strings.SplitSeq(inside, ",") {
			low, high, ranged := strings.Cut(part, "-")
			if !ranged {
				high = low
			}
			a, err := strconv.Atoi(low)
			b, failed := strconv.Atoi(high)
			if err != nil || failed != nil || a < 0 || b < a || b-a >= rendezvous.MaxRanks {
				return nil
			}
			for n := a; n <= b; n++ {
				names = append(names, fmt.Sprintf("%s%0*d%s", prefix, len(low), n, suffix))
			}
		}
		list = rest
	}
	return names
}
