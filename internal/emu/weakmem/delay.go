package weakmem

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/decision"
)

// A delay is the decision that a pending store becomes visible late, as it is found out or followed: see Config.Book.
type delay struct {
	warp    uint8 // of by
	line    int32
	at      uint64 // the number of the store among those of its warp
	born    uint64 // Memory.turn
	late    []decision.Late
	delayed bool // late is followed
}

// Turn says that another warp is about to run, or one that polls. Where there is a Book, stores become visible here and
// not by Tick: as Tick would have had it, or, where the Book is followed, all but those that it delays.
func (m *Memory) Turn() {
	m.turn++
	if m.config.Book.Records() {
		for ; m.ticks > 0; m.ticks-- {
			m.tick()
		}
		return
	}
	for i := len(m.dirty) - 1; i >= 0; i = min(i, len(m.dirty)) - 1 {
		b := m.dirty[i]
		for k := 0; k < len(b.stores); k++ {
			p := b.stores[k]
			if p.fence && k == 0 {
				b.moveFirst()
				k, i = -1, len(m.dirty)
			} else if p.units&p.delay.due(m.turn) != 0 {
				b.drain(p, p.delay.due(m.turn))
				k, i = -1, len(m.dirty) // it may have removed others, here and elsewhere
			}
		}
	}
}

// due is the units that are to be visible by now.
func (d *delay) due(now uint64) uint64 {
	units := ^uint64(0)
	for _, l := range d.late {
		if now < d.born+l.Turns {
			units &^= l.Units
		}
	}
	return units
}

// decider is the name of a warp of a block for a Book.
func (o *origin) decider(warp uint8) decision.Warp {
	return decision.Warp{Device: o.grid.device, Launch: o.grid.launch, Block: o.index, Warp: int(warp)}
}

// storeNumber is the number of a store of a warp: of the instruction, and the first lane.
func storeNumber(instruction uint64, lane int) uint64 { return instruction<<5 | uint64(lane) }

// copyNumber is that of a piece that an asynchronous copy stores.
func copyNumber(number, piece int) uint64 { return 1<<48 | uint64(number)<<24 | uint64(piece) }

// delay names a store, and looks up whether it is to be visible late.
func (m *Memory) delay(p *pending, warp uint8, line int32, at uint64) {
	book := m.config.Book
	if book == nil {
		return
	}
	p.delay = delay{warp: warp, line: line, at: at, born: m.turn}
	if !book.Follows() {
		return
	}
	if d, ok := book.Take(decision.Hold, p.by.decider(warp), at, 0); ok {
		p.delay.late, p.delay.delayed = d.Late, true
		m.tell(p, false)
	}
}

// revealed notes that units of a store are visible to all now, after which there may be none left.
func (m *Memory) revealed(p *pending, units uint64) {
	book, d := m.config.Book, &p.delay
	switch {
	case book.Records():
		if m.turn > d.born+1 { // else it is as in the plain order
			d.late = append(d.late, decision.Late{Units: units, Turns: m.turn - d.born})
		}
		if p.units == 0 && len(d.late) > 0 {
			book.Add(decision.Decision{Kind: decision.Hold, Warp: p.by.decider(d.warp), At: d.at, Late: d.late})
		}
	case d.delayed && p.units == 0:
		m.tell(p, true)
	}
	if p.units == 0 {
		p.delay = delay{}
	}
}

// tell tells of a store that is to be visible late, or of its end.
func (m *Memory) tell(p *pending, seen bool) {
	off := p.addr - p.allocation.base
	s := decision.Scene{Kernel: p.by.grid.kernel, Line: int(p.delay.line), Seen: seen,
		Thread: 32*int(p.delay.warp) + int(p.delay.at&31), Size: int(p.n), Where: where(p.allocation, p.allocation.Addr+off)}
	if p.change == nil && p.n <= 8 && bits.OnesCount64(p.n) == 1 {
		s.Value = get(p.data[:], int(p.n))
	}
	m.config.Book.Tell(decision.Decision{Kind: decision.Hold, Warp: p.by.decider(p.delay.warp), At: p.delay.at,
		Late: p.delay.late}, s)
}
