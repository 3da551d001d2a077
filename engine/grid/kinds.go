package grid

import "github.com/ringo-go/ringo/kernels/collective"

// A Direct is a collective carried out by direct access to the peers' memory.
type Direct = collective.Direct

const (
	OneShot       = collective.OneShot
	TwoShot       = collective.TwoShot
	ReduceScatter = collective.ReduceScatter
	Reduce        = collective.Reduce
	AllGather     = collective.AllGather
	AllToAll      = collective.AllToAll
	Broadcast     = collective.Broadcast
	Gather        = collective.Gather
	Scatter       = collective.Scatter
)

const (
	MaxDirect  = collective.MaxRanks   // ranks of direct and window kernels
	MaxMessage = collective.MaxMessage // bytes from one rank to another by a direct kernel
	MaxBlocks  = collective.MaxBlocks  // blocks of a direct or window kernel
)

const (
	lineBytes = 128 // of the mailbox
	lineData  = collective.LineData
	lineLanes = collective.LineThreads
)

// lines returns the number of lines of a message.
func lines(n int) int { return collective.Lines(n) }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// only returns x where is holds, and 0 elsewhere.
func only[T ~int | ~uint32 | ~uintptr](is bool, x T) T {
	if is {
		return x
	}
	return 0
}
