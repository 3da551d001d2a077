package call

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/ring/book"
)

// An Algo names a family of schedules, or a means that only GPUs have.
type Algo uint8

const (
	Auto Algo = iota
	Ring
	Tree
	Binomial
	OneShot
	TwoShot
	Direct
	Doubling
	Halving
	LogStep
	Hier     // inside the nodes, then across them in rings or binomial trees, then inside again
	HierTree // the same with double trees across, for many nodes
	HierLog  // the same with direct exchanges inside and log-step exchanges across, for small data
	Steps    // on GPUs: the default schedule, step by step, even where its name stands for a kernel
	Window   // on GPUs: a kernel that reads and writes registered memory
	Copies   // on GPUs: copy engines between registered memory
	named    // how many have a constant; algorithms of the book without one follow

	// ByRank stands for reductions in order of rank that are composed of other
	// collectives. It cannot be asked for by name.
	ByRank Algo = 31
)

// Algos is how many algorithms are built in. NewAlgo numbers a program's own algorithms from Algos on.
var Algos = Algo(len(algoNames))

var algoNames = names([named]string{"auto", "ring", "tree", "binomial", "oneshot", "twoshot", "direct", "doubling",
	"halving", "logstep", "hier", "hiertree", "hierlog", "steps", "window", "copies"})

// names is constants and the names in the book that are not among them.
func names(constants [named]string) []string {
	list := constants[:]
	for _, c := range book.Collectives {
		for _, a := range c.Algorithms {
			if !slices.Contains(list, a.Name) {
				list = append(list, a.Name)
			}
		}
	}
	return list
}

// RankOrder is the value of Config.Deterministic that asks for ByRank, and ByRank's name.
const RankOrder = "rank order"

// defined are the names that NewAlgo has numbered, in order.
var defined atomic.Pointer[[]string]
var defining sync.Mutex

// Defined are the names of algorithms that a program has defined, in order.
func Defined() []string {
	if list := defined.Load(); list != nil {
		return *list
	}
	return nil
}

// NewAlgo numbers an algorithm of a program's own. It refuses a name that is no word or is taken already, and more than
// ByRank − Algos algorithms, with an ErrInvalid.
func NewAlgo(name string) (Algo, error) {
	defining.Lock()
	defer defining.Unlock()
	list := Defined()
	switch {
	case name == "" || strings.ContainsAny(name, ", \t\n"):
		return 0, fmt.Errorf("%w: algorithm %q: want a word", ErrInvalid, name)
	case slices.ContainsFunc(Algorithms(), func(n string) bool { return strings.EqualFold(n, name) }):
		return 0, fmt.Errorf("%w: algorithm %q is there already", ErrInvalid, name)
	case int(Algos)+len(list) >= int(ByRank):
		return 0, fmt.Errorf("%w: algorithm %q is one too many: a program may define %d", ErrInvalid, name, ByRank-Algos)
	}
	list = append(slices.Clone(list), name)
	defined.Store(&list)
	return Algos + Algo(len(list)-1), nil
}

// IsDefined reports whether the number is one of a program's own algorithms, which NewAlgo has given or may still give.
func (a Algo) IsDefined() bool { return a >= Algos && a < ByRank }

func (a Algo) String() string {
	switch list := Defined(); {
	case a < Algos:
		return algoNames[a]
	case a == ByRank:
		return RankOrder
	case int(a-Algos) < len(list):
		return list[a-Algos]
	}
	return fmt.Sprintf("Algo(%d)", uint8(a))
}

// Algorithms are the words that ParseAlgo knows.
func Algorithms() []string { return append(slices.Clone(algoNames), Defined()...) }

// ParseAlgo reads an algorithm's name; "" is Auto. Upper and lower case are the same.
func ParseAlgo(s string) (Algo, error) {
	if s == "" {
		return Auto, nil
	}
	all := Algorithms()
	for a, name := range all {
		if strings.EqualFold(s, name) {
			return Algo(a), nil
		}
	}
	return 0, fmt.Errorf("%w: algorithm %q is none of %s", ErrInvalid, s, strings.Join(all, ", "))
}
