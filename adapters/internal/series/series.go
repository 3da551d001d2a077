// Package series is what adapters have in common: which calls count together, and which peers have
// a counter of waits.
package series

import (
	"strconv"
	"sync"

	"github.com/ringo-go/ringo/trace"
)

// A Series is what calls have in common that one row of metrics counts.
type Series struct {
	Comm       string // as Comms names it
	Rank       int
	Kind, Algo string
	GPU        bool
}

// Of is the Series of a call of a communicator.
func Of(c *trace.Call, comm string) Series { return Series{comm, c.Rank, c.Kind, c.Algo, c.GPU} }

// Memory is host or gpu.
func (s Series) Memory() string {
	if s.GPU {
		return "gpu"
	}
	return "host"
}

// More is the name of all communicators that have none of their own.
const More = "more"

// Comms names communicators by number, in the order of their first calls: so programs that make and close them all the
// time have no more than Most names, and More. The number is the same on all ranks that make their communicators in one
// order.
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

// Peers makes what counts the waits of a call's rank for its peers, by rank. There is one for all peers, "", if the
// communicator has more than most ranks or no name of its own, and none on GPUs, whose waits are not known.
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
