package weakmem

import (
	"fmt"
	"math/bits"
)

// A cluster is blocks that run together and reach each other's shared memory.
type cluster struct {
	buffer  buffer // of stores that its threads see, and nobody else
	running int    // blocks
}

// visits are what a block of a cluster has to do with the shared memory of the others.
type visits struct {
	met     bool    // a barrier of the cluster has told its threads that all blocks have begun
	visited bool    // others have accessed its shared memory
	ended   bool    // see Block.End
	left    *vector // what its threads knew when they ended
}

// Cluster makes a cluster of blocks, which have just begun.
func (g *Grid) Cluster(blocks ...*Block) {
	c := &cluster{running: len(blocks)}
	c.buffer = buffer{memory: g.memory, up: g.memory.device(g.device), limit: blockPending, beyond: GPU}
	for _, b := range blocks {
		b.origin.cluster = c
		b.buffer.up, b.buffer.beyond = &c.buffer, Cluster
		b.shared.Name = fmt.Sprintf("shared memory of block (%d,%d,%d)", b.origin.index[0], b.origin.index[1],
			b.origin.index[2])
	}
}

// leave is called when a block has ended.
func (c *cluster) leave(m *Memory) {
	if c.running--; c.running == 0 {
		delete(m.sc.cluster, c)
	}
}

// inCluster reports whether the two are of one cluster of several blocks.
func (o *origin) inCluster(p *origin) bool { return o.cluster != nil && o.cluster == p.cluster }

// Met says that a barrier of the cluster has let threads of the block go on: all blocks have begun.
func (b *Block) Met() { b.met = true }

// Publish says that whoever accesses the 8 bytes at an offset in the block's shared memory from here on knows what was
// done there before.
func (b *Block) Publish(at uint64) {
	if s := &b.shared.memory.shadow; s.pages != nil && s.pages[at/pageBytes].cells != nil {
		s.pages[at/pageBytes].cells[at/cellBytes%pageCells] = 0
	}
}

// visit notes that lanes access the shared memory of another block of the cluster. The text says why they must not.
func (b *Block) visit(of *Block, warp int, mask uint32) (wrong string) {
	at := of.origin.index
	switch {
	case of == b:
		return ""
	case of.ended:
		return fmt.Sprintf("block (%d,%d,%d), whose shared memory it is, has ended", at[0], at[1], at[2])
	}
	of.visited = true
	if b.met || b.memory.config.Plain {
		return ""
	}
	for m := mask; m != 0; m &= m - 1 {
		if !b.clockOf(&b.warps[warp], bits.TrailingZeros32(m)).knows(of.origin.agent) {
			return fmt.Sprintf("block (%d,%d,%d), whose shared memory it is, may not have begun: a barrier of the cluster has "+
				"to come first", at[0], at[1], at[2])
		}
	}
	return ""
}

// knows reports whether anything that the agent did is before.
func (v *vector) knows(agent uint32) bool {
	if v == nil {
		return false
	}
	for _, e := range v.live {
		if e.key>>partBits == uint64(agent) {
			return true
		}
	}
	return v.hasEnded(agent)
}

// Outlasted reports accesses of other blocks to the shared memory of the block, which has ended, that may come after
// the end: nothing waited for them. It returns the first fault that is to stop the kernel.
func (b *Block) Outlasted() (stop *Fault) {
	if !b.visited || b.memory.config.Plain {
		return nil
	}
	b.left = join(b.left, b.clock)
	h := &b.memory.history
	b.shared.memory.shadow.each(func(c *cell) {
		var one [1]uint32
		for _, list := range [...]uint32{c.writes(), c.reads()} {
			for _, r := range h.of(list, &one) {
				if f := b.outlasts(&h.records[r]); f != nil && stop == nil {
					stop = f
				}
			}
		}
	})
	return stop
}

// outlasts reports an access of another block that may come after this one's end. The fault is that to stop at.
func (b *Block) outlasts(r *record) *Fault {
	if r.by == &b.origin || r.by.what != "" { // see Transfer.Leaves
		return nil
	}
	for m := r.mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if b.left.covers(r, lane) {
			continue
		}
		f := r.fault(OutOfBounds, b.shared, r.addr, lane)
		f.Shared = true
		f.Detail = "nothing orders it with the end of the block whose shared memory it is: a barrier of the cluster has to " +
			"come before"
		return b.memory.report(finding{kind: OutOfBounds, kernel: f.Kernel, line: f.Line, shared: true}, f)
	}
	return nil
}
