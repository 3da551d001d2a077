package device

import (
	"errors"
	"math/rand/v2"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A pool is one allocation that all measurements share, cut into sets of
// buffers. Launches go from set to set, so that no set is found in the cache.
type pool struct {
	d       cuda.Driver
	ordinal int
	base    uintptr
	n       int
}

// coldCaches is how many times the size of the GPU's cache (60 MiB on an H200) is moved
// before the same memory is used again.
const coldCaches = 4

func newPool(d cuda.Driver, ordinal, n int) (*pool, error) {
	base, err := d.MemAlloc(n)
	return &pool{d, ordinal, base, n}, err
}

func (p *pool) close() error { return p.d.MemFree(p.base) }

// A set is the buffers of one launch.
type set struct {
	dst  mem.Region
	srcs []mem.Region
}

// poolBytes is how much memory the sets of a measurement take.
func poolBytes(sources int, size int64, cache int) int {
	return numSets(sources, size, cache) * (sources + 1) * int(size)
}

// numSets is how many sets are coldCaches times the cache together, at most 64.
func numSets(sources int, size int64, cache int) int {
	one := (sources + 1) * int(size)
	return min(64, max(1, (coldCaches*cache+one-1)/one))
}

// cut makes sets of sources and a result each.
func (p *pool) cut(sources int, size int64, cache int) []set {
	sets := make([]set, numSets(sources, size, cache))
	at := p.base
	next := func() mem.Region {
		r := mem.Device(p.ordinal, at, int(size))
		at += uintptr(size)
		return r
	}
	for i := range sets {
		sets[i].dst = next()
		for range sources {
			sets[i].srcs = append(sets[i].srcs, next())
		}
	}
	return sets
}

// blockBytes is the length of the random data, which is repeated.
const blockBytes = 8 << 20

// randomBlock is random elements. Floats are finite and smaller than 2: the
// second highest bit, of the exponent, is clear.
func randomBlock(t kernels.DataType, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(t)))
	for i := 0; i+8 <= n; i += 8 {
		v := rng.Uint64()
		for k := range 8 {
			b[i+k] = byte(v >> (8 * k))
		}
	}
	if size := t.Size(); isFloat(t) {
		for i := size - 1; i < n; i += size {
			b[i] &^= 0x40
		}
	}
	return b
}

func isFloat(t kernels.DataType) bool {
	switch t {
	case kernels.Float16, kernels.Float32, kernels.Float64, kernels.BFloat16, kernels.Float8E4M3, kernels.Float8E5M2:
		return true
	}
	return false
}

// fill writes the block into all sources, shifted in each.
func (p *pool) fill(sets []set, block []byte) error {
	n := 0
	for _, s := range sets {
		for _, src := range s.srcs {
			shift := n * 1016 % len(block) &^ 7
			n++
			for at := 0; at < src.Len(); {
				piece := block[shift:min(len(block), shift+src.Len()-at)]
				if err := p.d.MemcpyHtoD(src.Ptr()+uintptr(at), piece); err != nil {
					return err
				}
				at += len(piece)
				shift = 0
			}
		}
	}
	return nil
}

// poison overwrites all results with a pattern.
func (p *pool) poison(sets []set) error {
	for _, s := range sets {
		if err := p.d.MemsetD8(s.dst.Ptr(), 0xA5, s.dst.Len()); err != nil {
			return err
		}
	}
	return nil
}

// sampleBytes is the length of each stretch of a result that is compared: at
// its beginning, somewhere within and at its end.
const sampleBytes = 256 << 10

// compare computes stretches of each set's result with f, in Go, and counts the
// bytes that were compared and those that differ.
func (p *pool) compare(sets []set, f func(dst []byte, srcs [][]byte)) (checked, wrong int64, err error) {
	for i, s := range sets {
		n := min(sampleBytes, s.dst.Len())
		middle := int(uint64(i+1)*0x9e3779b9%uint64(s.dst.Len()-n+1)) &^ 15
		for j, at := range []int{0, middle, s.dst.Len() - n} {
			if j > 0 && n == s.dst.Len() {
				break // all of it has been looked at
			}
			got, want := make([]byte, n), make([]byte, n)
			err = errors.Join(err, p.d.MemcpyDtoH(got, s.dst.Ptr()+uintptr(at)))
			srcs := make([][]byte, len(s.srcs))
			for k, src := range s.srcs {
				srcs[k] = make([]byte, n)
				err = errors.Join(err, p.d.MemcpyDtoH(srcs[k], src.Ptr()+uintptr(at)))
			}
			if err != nil {
				return checked, wrong, err
			}
			f(want, srcs)
			checked += int64(n)
			for k := range got {
				if got[k] != want[k] {
					wrong++
				}
			}
		}
	}
	return checked, wrong, nil
}
