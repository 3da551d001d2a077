package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Generic addresses of shared, local and parameter memory lie in windows, as
// on hardware, but at the end of the address space, where no mapping can be.
const (
	sharedWindow = 0xfff1 << 48
	localWindow  = 0xfff2 << 48
	paramWindow  = 0xfff3 << 48
	// functionWindow has the addresses of functions, which nothing but calls can use.
	functionWindow = 0xfff4 << 48
	windowMask     = 0xffff << 48
)

// A storage is the memory that an address is in.
type storage uint8

const (
	anywhere  storage = iota // a generic address
	memory                   // global and constant variables, by their addresses
	shared                   // of the block, or of another one of its cluster
	local                    // private memory of the thread
	arguments                // of the kernel
)

// clusterSpace is the modifier of what may be in the shared memory of any block of the cluster.
const clusterSpace = "shared::cluster"

var windows = map[ptx.Space]uint64{ptx.Shared: sharedWindow, ptx.Local: localWindow, ptx.Param: paramWindow}

// split divides the threads of a generic access by the memory they access, and
// turns addresses in windows into offsets.
func (w *warp) split(mask uint32, addr *alu.Lanes, each func(storage, uint32, *alu.Lanes) status) status {
	var inWindows uint64
	for m := mask; m != 0; m &= m - 1 {
		if hi := addr[bits.TrailingZeros32(m)]; hi >= sharedWindow {
			inWindows |= 1 << bits.TrailingZeros32(m)
		}
	}
	if inWindows == 0 {
		return each(memory, mask, addr)
	}
	var masks [5]uint32
	offsets := *addr
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		p := memory
		switch addr[lane] & windowMask {
		case sharedWindow:
			p = shared
		case localWindow:
			p = local
		case paramWindow:
			p = arguments
		}
		if p != memory {
			offsets[lane] &^= windowMask
		}
		masks[p] |= 1 << lane
	}
	for p, m := range masks {
		if m != 0 {
			if s := each(storage(p), m, &offsets); s != next {
				return s
			}
		}
	}
	return next
}

// decodeAddress decodes cvta, which converts between generic addresses and offsets in
// a space.
func decodeAddress(c *compiler, fr *frame, in *ptx.Instr) {
	d, s := c.dest(fr, in, in.Operands[0]), c.source(fr, in, in.Operands[1])
	add := windows[in.Space]
	if in.Has("to") {
		add = -add
	}
	c.emit(fr, in, inst{dst: []int32{d}, src: []int32{s}, alu: func(mask uint32, dst, src []*alu.Lanes) {
		d, a := dst[0], src[0]
		for m := mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			d[i] = a[i] + add
		}
	}})
}

func decodeIsSpace(c *compiler, fr *frame, in *ptx.Instr) {
	d, s := c.dest(fr, in, in.Operands[0]), c.source(fr, in, in.Operands[1])
	window := windows[in.Space]
	if in.Space == ptx.Const {
		refuse(in, "constant memory is not apart from global memory here")
	}
	if in.Space == ptx.Shared && !in.Has(clusterSpace) {
		c.emit(fr, in, inst{dst: []int32{d}, src: []int32{s}, exec: execIsOwn})
		return
	}
	c.emit(fr, in, inst{dst: []int32{d}, src: []int32{s}, alu: func(mask uint32, dst, src []*alu.Lanes) {
		for m := mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			in := src[0][i]&windowMask == window
			if window == 0 {
				in = src[0][i] < sharedWindow
			}
			dst[0][i] = uint64(b2i(in))
		}
	}})
}
