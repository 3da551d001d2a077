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

// symmetryOf is the one that leaves the fewest ranks, the zero symmetry if ranks differ.
func symmetryOf(s sched.Schedule, m *Model, ranks int, steps int64) symmetry {
	if ranks < symmetricRanks || m.Nodes != nil || ranks%m.NodeRanks != 0 || len(m.Weak) > 0 || m.Intra.Shared > 0 || m.Inter.Shared > 0 {
		return symmetry{}
	}
	nodes := ranks / m.NodeRanks
	for _, y := range []symmetry{
		{rotation: across, within: true}, {rotation: around, within: true}, {rotation: across}, {rotation: around}, {within: true},
	} {
		y.local, y.nodes = m.NodeRanks, nodes
		if y.rotation != fixed && nodes == 1 || y.rotation == across && nodes&(nodes-1) != 0 || y.within && y.local == 1 {
			continue
		}
		if y.holds(s, ranks, max(1, ranks/samples)) && y.holds(s, ranks, int(1+steps/symmetricSteps)) {
			return y
		}
	}
	return symmetry{}
}

// holds reports whether every stride-th rank does what the rank that stands for it does.
func (y symmetry) holds(s sched.Schedule, ranks, stride int) bool {
	var steps []sched.Step // of the rank that stands for the last ones
	of := int32(-1)
	for r := stride - 1; r < ranks; r += stride {
		n, rep := s.Len(sched.Rank(r)), y.rep(int32(r))
		if rep != of {
			of, steps = rep, steps[:0]
			for i := range s.Len(sched.Rank(rep)) {
				steps = append(steps, s.At(sched.Rank(rep), i))
			}
		}
		if n != len(steps) {
			return false
		}
		for i := range n {
			a, b := s.At(sched.Rank(r), i), steps[i]
			if !y.alike(int32(r), a.Recv, b.Recv) || !y.alike(int32(r), a.Send, b.Send) ||
				(a.Src.Buf == sched.None) != (b.Src.Buf == sched.None) || (a.Dst.Buf == sched.None) != (b.Dst.Buf == sched.None) {
				return false
			}
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
