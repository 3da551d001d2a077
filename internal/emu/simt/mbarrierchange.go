package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A change is what an instruction does to a barrier, for lanes; the text says what is wrong
// with that of a lane.
type change func(w *warp, in *inst, m *mbarrier, lanes uint32) (wrong string, lane int)

// second is the second source of a lane, 1 without.
func (w *warp) second(in *inst, lane int) int {
	if len(in.src) < 2 {
		return 1
	}
	return int(uint32(w.slot(in.src[1])[lane]))
}

func doInval(w *warp, in *inst, m *mbarrier, lanes uint32) (string, int) {
	lane := bits.TrailingZeros32(lanes)
	if lanes&(lanes-1) != 0 {
		return "several threads invalidate the " + m.String(), lane
	}
	if m.block != w.block {
		return "only a thread of its block can invalidate the " + m.String(), lane
	}
	m.gone = true
	w.mark(in, lane, m.at, 0)
	return "", 0
}

// doExpect counts bytes; they have come if sign is -1.
func doExpect(sign int) change {
	return func(w *warp, in *inst, m *mbarrier, lanes uint32) (wrong string, lane int) {
		for l := lanes; l != 0 && wrong == ""; l &= l - 1 {
			lane = bits.TrailingZeros32(l)
			wrong = m.expect(sign * w.second(in, lane))
		}
		return wrong, lane
	}
}

func doArrive(w *warp, in *inst, m *mbarrier, lanes uint32) (wrong string, lane int) {
	op := in.x.(*mbarrierOp)
	var released weakmem.Clock
	far := m.block != w.block
	releases := !op.plain && (!far || op.scope >= weakmem.Cluster)
	together := releases && bits.OnesCount32(lanes) <= m.pending // of one phase
	if together {
		released = w.block.mem.Release(w.index, lanes, op.scope)
	}
	for l := lanes; l != 0 && wrong == ""; l &= l - 1 {
		lane = bits.TrailingZeros32(l)
		n := 1
		if op.expects {
			if wrong = m.expect(w.second(in, lane)); wrong != "" {
				break
			}
		} else {
			n = w.second(in, lane)
		}
		if op.noComplete && n >= m.pending && m.bytes == 0 {
			return "the arrival says that it does not complete the phase, and would: " + m.String(), lane
		}
		if len(in.dst) > 0 {
			w.slot(in.dst[0])[lane] = m.token()
		}
		if op.drop {
			m.expected -= n
		}
		if !together && releases {
			released = w.block.mem.Release(w.index, 1<<lane, op.scope)
		}
		wrong = m.arrive(n, released, far)
	}
	return wrong, lane
}
