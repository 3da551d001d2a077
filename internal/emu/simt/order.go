package simt

import "slices"

// rank orders the instructions of a function, whose first is number base in
// code: a group of threads of a lower rank runs before one of a higher, so that
// threads join again where their paths do. The order is topological except for the
// back edges of loops, and a whole loop comes before the code after it. The layout of
// the code does not matter.
//
// Cost: blocks × loops.
func rank(ins []inst, base int32) []int32 {
	f := newFlow(ins, base)
	f.visit(0)
	f.findLoops()
	for _, ss := range f.succ { // the first visited is last in the reversed order
		slices.SortStableFunc(ss, func(a, b int32) int { return int(f.depth[a] - f.depth[b]) })
	}
	f.order = nil
	clear(f.state)
	f.visit(0)
	ranks := make([]int32, len(ins))
	next := int32(0)
	for i := len(f.order) - 1; i >= 0; i-- {
		b := f.order[i]
		for k := f.begin[b]; k < f.begin[b+1]; k++ {
			ranks[k] = next
			next++
		}
	}
	return ranks
}

// A flow is the basic blocks of a function.
type flow struct {
	begin []int32    // the first instruction of each block; then the end
	succ  [][]int32  // where each leads
	depth []int32    // how many loops each is in
	back  [][2]int32 // edges to where a visit is in: from and to
	state []uint8    // of a visit: 0 before, 1 in, 2 after
	order []int32    // blocks as they were left
}

func newFlow(ins []inst, base int32) *flow {
	f := &flow{}
	leads := make([]bool, len(ins)+1)
	leads[0] = true
	for i := range ins {
		targets, falls := ins[i].next(base)
		for _, t := range targets {
			leads[t] = true
		}
		if len(targets) > 0 || !falls {
			leads[i+1] = true
		}
	}
	at := make([]int32, len(ins)+1) // the block of an instruction that begins one
	for i := range ins {
		if leads[i] {
			at[i] = int32(len(f.begin))
			f.begin = append(f.begin, int32(i))
		}
	}
	n := len(f.begin)
	f.begin = append(f.begin, int32(len(ins)))
	f.succ, f.depth, f.state = make([][]int32, n), make([]int32, n), make([]uint8, n)
	for b := range n {
		last := int(f.begin[b+1]) - 1
		targets, falls := ins[last].next(base)
		if falls && last+1 < len(ins) {
			f.succ[b] = append(f.succ[b], at[last+1])
		}
		for _, t := range targets {
			f.succ[b] = append(f.succ[b], at[t])
		}
	}
	return f
}

// next is where threads go after an instruction: to targets, which are relative to
// base, and, if falls, to the instruction after it.
func (in *inst) next(base int32) (targets []int32, falls bool) {
	falls = in.guard != noSlot
	switch t := in.x.(type) {
	case label:
		return []int32{in.target - base}, falls
	case []int32:
		for _, target := range t {
			targets = append(targets, target-base)
		}
		return targets, falls
	}
	return nil, falls || !in.ends
}

// visit goes through the blocks depth first.
func (f *flow) visit(b int32) {
	f.state[b] = 1
	for _, s := range f.succ[b] {
		switch f.state[s] {
		case 0:
			f.visit(s)
		case 1:
			f.back = append(f.back, [2]int32{b, s})
		}
	}
	f.state[b] = 2
	f.order = append(f.order, b)
}

// findLoops counts for each block the loops that it is in: those that can reach
// the source of an edge back without passing its target.
func (f *flow) findLoops() {
	pred := make([][]int32, len(f.succ))
	for b, ss := range f.succ {
		for _, s := range ss {
			pred[s] = append(pred[s], int32(b))
		}
	}
	loops := map[int32]map[int32]bool{} // by header
	var headers []int32
	for _, edge := range f.back {
		head := edge[1]
		in := loops[head]
		if in == nil {
			in = map[int32]bool{head: true}
			loops[head] = in
			headers = append(headers, head)
		}
		work := []int32{edge[0]}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if !in[b] {
				in[b] = true
				work = append(work, pred[b]...)
			}
		}
	}
	for _, h := range headers {
		for b := range loops[h] {
			f.depth[b]++
		}
	}
}
