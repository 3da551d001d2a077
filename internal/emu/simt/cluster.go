package simt

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An extent is how many there are in each of three dimensions.
type extent [3]int

func (e extent) size() int { return e[0] * e[1] * e[2] }

// at is the coordinates of the i-th.
func (e extent) at(i int) [3]int { return [3]int{i % e[0], i / e[0] % e[1], i / e[0] / e[1]} }

// clusters are those of a grid.
func (g *Grid) clusters() (n extent) {
	for i := range n {
		n[i] = g.Dim[i] / g.cluster[i]
	}
	return n
}

// explicit reports whether the launch or the kernel says how large clusters are.
func (g *Grid) explicit() bool {
	return g.Cluster != [3]int{} || g.Kernel.Func.ReqCluster != ptx.Dim{}
}

// ClusterOf is how many blocks a cluster of a kernel has, in each dimension, in a launch that asks for some; zeros ask
// for none.
func (k *Kernel) ClusterOf(asked [3]int) [3]int {
	if asked == [3]int{} {
		asked = k.Func.ReqCluster
	}
	for i := range asked {
		asked[i] = max(asked[i], 1)
	}
	return asked
}

// A cluster is blocks that are resident together. Its barrier is complete when all threads that have not ended have
// arrived.
type cluster struct {
	grid    *Grid
	blocks  []*block    // by rank
	live    int         // threads that have not ended,
	running int         // and blocks
	arrived int         // threads at the barrier,
	fenced  []*mbarrier // initialised, and fenced since the barrier was complete
	coming  weakmem.Clock
	done    weakmem.Clock // released by the phases that have ended
}

// add makes a block the next one of the cluster.
func (c *cluster) add(b *block) {
	b.rank = len(c.blocks)
	c.blocks = append(c.blocks, b)
	c.live += b.live
	c.running++
}

// join is called when all blocks of a cluster of several are there.
func (c *cluster) join() {
	var blocks []*weakmem.Block
	for _, b := range c.blocks {
		blocks = append(blocks, b.mem)
	}
	c.grid.mem.Cluster(blocks...)
}

// leave is called when a block has ended. When all have, they may be used again.
func (c *cluster) leave() {
	if c.running--; c.running == 0 {
		c.grid.spare = append(c.grid.spare, c.blocks...)
	}
}

// exit is called when threads end. The barrier does not wait for them any longer.
func (c *cluster) exit(w *warp, mask uint32) {
	c.live -= bits.OnesCount32(mask)
	c.arrived -= bits.OnesCount32(mask & w.came)
	w.came &^= mask
	w.crossed &^= mask
	c.complete()
}

// complete lets the threads at the barrier go on if all have arrived.
func (c *cluster) complete() {
	if c.arrived == 0 || c.arrived < c.live {
		return
	}
	c.arrived = 0
	for _, m := range c.fenced {
		m.block.mem.Publish(m.at)
	}
	c.fenced = nil
	c.done, c.coming = weakmem.Join(c.done, c.coming), weakmem.Clock{}
	c.grid.world.progress()
	for _, b := range c.blocks {
		for _, w := range b.warps {
			w.crossed |= w.came
			w.came = 0
			if waits := w.waitsAt(atCluster); waits != 0 {
				w.meet(waits)
				w.release(atCluster, 0)
			}
		}
	}
}

// meet has threads go on behind the barrier.
func (w *warp) meet(mask uint32) {
	w.crossed &^= mask
	w.block.mem.Know(w.index, mask, w.block.cluster.done)
	w.block.mem.Met()
}

// A clusterBarrier is barrier.cluster.arrive and barrier.cluster.wait.
type clusterBarrier struct {
	aligned bool // all threads of a warp have to be at the same instruction
	plain   bool // .relaxed: what fences have not released, the arrival does not
}

func decodeClusterBarrier(c *compiler, fr *frame, in *ptx.Instr) {
	d := inst{exec: execClusterArrive, x: &clusterBarrier{in.Has("aligned"), in.Has("relaxed")}}
	if in.Has("wait") {
		d.exec = execClusterWait
	}
	c.emit(fr, in, d)
}

const apart = "all threads of the warp have to be at the same instruction, others of this warp are at another one"

func execClusterArrive(w *warp, in *inst, mask uint32) status {
	op, c := in.x.(*clusterBarrier), w.block.cluster
	if twice := mask & (w.came | w.crossed); twice != 0 {
		return w.fail(in, twice, weakmem.BadInstruction, "arrives twice at the barrier of the cluster without a wait between")
	}
	if op.aligned && w.came != 0 && w.cameAt != in {
		return w.fail(in, mask, weakmem.BadInstruction, apart)
	}
	if op.aligned && !w.gathers(in, mask) {
		return gone
	}
	w.came |= mask
	w.cameAt = in
	c.arrived += bits.OnesCount32(mask)
	released := w.block.mem.Fenced(w.index, mask, weakmem.Cluster)
	if !op.plain {
		released = w.block.mem.Release(w.index, mask, weakmem.Cluster)
	}
	c.coming = weakmem.Join(c.coming, released)
	c.complete()
	return next
}

func execClusterWait(w *warp, in *inst, mask uint32) status {
	if never := mask &^ (w.came | w.crossed); never != 0 {
		return w.fail(in, never, weakmem.BadInstruction, "waits at the barrier of the cluster without having arrived")
	}
	if in.x.(*clusterBarrier).aligned {
		if w.elsewhere(atCluster, true) {
			return w.fail(in, mask, weakmem.BadInstruction, apart)
		}
		if !w.gathers(in, mask) {
			return gone
		}
	}
	w.meet(mask & w.crossed)
	if mask &= w.came; mask != 0 {
		w.hold(mask, atCluster, 0)
		return gone
	}
	return next
}

// String says who has not arrived at the barrier.
func (c *cluster) String() string {
	var lack []string
	for _, b := range c.blocks {
		n := b.live
		for _, w := range b.warps {
			n -= bits.OnesCount32(w.came)
		}
		if n > 0 {
			lack = append(lack, fmt.Sprintf("%d of block %s", n, triple(b.index)))
		}
	}
	return fmt.Sprintf("waits at the barrier of the cluster, where %d of all %d that live have arrived and there lack %s",
		c.arrived, c.live, strings.Join(lack, ", "))
}

// holdsUp reports whether threads of the block wait for others of the cluster.
func (c *cluster) holdsUp(b *block) bool {
	return slices.ContainsFunc(b.warps, func(w *warp) bool { return w.waitsAt(atCluster) != 0 })
}

// stuck stops the grid if no thread of the cluster can go on, because all wait for each other.
func (c *cluster) stuck() {
	var here []*block
	for _, b := range c.blocks {
		if b.ready > 0 {
			return
		}
		if b.live > 0 {
			here = append(here, b)
		}
	}
	if len(here) > 0 {
		c.grid.deadlock("no thread of the cluster can go on", here...)
	}
}
