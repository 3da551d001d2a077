package ras

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The states of a rank in text, and what may be wrong with a communicator, as bits; a communicator has those of its
// ranks.
const (
	noComm = 1 << iota // the process answers, and the rank is no member any more
	initial
	running
	finalizing
	aborted
)

const (
	mismatch = 1 << iota
	failed
	incomplete
)

var states = map[int]string{noComm: "NOCOMM", initial: "INIT", running: "RUNNING", finalizing: "FINALIZE",
	aborted: "ABORT"}

// results are NCCL's results in the words of its RAS, by number.
var results = [...]string{1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument",
	5: "Invalid usage", 6: "Remote process error"}

// state is the state of a rank that answers.
func (r *Rank) state() int {
	switch {
	case r.Now.Aborted:
		return aborted
	case r.Now.Finalized || r.Now.Destroyed:
		return finalizing
	}
	return running
}

// wrong reports whether the rank has failed; in progress (7) is no failure.
func (r *Rank) wrong() bool { return r.Now.Async > 0 && r.Now.Async < len(results) }

// where is the rank's process in the words of RAS.
func (r *Rank) where() string {
	if r.Card.Pid == 0 {
		return "[process information not found]"
	}
	return fmt.Sprintf("GPU %s managed by process %d on node %s", gpu(r.Device, r.NVML), r.Card.Pid, r.Card.Host)
}

func gpu(device, nvml int) string {
	if device != nvml {
		return fmt.Sprintf("%d (NVML %d)", device, nvml)
	}
	return fmt.Sprint(device)
}

func (p *Process) String() string {
	word, list := "GPU", strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Devices), " ", ","), "[]")
	if len(p.Devices) > 1 {
		word += "s"
	}
	return fmt.Sprintf("Process %d on node %s managing %s %s", p.Card.Pid, p.Card.Host, word, list)
}

// A page is an answer as text.
type page struct {
	strings.Builder
	verbose bool
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) title(text, rule string) {
	p.say("%s\n%s\n", text, strings.Repeat(rule, len(text)))
}

// few reports whether n of a total are few enough to be named one by one. A total of 0 is unknown.
func (p *page) few(n, total int) bool {
	switch {
	case n == 1:
		return true
	case p.verbose:
		return total == 0 || 2*n < total
	}
	return n <= 10 && (total == 0 || 4*n <= total)
}

// many is s for more than one.
func many(n int, s string) string {
	if n == 1 {
		return ""
	}
	return s
}

// A summary holds the figures of a communicator's line in a page.
type summary struct {
	*Comm
	nodes, least, most int // machines, and ranks on each
	states, errors     int
	silent             []*Rank // that do not answer
}

func (c *Comm) summary() *summary {
	s := &summary{Comm: c}
	nodes := map[string]int{}
	for i := range c.Ranks {
		r := &c.Ranks[i]
		nodes[r.Card.Host]++
		s.states |= r.state()
		if r.wrong() {
			s.errors |= failed
		}
		if r.Now.Counts != c.Ranks[0].Now.Counts {
			s.errors |= mismatch
		}
	}
	for i := range c.Missing {
		if r := &c.Missing[i]; r.Heard == silent || r.Heard == dead {
			s.silent = append(s.silent, r)
			s.errors |= incomplete
		} else {
			s.states |= noComm
		}
	}
	if s.states&(s.states-1) != 0 {
		s.errors |= mismatch
	}
	if s.nodes = len(nodes); s.nodes > 0 {
		counts := slices.Sorted(maps.Values(nodes))
		s.least, s.most = counts[0], counts[len(counts)-1]
	}
	return s
}

// highest is the most important state among the ranks'.
func (s *summary) highest() int {
	for bit := aborted; bit > noComm; bit >>= 1 {
		if s.states&bit != 0 {
			return bit
		}
	}
	return noComm
}

