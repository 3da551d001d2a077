package weakmem

import "fmt"

// A FaultKind says what went wrong.
type FaultKind uint8

const (
	OutOfBounds FaultKind = iota // includes freed and never allocated
	Misaligned
	Race
	Uninitialized
	NoAccess       // memory of a device without peer access
	Deadlock       // used by simt
	BadInstruction // used by simt: trap, an address of code, a wrong barrier
)

// A Fault is an access that a program must not make, or a race between two.
type Fault struct {
	Kind   FaultKind
	Device int // -1: the host
	Kernel string
	Line   int // of PTX
	Block  [3]int
	Thread [3]int
	Addr   uint64
	Shared bool
	Size   int
	Write  bool
	Detail string // the other access of a race, the nearest allocation
	Count  int    // how often it was found, at least 1
}

func (f *Fault) Error() string { return fmt.Sprintf("%v", *f) } // to be made readable
