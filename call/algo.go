package call

import (
	"fmt"
	"slices"
	"strings"
)

// An Algo names a family of schedules, or a way of a GPU's own.
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
	Hier
	Steps  // on GPUs: the default schedule, step by step, also where a kernel has its name
	Window // on GPUs: a kernel that reads and writes registered memory
	Copies // on GPUs: copy engines between registered memory
	Algos  // how many there are

	// ByRank stands for reductions in order of rank that are composed of other
	// collectives. It cannot be asked for by name.
	ByRank Algo = 31
)

var algoNames = [Algos]string{"auto", "ring", "tree", "binomial", "oneshot", "twoshot", "direct", "doubling", "halving", "logstep", "hier", "steps", "window", "copies"}

// RankOrder is the word of Config.Deterministic, and ByRank's name.
const RankOrder = "rank order"

func (a Algo) String() string {
	switch {
	case a < Algos:
		return algoNames[a]
	case a == ByRank:
		return RankOrder
	}
	return fmt.Sprintf("Algo(%d)", uint8(a))
}

// Algorithms are the words that ParseAlgo knows.
func Algorithms() []string { return slices.Clone(algoNames[:]) }

// ParseAlgo reads an algorithm's name; "" is Auto. Upper and lower case are the same.
func ParseAlgo(s string) (Algo, error) {
	if s == "" {
		return Auto, nil
	}
	for a, name := range algoNames {
		if strings.EqualFold(s, name) {
			return Algo(a), nil
		}
	}
	return 0, fmt.Errorf("%w: algorithm %q is none of %s", ErrInvalid, s, strings.Join(algoNames[:], ", "))
}
