package weakmem

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

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
	NoProxyFence   // between a store and a bulk copy, or the reverse
	NoAliasFence   // between a store and a later access of a block by another address of the memory
	Assertion      // used by simt: an assert that failed
	BadCall        // used by simt: of an address that no function has
	BadFree        // used by simt: in a kernel, of what malloc has not given, or twice
	FaultKinds     // how many there are
)

var faultNames = [...]string{"out of bounds", "misaligned", "race", "read of unwritten memory", "no access", "deadlock",
	"bad instruction", "missing proxy fence", "missing alias fence", "assertion", "bad call", "bad free"}

func (k FaultKind) String() string { return faultNames[k] }

// A Fault is an access that a program must not make, or a race of two accesses.
type Fault struct {
	Kind   FaultKind
	Device int    // -1: the host
	Kernel string // or the driver's operation
	Line   int    // of PTX
	Source string // where the line comes from: "run.cu:93"; may be empty
	For    string // the program's call of the library whose kernel it is: "ncclSend at run.cu:93"; empty: its own
	Block  [3]int
	Thread [3]int
	Addr   uint64
	Shared bool
	Size   int // 0: not about an access
	Write  bool
	Where  string // the allocation: "name+0x10"
	Detail string // the other access of a race, the nearest allocation
	Other  *Other // of a race; else nil
	Count  int    // how often it was found, at least 1; it goes on growing
}

// Other is the access that a race is with.
type Other struct {
	Device int // -1: the host
	Kernel string
	Line   int
	Source string // as of a Fault
	For    string // as of a Fault
	Block  [3]int
	Thread [3]int
	Size   int
	Write  bool
	Why    string // what is missing between the two
}

// Error is two lines: the access and where it was made, and the reason.
func (f *Fault) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v: ", f.Kind)
	if f.Size > 0 {
		fmt.Fprintf(&s, "%s %#x", does(f.Write, f.Size), f.Addr)
		if f.Where != "" {
			fmt.Fprintf(&s, " (%s)", f.Where)
		}
		s.WriteString(" by ")
	}
	s.WriteString(who(f.Device, f.Kernel, f.For, f.Line, f.Block, f.Thread))
	if f.Source != "" {
		s.WriteString(", " + f.Source)
	}
	if f.Detail != "" {
		s.WriteString("\n\t" + f.Detail)
	}
	if f.Other != nil && f.Other.Source != "" {
		s.WriteString("\n\tthe other is at " + f.Other.Source)
	}
	if f.Count > 1 {
		fmt.Fprintf(&s, "\n\tfound %d times", f.Count)
	}
	return s.String()
}

func does(write bool, size int) string {
	bytes := "bytes"
	if size == 1 {
		bytes = "byte"
	}
	if write {
		return fmt.Sprintf("store of %d %s to", size, bytes)
	}
	return fmt.Sprintf("load of %d %s from", size, bytes)
}

// driverCalls says for a driver's operation by which calls a program asks for it.
var driverCalls = map[string]string{
	"write": " (cuMemcpyHtoD or its like)", "read": " (cuMemcpyDtoH or its like)", "set": " (cuMemset or its like)",
}

func who(device int, kernel, call string, line int, block, thread [3]int) string {
	if call != "" && device < 0 {
		return call
	}
	if call != "" {
		return fmt.Sprintf("%s, by kernel %s on device %d", call, kernel, device)
	}
	if device < 0 {
		return "the driver's " + kernel + driverCalls[kernel]
	}
	return fmt.Sprintf("kernel %s, line %d, device %d, block (%d,%d,%d), thread (%d,%d,%d)", kernel, line, device,
		block[0], block[1], block[2], thread[0], thread[1], thread[2])
}

// A finding is the key of a report: each is made once.
type finding struct {
	kind              FaultKind
	kernel, other     string
	line, otherLine   int
	shared, otherWay  bool
	firstDev, nextDev int
	apart             uint8  // 0: in one warp, 1: in one block, 2: farther
	call, otherCall   string // as Fault.For
}

// apart says how far from each other the threads of two records are, see finding.
func (r *record) apart(o *record) uint8 {
	switch {
	case r.by != o.by:
		return 2
	case r.warp != o.warp:
		return 1
	}
	return 0
}

// report passes a race or a read of unwritten memory to Config.Report, the first time.
// It returns the fault if the kernel is to stop.
func (m *Memory) report(key finding, f *Fault) *Fault {
	if old := m.found[key]; old != nil {
		old.Count++
		return nil
	}
	f.Count = 1
	if m.config.Report == nil || !m.config.Report(f) {
		return f
	}
	m.found[key] = f
	return nil
}

// fault describes the access of a lane to an address.
func (r *record) fault(kind FaultKind, s *Allocation, at uint64, lane int) *Fault {
	f := &Fault{Kind: kind, Line: int(r.line), Size: int(r.n), Write: r.kind&write != 0, Count: 1}
	f.Device, f.Kernel, f.Block, f.Thread = r.doer(lane)
	f.For = r.by.grid.Call()
	if r.by.grid != nil {
		f.Size = r.bytes()
	}
	if s != nil {
		f.Addr = s.Addr + at
		f.Where = fmt.Sprintf("%s+%#x", s.Name, at)
	}
	return f
}

// bytes is how many a thread accesses.
func (r *record) bytes() int {
	if r.size == 0 {
		return int(r.n)
	}
	return int(r.size)
}

// doer is the thread that made the access.
func (r *record) doer(lane int) (device int, kernel string, block, thread [3]int) {
	o := r.by
	if o.grid == nil {
		return -1, o.what, block, thread
	}
	t := 32*int(r.warp) + lane
	return o.grid.device, o.grid.kernel, o.index, [3]int{t % o.dim[0], t / o.dim[0] % o.dim[1], t / o.dim[0] / o.dim[1]}
}

