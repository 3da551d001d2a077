package ringo

import "github.com/ringo-go/ringo/mem"

// GathervOf collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. counts[r] is the number of elements of rank r, and the same on all ranks. It is carried out as an
// AlltoAllv in which all but root receive nothing.
func GathervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := gatherv(out, in, counts, root)
	return &c
}

// Gatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in which all
// but root receive nothing.
func Gatherv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	call := gatherv(out, in, counts, root)
	return c.Do(&call)
}

func gatherv[T Element](out, in []T, counts []int, root int) Call {
	return Call{Kind: KindGatherv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), OutCounts: counts, Root: root}
}

// ScattervOf gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil
// on the others. counts[r] is the number of elements of rank r, and the same on all ranks. It is carried out as an
// AlltoAllv in which all but root send nothing.
func ScattervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := scatterv(out, in, counts, root)
	return &c
}

// Scatterv gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil
// on the others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in
// which all but root send nothing.
func Scatterv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	call := scatterv(out, in, counts, root)
	return c.Do(&call)
}

func scatterv[T Element](out, in []T, counts []int, root int) Call {
	return Call{Kind: KindScatterv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: counts, Root: root}
}

// ReduceScattervOf reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which may be
// part of in. counts[r] is the number of elements of rank r, and the same on all ranks. The shares travel as in an
// AlltoAllv and each rank combines its own, in order of rank: a rank receives Size times its share, in memory that
// the communicator keeps.
func ReduceScattervOf[T Element](out, in []T, counts []int, op RedOp) *Call {
	c := reduceScatterv(out, in, counts, op)
	return &c
}

// ReduceScatterv reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which may be
// part of in. counts[r] is the number of elements of rank r, and the same on all ranks. The shares travel as in an
// AlltoAllv and each rank combines its own, in order of rank: a rank receives Size times its share, in memory that
// the communicator keeps.
func ReduceScatterv[T Element](c *Comm, out, in []T, counts []int, op RedOp) error {
	call := reduceScatterv(out, in, counts, op)
	return c.Do(&call)
}

func reduceScatterv[T Element](out, in []T, counts []int, op RedOp) Call {
	return Call{Kind: KindReduceScatterv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: counts, Op: op}
}

// ScanOf leaves in data [k] of each rank what the ranks up to it have contributed: rank 0's stays, the last rank has
// ⊕ of all. It takes ⌈log₂ Size⌉ messages a rank, of k elements each, as pairs and not as one collective: ranks that
// call something else are found at the messages that meet theirs. Avg has no meaning here and is refused.
func ScanOf[T Element](data []T, op RedOp) *Call { return ScanToOf(data, data, op) }

// Scan leaves in data [k] of each rank what the ranks up to it have contributed: rank 0's stays, the last rank has ⊕
// of all. It takes ⌈log₂ Size⌉ messages a rank, of k elements each, as pairs and not as one collective: ranks that
// call something else are found at the messages that meet theirs. Avg has no meaning here and is refused.
func Scan[T Element](c *Comm, data []T, op RedOp) error { return ScanTo(c, data, data, op) }

// ScanToOf is ScanOf of in [k] whose result is in out [k].
func ScanToOf[T Element](out, in []T, op RedOp) *Call {
	c := scan(out, in, op)
	return &c
}

// ScanTo is Scan of in [k] whose result is in out [k].
func ScanTo[T Element](c *Comm, out, in []T, op RedOp) error {
	call := scan(out, in, op)
	return c.Do(&call)
}

func scan[T Element](out, in []T, op RedOp) Call {
	return Call{Kind: KindScan, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Op: op, Exact: true}
}
