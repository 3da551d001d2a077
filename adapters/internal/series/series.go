// Package series is the common part of adapters for metrics: it tells which calls are counted
// together, and for which peers waits are counted.
package series

import (
	"strconv"
	"sync"

	"github.com/ringo-go/ringo/trace"
)

// A Series identifies calls that are counted together.
type Series struct {
	Comm       string // a name of Comms
	Rank       int
	Kind, Algo string
	GPU        bool
}

// Of is the Series of a call of a communicator.
func Of(c *trace.Call, comm string) Series { return Series{comm, c.Rank, c.Kind, c.Algo, c.GPU} }

// Memory is "host" or "gpu".
func (s Series) Memory() string {
	if s.GPU {
		return "gpu"
	}
	return "host"
}

// More is the common name of all communicators beyond Comms.Most.
const More = "more"

// Comms names the first Most communicators by number, in the order of their first calls, and all others More. So a
// program that makes and closes communicators all the time has few names. Ranks that make their communicators in the
// same order have the same numbers.
type Comms struct {
	Most  int
	mu    sync.Mutex
	names map[string]string // guarded by mu
}

// Name is the name of the communicator of a call.
func (k *Comms) Name(c *trace.Call) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, ok := k.names[c.Comm]
	switch {
	case ok:
		return name
	case len(k.names) >= k.Most:
		return More
	case k.names == nil:
		k.names = map[string]string{}
	}
	name = strconv.Itoa(len(k.names))
	k.names[c.Comm] = name
	return name
}

// A Table has a T for each Series. The zero Table is empty.
type Table[T any] struct {
	mu    sync.RWMutex
	known map[Series]*T // guarded by mu
}

// Get is the T of a Series, which is made by make the first time.
func (t *Table[T]) Get(s Series, make func(Series) *T) *T {
	t.mu.RLock()
	x := t.known[s]
	t.mu.RUnlock()
	if x != nil {
		return x
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x = t.known[s]; x == nil {
		if t.known == nil {
			t.known = map[Series]*T{}
		}
		x = make(s)
		t.known[s] = x
	}
	return x
}

// Peers makes the counters of waits of a call's rank for its peers, by rank. There is one counter for all peers, "", if
// the communicator has more than most ranks or the name More, and none on GPUs, whose waits are not known.
func Peers[T any](c *trace.Call, comm string, most int, make func(peer string) T) (list []T) {
	switch {
	case c.GPU:
	case c.Size > most || comm == More:
		list = append(list, make(""))
	default:
		for r := range c.Size {
			list = append(list, make(strconv.Itoa(r)))
		}
	}
	return list
}
