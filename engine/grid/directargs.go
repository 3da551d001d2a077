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

// mailboxes are those of all ranks.
type mailboxes struct {
	mail      []uint64
	mailBytes int
	tear      uint32 // 1: lines may arrive in parts
}

// setTransfers sets the memory of each message, and which messages there are.
func (a *directArgs) setTransfers(j *Job, d Direct, root, bytes int) {
	n, rank := int(a.comm.ranks), int(a.comm.rank)
	all, isRoot := uint32(1<<n-1), rank == root // ranks
	part, total := bytes, bytes*n               // bytes of a message, of all
	inStep, outStep := 0, 0                     // bytes from one rank's message to the next rank's
	to, from := all, all                        // ranks
	switch d {
	case OneShot:
	case TwoShot:
		part, total, a.two = d.Message(n, bytes), bytes, 1
		inStep, outStep = part, part
	case ReduceScatter:
		inStep = part
	case Reduce:
		to, from = 1<<root, only(isRoot, all)
	case AllGather:
		outStep = part
	case AllToAll:
		inStep, outStep = part, part
	case Broadcast:
		to, from = only(isRoot, all), 1<<root
	case Gather:
		to, from, outStep = 1<<root, only(isRoot, all), part
	case Scatter:
		to, from, inStep = only(isRoot, all), 1<<root, part
	}
	in, out := uint64(j.In.Ptr()), uint64(j.Out.Ptr())
	for q := range n {
		i := (q - rank + n) % n
		a.to |= to >> q & 1 << i
		if to != 0 || q == rank {
			a.sends[i].memory, a.sends[i].bytes = in+uint64(q*inStep), lengthOf(q, part, total)
		}
		a.recvs[q].memory, a.recvs[q].bytes = out+uint64(q*outStep), lengthOf(q, part, total)
	}
	a.mine = out + uint64(rank*outStep)
	a.from = from
	a.same = only[uint32](inStep == 0, 1)
	a.lines = uint32(lines(part))
	a.shortest = lengthOf(n-1, part, total)

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

// lengthOf returns the bytes of a rank's message, of so many in all.
func lengthOf(rank, part, total int) uint32 { return uint32(max(0, min(part, total-rank*part))) }

// setMailboxes divides each mailbox into halves, and a half into an area for each other rank, or two areas for two
// hops. Lines to rank + k lie in that rank's area k - 1.
func (a *directArgs) setMailboxes(m *mailboxes) {
	a.torn = m.tear
	n, rank := int(a.comm.ranks), int(a.comm.rank)
	half := m.mailBytes / 2 / lineBytes * lineBytes
	area := half / (n - 1) / (1 + int(a.two)) / lineBytes * lineBytes
	a.half, a.second, a.room = uint32(half), uint32(area*(n-1)), uint32(area/lineBytes)
	for i := 1; i < n; i++ {
		at := uint64(area * (i - 1))
		a.sends[i].lines = m.mail[(rank+i)%n] + at
		a.recvs[(rank-i+n)%n].lines = m.mail[rank] + at
	}
}
