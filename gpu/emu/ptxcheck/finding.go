package ptxcheck

import (
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Kinds of findings.
const (
	Race          = "race"
	BadAddress    = "bad address"              // outside of all memory, or misaligned
	NoAccess      = "no access"                // memory of a GPU that the other does not reach
	Unwritten     = "read of unwritten memory" //
	Deadlock      = "deadlock"
	Divergence    = "barrier divergence" // a barrier of a block that not all its threads reach, or not in the same way
	Endless       = "no end"             // within Case.Instructions
	WrongResult   = "wrong result"       // memory is not as Case.Wants has it
	BadProgram    = "bad instruction"    // trap, an address of code, a wrong mask
	NoProxyFence  = "missing proxy fence"
	acrossGPUs    = "GPUs"
	acrossBlocks  = "blocks"
	acrossWarps   = "warps"
	withinWarp    = "threads of a warp"
	acrossKernels = "kernels"
)

// A Finding is something wrong.
type Finding struct {
	Kind string `json:"kind"`
	// Across says how far apart the threads of a race are: "threads of a warp", "warps" (of a block), "blocks",
	// "kernels" (of a GPU) or "GPUs".
	Across   string    `json:"across,omitempty"`
	Access   *Access   `json:"access,omitempty"` // the wrong access, or the later one of a race; may be nil
	Other    *Access   `json:"other,omitempty"`  // the earlier access of a race, else nil
	Detail   string    `json:"detail"`
	Seeds    int       `json:"seeds"` // number of seeds that found it
	Seed     uint64    `json:"seed"`  // the schedule's, or the one that took the fewest steps
	Schedule *Schedule `json:"schedule,omitempty"`
}

// An Access is an instruction of a thread.
type Access struct {
	GPU         int    `json:"gpu"`
	Kernel      string `json:"kernel"`
	Block       [3]int `json:"block"`
	Thread      [3]int `json:"thread"`
	Line        int    `json:"line"`             // of the PTX
	Source      string `json:"source,omitempty"` // "sum.cu:17", where the PTX has .loc
	Instruction string `json:"instruction,omitempty"`
	Write       bool   `json:"write,omitempty"`
	Bytes       int    `json:"bytes,omitempty"`   // 0: the instruction does not access memory
	Address     string `json:"address,omitempty"` // "x@1+0x10", "shared memory+0x4", or a number
}

// A key is equal for findings that count as one: the same two lines, whichever came first.
type key struct {
	kind, across, kernel, other string
	line, otherLine             int
	memory                      string // name of the buffer with a wrong result
}

var kindNames = map[weakmem.FaultKind]string{
	weakmem.OutOfBounds: BadAddress, weakmem.Misaligned: BadAddress, weakmem.Race: Race, weakmem.Uninitialized: Unwritten,
	weakmem.NoAccess: NoAccess, weakmem.Deadlock: Deadlock, weakmem.BadInstruction: BadProgram,
	weakmem.NoProxyFence: NoProxyFence,
}

// finding makes a Finding of a fault, with the case's names for memory.
func (p *plan) finding(f *weakmem.Fault) (Finding, key) {
	a := &Access{GPU: f.Device, Kernel: f.Kernel, Block: f.Block, Thread: f.Thread, Line: f.Line, Write: f.Write,
		Bytes: f.Size}
	p.locate(a)
	if f.Size > 0 {
		a.Address = p.at(f.Addr)
		if f.Shared {
			a.Address = offset("shared memory", f.Addr)
		}
	}
	in := p.lines[f.Line]
	detail := f.Detail
	if in != nil {
		detail = strings.TrimSuffix(strings.TrimSuffix(detail, "in "+in.Text), ", ")
	}
	x := Finding{Kind: kindNames[f.Kind], Access: a, Detail: p.named(detail)}
	atBarrier := in != nil && (in.Op == "bar" || in.Op == "barrier")
	switch {
	case strings.HasPrefix(f.Detail, endless):
		x.Kind = Endless
	case atBarrier && (f.Kind == weakmem.BadInstruction ||
		f.Kind == weakmem.Deadlock && strings.HasPrefix(f.Detail, "no thread of the block")):
		x.Kind = Divergence
	}
	k := key{kind: x.Kind, kernel: f.Kernel, line: f.Line}
	if o := f.Other; o != nil {
		x.Other = &Access{GPU: o.Device, Kernel: o.Kernel, Block: o.Block, Thread: o.Thread, Line: o.Line, Write: o.Write,
			Bytes: o.Size, Address: a.Address}
		p.locate(x.Other)
		x.Detail = o.Why
		x.Across = p.across(a, x.Other)
		k.across, k.other, k.otherLine = x.Across, o.Kernel, o.Line
		if k.otherLine < k.line {
			k.kernel, k.other, k.line, k.otherLine = k.other, k.kernel, k.otherLine, k.line
		}
	}
	return x, k
}

// locate adds the instruction on the access's line, and its place in the source.
func (p *plan) locate(a *Access) {
	a.Source = p.module.Source(a.Line)
	if in := p.lines[a.Line]; in != nil {
		a.Instruction = strings.Join(strings.Fields(in.Text), " ")
	}
}

// across says how far apart two threads are.
func (p *plan) across(a, b *Access) string {
	switch {
	case a.GPU != b.GPU:
		return acrossGPUs
	case a.Kernel != b.Kernel:
		return acrossKernels
	case a.Block != b.Block:
		return acrossBlocks
	}
	for _, l := range p.launches[a.GPU] {
		if l.Kernel.Name == a.Kernel && p.warp(l.Block, a.Thread) != p.warp(l.Block, b.Thread) {
			return acrossWarps
		}
	}
	return withinWarp
}

// warp is the number of a thread's warp in its block.
func (p *plan) warp(block, t [3]int) int {
	return (t[0] + block[0]*(t[1]+block[1]*t[2])) / 32
}

// at is an address relative to the memory that holds it or ends just before it: "x@1+0x10".
func (p *plan) at(addr uint64) string {
	for i := range p.memory {
		if m := &p.memory[i]; addr >= m.addr && addr < m.addr+uint64(m.size)+gap/2 {
			return offset(m.label(p.GPUs), addr-m.addr)
		}
	}
	return "0x" + strconv.FormatUint(addr, 16)
}

func offset(name string, n uint64) string {
	if n == 0 {
		return name
	}
	return name + "+0x" + strconv.FormatUint(n, 16)
}

// named is a text with the names of memory in the place of addresses, and lines of the source
// beside those of PTX.
func (p *plan) named(text string) string {
	text = renumber(text, "0x", "0123456789abcdef", func(digits string) string {
		n, err := strconv.ParseUint(digits, 16, 64)
		if len(digits) < 10 || err != nil {
			return "0x" + digits
		}
		return p.at(n)
	})
	return renumber(text, "line ", "0123456789", func(digits string) string {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return "line " + digits
		}
		return location(n, p.module.Source(n))
	})
}

// renumber puts other words in the place of each prefix and the digits that follow it, if any.
func renumber(text, prefix, digits string, words func(number string) string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, prefix)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = strings.TrimLeft(after, digits)
		b.WriteString(words(after[:len(after)-len(text)]))
	}
}
