package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A pattern is the words that fill writes; see kernels/cuda/meter.cu.
type pattern struct {
	name string
	kind uint32 // 0 the address, 1 a bit that walks, 2 nothing
	flip uint64
}

// Each bit of each word is 0 once and 1 once, beside bits that differ from it and bits that do not. Two
// words at different addresses differ, so that a fault of addressing which makes them one is seen.
var patterns = []pattern{
	{"address in address", 0, 0}, {"inverted address", 0, ^uint64(0)},
	{"walking 1", 1, 0}, {"walking 0", 1, ^uint64(0)},
	{"0101", 2, 0x5555555555555555}, {"1010", 2, 0xaaaaaaaaaaaaaaaa},
}

// A Wrong is a word of 8 bytes that differs from the word that had been written.
type Wrong struct {
	Address   uint64 `json:"address"` // as kernels see it
	Offset    uint64 `json:"offset"`  // in the memory that was tested
	Want, Got uint64
	Pattern   string
}

// Bits are the bits that differ.
func (w Wrong) Bits() uint64 { return w.Want ^ w.Got }

// A Test is the result of a test of memory.
type Test struct {
	Bytes int     // that were tested
	Count int     // of wrong words, in all patterns
	Wrong []Wrong // some of them
}

// Stuck are the bits that were wrong only as 0, and the bits that were wrong only as 1, among the wrong
// words at one address.
func Stuck(list []Wrong) (zero, one uint64) {
	for _, w := range list {
		zero |= w.Bits() & w.Want
		one |= w.Bits() & w.Got
	}
	return zero &^ one, one &^ zero
}

type patternArgs struct {
	p, n, base, flip, found uint64
	kind, most              uint32
}

// TestMemory writes six patterns into a share of the memory that is free, with a bound in bytes, and reads each again,
// at the memory's own speed: 1.5 s for all of an H200's. The GPU's cache hides the memory behind it, so the share has
// to be several times the size of the cache.
func (g *GPU) TestMemory(ctx context.Context, share float64, most int) (t Test, err error) {
	err = g.with(func() (err error) {
		free, _, err := g.d.MemGetInfo()
		if err != nil {
			return err
		}
		blocks, err := g.take(min(most, int(share*float64(free))))
		if err != nil {
			return err
		}
		for _, b := range blocks {
			t.Bytes += b.n
		}
		for _, p := range patterns {
			if err = ctx.Err(); err == nil {
				err = g.test(ctx, p, blocks, &t)
			}
			if err != nil {
				break
			}
		}
		if g.stuck == nil {
			for _, b := range blocks {
				err = errors.Join(err, g.d.MemFree(b.p))
			}
		}
		return err
	})
	return t, err
}

type block struct {
	p uintptr
	n int
}

const (
	largest  = 1 << 30 // bytes of an allocation for tests: free memory may be in pieces
	smallest = 2 << 20
)

// take allocates n bytes, or as many as there are. It is an error only if there are none at all.
func (g *GPU) take(n int) (list []block, err error) {
	n = max(n&^15, 16)
	for size := min(n, largest); n > 0; {
		size = min(size, n)
		p, e := g.d.MemAlloc(size)
		switch {
		case e == nil:
			list = append(list, block{p, size})
			n -= size
		case errors.Is(e, cuda.ErrOutOfMemory) && size > smallest:
			size = size / 2 &^ 15
		case errors.Is(e, cuda.ErrOutOfMemory) && len(list) > 0:
			return list, nil
		default:
			for _, b := range list {
				g.d.MemFree(b.p)
			}
			return nil, fmt.Errorf("memory to test: %w", e)
		}
	}
	return list, nil
}

// test writes a pattern into all blocks and compares it.
func (g *GPU) test(ctx context.Context, p pattern, blocks []block, t *Test) error {
	for _, b := range blocks {
		if err := g.fill(b, p, 0); err != nil {
			return err
		}
	}
	before := 0
	for _, b := range blocks {
		count, wrong, err := g.compare(ctx, b, p, 0)
		if err != nil {
			return err
		}
		t.Count += count
		for _, w := range wrong {
			w.Offset += uint64(before)
			t.Wrong = append(t.Wrong, w)
		}
		before += b.n
	}
	return nil
}