// maker is a word before what a thread does that it does not do itself.
func (o *origin) maker() string {
	if o.grid == nil || o.what == "" {
		return ""
	}
	return o.what + "'s "
}

// observed reports whether a lane of the access has observed the record, which is a strong store of another lane, or an
// atomic operation, at an offset: itself, or by atomic operations that followed it (PTX ISA, 8.9.1 and 8.9.5). Stores
// that came before in order, and that it has replaced, are forgotten then: races with them are missed.
func (a *access) observed(s *Allocation, r *record, at uint64, otherLane, lane int) bool {
	if a.warp == nil || r.kind&(write|strong) != write|strong {
		return false
	}
	var seen []signal // by loads
	if lanes := a.warp.lanes; lanes != nil && lanes[lane].seen != nil {
		home := s.base + r.start(otherLane)
		if i := slices.IndexFunc(lanes[lane].seen.list, func(p place) bool { return p.addr == home }); i >= 0 {
			seen = lanes[lane].seen.list[i].stores
			if slices.ContainsFunc(seen, func(e signal) bool { return r.isSignal(&e, otherLane) }) {
				return true
			}
		}
	}
	h, by := &a.memory.history, a.record.by
	p := &s.memory.shadow.pages[at/pageBytes]
	c := p.uniform
	if p.cells != nil {
		c = p.cells[at/cellBytes%pageCells]
	}
	var one [1]uint32
	after := false // it: the one looked at lies between the record and what the lane has observed
	for _, n := range h.of(c.writes(), &one) {
		switch w := &h.records[n]; {
		case w == r:
			after = true
		case at < w.addr || at >= w.addr+w.n || !after:
		case w.kind&atomically == 0:
			after = false
		case w.by == by && w.warp == a.record.warp && w.lanesAt(at)>>lane&1 != 0:
			return true
		case slices.ContainsFunc(seen, func(e signal) bool {
			return e.by == w.by && w.lanesAt(at)>>e.lane&1 != 0 && w.isSignal(&e, int(e.lane))
		}):
			return true
		}
	}
	return false
}

// start is the offset at which a lane of the record accesses memory.
func (r *record) start(lane int) uint64 {
	if r.size == 0 {
		return r.addr
	}
	return r.addr + uint64((lane-int(r.first))*int(r.size))
}

// race reports that a lane of the record and a lane of the access use the byte at an
// offset, unordered.
func (a *access) race(s *Allocation, r *record, at uint64, otherLane, lane int) {
	if a.observed(s, r, at, otherLane, lane) || a.lifetime(s, r, at) {
		return
	}
	f := a.record.fault(Race, s, at, lane)
	f.Shared = s.block != nil
	device, kernel, block, thread := r.doer(otherLane)
	key := finding{kind: Race, kernel: f.Kernel, line: f.Line, other: kernel, otherLine: int(r.line), shared: f.Shared,
		otherWay: r.kind&write != 0, firstDev: device, nextDev: f.Device, apart: r.apart(a.record),
		call: f.For, otherCall: r.by.grid.Call()}
	if old := a.memory.found[key]; old != nil {
		if old != a.again { // an access counts once
			old.Count++
		}
		a.again = old
		return
	}
	other := "the " + r.by.maker() + strings.TrimSuffix(strings.TrimSuffix(does(r.kind&write != 0, r.bytes()), " to"),
		" from") + a.through(s, r) + " by " + r.whose(otherLane)
	f.Other = &Other{Device: device, Kernel: kernel, Line: int(r.line), Source: r.by.source,
		For: key.otherCall, Block: block, Thread: thread, Size: r.bytes(), Write: r.kind&write != 0}
	why := &f.Other.Why
	switch both := r.kind & a.record.kind; {
	case (r.kind|a.record.kind)&nonCoherent != 0 && r.by.grid == a.record.by.grid:
		*why = "ld.nc needs memory that nothing writes during the kernel"
		f.Detail = *why + ": " + other
	case both&strong != 0 && partly(r, a.record):
		*why = "both are strong, but of elements of different sizes, which overlap in part"
		f.Detail = fmt.Sprintf("both are strong, but of elements of %d and %d bytes, which overlap in part: %s", r.element,
			a.record.element, other)
	case both&strong != 0:
		*why = "both are strong, but of a scope that lacks the other thread"
		f.Detail = *why + ": " + other
	case r.kind&strong != 0:
		*why = "the first is weak, the second strong, and nothing orders them"
		f.Detail = "it is weak, and nothing orders it with " + other
	case a.record.kind&strong != 0:
		*why = "the first is strong, the second weak, and nothing orders them"
		f.Detail = "nothing orders it with " + other + ", which is weak"
	default:
		*why = "both are weak, and nothing orders them"
		f.Detail = "both are weak, and nothing orders it with " + other
	}
	a.again = f
	if stop := a.memory.report(key, f); stop != nil && a.fault == nil {
		a.fault = stop
	}
}

// initialized reports the first byte of a load that nothing wrote.
func (a *access) initialized(s *Allocation) *Fault {
	at, bad := s.unwritten(a.record.addr, a.record.n)
	if !bad {
		return nil
	}
	f := a.unwrittenAt(s, at)
	return a.memory.report(finding{kind: Uninitialized, kernel: f.Kernel, line: f.Line, shared: f.Shared}, f)
}

// clash reports lanes that store to the same address in one instruction.
func (a *access) clash(s *Allocation) {
	first := bits.TrailingZeros32(a.record.mask)
	a.race(s, a.record, a.record.addr, first, bits.TrailingZeros32(a.record.mask&^(1<<first)))
}

func where(s *Allocation, addr uint64) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s+%#x", s.Name, addr-s.Addr)
}
