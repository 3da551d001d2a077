package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A Direction is the measurements of kernels and copies of one GPU in the memory of another.
type Direction struct {
	From, To int
	Link     cuda.Link
	Access   bool          // kernels reach the memory
	Rate     float64       // bytes a second of a copy
	Latency  time.Duration // of a load, there and back; 0 without access
	Wrong    int           // words of 8 bytes that arrived changed, of Carried bytes
	Carried  int
	Lines    Lines
}

// Lines say whether lines of 128 bytes that one instruction stores arrive whole.
type Lines struct {
	Torn     int    // words that were older than the end of their line
	Seen     int    // values that were seen; if fewer than 2, nothing was observed
	New, Old uint32 // an example: the end of the line, and a word in it
}

// A Pair is two GPUs, and memory on each for data that go between them.
type Pair struct {
	ends   [2]*GPU
	mem    [2]uintptr
	n      int
	access [2]bool
	link   [2]cuda.Link
}

// OpenPair allocates n bytes, at least 64 KiB, on each GPU, and lets each access the other's memory, if it can.
func OpenPair(a, b *GPU, n int) (p *Pair, err error) {
	p = &Pair{ends: [2]*GPU{a, b}, n: n}
	for i, g := range p.ends {
		err := g.with(func() (err error) {
			p.mem[i], err = g.d.MemAlloc(n)
			return err
		})
		if err == nil {
			err = p.enable(i)
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// enable lets one end access the other's memory.
func (p *Pair) enable(i int) (err error) {
	g, peer := p.ends[i], p.ends[1-i]
	if p.link[i], err = cuda.LinkBetween(g.d, g.dev, peer.dev); err != nil || p.link[i] == cuda.NoLink {
		return err
	}
	err = g.with(func() error { return g.d.CtxEnablePeerAccess(peer.ctx) })
	if errors.Is(err, cuda.ErrPeerAccessAlreadyEnabled) {
		err = nil
	}
	p.access[i] = err == nil
	if errors.Is(err, cuda.ErrPeerAccessUnsupported) || errors.Is(err, cuda.ErrTooManyPeers) {
		return nil
	}
	return err
}

// Close gives the memory back.
func (p *Pair) Close() (err error) {
	if p.ends[0].stuck != nil || p.ends[1].stuck != nil {
		return nil
	}
	for i, g := range p.ends {
		if p.mem[i] != 0 {
			err = errors.Join(err, g.with(func() error { return g.d.MemFree(p.mem[i]) }))
		}
	}
	return err
}

// Direction measures from end i, 0 or 1, to the other end, with times copies in a row.
func (p *Pair) Direction(ctx context.Context, i, times int) (w Direction, err error) {
	g, to := p.ends[i], p.ends[1-i]
	w = Direction{From: g.Number, To: to.Number, Link: p.link[i], Access: p.access[i]}
	steps := []func() error{
		func() error { return p.integrity(ctx, i, &w) },
		func() error {
			return g.with(func() error {
				took, err := g.timed(ctx, fmt.Sprintf("a copy to GPU %d", to.Number), times,
					func() error { return p.copy(i, 0, 0, p.n) })
				w.Rate = rate(p.n, took)
				return err
			})
		},
	}
	if w.Access {
		steps = append(steps, func() error { return p.latency(ctx, i, &w) })
		for range 3 { // the kernel that looks may have come too late
			steps = append(steps, func() error {
				if w.Lines.Seen > 1 {
					return nil
				}
				return p.lines(ctx, i, &w)
			})
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return w, err
		}
		if err := ctx.Err(); err != nil {
			return w, err
		}
	}
	return w, nil
}

// copy queues a copy of n bytes from end i.
func (p *Pair) copy(i, dst, src, n int) error {
	g, to := p.ends[i], p.ends[1-i]
	return g.d.MemcpyPeerAsync(p.mem[1-i]+uintptr(dst), to.ctx, p.mem[i]+uintptr(src), g.ctx, n, g.timer.Stream)
}

// integrity sends two patterns and compares the data that arrive.
func (p *Pair) integrity(ctx context.Context, i int, w *Direction) error {
	g, to, n := p.ends[i], p.ends[1-i], p.n
	if g.emulated() {
		n = min(n, 16<<10)
	}
	for _, pat := range []pattern{patterns[0], patterns[3]} {
		err := g.with(func() error {
			if err := g.fill(block{p.mem[i], n}, pat, p.mem[i]); err != nil {
				return err
			}
			if err := p.copy(i, 0, 0, n); err != nil {
				return err
			}
			return g.wait(ctx, fmt.Sprintf("a copy to GPU %d", to.Number))
		})
		if err != nil {
			return err
		}
		err = to.with(func() error {
			count, _, err := to.compare(ctx, block{p.mem[1-i], n}, pat, p.mem[1-i])
			w.Wrong += count
			w.Carried += n
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// latency follows a chain through the other end's memory, of one hop and of many.
func (p *Pair) latency(ctx context.Context, i int, w *Direction) error {
	g, to := p.ends[i], p.ends[1-i]
	const nodes, stride = 64, 1 << 10
	chain := make([]byte, nodes*stride)
	for k := range nodes {
		next := uint64(p.mem[1-i]) + uint64((k+1)%nodes*stride)
		binary.LittleEndian.PutUint64(chain[k*stride:], next)
	}
	if err := to.with(func() error { return cuda.Write(to.d, p.mem[1-i], chain) }); err != nil {
		return err
	}
	hops := 2000
	if g.emulated() {
		hops = 20
	}
	return g.with(func() error {
		var took [2]time.Duration
		for k, n := range []int{1, 1 + hops} {
			var err error
			took[k], err = g.timed(ctx, fmt.Sprintf("reading the memory of GPU %d", to.Number), 1, func() error {
				return launch(g, "chase", 1, 1, &struct{ p, hops, out uint64 }{uint64(p.mem[1-i]), uint64(n), uint64(g.found)})
			})
			if err != nil {
				return err
			}
		}
		w.Latency = (took[1] - took[0]) / time.Duration(hops)
		return nil
	})
}

// lines has end i store lines in the other end's memory, while the other end looks at them.
func (p *Pair) lines(ctx context.Context, i int, w *Direction) error {
	g, to := p.ends[i], p.ends[1-i]
	rounds, looks := uint32(100_000), uint32(1_000_000)
	if g.emulated() {
		rounds, looks = 100, 5000
	}
	err := to.with(func() error {
		if err := to.d.MemsetD8Async(p.mem[1-i], 0, 512, to.timer.Stream); err != nil {
			return err
		}
		if err := to.d.MemsetD8Async(to.found, 0, foundAt, to.timer.Stream); err != nil {
			return err
		}
		if err := to.wait(ctx, "clearing memory"); err != nil {
			return err
		}
		return launch(to, "look", 1, 32, &struct {
			p, out      uint64
			last, looks uint32
		}{uint64(p.mem[1-i]), uint64(to.found), rounds, looks})
	})
	if err != nil {
		return err
	}
	err = g.with(func() error {
		err := launch(g, "store", 1, 32, &struct {
			p      uint64
			rounds uint32
		}{uint64(p.mem[1-i]), rounds})
		if err != nil {
			return err
		}
		return g.wait(ctx, fmt.Sprintf("storing in the memory of GPU %d", to.Number))
	})
	if err != nil {
		return err
	}
	return to.with(func() error {
		if err := to.wait(ctx, fmt.Sprintf("looking at what GPU %d stores", g.Number)); err != nil {
			return err
		}
		var out [16]byte
		if err := to.d.MemcpyDtoH(out[:], to.found); err != nil {
			return err
		}
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(out[4*i:]) }
		w.Lines = Lines{Torn: int(word(0)), Seen: int(word(1)), New: word(2), Old: word(3)}
		return nil
	})
}

// Both is bytes a second, in both directions together, of copies both ways at once, times in a row each.
func (p *Pair) Both(ctx context.Context, times int) (bytesPerSecond float64, err error) {
	runtime.LockOSThread() // one thread, as in With: its calls follow each other in the emulator's modelled time
	defer runtime.UnlockOSThread()
	repetitions := 5
	if p.ends[0].emulated() {
		repetitions, times = 1, 1
	}
	took, err := median(repetitions, func() (float64, error) { return p.bothOnce(ctx, times) })
	return rate(p.n/2*2, took), err
}

// bothOnce is the microseconds of one copy each way, of times in a row, from one half of the memory to the other.
func (p *Pair) bothOnce(ctx context.Context, times int) (us float64, err error) {
	a, b, half := p.ends[0], p.ends[1], p.n/2
	copies := func(i int) func() error {
		return func() error {
			for range times {
				if err := p.copy(i, half, 0, half); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, step := range []struct {
		g *GPU
		f func() error
	}{
		{a, func() error { return a.d.EventRecord(a.timer.start, a.timer.Stream) }},
		{b, func() error { return b.d.StreamWaitEvent(b.timer.Stream, a.timer.start, 0) }},
		{a, copies(0)},
		{b, copies(1)},
		{b, func() error { return b.d.EventRecord(b.timer.end, b.timer.Stream) }},
		{a, func() error { return a.d.StreamWaitEvent(a.timer.Stream, b.timer.end, 0) }},
		{a, func() error { return a.d.EventRecord(a.timer.end, a.timer.Stream) }},
		{a, func() error { return a.wait(ctx, fmt.Sprintf("copying to and from GPU %d", b.Number)) }},
		{a, func() (err error) { us, err = a.timer.took(times); return err }},
	} {
		if err := step.g.with(step.f); err != nil {
			return 0, err
		}
	}
	return us, nil
}