func (g *GPU) launchPattern(name string, b block, p pattern, base uintptr) error {
	args := &patternArgs{p: uint64(b.p), n: uint64(b.n / 16), base: uint64(base), flip: p.flip, found: uint64(g.found),
		kind: p.kind, most: most}
	return launch(g, name, max(1, min(g.blocks, b.n/16/threads)), threads, args)
}

// fill queues the writing of a pattern, whose addresses begin at base.
func (g *GPU) fill(b block, p pattern, base uintptr) error {
	return g.launchPattern("fill", b, p, base)
}

// compare reads a pattern. It returns how many words are wrong, and some of them.
func (g *GPU) compare(ctx context.Context, b block, p pattern, base uintptr) (count int, list []Wrong, err error) {
	if err := g.d.MemsetD8Async(g.found, 0, foundAt, g.timer.Stream); err != nil {
		return 0, nil, err
	}
	if err := g.launchPattern("compare", b, p, base); err != nil {
		return 0, nil, err
	}
	if err := g.wait(ctx, "reading memory with the pattern "+p.name); err != nil {
		return 0, nil, err
	}
	var head [4]byte
	if err := g.d.MemcpyDtoH(head[:], g.found); err != nil {
		return 0, nil, err
	}
	count = int(binary.LittleEndian.Uint32(head[:]))
	if count == 0 {
		return 0, nil, nil
	}
	records := make([]byte, min(count, most)*record)
	if err := g.d.MemcpyDtoH(records, g.found+foundAt); err != nil {
		return 0, nil, err
	}
	for r := records; len(r) > 0; r = r[record:] {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(r[8*i:]) }
		list = append(list, Wrong{Address: word(0), Offset: word(0) - uint64(b.p), Want: word(1), Got: word(2),
			Pattern: p.name})
	}
	return count, list, nil
}

// CopyRate is the rate of copies of n bytes within the GPU's memory, times in a row. Bytes count when they
// are read and when they are written, as in the copies of "ringo probe".
func (g *GPU) CopyRate(ctx context.Context, n, times int) (bytesPerSecond float64, err error) {
	err = g.with(func() (err error) {
		p, err := g.d.MemAlloc(2 * n)
		if err != nil {
			return err
		}
		defer g.free(p, &err)
		if err := g.d.MemsetD8Async(p, 1, n, g.timer.Stream); err != nil {
			return err
		}
		took, err := g.timed(ctx, "a copy in its memory", times,
			func() error { return g.d.MemcpyAsync(p+uintptr(n), p, n, g.timer.Stream) })
		bytesPerSecond = rate(2*n, took)
		return err
	})
	return bytesPerSecond, err
}

// HostRates are bytes a second of copies of n bytes from (in) and to (out) pinned memory of the host, times in a row.
func (g *GPU) HostRates(ctx context.Context, n, times int) (in, out float64, err error) {
	err = g.with(func() (err error) {
		p, err := g.d.MemAlloc(n)
		if err != nil {
			return err
		}
		defer g.free(p, &err)
		h, err := g.d.MemHostAlloc(n, 0)
		if err != nil {
			return err
		}
		defer func() {
			if g.stuck == nil {
				err = errors.Join(err, g.d.MemFreeHost(h))
			}
		}()
		if err := g.d.MemsetD8Async(p, 1, n, g.timer.Stream); err != nil {
			return err
		}
		took, err := g.timed(ctx, "a copy to the host", times,
			func() error { return g.d.MemcpyAsync(h, p, n, g.timer.Stream) })
		if err != nil {
			return err
		}
		out = rate(n, took)
		took, err = g.timed(ctx, "a copy from the host", times,
			func() error { return g.d.MemcpyAsync(p, h, n, g.timer.Stream) })
		in = rate(n, took)
		return err
	})
	return in, out, err
}

// free gives memory back, unless the GPU hangs.
func (g *GPU) free(p uintptr, err *error) {
	if g.stuck == nil {
		*err = errors.Join(*err, g.d.MemFree(p))
	}
}
