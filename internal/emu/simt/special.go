package simt

import (
	"math/bits"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A special register that stays as it is while a warp lives.
type special struct {
	slot int32
	set  func(w *warp, d *alu.Lanes)
}

// each gives the threads of a warp values of their own.
func each(f func(w *warp, lane int) int) func(*warp, *alu.Lanes) {
	return func(w *warp, d *alu.Lanes) {
		for lane := range d {
			d[lane] = uint64(uint32(f(w, lane)))
		}
	}
}

// one gives all threads of a warp the same value.
func one(f func(w *warp) int) func(*warp, *alu.Lanes) {
	return each(func(w *warp, _ int) int { return f(w) })
}

// fixed are the special registers that are written when a warp begins. The
// argument is the dimension: fixed["%tid"](0) is for %tid.x.
var fixed = map[string]func(dim int) func(*warp, *alu.Lanes){
	"%tid": func(i int) func(*warp, *alu.Lanes) {
		return each(func(w *warp, lane int) int { return w.thread(lane)[i] })
	},
	"%ntid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.grid.Block[i] })
	},
	"%ctaid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.index[i] })
	},
	"%nctaid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.grid.Dim[i] })
	},
	"%clusterid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.index[i] / w.block.grid.cluster[i] })
	},
	"%nclusterid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.grid.clusters()[i] })
	},
	"%cluster_ctaid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.grid.cluster.at(w.block.rank)[i] })
	},
	"%cluster_nctaid": func(i int) func(*warp, *alu.Lanes) {
		return one(func(w *warp) int { return w.block.grid.cluster[i] })
	},
	"%cluster_ctarank":     scalar(one(func(w *warp) int { return w.block.rank })),
	"%cluster_nctarank":    scalar(one(func(w *warp) int { return w.block.grid.cluster.size() })),
	"%is_explicit_cluster": scalar(one(func(w *warp) int { return b2i(w.block.grid.explicit()) })),

	"%laneid": scalar(each(func(_ *warp, lane int) int { return lane })),
	"%warpid": scalar(one(func(w *warp) int { return w.index })),
	"%nwarpid": scalar(one(func(w *warp) int {
		return w.block.grid.world.cfg.Devices[w.block.grid.Device].ThreadsPerSM / 32
	})),
	"%smid":              scalar(one(func(w *warp) int { return w.block.sm.number })),
	"%nsmid":             scalar(one(func(w *warp) int { return len(w.block.grid.world.devices[w.block.grid.Device].sms) })),
	"%gridid":            scalar(one(func(w *warp) int { return w.block.grid.number })),
	"%dynamic_smem_size": scalar(one(func(w *warp) int { return w.block.grid.Shared })),
	"%total_smem_size":   scalar(one(func(w *warp) int { return w.block.grid.shared() })),
	// CUDA's cooperative groups have barriers in the memory that hardware reserves, behind _1.
	"%reserved_smem_offset_begin": scalar(one(func(w *warp) int { return w.block.grid.reserved() })),
	"%reserved_smem_offset_end":   scalar(one(func(w *warp) int { return w.block.grid.reserved() + sharedSystem })),
	"%reserved_smem_offset_cap":   scalar(one(func(*warp) int { return sharedSystem })),
	"%reserved_smem_offset_0":     scalar(one(func(w *warp) int { return w.block.grid.reserved() })),
	"%reserved_smem_offset_1":     scalar(one(func(w *warp) int { return w.block.grid.reserved() + sharedSystem/2 })),
	// The halves of the address of a cooperative launch's workspace, as cooperative groups of CUDA expect.
	"%envreg1":     scalar(one(func(w *warp) int { return int(w.block.grid.Workspace >> 32) })),
	"%envreg2":     scalar(one(func(w *warp) int { return int(uint32(w.block.grid.Workspace)) })),
	"%lanemask_eq": scalar(each(func(_ *warp, lane int) int { return 1 << lane })),
	"%lanemask_lt": scalar(each(func(_ *warp, lane int) int { return 1<<lane - 1 })),
	"%lanemask_le": scalar(each(func(_ *warp, lane int) int { return 2<<lane - 1 })),
	"%lanemask_ge": scalar(each(func(_ *warp, lane int) int { return -1 << lane })),
	"%lanemask_gt": scalar(each(func(_ *warp, lane int) int { return -2 << lane })),
}

func scalar(set func(*warp, *alu.Lanes)) func(int) func(*warp, *alu.Lanes) {
	return func(int) func(*warp, *alu.Lanes) { return set }
}

// clocks are the special registers that change. Each thread-instruction takes a
// nanosecond.
var clocks = map[string]func(ran uint64) uint64{
	"%clock":          func(ran uint64) uint64 { return ran & 0xffffffff },
	"%clock_hi":       func(ran uint64) uint64 { return ran >> 32 },
	"%clock64":        func(ran uint64) uint64 { return ran },
	"%globaltimer":    func(ran uint64) uint64 { return ran },
	"%globaltimer_lo": func(ran uint64) uint64 { return ran & 0xffffffff },
	"%globaltimer_hi": func(ran uint64) uint64 { return ran >> 32 },
}

// special is the slot of a special register. One that changes is read just before.
func (c *compiler) special(_ *frame, in *ptx.Instr, name string) int32 {
	if name == "WARP_SZ" {
		return c.constant(constant{value: 32})
	}
	if read, ok := clocks[name]; ok {
		s := c.scratch(name)
		c.code.ins = append(c.code.ins, inst{exec: execClock, dst: []int32{s}, guard: noSlot, helper: true, x: read, ptx: in})
		return s
	}
	base, dim, vector := strings.Cut(name, ".")
	i := strings.Index("xyz", dim)
	if vector && dim == "w" {
		return c.constant(constant{})
	}
	set, ok := fixed[base]
	if !ok || i < 0 || len(dim) > 1 {
		refuse(in, "special register %s is not emulated", name)
	}
	s, ok := c.specials[name]
	if !ok {
		s = c.scratch(name)
		c.code.reserves = c.code.reserves || strings.HasPrefix(name, "%reserved_smem")
		c.code.specials = append(c.code.specials, special{s, set(i)})
	}
	return s
}

func execClock(w *warp, in *inst, mask uint32) status {
	d, v := w.slot(in.dst[0]), in.x.(func(uint64) uint64)(w.block.grid.world.ran)
	for m := mask; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)] = v
	}
	return next
}

// thread is the index of a lane's thread in the block.
func (w *warp) thread(lane int) [3]int {
	t, n := 32*w.index+lane, w.block.grid.Block
	return [3]int{t % n[0], t / n[0] % n[1], t / n[0] / n[1]}
}
