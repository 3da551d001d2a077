package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Link is the connection of two ranks. Times are in seconds, rates in bytes a second.
type Link struct {
	// Latency is the time from when a byte has left to when the other end sees it.
	Latency float64
	// Overhead is the time that a slice of any length takes on each end's core.
	Overhead float64
	// Bandwidth is the rate of a rank's port, in and out at once.
	Bandwidth float64
	// Shared is the rate of the resource that the ranks of a node share. For Intra
	// that is one memory or bus, which every message passes once; for Inter it is
	// one network card, in and out at once. 0 means that they share nothing.
	Shared float64
	// Busy says that the sender's core moves the bytes itself, as in shared
	// memory and TCP, and can do nothing else meanwhile, while the receiver's port
	// is no bottleneck. Otherwise a card does, and both ends' ports are busy.
	Busy bool
}

// A Model is a machine. The zero Model is not one: at least Intra needs a
// Bandwidth.
type Model struct {
	Name string

	// NodeRanks is the number of ranks of a node: ranks r with the same
	// r/NodeRanks are linked by Intra, others by Inter. 0 puts all on one node.
	NodeRanks    int
	Nodes        []int // ranks of each node, one node after the other; nil: NodeRanks on each
	Intra, Inter Link

	Inside, Between string // what Intra and Inter are, for readers

	// Weak are ranks whose port between nodes has 1/WeakBy of the bandwidth: a link that has
	// come up slow, or two ranks that share a card since that of one is dead.
	Weak   []int
	WeakBy float64

	// Reduce and Copy are the times of a rank's core, in seconds a byte, to combine a
	// received byte with its own (γ), and to store or copy one. A combination that is
	// stored counts once.
	Reduce, Copy float64

	// SlotBytes and Slots are the dimensions of a queue, the defaults if zero.
	SlotBytes, Slots int
}

const (
	DefaultSlotBytes = 128 << 10
	DefaultSlots     = 8
)

// ErrModel is wrapped by errors about a Model that cannot be.
var ErrModel = errors.New("bad link model")

// complete fills in defaults and refuses a Model that makes no sense.
func (m Model) complete(ranks int) (Model, error) {
	m.SlotBytes, m.Slots = cmp.Or(m.SlotBytes, DefaultSlotBytes), cmp.Or(m.Slots, DefaultSlots)
	if m.NodeRanks == 0 || m.NodeRanks > ranks {
		m.NodeRanks = ranks
	}
	refuse := func(format string, args ...any) (Model, error) {
		return Model{}, fmt.Errorf("sim: %w %q: %s", ErrModel, m.Name, fmt.Sprintf(format, args...))
	}
	if !m.evenOut(ranks) {
		return refuse("Nodes are %v, want %d ranks in all and one or more on each", m.Nodes, ranks)
	}
	if m.NodeRanks < 0 {
		return refuse("NodeRanks is %d, want 0 or more", m.NodeRanks)
	}
	links := [...]struct {
		name string
		Link
	}{{"Intra", m.Intra}, {"Inter", m.Inter}}
	for _, l := range links {
		if l.name == "Inter" && m.NodeRanks == ranks && m.Nodes == nil {
			continue
		}
		if !(l.Bandwidth > 0) {
			return refuse("%s.Bandwidth is %g bytes a second, want more than 0", l.name, l.Bandwidth)
		}
		for _, x := range [...]float64{l.Latency, l.Overhead, l.Shared} {
			if !(x >= 0) || math.IsInf(x, 0) {
				return refuse("%s has a time or rate of %g, want 0 or more", l.name, x)
			}
		}
	}
	switch {
	case len(m.Weak) > 0 && !(m.WeakBy >= 1 && m.WeakBy <= math.MaxFloat32):
		return refuse("WeakBy is %g, want 1 or more", m.WeakBy)
	case !(m.Reduce >= 0 && m.Reduce <= math.MaxFloat32) || !(m.Copy >= 0 && m.Copy <= math.MaxFloat32):
		return refuse("Reduce is %g and Copy %g seconds a byte, want 0 or more", m.Reduce, m.Copy)
	case m.SlotBytes < 1 || m.Slots < 2:
		return refuse("a queue of %d slots of %d bytes, want 2 or more of 1 or more", m.Slots, m.SlotBytes)
	}
	return m, nil
}

// evenOut turns Nodes that are alike into NodeRanks, and reports whether they have all ranks.
func (m *Model) evenOut(ranks int) bool {
	if len(m.Nodes) == 0 {
		return true
	}
	for _, n := range m.Nodes {
		ranks -= n
	}
	least, most := slices.Min(m.Nodes), slices.Max(m.Nodes)
	if least == most {
		m.NodeRanks, m.Nodes = most, nil
	}
	return ranks == 0 && least > 0
}

// A kind of link.
type kind uint8

const (
	self kind = iota // a rank to itself
	intra
	inter
	weak // inter, to or from a weak rank
	kinds
)

// kindOf is the kind of link between two ranks.
func (w *world) kindOf(a, b int32) kind {
	m := &w.m
	switch {
	case a == b:
		return self
	case w.node(a) == w.node(b):
		return intra
	}
	if slices.Contains(m.Weak, int(a)) || slices.Contains(m.Weak, int(b)) {
		return weak
	}
	return inter
}

func (m *Model) link(k kind) Link {
	switch k {
	case intra:
		return m.Intra
	case inter:
		return m.Inter
	case weak:
		l := m.Inter
		l.Bandwidth /= max(1, m.WeakBy)
		l.Shared /= max(1, m.WeakBy)
		return l
	}
	return Link{Bandwidth: m.Intra.Bandwidth, Overhead: m.Intra.Overhead, Busy: true}
}
