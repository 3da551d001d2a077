package ras

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

var (
	groupLine = regexp.MustCompile(`^ *(\d+) +(\d+) +\d+ +[-0-9]+ +(\d+) +\d+ +[A-Z]+ +[A-Z,]+$`)
	commLine  = regexp.MustCompile(`^#(\d+)-\d+ \(([0-9a-fA-F]+)[^)]*\) ([A-Z]+)`)
	kindLine  = regexp.MustCompile(`^Communicator ranks have different (?:(\w+) )?operation counts`)
	someLine  = regexp.MustCompile(`^(\d+) ranks (?:have launched up to operation (\d+)|(have not launched any operations)|have status ([A-Z]+)|reported (.+))$`)
	rankLine  = regexp.MustCompile(`^Rank (\d+)(?: has launched up to operation (\d+)| (has not launched any operations)| has status ([A-Z]+)| reported ([^-]+))? -- (?:GPU (.+) managed by process (\d+) on node (\S+)|\[)`)
	peerLine  = regexp.MustCompile(`^Process (\d+) on node (\S+) managing GPUs? (\d+)`)
	oldLine   = regexp.MustCompile(`^The missing ranks?: ([0-9, ]+)`)
	nvmlText  = regexp.MustCompile(`\(NVML (\d+)\)`)
)

// A textual reads the text of ncclras, which names ranks only where they differ from most.
type textual struct {
	all    []Report
	groups []int   // sizes of the communicators of a group
	comm   *comm   // the communicator of the lines, nil outside of any
	comms  []*comm // of the report
	byHash map[string]*comm
	about  string // what the next lines tell of ranks: "counts", "status", "missing", "error"
	kind   string // of the counts
	value  string // of the ranks in the next lines
	open   *class // the class whose ranks are not named yet, nil if none
	counts int    // number of counts, of all ranks and kinds
	totals bool   // the next line of numbers ends with the number of the job's GPUs
}

// A comm is a communicator under way.
type comm struct {
	Comm
	ranks   map[int]*Rank
	missing map[int]*Rank
	classes map[string][]*class // by kind
}

// A class is the ranks that have the same count.
type class struct {
	value int64
	ranks int
	named map[int]bool
}

func parseText(text string) ([]Report, error) {
	t := &textual{byHash: map[string]*comm{}}
	for line := range strings.Lines(text) {
		if t.line(strings.TrimRight(line, "\r\n")); t.counts > maxMembers {
			return nil, fmt.Errorf("%w: more than %d counts", errNone, maxMembers)
		}
	}
	t.end()
	if len(t.all) == 0 {
		return nil, errNone
	}
	for i := range t.all {
		if err := t.all[i].check(); err != nil {
			return nil, err
		}
	}
	return t.all, nil
}

func (t *textual) line(raw string) {
	line := strings.TrimSpace(raw)
	switch {
	case line == "":
		return
	case strings.HasPrefix(line, "Job summary"), strings.HasPrefix(line, "Communicators... (") &&
		(len(t.all) == 0 || t.groups != nil):
		t.end()
		t.all = append(t.all, Report{})
		return
	case len(t.all) == 0:
		return
	}
	r := &t.all[len(t.all)-1]
	if m := commLine.FindStringSubmatch(line); m != nil {
		t.begin(m)
		return
	}
	if m := groupLine.FindStringSubmatch(raw); m != nil && t.comm == nil {
		t.groups = append(t.groups, number(m[3]))
		return
	}
	switch fields := strings.Fields(line); {
	case strings.HasPrefix(line, "(total)"):
		t.totals = true
		return
	case t.totals && t.comm == nil:
		t.totals = false
		r.GPUs = number(fields[len(fields)-1])
		return
	}
	if m := peerLine.FindStringSubmatch(line); m != nil && t.comm == nil {
		r.Lost = append(r.Lost, Peer{m[2], number(m[1]), number(m[3])})
	}
	if t.comm != nil {
		t.member(line)
	}
}

// begin reads the headline of a communicator, which may have several: one for each kind of error.
func (t *textual) begin(m []string) {
	group, hash := number(m[1]), "0x"+m[2]
	t.about, t.open = "", nil
	if c := t.byHash[hash]; c != nil {
		t.comm = c
		return
	}
	if group >= len(t.groups) {
		t.comm = nil
		return
	}
	t.comm = &comm{Comm: Comm{Hash: hash, Size: min(t.groups[group], hang.MaxRanks)}, ranks: map[int]*Rank{},
		missing: map[int]*Rank{}, classes: map[string][]*class{}}
	t.comms = append(t.comms, t.comm)
	t.byHash[hash] = t.comm
	t.counts += t.comm.Size
}

