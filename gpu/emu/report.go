package emu

import "github.com/ringo-go/ringo/internal/emu/weakmem"

// A Kind is the kind of a fault.
type Kind string

// Kinds of reports.
const (
	OutOfBounds  Kind = "out of bounds" // of all memory: freed and never allocated too
	Misaligned   Kind = "misaligned"
	Race         Kind = "race" // two accesses, one of them a store, that nothing orders
	Unwritten    Kind = "read of unwritten memory"
	NoAccess     Kind = "no access" // memory of a GPU that the other does not reach
	Deadlock     Kind = "deadlock"
	BadProgram   Kind = "bad instruction" // trap, a wrong barrier or mask
	NoProxyFence Kind = "missing proxy fence"
	NoAliasFence Kind = "missing alias fence" // between accesses of a block to one memory by two addresses
)

// A Report is a fault of a kernel, or of a call.
type Report struct {
	Kind   Kind
	Access Access
	Other  *Access // the other access of a race; else nil
	Detail string  // why it is wrong, and what is near the address
	Times  int     // how often it was found until now

	text string
}

// An Access is an instruction of a thread.
type Access struct {
	GPU    int    // -1: the host
	Kernel string // or the driver's operation
	Block  [3]int
	Thread [3]int
	Line   int    // of PTX
	Source string // "sum.cu:17", if the PTX has .loc
	Write  bool
	Bytes  int // 0: the instruction does not access memory
}

// Error is the report in words, some lines.
func (r *Report) Error() string { return r.text }

func newReport(f *weakmem.Fault) *Report {
	r := &Report{
		Kind: Kind(f.Kind.String()), Detail: f.Detail, Times: f.Count, text: f.Error(),
		Access: Access{GPU: f.Device, Kernel: f.Kernel, Block: f.Block, Thread: f.Thread, Line: f.Line, Source: f.Source,
			Write: f.Write, Bytes: f.Size},
	}
	if o := f.Other; o != nil {
		r.Other = &Access{GPU: o.Device, Kernel: o.Kernel, Block: o.Block, Thread: o.Thread, Line: o.Line, Source: o.Source,
			Write: o.Write, Bytes: o.Size}
	}
	return r
}
