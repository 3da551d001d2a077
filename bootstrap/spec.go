package bootstrap

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Spec is what a launcher tells a process through its environment.
type Spec struct {
	Rank, Size int
	LocalRank  int    // rank among the ranks on this machine; -1 if not told
	LocalSize  int    // number of ranks on this machine; 0 if not told
	Addr       string // host:port where rank 0 serves, or the text of an ID that another process serves; "" with Store
	Secret     string // for IDFor
	Guessable  bool   // Secret is derived from the job's names: see FromEnv
	Store      int    // descriptor of the launcher's store, where rank 0 leaves the ID that it serves; 0 if Addr says it
	Source     string // the launcher: "torchrun", "Slurm", …

	Hosts []string // names of the machines of all ranks, by rank; nil if the launcher does not tell
}

// An env reads variables of the environment.
type env struct{ get func(string) string }

func (e env) first(names ...string) string {
	if len(names) == 0 {
		return ""
	}
	return e.get(e.name(names...))
}

// name is the first of names that is set, else the first of all.
func (e env) name(names ...string) string {
	for _, n := range names {
		if e.get(n) != "" {
			return n
		}
	}
	return cmp.Or(names...)
}

func (e env) number(low, high int, names ...string) (int, error) {
	name := e.name(names...)
	text := e.get(name)
	if text == "" {
		return 0, fmt.Errorf("%s is not set", strings.Join(names, " or "))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s=%q: want a number from %d to %d", name, text, low, high)
	}
	return n, nil
}
