package sim

import "github.com/ringo-go/ringo/sched"

// A symmetry maps ranks onto each other so that all that are mapped onto one do the same at the
// same times: one of them is carried along and stands for all. It rotates nodes, or the
// ranks within every node, or both; the zero symmetry rotates nothing. Ranks that share a port
// use it one after the other, and weak ones are unlike the others, so such models have none.
type symmetry struct {
	local, nodes int      // ranks of a node, and nodes; 0 if nothing is rotated
	rotation     rotation // of nodes
	within       bool     // ranks rotate within nodes
}

// A rotation says how nodes are mapped onto each other.
type rotation uint8

const (
	fixed  rotation = iota
	around          // node a to a + b: rings
	across          // node a to a xor b, where there are a power of two: exchanges in log N steps
)

const (
	symmetricRanks = 512      // fewer are carried along one by one
	symmetricSteps = 16 << 20 // are looked at; where there are more, those of ranks at even distances
	samples        = 64       // ranks that are looked at first
)

// symmetry is the one that leaves the fewest ranks, the zero symmetry if ranks differ.
func (w *world) symmetry() symmetry {
	m, ranks, steps := &w.m, len(w.ranks), w.steps
	if ranks < symmetricRanks || m.Nodes != nil || ranks%m.NodeRanks != 0 || len(m.Weak) > 0 || m.Intra.Shared > 0 ||
		m.Inter.Shared > 0 {
		return symmetry{}
	}
	nodes := ranks / m.NodeRanks
	for _, y := range []symmetry{
		{rotation: across, within: true}, {rotation: around, within: true}, {rotation: across}, {rotation: around},
		{within: true},
	} {
		y.local, y.nodes = m.NodeRanks, nodes
		if y.rotation != fixed && nodes == 1 || y.rotation == across && nodes&(nodes-1) != 0 || y.within && y.local == 1 {
			continue
		}
		if first, all := max(1, ranks/samples), int(1+steps/symmetricSteps); w.alike(y, first) && w.alike(y, all) {
			return y
		}
	}
	return symmetry{}
}

// likelyNodes is from how many nodes on Estimate looks whether they are alike.
const likelyNodes = 4

// likelySymmetry is a rotation of nodes for an estimate: the second and the last node do what the first does, whose
// steps are written down. Ranks of a node may share a port, but what wants one at the same time is then served in
// another order than in a run of all.
func (w *world) likelySymmetry() symmetry {
	ranks, local := len(w.ranks), w.m.NodeRanks
	nodes := ranks / local
	if nodes < likelyNodes || w.m.Nodes != nil || ranks%local != 0 || len(w.m.Weak) > 0 {
		return symmetry{}
	}
	for _, y := range []symmetry{{local: local, nodes: nodes, rotation: across},
		{local: local, nodes: nodes, rotation: around}} {
		if y.rotation == across && nodes&(nodes-1) != 0 {
			continue
		}
		w.written, w.begins = w.written[:0], w.begins[:0]
		for r := range local {
			from := len(w.written)
			w.begins = append(w.begins, int32(from))
			w.write(r)
			if steps := w.written[from:]; !w.does(y, local+r, steps) || !w.does(y, ranks-local+r, steps) {
				break
			} else if r == local-1 {
				return y
			}
		}
	}
	w.begins = w.begins[:0]
	return symmetry{}
}

// write writes down the steps of a rank.
func (w *world) write(r int) {
	for i := range w.s.Len(sched.Rank(r)) {
		w.written = append(w.written, w.s.At(sched.Rank(r), i))
	}
}

// mostWritten is how many steps are written down at most, some MiB.
const mostWritten = 1 << 16

// writeDown has the steps of all ranks written down, each rank's when it begins, if it makes them more than once.
func (w *world) writeDown() {
	if w.rounds > 1 && w.steps <= mostWritten {
		w.written, w.begins = w.written[:0], resize(w.begins, len(w.ranks))
		for r := range w.begins {
			w.begins[r] = -1
		}
	}
}

// stepOf is a step of a rank.
func (w *world) stepOf(r, i int32) sched.Step {
	if len(w.begins) == 0 {
		return w.s.At(sched.Rank(r), int(i))
	}
	if w.begins[r] < 0 {
		w.begins[r] = int32(len(w.written))
		w.write(int(r))
	}
	return w.written[w.begins[r]+i]
}

// alike reports whether every stride-th rank does what the rank does that stands for it by y.
func (w *world) alike(y symmetry, stride int) bool {
	of := int32(-1) // whose steps are written down
	for r := stride - 1; r < len(w.ranks); r += stride {
		if rep := y.rep(int32(r)); rep != of {
			of, w.written = rep, w.written[:0]
			w.write(int(rep))
		}
		if !w.does(y, r, w.written) {
			return false
		}
	}
	return true
}

// does reports whether rank r does what steps say of the rank that stands for it by y.
func (w *world) does(y symmetry, r int, steps []sched.Step) bool {
	if w.s.Len(sched.Rank(r)) != len(steps) {
		return false
	}
	for i, b := range steps {
		a := w.s.At(sched.Rank(r), i)
		if !y.alike(int32(r), a.Recv, b.Recv) || !y.alike(int32(r), a.Send, b.Send) ||
			(a.Src.Buf == sched.None) != (b.Src.Buf == sched.None) || (a.Dst.Buf == sched.None) != (b.Dst.Buf == sched.None) {
			return false
		}
	}
	return true
}

// alike reports whether peer is to rank r what other is to the rank that stands for r.
func (y symmetry) alike(r int32, peer, other sched.Rank) bool {
	if peer < 0 || other < 0 || int(peer) >= y.local*y.nodes {
		return peer == other
	}
	_, turned := y.fold(r, int32(peer))
	return turned == int32(other)
}

// rep is the rank that stands for r.
func (y symmetry) rep(r int32) int32 {
	if y.local == 0 {
		return r
	}
	rep, _ := y.fold(r, r)
	return rep
}

// fold is the connection that stands for that of two ranks: the same rotation, of the
// source to the rank that stands for it, moves both ends.
func (y symmetry) fold(src, dst int32) (int32, int32) {
	if y.local == 0 {
		return src, dst
	}
	local, nodes := int32(y.local), int32(y.nodes)
	a, l := src/local, src%local
	b, m := dst/local, dst%local
	switch y.rotation {
	case around:
		b, a = (b-a+nodes)%nodes, 0
	case across:
		b, a = b^a, 0
	}
	if y.within {
		m, l = (m-l+local)%local, 0
	}
	return a*local + l, b*local + m
}

// orbit is how many ranks each one stands for.
func (y symmetry) orbit() int {
	n := 1
	if y.rotation != fixed {
		n = y.nodes
	}
	if y.within {
		n *= y.local
	}
	return n
}
