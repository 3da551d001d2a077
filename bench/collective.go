package bench

import (
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cli"
)

// A Collective is an operation that can be measured: the sizes of its buffers on each
// rank, its result, and how bus bandwidth follows from the time.
type Collective struct {
	Name string
	Kind ringo.Kind
	// In and Out are the lengths of a rank's buffers.
	In, Out Extent
	// Bus is busbw divided by algbw on n ranks; README.md derives it.
	Bus func(n int) float64
	// InPlace is whether nccl-tests measures it in place too.
	InPlace bool
}

// An Extent is the length of a buffer: one block of count elements or a block
// for every rank, on all ranks or on the root alone.
type Extent struct{ PerRank, RootOnly bool }

// Blocks is the length on one rank of n, in blocks.
func (e Extent) Blocks(rank, root, n int) int {
	switch {
	case e.RootOnly && rank != root:
		return 0
	case e.PerRank:
		return n
	}
	return 1
}

var (
	block     = Extent{}
	blocks    = Extent{PerRank: true}
	rootBlock = Extent{RootOnly: true}
	rootAll   = Extent{PerRank: true, RootOnly: true}
)

func one(int) float64 { return 1 }

// others is the share of the data that is not a rank's own.
func others(n int) float64 { return float64(n-1) / float64(n) }

func twiceOthers(n int) float64 { return 2 * others(n) }

// Collectives are all that can be measured, in the order of "all".
var Collectives = []Collective{
	{"allreduce", ringo.KindAllReduce, block, block, twiceOthers, true},
	{"allgather", ringo.KindAllGather, block, blocks, others, true},
	{"reducescatter", ringo.KindReduceScatter, blocks, block, others, true},
	{"broadcast", ringo.KindBroadcast, rootBlock, block, one, true},
	{"reduce", ringo.KindReduce, block, rootBlock, one, true},
	{"alltoall", ringo.KindAlltoAll, blocks, blocks, others, false},
	{"gather", ringo.KindGather, block, rootAll, others, true},
	{"scatter", ringo.KindScatter, rootAll, block, others, true},
	{"sendrecv", ringo.KindSend, block, block, one, false},
}

// Reduces reports whether the collective has an operator.
func (c Collective) Reduces() bool { return c.Kind.Reduces() }

// Rooted reports whether the collective has a root.
func (c Collective) Rooted() bool { return c.Kind.Rooted() }

// blocksOfSize is how many blocks the column "size" counts: the whole of the
// larger buffer, as in nccl-tests.
func (c Collective) blocksOfSize(n int) int {
	if c.In.PerRank || c.Out.PerRank {
		return n
	}
	return 1
}

// Count is the elements of a block when the larger buffer shall hold size bytes
// of elements of width bytes. A size that is not zero gives one at least.
func (c Collective) Count(size int64, n, width int) int {
	if size == 0 {
		return 0
	}
	return max(1, int(size/int64(width*c.blocksOfSize(n))))
}

// Size is the bytes of the larger buffer, the column "size".
func (c Collective) Size(count, n, width int) int64 {
	return int64(count) * int64(c.blocksOfSize(n)) * int64(width)
}

// An origin is where one block of a result comes from: one rank's contribution, or
// those of all combined, from some element on.
type origin struct {
	rank int // whose contribution; combined for the result of ⊕
	from int // first element of the run
}

const combined = -1

// result lists the origins of the blocks, of count elements each, that rank must
// find in its output.
func (c Collective) result(rank, root, n, count int) []origin {
	all := func(from int) []origin {
		p := make([]origin, n)
		for r := range p {
			p[r] = origin{r, from}
		}
		return p
	}
	if c.Out.Blocks(rank, root, n) == 0 {
		return nil
	}
	switch c.Kind {
	case ringo.KindAllReduce, ringo.KindReduce:
		return []origin{{combined, 0}}
	case ringo.KindReduceScatter:
		return []origin{{combined, rank * count}}
	case ringo.KindBroadcast:
		return []origin{{root, 0}}
	case ringo.KindAllGather, ringo.KindGather:
		return all(0)
	case ringo.KindAlltoAll:
		return all(rank * count)
	case ringo.KindScatter:
		return []origin{{root, rank * count}}
	}
	return []origin{{(rank + n - 1) % n, 0}} // sendrecv: from the neighbour before
}

// find is the Collective with a name.
func find(name string) (Collective, bool) {
	for _, c := range Collectives {
		if c.Name == name {
			return c, true
		}
	}
	return Collective{}, false
}

// Find is the Collective with a name, which may be written as All-Reduce or
// all_reduce too. The error suggests another name.
func Find(name string) (Collective, error) {
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	if c, ok := find(plain); ok {
		return c, nil
	}
	return Collective{}, cli.Unknown("collective", name, append(Names(), "all"))
}

// Names lists the names of all collectives.
func Names() []string {
	var names []string
	for _, c := range Collectives {
		names = append(names, c.Name)
	}
	return names
}
