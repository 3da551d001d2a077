// Package hang finds out why a job of many ranks stands still, from what its ranks have left behind, whichever library
// carries their collectives. Readers (package flight for PyTorch's flight recorder) make a Job of files, and Judge, a
// pure function, makes an Answer of a Job: one sentence, and who is to blame.
//
// An Answer says what is not known, and accuses no rank for what its file lacks. The package is part of the command
// ringo, and nothing here is promised to other modules.
package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Job is what is known of a program of many ranks.
type Job struct {
	Ranks   []Rank   // by global rank; ranks that left nothing have an empty Source
	Groups  []Group  // of ranks that call collectives together
	Notes   []string // other facts in the files, and assumptions of the answer
	Faults  []string // errors of networks and GPUs in the files, in their order
	Guessed bool     // ranks are numbered by node, process and GPU, as the program's numbers are not known
	Open    bool     // there may be more ranks than are known
	Own     bool     // of histories of this library
	Lost    []string // groups in a call of which ranks wait, and of which there is no file

	// Verdicts are what groups have found as the reason of their failures, while their ranks lived.
	Verdicts []Verdict

	index map[string][]int

	Glance bool // the files are of one moment, and do not tell how long ranks have waited

	// Patience is how long ranks have to have waited for one to be accused: 0 is the usual, below 0 not at all.
	Patience time.Duration
}

// Mute reports whether nothing is known of a job's calls, nor of how its ranks ended.
func (j *Job) Mute() bool {
	return !slices.ContainsFunc(j.Ranks, func(r Rank) bool { return len(r.Calls) > 0 || r.end() != "" })
}

// A Rank is what is known of one process.
type Rank struct {
	Source string    // the file that shows the rank's calls, "" if there is none
	Taken  time.Time // when the rank was seen so, zero if not known
	By     Witness   // what says Taken
	Build  string    // versions of the libraries that wrote the file; "" if not known
	Name   string    // its process, for a person to find: "process 4711 on node 10.0.0.3, GPU 5"; "" if not known
	Pid    int       // of that process, 0 if not known
	Calls  []Call    // in the order in which they were made; the oldest may have been forgotten
	Made   []int     // groups that it has made, as indices of Job.Groups
	Death  string    // how it ended, by a log: "was killed by signal 9"; "" if no log tells of its end
	Raised string    // an exception in its log, which may have ended it: "ended with ValueError: ..."
	Torn   bool      // it has left a file, which cannot be read
	Mute   bool      // it was asked and does not answer
	Alone  bool      // it has called a send or recv outside of a batch, by a log
	Stack  string    // where its program stands, as a stack says: "train.py:40 in step"; "" if not known
	Host   string    // where its process ran; "" if not known

	Blind  []int    // groups, as indices of Job.Groups, of which no file tells where the rank is
	Unsure []int    // groups of which the rank may have ended calls that its file does not have
	Hidden []string // groups in a call of which it waits, without a file that tells in which
	Absent []string // files of the rank that are missing
	Torns  []string // files of the rank that cannot be read
}

// A Group is ranks that call collectives together.
type Group struct {
	Name  string
	Desc  string // its purpose, "" if not known
	Ranks []int  // global, ascending; nil if not known
	Open  bool   // it may have more members than Ranks
	After int    // index of the failed group that it has replaced plus 1, 0 if none
}

// Communicator is the Desc of a group whose name is the hash of NCCL's communicator.
const Communicator = "communicator"

func (g *Group) String() string {
	switch {
	case g.Desc == Communicator:
		return g.Desc + " " + g.Name
	case g.Desc == "default_pg":
		return "the default group"
	case g.Desc == "" || g.Desc == "undefined":
		return "group " + g.Name
	}
	return fmt.Sprintf("group %s (%s)", g.Name, g.Desc)
}

// A State is how far a call has come.
type State uint8

const (
	Called State = iota // the program has made it, the GPU has not begun it
	Begun
	Ended
	Seen // made; the file does not tell whether it has ended
	Open // made and not ended; the file does not tell whether the GPU has begun it
)

func (s State) String() string {
	return [...]string{"called", "begun", "ended", "last called", "called"}[s]
}