func (s *summary) wrongs() string {
	var words []string
	for _, w := range []struct {
		bit  int
		word string
	}{{incomplete, "INCOMPLETE"}, {failed, "ERROR"}, {mismatch, "MISMATCH"}} {
		if s.errors&w.bit != 0 {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "OK"
	}
	return strings.Join(words, ",")
}

func (s *summary) compare(t *summary) int {
	return cmp.Or(cmp.Compare(t.Size, s.Size), cmp.Compare(t.nodes, s.nodes), cmp.Compare(t.highest(), s.highest()),
		cmp.Compare(t.errors, s.errors))
}

// text is a survey as text. The verbose one names more of the ranks that are unlike the others.
func (s *server) text(x *Survey, verbose bool) string {
	p := &page{verbose: verbose}
	driver := s.o.driver()
	p.say("NCCL version %s compiled with CUDA %d.%d", s.o.version(), driver/1000, driver%1000/10)
	p.say("CUDA runtime version %d, driver version %d\n", driver, driver)
	p.job(x)
	groups := groupsOf(x)
	p.say("\nCommunicators... (%.2fs)\n=============\n", x.Took.Seconds())
	p.table(groups)
	p.say("")
	p.title("Errors", "=")
	p.processes(x)
	for i, g := range groups {
		for k, c := range g {
			p.errors(c, fmt.Sprintf("#%d-%d", i, k))
		}
	}
	p.title("Warnings", "=")
	if x.Timeouts > 0 {
		p.say("TIMEOUT\n  Encountered %d communication timeout%s while gathering communicator data\n", x.Timeouts,
			many(x.Timeouts, "s"))
	}
	for i, g := range groups {
		for k, c := range g {
			p.mismatches(c, fmt.Sprintf("#%d-%d", i, k))
		}
	}
	return p.String()
}

// groupsOf puts communicators together that look the same.
func groupsOf(x *Survey) (groups [][]*summary) {
	var all []*summary
	for i := range x.Comms {
		all = append(all, x.Comms[i].summary())
	}
	slices.SortStableFunc(all, (*summary).compare)
	for i, c := range all {
		if i == 0 || c.compare(all[i-1]) != 0 {
			groups = append(groups, nil)
		}
		last := &groups[len(groups)-1]
		*last = append(*last, c)
	}
	return groups
}

// job says of how many nodes, processes and GPUs the job is.
func (p *page) job(x *Survey) {
	p.title("Job summary", "=")
	nodes, gpus := map[string]int{}, 0
	// how many nodes have so many processes, and processes so many GPUs
	perNode, perProcess := map[int]int{}, map[int]int{}
	for i := range x.Processes {
		nodes[x.Processes[i].Card.Host]++
		n := len(x.Processes[i].Devices)
		gpus += n
		perProcess[n]++
	}
	for _, n := range nodes {
		perNode[n]++
	}
	if len(perNode) == 1 && len(perProcess) == 1 {
		p.say("  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)")
		p.say("%7d  %9d  %11d  %9d  %7d", len(nodes), sorted(perNode)[0], sorted(perProcess)[0], len(x.Processes), gpus)
		return
	}
	if len(perProcess) == 1 {
		p.say("  Nodes  Processes         GPUs\n          per node  per process")
		for _, n := range sorted(perNode) {
			p.say("%7d  %9d  %11d", perNode[n], n, sorted(perProcess)[0])
		}
	} else {
		p.say("  Nodes  Processes\n          per node")
		for _, n := range sorted(perNode) {
			p.say("%7d  %9d", perNode[n], n)
		}
		p.say("\n         Processes         GPUs\n                    per process")
		for _, n := range sorted(perProcess) {
			p.say("         %9d  %11d", perProcess[n], n)
		}
	}
	p.say("\n  Nodes  Processes         GPUs\n(total)    (total)      (total)\n%7d  %9d  %11d", len(nodes),
		len(x.Processes), gpus)
}

// sorted are the keys of counts, the most frequent first.
func sorted[K cmp.Ordered](counts map[K]int) []K {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b K) int { return cmp.Compare(counts[b], counts[a]) })
	return keys
}

// table has a line for each group of communicators.
func (p *page) table(groups [][]*summary) {
	if len(groups) == 0 {
		p.say("No communicator data collected!")
		return
	}
	p.say("Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n    #  in group  per comm  per " +
		"node  per comm  in group")
	for i, g := range groups {
		type place struct {
			process string
			gpu     int
		}
		places := map[place]bool{}
		least, most := g[0].least, g[0].most
		for _, c := range g {
			least, most = min(least, c.least), max(most, c.most)
			for k := range c.Ranks {
				places[place{c.Ranks[k].Card.process(), c.Ranks[k].NVML}] = true
			}
		}
		span := fmt.Sprint(least)
		if least != most {
			span = fmt.Sprintf("%d-%d", least, most)
		}
		p.say("%5d  %8d  %8d  %8s  %8d  %8d  %8s  %6s", i, len(g), g[0].nodes, span, g[0].Size, len(places),
			states[g[0].highest()], g[0].wrongs())
	}
}

