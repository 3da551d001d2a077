// The arguments of direct kernels: what goes where, by which lines.

package grid

// A transfer is Transfer of kernels/cuda/direct.h.
type transfer struct {
	lines, memory uint64
	bytes, _      uint32
}

// directArgs is DirectArgs of kernels/cuda/direct.h.
type directArgs struct {
	comm
	epochs        uint64
	sends, recvs  [MaxDirect]transfer // to rank + k; from rank p
	mine          uint64
	scalar, value uint64
	hash          uint64
	half, second  uint32
	lines, room   uint32
	shortest      uint32
	to, from      uint32
	same, two     uint32
	finish        uint32
	even, torn    uint32
	early, _      uint32
}

// setTransfers sets the memory of each message, and which messages there are.
func (e *Engine) setTransfers(a *directArgs, j *Job, d Direct, root, bytes int) {
	n, rank := e.ranks, int(e.rank)
	all, isRoot := e.all(), rank == root
	part, total := bytes, bytes*n // bytes of a message, of all
	inStep, outStep := 0, 0       // bytes from one rank's message to the next rank's
	to, from := all, all          // ranks
	switch d {
	case OneShot:
	case TwoShot:
		part, total, a.two = d.Message(n, bytes), bytes, 1
		inStep, outStep = part, part
	case ReduceScatter:
		inStep = part
	case Reduce:
		to, from = 1<<root, mask(isRoot, all)
	case AllGather:
		outStep = part
	case AllToAll:
		inStep, outStep = part, part
	case Broadcast:
		to, from = mask(isRoot, all), 1<<root
	case Gather:
		to, from, outStep = 1<<root, mask(isRoot, all), part
	case Scatter:
		to, from, inStep = mask(isRoot, all), 1<<root, part
	}
	length := func(rank int) uint32 { return uint32(max(0, min(part, total-rank*part))) }
	in, out := uint64(j.In.Ptr()), uint64(j.Out.Ptr())
	for q := range n {
		k := (q - rank + n) % n
		a.to |= to >> q & 1 << k
		if to != 0 || q == rank {
			a.sends[k].memory, a.sends[k].bytes = in+uint64(q*inStep), length(q)
		}
		a.recvs[q].memory, a.recvs[q].bytes = out+uint64(q*outStep), length(q)
	}
	a.mine = out + uint64(rank*outStep)
	a.from = from
	a.same = mask(inStep == 0, 1)
	a.lines = uint32(lines(part))
	a.shortest = length(n - 1)

	lie := uint64(inStep | outStep)
	if to != 0 || from>>rank&1 != 0 {
		lie |= in
	}
	if from != 0 {
		lie |= out
	}
	words := uint64(part | total)
	switch {
	case (lie|words)%8 == 0:
		a.even = 2
	case lie%8 == 0:
		a.even = 1
	}
}

// all is a transfer's ranks where each rank has data for each other: nobody's lines can be spared.
func (e *Engine) all() uint32 { return 1<<e.ranks - 1 }

func mask(is bool, m uint32) uint32 {
	if is {
		return m
	}
	return 0
}

// setMailboxes divides each mailbox into halves, and a half into an area for each other rank, or two areas for two
// hops. Lines to rank + k lie in that rank's area k - 1.
func (e *Engine) setMailboxes(a *directArgs) {
	a.torn = e.mail.torn
	n, rank := e.ranks, int(e.rank)
	half := e.mail.bytes / 2 / lineBytes * lineBytes
	area := half / (n - 1) / (1 + int(a.two)) / lineBytes * lineBytes
	a.half, a.second, a.room = uint32(half), uint32(area*(n-1)), uint32(area/lineBytes)
	for k := 1; k < n; k++ {
		at := uint64(area * (k - 1))
		a.sends[k].lines = e.mail.at[(rank+k)%n] + at
		a.recvs[(rank-k+n)%n].lines = e.mail.at[rank] + at
	}
}