// A Call is a collective, or a message between two ranks, as one of them has made it.
type Call struct {
	Group  int    // index of Job.Groups
	Number int64  // among the collectives of the group, or among the messages; the same on all ranks
	Kind   string // "all_reduce"
	Peer   int    // global rank of a message's other end, -1 for a collective
	Send   bool   // a message that is sent
	In     string // type and shape of its input, for people: "Float[4, 256]"
	Out    string // the same of its output
	Type   string // of the elements of both: "Float"; "" if not known, or if there are several
	Sizes  Sizes
	Root   int // the rank of its root in the group plus 1, 0 if not known or none
	State  State
	At     time.Time     // when it was made
	Ends   time.Time     // when it was found to have ended, zero if not
	Limit  time.Duration // its time-out, 0 if not known
	Where  string        // the program's line that made it: "train.py:40 in step"; "" if not known
	before *Call         // the one before it in a coalesced group, whose calls share a number
	Sign   string        // what all ranks must give alike, as the library compares it; "" if In says it
	Wait   *Wait         // where in the call the rank waits, nil if not known
}

// A Wait is where in a call a rank waits.
type Wait struct {
	For           int // the rank that it waits for, -1 if not known
	Sending       bool
	Round, Step   int           // of the collective's schedule
	Waited, Still time.Duration // in the call, and since data moved last; 0 if not known
}

// Sizes are the numbers of elements of a call's input and output, -1 if not known.
type Sizes struct{ In, Out int64 }

func (c *Call) message() bool { return c.Peer >= 0 }

// name is the call in words.
func (c *Call) name() string {
	switch {
	case c.message() && c.Send:
		return fmt.Sprintf("send to rank %d", c.Peer)
	case c.message():
		return fmt.Sprintf("recv from rank %d", c.Peer)
	case c.Sign != "":
		return fmt.Sprintf("%s #%d", c.Sign, c.Number)
	case c.Kind == "":
		return fmt.Sprintf("collective #%d", c.Number)
	}
	return fmt.Sprintf("%s #%d", c.Kind, c.Number)
}

// GroupOf is the index of a group of that name and those ranks, which is added if it is not there. Its cost grows with
// the groups of that name.
func (j *Job) GroupOf(name, desc string, ranks []int) int {
	if j.index == nil {
		j.index = map[string][]int{}
		for i := range j.Groups {
			j.index[j.Groups[i].Name] = append(j.index[j.Groups[i].Name], i)
		}
	}
	for _, i := range j.index[name] {
		if same(j.Groups[i].Ranks, ranks) {
			return i
		}
	}
	j.Groups = append(j.Groups, Group{Name: name, Desc: desc, Ranks: ranks})
	j.index[name] = append(j.index[name], len(j.Groups)-1)
	return len(j.Groups) - 1
}

// same compares ranks. It is quick for one slice, which readers give to thousands of groups.
func same(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// Rank is the rank of number r, which is made with all ranks before it if it is not there; nil if r is negative or not
// below MaxRanks.
func (j *Job) Rank(r int) *Rank {
	if r < 0 || r >= MaxRanks {
		return nil
	}
	for len(j.Ranks) <= r {
		j.Ranks = append(j.Ranks, Rank{})
	}
	return &j.Ranks[r]
}

// MaxRanks bounds the ranks of a Job.
const MaxRanks = 1 << 17

// Sort puts the calls of each rank into order, and makes a Rank of each member of a group and of each end of a message.
func (j *Job) Sort() {
	last := -1
	for i := range j.Ranks {
		calls := j.Ranks[i].Calls
		slices.SortStableFunc(calls, func(a, b Call) int { return a.At.Compare(b.At) })
		for k := range calls {
			if last = max(last, calls[k].Peer); calls[k].Peer >= MaxRanks {
				calls[k].Peer = -1
			}
		}
	}
	for i := range j.Groups {
		for _, r := range j.Groups[i].Ranks {
			last = max(last, r)
		}
	}
	j.Rank(min(last, MaxRanks-1))
}

// shape is a type and its sizes in words, such as "Float[4, 256]".
func shape(kind string, sizes []int64) string {
	var words []string
	for _, n := range sizes {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return kind + "[" + strings.Join(words, ", ") + "]"
}

// Shape spells the types and sizes of tensors, and counts their elements.
func Shape(kinds []string, sizes [][]int64) (text string, elements int64) {
	var words []string
	for i, s := range sizes {
		kind := ""
		if i < len(kinds) {
			kind = kinds[i]
		}
		n := int64(1) // also of a tensor of no dimensions
		for _, x := range s {
			n *= x
		}
		elements += n
		words = append(words, shape(kind, s))
	}
	const most = 3
	if len(words) > most {
		words = append(words[:most], fmt.Sprintf("%d more", len(words)-most))
	}
	return strings.Join(words, " + "), elements
}

// byLength orders sets of ranks: the largest first, then by their first rank.
func byLength(a, b []int) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b))
}