// processes says which processes do not answer.
func (p *page) processes(x *Survey) {
	list := func(how heard) (all []*Process) {
		for i := range x.Processes {
			if x.Processes[i].Heard == how {
				all = append(all, &x.Processes[i])
			}
		}
		return all
	}
	name := func(all []*Process) {
		if p.few(len(all), 0) {
			for _, one := range all {
				p.say("  %v", one)
			}
		}
		p.say("")
	}
	if all := list(silent); len(all) > 0 {
		p.say("INCOMPLETE\n  Missing communicator data from %d job process%s", len(all), many(len(all), "es"))
		name(all)
	}
	if all := list(dead); len(all) > 0 {
		verb := " is"
		if len(all) > 1 {
			verb = "es are"
		}
		p.say("DEAD\n  %d job process%s considered dead (unreachable via the RAS network)", len(all), verb)
		name(all)
	}
}

// errors says of a communicator which ranks do not answer or have failed.
func (p *page) errors(c *summary, number string) {
	hash, _, _ := c.Hash()
	if n := len(c.silent); n > 0 {
		p.say("%s (%016x) INCOMPLETE\n  Missing communicator data from %d rank%s", number, hash, n, many(n, "s"))
		if p.few(n, 0) {
			for _, r := range c.silent {
				p.say("  Rank %d -- %s", r.Rank, r.where())
			}
		}
		p.say("")
	}
	by, wrong := map[int][]*Rank{}, 0
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.wrong() {
			by[r.Now.Async] = append(by[r.Now.Async], r)
			wrong++
		}
	}
	if wrong == 0 {
		return
	}
	p.say("%s (%016x) ERROR\n  Asynchronous error%s on %d rank%s", number, hash, many(wrong, "s"), wrong, many(wrong, "s"))
	for _, code := range slices.SortedFunc(maps.Keys(by),
		func(a, b int) int { return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a, b)) }) {
		p.class(by[code], 0, "reported "+results[code], "reported "+results[code])
	}
	p.say("")
}

// class prints a property of some ranks: their number and the property, and the ranks' names where they are few.
func (p *page) class(ranks []*Rank, total int, one, all string) {
	if len(ranks) > 1 {
		p.say("  %d ranks %s", len(ranks), all)
	}
	if !p.few(len(ranks), total) {
		return
	}
	for _, r := range ranks {
		if len(ranks) > 1 {
			p.say("  Rank %d -- %s", r.Rank, r.where())
		} else {
			p.say("  Rank %d %s -- %s", r.Rank, one, r.where())
		}
	}
}

// mismatches says in what the ranks of a communicator differ: in state, and in how many collectives of a kind they have
// called.
func (p *page) mismatches(c *summary, number string) {
	if c.errors&mismatch == 0 {
		return
	}
	hash, _, _ := c.Hash()
	p.say("%s (%016x) MISMATCH", number, hash)
	if c.states&(c.states-1) != 0 {
		p.say("  Communicator ranks have different status")
		by := map[uint64][]*Rank{}
		for i := range c.Ranks {
			r := &c.Ranks[i]
			by[uint64(r.state())] = append(by[uint64(r.state())], r)
		}
		for i := range c.Missing {
			if r := &c.Missing[i]; r.Heard != silent && r.Heard != dead {
				by[noComm] = append(by[noComm], r)
			}
		}
		for _, state := range frequent(by) {
			what := states[int(state)]
			p.class(by[state], c.Size, "has status "+what, "have status "+what)
		}
	}
	for kind, name := range Kinds {
		by := map[uint64][]*Rank{}
		for i := range c.Ranks {
			n := c.Ranks[i].Now.Counts[kind]
			by[n] = append(by[n], &c.Ranks[i])
		}
		if len(by) < 2 {
			continue
		}
		p.say("  Communicator ranks have different %s operation counts", name)
		for _, n := range frequent(by) {
			if n == 0 {
				p.class(by[n], c.Size, "has not launched any operations", "have not launched any operations")
			} else {
				p.class(by[n], c.Size, fmt.Sprintf("has launched up to operation %d", n),
					fmt.Sprintf("have launched up to operation %d", n))
			}
		}
		p.say("")
	}
}

// frequent are the values of classes, those of the most ranks first.
func frequent(by map[uint64][]*Rank) []uint64 {
	return slices.SortedFunc(maps.Keys(by),
		func(a, b uint64) int { return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a, b)) })
}