// member reads a line about ranks of a communicator.
func (t *textual) member(line string) {
	switch m := kindLine.FindStringSubmatch(line); {
	case m != nil:
		t.about, t.kind, t.open = "counts", m[1], nil
		return
	case strings.HasPrefix(line, "Communicator ranks have different status"):
		t.about = "status"
		return
	case strings.HasPrefix(line, "Missing communicator data"):
		t.about = "missing"
		return
	case strings.HasPrefix(line, "Initialization error"), strings.HasPrefix(line, "Asynchronous error"):
		t.about = "error"
		return
	}
	if m := oldLine.FindStringSubmatch(line); m != nil {
		for word := range strings.SplitSeq(m[1], ",") {
			t.rank(t.comm.missing, number(word)).Status.Silent = true
		}
		return
	}
	if m := someLine.FindStringSubmatch(line); m != nil {
		t.value, t.open = m[4]+m[5], nil
		if m[2] != "" || m[3] != "" {
			t.open = t.class(number(m[2]), number(m[1]))
		}
		return
	}
	if m := rankLine.FindStringSubmatch(line); m != nil {
		t.named(m)
	}
}

// named reads a rank and its process.
func (t *textual) named(m []string) {
	list := t.comm.ranks
	value := m[4] + strings.TrimSpace(m[5])
	if value == "" {
		value = t.value
	}
	if t.about == "missing" || t.about == "status" && value == "NOCOMM" {
		list = t.comm.missing
	}
	r := t.rank(list, number(m[1]))
	if m[8] != "" {
		gpu := m[6]
		if n := nvmlText.FindStringSubmatch(gpu); n != nil {
			gpu = n[1]
		}
		r.Peer = Peer{m[8], number(m[7]), number(gpu)}
	}
	switch t.about {
	case "missing":
		r.Status.Silent = true
	case "status":
		r.Status.Abort = value == "ABORT"
		r.Status.Final = value == "FINALIZE"
		if value == "INIT" {
			r.Status.Init = inProgress
		}
	case "error":
		r.Status.Async = errorOf(value)
	case "counts":
		c := t.open
		if m[2] != "" || m[3] != "" || c == nil {
			c = t.class(number(m[2]), 1)
		}
		c.named[r.Rank] = true
	}
}

// class adds a class of ranks to the counts of a kind.
func (t *textual) class(value, ranks int) *class {
	c := &class{value: int64(value), ranks: ranks, named: map[int]bool{}}
	of := t.comm.classes
	if of[t.kind] == nil {
		t.counts += t.comm.Size
	}
	of[t.kind] = append(of[t.kind], c)
	return c
}

func (t *textual) rank(list map[int]*Rank, rank int) *Rank {
	rank = min(rank, t.comm.Size-1)
	if list[rank] == nil {
		list[rank] = &Rank{Rank: rank, Peer: nobody}
	}
	return list[rank]
}

// nobody is the Peer of a rank whose process is not known.
var nobody = Peer{Pid: -1, GPU: -1}

// end puts the communicators into the report, with the counts of the ranks for which the text tells all of them.
func (t *textual) end() {
	for _, c := range t.comms {
		told := map[int]int{} // by rank: how many kinds have a known count
		for _, kind := range slices.Sorted(maps.Keys(c.classes)) {
			rest := (*class)(nil)
			named := map[int]*class{}
			unclear := false
			for _, k := range c.classes[kind] {
				for r := range k.named {
					named[r] = k
				}
				if len(k.named) < k.ranks {
					rest, unclear = k, rest != nil
				}
			}
			for r := range c.Size {
				k := named[r]
				if k == nil && !unclear {
					k = rest
				}
				if k == nil || c.missing[r] != nil {
					continue
				}
				one := t.of(c, r)
				one.Counts[name(kind)] = k.value
				told[r]++
			}
		}
		for r := range c.Size {
			if len(c.missing) > 0 && c.missing[r] == nil && c.ranks[r] == nil {
				// the text names the ranks that do not answer, so this rank does
				c.ranks[r] = &Rank{Rank: r, Peer: nobody}
			}
		}
		for _, r := range slices.Sorted(maps.Keys(c.ranks)) {
			one := *c.ranks[r]
			if told[r] < len(c.classes) {
				one.Counts = nil
			}
			c.Ranks = append(c.Ranks, one)
		}
		for _, r := range slices.Sorted(maps.Keys(c.missing)) {
			c.Missing = append(c.Missing, *c.missing[r])
		}
		r := &t.all[len(t.all)-1]
		r.Comms = append(r.Comms, c.Comm)
	}
	t.comms, t.comm, t.groups = nil, nil, nil
	clear(t.byHash)
}

// of returns a rank of a communicator, with Counts, even if no line has named it.
func (t *textual) of(c *comm, r int) *Rank {
	if c.ranks[r] == nil {
		c.ranks[r] = &Rank{Rank: r, Peer: nobody}
	}
	if c.ranks[r].Counts == nil {
		c.ranks[r].Counts = map[string]int64{}
	}
	return c.ranks[r]
}

// name is the kind of counts: "collective" before NCCL 2.26, whose counts are of all kinds together.
func name(kind string) string {
	if kind == "" {
		return "collective"
	}
	return kind
}

// number is the number that text is, 0 if it is none or negative.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
