package ringotest

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/histories"
)

// A whereabouts is where a rank is.
type whereabouts struct {
	Record ringo.HistoryRecord
	Stack  string // of its goroutine
}

// whereabouts is where a rank of this process is.
func (r *Rank) whereabouts() whereabouts {
	number, _ := r.goroutine.Load().(string)
	return whereabouts{r.comm.History(), stackOf(number)}
}

// explain is the verdict on the ranks in all, and then where each rank in behind is, and who is to blame.
func explain(behind []int, all map[int]whereabouts) (text string, culprits []int) {
	var records []ringo.HistoryRecord
	for _, p := range all {
		records = append(records, p.Record)
	}
	var b strings.Builder
	for _, j := range histories.Jobs(records, nil) {
		j.Patience = -1 // the test has waited for them
		a := hang.Judge(j)
		fmt.Fprintf(&b, "%s\n", a.Sentence)
		culprits = a.Culprits
	}
	for _, r := range behind {
		if p, ok := all[r]; ok {
			fmt.Fprintf(&b, "rank %d %s\n%s\n", r, doing(p.Record), indent(p.Stack))
		} else {
			fmt.Fprintf(&b, "rank %d does not answer: is its process stopped?\n", r)
		}
	}
	return b.String(), culprits
}

// doing is what a rank does, by its history.
func doing(h ringo.HistoryRecord) string {
	if len(h.Calls) == 0 {
		return "has called nothing"
	}
	last := h.Calls[len(h.Calls)-1]
	what := last.What
	if last.Number > 0 {
		what += fmt.Sprintf(" #%d", last.Number)
	}
	if h.State.At > 0 || h.State.Peer >= 0 {
		return "is in " + what
	}
	return "is in no call; its last one was " + what
}

// goroutineNumber is the runtime's number of this goroutine.
func goroutineNumber() string {
	b := make([]byte, 64)
	return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
}

const (
	module     = "github.com/ringo-go/ringo"
	stackBytes = 1 << 20
)

// stackOf is the stack of a goroutine of this process, without frames inside of Ringo.
func stackOf(number string) string {
	b := make([]byte, stackBytes)
	b = b[:runtime.Stack(b, true)]
	for _, g := range strings.Split(string(b), "\n\n") {
		if strings.HasPrefix(g, "goroutine "+number+" ") {
			return outside(g)
		}
	}
	return "its goroutine has ended"
}

// outside is the frames of a stack outside of Ringo: from the call of Ringo, if there is one, to the function that Run
// was given. A frame is two lines: the function, and its file and line.
func outside(stack string) string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	var kept []string
	for i := 1; i+1 < len(lines); i += 2 {
		f := lines[i]
		if strings.HasPrefix(f, module+"/ringotest.(*Rank).run(") {
			break
		}
		if inside := strings.HasPrefix(f, module+"/") ||
			strings.HasPrefix(f, module+".(*Comm)"); inside && !strings.Contains(lines[i+1], "_test.go:") {
			kept = nil // drop the frames that this one has called
			continue
		}
		kept = append(kept, f, lines[i+1])
	}
	return strings.Join(append(lines[:1:1], kept...), "\n")
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
