package ringo

// GathervOf describes the call of Gatherv.
func GathervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := counted(KindGatherv, out, counts, in, nil, RedOp{}, root)
	return &c
}

// Gatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in which all
// but root receive nothing.
func Gatherv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	return c.Do(GathervOf(out, in, counts, root))
}

// ScattervOf describes the call of Scatterv.
func ScattervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := counted(KindScatterv, out, nil, in, counts, RedOp{}, root)
	return &c
}

// Scatterv gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil
// on the others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in
// which all but root send nothing.
func Scatterv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	return c.Do(ScattervOf(out, in, counts, root))
}

// ReduceScattervOf describes the call of ReduceScatterv.
func ReduceScattervOf[T Element](out, in []T, counts []int, op RedOp) *Call {
	c := counted(KindReduceScatterv, out, nil, in, counts, op, 0)
	return &c
}

// ReduceScatterv reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which may be
// part of in. counts[r] is the number of elements of rank r, and the same on all ranks. The shares travel as in an
// AlltoAllv and each rank combines its own, in order of rank: a rank receives Size times its share, in memory that
// the communicator keeps.
func ReduceScatterv[T Element](c *Comm, out, in []T, counts []int, op RedOp) error {
	return c.Do(ReduceScattervOf(out, in, counts, op))
}

// ScanOf describes the call of Scan.
func ScanOf[T Element](data []T, op RedOp) *Call { return ScanToOf(data, data, op) }

// Scan leaves in data [k] of each rank what the ranks up to it have contributed: rank 0's stays, the last rank has ⊕
// of all. It takes ⌈log₂ Size⌉ messages a rank, of k elements each, as pairs and not as one collective: ranks that
// call something else are found at the messages that meet theirs. Avg has no meaning here and is refused.
func Scan[T Element](c *Comm, data []T, op RedOp) error { return ScanTo(c, data, data, op) }

// ScanToOf is ScanOf of in [k] whose result is in out [k].
func ScanToOf[T Element](out, in []T, op RedOp) *Call {
	c := sameCounts(KindScan, out, in, len(in), op, 0, 0)
	return &c
}

// ScanTo is Scan of in [k] whose result is in out [k].
func ScanTo[T Element](c *Comm, out, in []T, op RedOp) error {
	return c.Do(ScanToOf(out, in, op))
}
