package simt

import "slices"

// A Turn is a warp's turn to run.
type Turn struct {
	Device       int
	Launch       int // which grid of the device, in the order of Start, from 0
	Block        [3]int
	Warp         int
	Instructions int // at most; it ends earlier where the warp waits, or polls
}

// turn is the turn to take where the seed would have x run n instructions.
func (w *World) turn(x *warp, n int) (*warp, int) {
	if w.cfg.Follow != nil {
		x, n = w.follow()
	}
	if w.cfg.Took != nil {
		g := x.block.grid
		w.cfg.Took(Turn{g.Device, g.launch, x.block.index, x.index, n})
	}
	return x, n
}

// follow is the next turn of Config.Follow, or of the rotation after them.
func (w *World) follow() (*warp, int) {
	for w.followed < len(w.cfg.Follow) {
		t := w.cfg.Follow[w.followed]
		w.followed++
		if x := w.find(t); x != nil {
			return x, t.Instructions
		}
	}
	x := w.ready[0]
	for _, y := range w.ready {
		if y.last < x.last {
			x = y
		}
	}
	w.rotation++
	x.last = w.rotation
	return x, rotationTurn
}

// rotationTurn is how many instructions a warp runs in a row in the rotation.
const rotationTurn = 32

// find is the warp of a turn, nil if it cannot run.
func (w *World) find(t Turn) *warp {
	for _, x := range w.ready {
		if g := x.block.grid; x.index == t.Warp && x.block.index == t.Block && g.Device == t.Device && g.launch == t.Launch {
			return x
		}
	}
	return nil
}

// Followed reports whether all turns of Config.Follow have been taken or passed over.
func (w *World) Followed() bool { return w.followed == len(w.cfg.Follow) }

// Halt stops all grids, each with a report of what its threads do, as of a deadlock.
func (w *World) Halt(why string) {
	for _, g := range slices.Backward(slices.Clone(w.grids)) {
		// the last first: stopping one must not make another resident
		g.deadlock(why, g.here...)
	}
}
