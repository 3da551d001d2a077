package call

import "fmt"

// A Kind is what an operation does.
type Kind uint8

// The operations. Comments give the elements of In → Out on each of n ranks for
// a Call with Count c. The zero Kind is none: a Call must say what it wants.
const (
	Barrier       Kind = iota + 1 // 0 → 0
	AllReduce                     // c → c
	Reduce                        // c → c at Root
	Broadcast                     // c at Root → c
	AllGather                     // c → n·c
	ReduceScatter                 // n·c → c
	AlltoAll                      // n·c → n·c
	Gather                        // c → n·c at Root
	Scatter                       // n·c at Root → c
	Send                          // c → Peer
	Recv                          // Peer → c
	AllGatherv                    // OutCounts[rank] → ΣOutCounts
	AlltoAllv                     // ΣInCounts → ΣOutCounts
	Meeting                       // no Call: a method that all ranks call together, see Method
	Signal                        // no Call: a signal to a rank, or the wait for one
	Kinds                         // how many there are, the zero Kind included
)

// The composites: operations that other calls carry out. Each before Scan is one AlltoAllv, a Scan is Sends and Recvs.
// The signs of these calls name the composite, so that an error can name it when ranks disagree.
const (
	Gatherv        Kind = Kinds + 1 + iota // OutCounts[rank] → ΣOutCounts at Root
	Scatterv                               // ΣInCounts at Root → InCounts[rank]
	ReduceScatterv                         // ΣInCounts → InCounts[rank]
	Scan                                   // c → c
	composites
)

var kindNames = [Kinds]string{"no operation", "Barrier", "AllReduce", "Reduce", "Broadcast", "AllGather",
	"ReduceScatter",
	"AlltoAll", "Gather", "Scatter", "Send", "Recv", "AllGatherv", "AlltoAllv", "Meeting", "Signal"}

func (k Kind) String() string {
	switch {
	case k < Kinds:
		return kindNames[k]
	case k.Composite():
		return [...]string{"Gatherv", "Scatterv", "ReduceScatterv", "Scan"}[k-Gatherv]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Valid reports whether a Call may have this Kind and needs no other calls to carry it out.
func (k Kind) Valid() bool { return k > 0 && k < Meeting }

// Composite reports whether a Call may have this Kind, and other calls carry it out.
func (k Kind) Composite() bool { return k > Kinds && k < composites }

// Reduces reports whether the operation has an operator.
func (k Kind) Reduces() bool {
	return k == AllReduce || k == Reduce || k == ReduceScatter || k >= ReduceScatterv
}

// Rooted reports whether the operation has a Root.
func (k Kind) Rooted() bool {
	return k == Reduce || k == Broadcast || k == Gather || k == Scatter || k == Gatherv || k == Scatterv
}

// Pairwise reports whether the operation is one end of a message between two ranks. All
// others are collectives, which every rank of the communicator calls.
func (k Kind) Pairwise() bool { return k == Send || k == Recv || k == Signal }

// Variable reports whether each rank has a count of its own.
func (k Kind) Variable() bool {
	return k == AllGatherv || k == AlltoAllv || k.Composite() && k < Scan
}

// Shares is how many times Count elements the larger buffer of a rank holds.
func (k Kind) Shares(ranks int) int {
	switch k {
	case AllGather, ReduceScatter, AlltoAll, Gather, Scatter:
		return ranks
	}
	return 1
}

// A Method is a method of a communicator that all ranks call together, without a Call. A Method takes a number among
// the collectives, so that a rank which calls something else is found.
type Method uint8

// The methods.
const (
	Split      Method = iota
	SplitMeets        // the part of a Split in which the new communicators get their meeting points
	Register
	CloseWindow
	Suspend
	Resume
	Grow
	methods
)

var methodNames = [methods]string{"Split", "Split", "Register", "Window.Close", "Suspend", "Resume", "Grow"}

func (m Method) String() string {
	if m < methods {
		return methodNames[m]
	}
	return fmt.Sprintf("Method(%d)", uint8(m))
}

// Sign is what all ranks of a method must agree on.
func (m Method) Sign() Sign { return Sign{Kind: Meeting, Count: int(m), Root: -1} }
