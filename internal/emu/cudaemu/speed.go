package cudaemu

import (
	"math/bits"
	"time"

	"github.com/ringo-go/ringo/internal/emu/simt"
)

// Host is the host among the ends of Config.Speed.
const Host = -1

// A Speed is that of a link or of a memory, in the time of Config.Speed.
type Speed struct {
	Latency time.Duration // of a copy, and of each load of a kernel
	// bytes a second, each way; a copy within a device counts what it reads and writes. 0: no limit
	Bandwidth float64
}

// overhead is the modelled time of a launch or of a copy besides its bytes. An H200 takes about that.
const overhead = 2 * time.Microsecond

// A model is the computed clock of Config.Speed. An op begins when those before it have ended, and not before the
// thread that queued it has seen what it waited for; threads take no time themselves. Bytes of several ops on one link
// come one after the other. A kernel takes as long as the slowest of its warps, an instruction a nanosecond and each
// load its latency, and as long as its bytes take on the links.
type model struct {
	busy    map[link]time.Duration
	kernels map[*simt.Grid]*kernelTime
}

type link struct{ from, to int }

type kernelTime struct {
	warps map[warpOf]time.Duration
	bytes map[link]int
}

type warpOf struct {
	block [3]int
	warp  int
}

func (t *model) init() { t.busy, t.kernels = map[link]time.Duration{}, map[*simt.Grid]*kernelTime{} }

// hostTime is the time of the calling thread.
func (m *Machine) hostTime() time.Duration {
	if m.cfg.Speed == nil {
		return 0
	}
	return m.thread().seen
}

// end is when an op that is done ended: now, if time is measured.
func (m *Machine) end(o *op) time.Duration {
	if m.cfg.Speed == nil {
		return m.now()
	}
	switch w := o.work.(type) {
	case copyWork:
		return m.carry(o.from, link{m.owner(w.src), m.owner(w.dst)}, w.n)
	case setWork:
		return m.carry(o.from, link{m.owner(w.p), m.owner(w.p)}, w.n)
	case writeWork:
		return m.carry(o.from, link{Host, m.owner(w.dst)}, len(w.src))
	case readWork:
		return m.carry(o.from, link{m.owner(w.src), Host}, len(w.dst))
	case kernelWork:
		return m.kernelEnd(o)
	}
	return o.from
}

// carry is when bytes have gone over a link.
func (m *Machine) carry(from time.Duration, l link, n int) time.Duration {
	if l.from == l.to {
		n *= 2
	}
	return m.occupy(from, l, n) + m.cfg.Speed(l.from, l.to).Latency + overhead
}

// occupy puts bytes on a link, behind all bytes that the link carries already, and returns when the link is free again.
func (m *Machine) occupy(from time.Duration, l link, n int) time.Duration {
	if s := m.cfg.Speed(l.from, l.to); s.Bandwidth > 0 {
		from = max(from, m.model.busy[l]) + time.Duration(float64(n)/s.Bandwidth*float64(time.Second))
		m.model.busy[l] = from
	}
	return from
}

// kernelEnd is when a kernel ends that began after o.from.
func (m *Machine) kernelEnd(o *op) time.Duration {
	end := o.from
	k := m.model.kernels[o.grid]
	if k == nil { // it never ran
		return end
	}
	delete(m.model.kernels, o.grid)
	for _, t := range k.warps {
		end = max(end, o.from+t)
	}
	for l, n := range k.bytes {
		end = max(end, m.occupy(o.from, l, n))
	}
	return end + overhead
}

// owner is the device that an address belongs to, or Host.
func (m *Machine) owner(p uint64) int {
	if r := m.regions.find(p); r != nil && r.dev != nil {
		return r.dev.ordinal
	}
	return Host
}

// clock counts the time of an instruction of a warp.
func (m *Machine) clock(e simt.Event) {
	k := m.model.kernels[e.Grid]
	if k == nil {
		k = &kernelTime{map[warpOf]time.Duration{}, map[link]int{}}
		m.model.kernels[e.Grid] = k
	}
	took := time.Nanosecond
	if e.Mask != 0 {
		if p, n, ok := e.Access(bits.TrailingZeros32(e.Mask)); ok && m.regions.find(p) != nil {
			l := link{m.owner(p), e.Device}
			if e.In.Op != "ld" && e.In.Op != "atom" {
				l = link{e.Device, l.from}
			} else {
				took += m.cfg.Speed(l.from, l.to).Latency
			}
			k.bytes[l] += n * bits.OnesCount32(e.Mask)
		}
	}
	k.warps[warpOf{e.Block, e.Warp}] += took
}
