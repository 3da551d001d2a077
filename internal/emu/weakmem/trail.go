package weakmem

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// Processes that share memory have a Memory each. So that races between them are found, each keeps a Log that the
// others read, and the shared memory has a Trail of who accessed it last. The order between processes is taken for
// more than it is: an acquire of memory that others write, and the beginning of a kernel, count as after all releases
// before, of all processes and whatever was written. So what is reported is a race, and some races are missed.

// A Log is what a process tells others, in memory that they see.
type Log struct {
	Releases *atomic.Uint64         // how many fences and releases there were, and waits of the host
	Strong   *atomic.Uint64         // how many strong accesses of shared memory
	Number   func(TrailSite) uint32 // of a site, below trailSites; 0: there is no more room
	Peers    func() []*Peer         // looks for others; those that came last are at the end
}

// A Peer is another process.
type Peer struct {
	Process          int
	Releases, Strong *atomic.Uint64
	Site             func(number uint32) (TrailSite, bool)
}

// A TrailSite is where in its program a process accesses shared memory, and how.
type TrailSite struct {
	Kernel string
	Line   int
	Source string // as of a Fault; filled in by Log.Number
	For    string `json:",omitempty"` // as of a Fault
	Device int
	Bytes  int // of a thread
	Kind   uint8
	Scope  Scope
}

// A Trail is the last accesses of shared memory, of all processes.
type Trail struct {
	Writes, Reads []uint64 // by words of 8 bytes: see trailEntry
	Slot          int      // of this process
	Shared        func() bool
	Peer          func(slot int) int // its index in Log.Peers, -1 if it is this process or not known
}

// A trailEntry is an access of bytes of a word: the number of releases of the process before, or of strong accesses if
// it is one, the bytes, the slot of the process and 1, the site.
type trailEntry uint64

const trailSites = 1 << 16

func (e trailEntry) epoch() uint32 { return uint32(e >> 32) }
func (e trailEntry) bytes() uint8  { return uint8(e >> 24) }
func (e trailEntry) slot() int     { return int(e>>16&0xff) - 1 }
func (e trailEntry) site() uint32  { return uint32(e & (trailSites - 1)) }

// firstPeer is the agent of the weak accesses of the first of Log.Peers; the next agent is that of the strong ones. Who
// reads a strong store is after it even if nothing is released.
const firstPeer = 1<<32 - 1<<10

// SetLog sets Config.Log. Kernels that run have no peers.
func (m *Memory) SetLog(l *Log) { m.config.Log = l }

// Released says that what was done before may be released to other processes from now on.
func (m *Memory) Released() {
	if m.config.Log != nil {
		m.config.Log.Releases.Add(1)
	}
}

// peers is what other processes have released until now.
func (m *Memory) peers() *vector {
	if m.config.Log == nil {
		return nil
	}
	told := m.told.counted(0, len(m.others), func(i int) uint32 { return uint32(m.others[i].Releases.Load()) })
	observed := m.observed.counted(1, len(m.others), func(i int) uint32 { return uint32(m.others[i].Strong.Load()) })
	if told != m.told || observed != m.observed {
		m.told, m.observed, m.heard = told, observed, join(told, observed)
	}
	return m.heard
}

// untilNow is all that other processes have done until now: a kernel that begins may be after it, for their hosts
// may have said so to each other.
func (m *Memory) untilNow() *vector {
	weak := (*vector)(nil).counted(0, len(m.others), func(i int) uint32 { return uint32(m.others[i].Releases.Add(1)) })
	strong := (*vector)(nil).counted(1, len(m.others), func(i int) uint32 { return uint32(m.others[i].Strong.Add(1)) })
	return join(weak, strong)
}

// counted is a vector of the counts of n peers, which is v if that is the same.
func (v *vector) counted(agent uint32, n int, count func(i int) uint32) *vector {
	same := 0
	for v != nil && same < min(n, len(v.live)) && v.live[same].until == count(same) {
		same++
	}
	if same == n {
		return v
	}
	now := make([]entry, n)
	for i := range now {
		now[i] = entry{key(firstPeer+2*uint32(i)+agent, wholeBlock), count(i)}
	}
	return &vector{live: now}
}

// meetOthers looks for other processes before a kernel begins.
func (m *Memory) meetOthers() {
	if m.config.Log != nil {
		m.others = m.config.Log.Peers()
	}
}

// trail checks an access of shared memory against the last ones of other processes, and leaves its own.
func (a *access) trail(s *Allocation) *Fault {
	t, r, log := s.Trail, a.record, a.memory.config.Log
	if log == nil || !t.Shared() {
		return nil
	}
	mine := log.Number(TrailSite{Kernel: r.by.grid.kernel, Line: int(r.line), Device: r.by.grid.device, Bytes: r.bytes(),
		Kind: uint8(r.kind), Scope: r.scope, For: r.by.grid.Call()})
	if mine == 0 {
		return nil
	}
	mine |= uint32(t.Slot+1) << 16
	epoch := log.Releases.Load() << 32
	if r.kind&strong != 0 {
		epoch = (log.Strong.Add(1) - 1) << 32
	}
	for at := r.addr; at < r.addr+r.n; {
		next := min(r.addr+r.n, at&^7+8)
		word, own := at/8, epoch|uint64(mine)|uint64(byte(1<<(next-at)-1)<<(at&7))<<24
		if r.kind&write != 0 {
			a.meetPeer(s, trailEntry(atomic.SwapUint64(&t.Writes[word], own)), at, next)
			a.meetPeer(s, trailEntry(atomic.LoadUint64(&t.Reads[word])), at, next)
		} else {
			atomic.StoreUint64(&t.Reads[word], own)
			a.meetPeer(s, trailEntry(atomic.LoadUint64(&t.Writes[word])), at, next)
		}
		at = next
	}
	return a.fault
}

// meetPeer reports a race of [from, to), within a word, with an access by another process.
func (a *access) meetPeer(s *Allocation, e trailEntry, from, to uint64) {
	both := e.bytes() >> (from & 7) & byte(1<<(to-from)-1)
	i := -1
	if e != 0 && both != 0 && e.slot() != s.Trail.Slot {
		i = s.Trail.Peer(e.slot())
	}
	if i < 0 || i >= a.block.grid.peers { // the kernel may be after what a process did that was not known when it began
		return
	}
	p := a.memory.others[i]
	site, ok := p.Site(e.site())
	if !ok {
		return
	}
	from += uint64(bits.TrailingZeros8(both))
	agent := firstPeer + 2*uint32(i) + uint32(b2i(kind(site.Kind)&strong != 0))
	r := record{by: &origin{agent: agent, grid: &Grid{device: site.Device, kernel: site.Kernel,
		For: func() string { return site.For }},
		dim: [3]int{1, 1, 1}, process: p.Process, source: site.Source}, addr: from,
		n:     uint64(bits.Len8(both >> bits.TrailingZeros8(both))),
		epoch: e.epoch(), line: int32(site.Line), mask: 1, kind: kind(site.Kind), scope: site.Scope, alias: a.record.alias}
	a.ordered(s, &r, r.addr, r.addr+r.n)
}

// whose is who made the access of a record, in words.
func (r *record) whose(lane int) string {
	device, kernel, block, thread := r.doer(lane)
	call := r.by.grid.Call()
	if r.by.process != 0 && call == "" {
		return fmt.Sprintf("kernel %s, line %d, device %d, of process %d", kernel, r.line, device, r.by.process)
	}
	return who(device, kernel, call, int(r.line), block, thread)
}
