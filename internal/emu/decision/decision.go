// Package decision is what emulated GPUs decide other than in the plain order: recorded while a seed decides, and
// followed in part afterwards, so that of the many decisions of a run that fails the few are found that it needs.
//
// In the plain order a warp runs until it waits, ends or polls in vain, then the one that has waited longest; what a
// warp has stored is visible to all before another warp runs; asynchronous copies and the work of streams are carried
// out at once. A decision is named by its warp and by how far that one is, not by a time: so it means the same when
// others are left out.
package decision

import "slices"

// A Kind is the kind of a decision.
type Kind string

const (
	Switch Kind = "switch" // another warp runs
	Part   Kind = "part"   // of the threads of a warp that have parted, others go first
	Hold   Kind = "hold"   // a store, or an atomic operation that returns nothing, becomes visible late
	Load   Kind = "load"   // a load is carried out late, after what follows it
	Old    Kind = "old"    // a load gives a value that others have overwritten
	Stray  Kind = "stray"  // threads of a warp make an access before the others
	Copy   Kind = "copy"   // an asynchronous copy of a thread is carried out late
	Start  Kind = "start"  // a kernel or a copy of a stream begins late
)

// A Warp is a warp of a run.
type Warp struct {
	Device int    `json:"device"`
	Launch int    `json:"launch"` // of its device, in the order in which kernels begin
	Block  [3]int `json:"block"`
	Warp   int    `json:"warp"`
}

// A Decision is one of a run.
type Decision struct {
	Kind Kind `json:"kind"`
	Warp Warp `json:"warp"`
	// At is how far the warp is: of Switch and Part the instructions that it has executed, those of a poll in vain not
	// counted; of Hold, Load, Old, Stray and Copy the number of its store, load, access or copy. Of Start it is the number
	// of the work.
	At    uint64 `json:"at"`
	Round uint64 `json:"round,omitempty"` // of Switch and Part: how often the warp has polled in vain since
	To    Warp   `json:"to"`              // of Switch: the warp that runs
	Lane  int    `json:"lane,omitempty"`  // of Part: one of the threads that go first
	Lanes uint32 `json:"lanes,omitempty"` // of Stray: those that go ahead
	// Until is, of Part and Stray, as At, how long; 0: as in the plain order, but that they poll in vain.
	Until uint64 `json:"until,omitempty"`
	Late  []Late `json:"late,omitempty"` // of Hold and Copy
	Wait  int    `json:"wait,omitempty"` // of Start: rounds of the executor
	Ago   uint64 `json:"ago,omitempty"`  // of Old: how many strong stores
}

// A Late is a part of a store or a copy that is carried out late.
type Late struct {
	Units uint64 `json:"units"` // of 8 bytes, a bit for each; of Copy: 1 for what it reads, 2 for what it writes
	Turns uint64 `json:"turns"` // of warps, in between
}

// key is the name of decisions.
type key struct {
	kind Kind
	warp Warp
	at   uint64
}

// A Book is where decisions are written down, or looked up. Nil is none: the seed decides.
type Book struct {
	record func(Decision)
	told   func(Decision, Scene)
	follow map[key][]Decision
	stops  map[Warp][]uint64 // where Switch and Part decide, in order
}

// A Scene is where a decision of a Book is followed.
type Scene struct {
	Kernel   string `json:"kernel"`
	Line     int    `json:"line"`   // of PTX, that the warp executed last, or that stored
	Source   string `json:"source"` // of the line, filled in by the receiver
	Thread   int    `json:"thread"` // of the block, the first one
	ToKernel string `json:"toKernel,omitempty"`
	ToLine   int    `json:"toLine,omitempty"` // where the other warp goes on
	ToSource string `json:"toSource,omitempty"`
	Where    string `json:"where,omitempty"` // of a store: "MemAlloc #2+0x10"
	Size     int    `json:"size,omitempty"`
	Value    uint64 `json:"value,omitempty"`
	Seen     bool   `json:"seen,omitempty"` // the store is visible to all now
}

// Record is a Book that is written.
func Record(to func(Decision)) *Book { return &Book{record: to} }

// Follow is a Book of decisions that are followed; told hears of each that is.
func Follow(list []Decision, told func(Decision, Scene)) *Book {
	b := &Book{follow: map[key][]Decision{}, stops: map[Warp][]uint64{}, told: told}
	for _, d := range list {
		k := key{d.Kind, d.Warp, d.At}
		b.follow[k] = append(b.follow[k], d)
		if d.Kind == Switch || d.Kind == Part {
			b.stops[d.Warp] = append(b.stops[d.Warp], d.At, d.Until)
		}
	}
	for _, at := range b.stops {
		slices.Sort(at)
	}
	return b
}

// Records reports whether decisions are written down.
func (b *Book) Records() bool { return b != nil && b.record != nil }

// Follows reports whether decisions are looked up: those that are not found are as in the plain order.
func (b *Book) Follows() bool { return b != nil && b.follow != nil }

// Add writes a decision down.
func (b *Book) Add(d Decision) { b.record(d) }

// Take is the next decision of a name, which it crosses out, if the warp has polled as often as then.
func (b *Book) Take(kind Kind, w Warp, at, round uint64) (Decision, bool) {
	k := key{kind, w, at}
	list := b.follow[k]
	if len(list) == 0 || round < list[0].Round {
		return Decision{}, false
	}
	b.follow[k] = list[1:]
	return list[0], true
}

// Has reports whether there is a decision of a name.
func (b *Book) Has(kind Kind, w Warp, at uint64) bool { return len(b.follow[key{kind, w, at}]) > 0 }

// Next is how far a warp has to run at least until the next decision about it, at most limit.
func (b *Book) Next(w Warp, at, limit uint64) uint64 {
	stops := b.stops[w]
	if i, _ := slices.BinarySearch(stops, at+1); i < len(stops) {
		return min(limit, stops[i]-at)
	}
	return limit
}

// Tell says that a decision is followed.
func (b *Book) Tell(d Decision, s Scene) {
	if b.told != nil {
		b.told(d, s)
	}
}
