package weakmem

import (
	"encoding/binary"

	"github.com/ringo-go/ringo/internal/alu"
)

// A Grid is a kernel that runs.
type Grid struct {
	memory *Memory
	device int
	kernel string
	after  Clock
}

// Begin starts a kernel on a device; it happens after the given Clock.
func (m *Memory) Begin(device int, kernel string, after Clock) *Grid {
	return &Grid{memory: m, device: device, kernel: kernel, after: after}
}

// End is called when all blocks have ended, and gives what happened before now.
func (g *Grid) End() Clock { return g.after }

// A Block is a block of threads that runs. All that a warp does is for the
// lanes of a mask; a thread's number in the block is 32 × warp + lane.
type Block struct {
	grid       *Grid
	index, dim [3]int
	shared     []byte
}

// Block starts a block with so many bytes of shared memory, unwritten.
func (g *Grid) Block(index [3]int, dim [3]int, shared int) *Block {
	return &Block{grid: g, index: index, dim: dim, shared: make([]byte, shared)}
}

// End makes the block's stores visible. Nothing may be called after.
func (b *Block) End() {}

// Load reads len(dst) elements of size bytes for each lane, zero-extended into
// dst. The whole vector must be aligned to its size, at most 16 bytes.
func (b *Block) Load(warp int, mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes, how How) *Fault {
	for lane := range 32 {
		if mask>>lane&1 == 0 {
			continue
		}
		p, f := b.at(warp, lane, addr[lane], size*len(dst), false, how)
		if f != nil {
			return f
		}
		for i, d := range dst {
			d[lane] = get(p[i*size:], size)
		}
	}
	return nil
}

// Store writes len(src) elements of size bytes for each lane, from the low bits of src.
func (b *Block) Store(warp int, mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes, how How) *Fault {
	for lane := range 32 {
		if mask>>lane&1 == 0 {
			continue
		}
		p, f := b.at(warp, lane, addr[lane], size*len(src), true, how)
		if f != nil {
			return f
		}
		for i, s := range src {
			if get(p[i*size:], size) != s[lane]&(1<<(8*size)-1) {
				b.grid.memory.changes++
			}
			put(p[i*size:], size, s[lane])
		}
	}
	return nil
}

// Atomic replaces an element of 2, 4 or 8 bytes of each lane by f of it, lane
// by lane. f may be called again when another process was quicker. old, which
// may be nil (red), gets what was there.
func (b *Block) Atomic(warp int, mask uint32, addr *alu.Lanes, size int, old *alu.Lanes, f func(lane int, old uint64) uint64, how How) *Fault {
	for lane := range 32 {
		if mask>>lane&1 == 0 {
			continue
		}
		p, fault := b.at(warp, lane, addr[lane], size, true, how)
		if fault != nil {
			return fault
		}
		v := get(p, size)
		if n := f(lane, v); n != v {
			put(p, size, n)
			b.grid.memory.changes++
		}
		if old != nil {
			old[lane] = v
		}
	}
	return nil
}

// Fence orders what the lanes did before with what they do after, for the
// threads of how.Scope. How.Order is AcqRel or SeqCst.
func (b *Block) Fence(warp int, mask uint32, how How) {}

// SyncWarp orders the lanes of a warp: bar.warp.sync, and votes and shuffles with .sync.
func (b *Block) SyncWarp(warp int, mask uint32) {}

// Barrier is called when a barrier is complete. threads has the mask of each
// warp that took part; lanes that have ended count as taking part.
func (b *Block) Barrier(threads []uint32) {}

func (b *Block) at(warp, lane int, addr uint64, n int, write bool, how How) ([]byte, *Fault) {
	t := 32*warp + lane
	f := &Fault{Device: b.grid.device, Kernel: b.grid.kernel, Line: how.Line, Block: b.index, Addr: addr, Shared: how.Shared, Size: n, Write: write, Count: 1,
		Thread: [3]int{t % b.dim[0], t / b.dim[0] % b.dim[1], t / b.dim[0] / b.dim[1]}}
	if addr%uint64(n) != 0 {
		f.Kind = Misaligned
		return nil, f
	}
	if how.Shared {
		if addr+uint64(n) > uint64(len(b.shared)) {
			return nil, f
		}
		return b.shared[addr:][:n], nil
	}
	s := b.grid.memory.spans.find(addr)
	if s == nil || addr+uint64(n) > s.end() {
		return nil, f
	}
	if a := b.grid.memory.config.Access; a != nil && !a(b.grid.device, s) {
		f.Kind = NoAccess
		return nil, f
	}
	return s.Data[addr-s.Addr:][:n], nil
}

// get is the little-endian integer of size bytes at the beginning of p.
func get(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// put stores the low bytes of v at the beginning of p.
func put(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}
