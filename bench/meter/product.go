package meter

import (
	"errors"
	"math/rand/v2"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cublas"
	"github.com/ringo-go/ringo/mem"
)

// A Product is a product of matrices, as training has them: each of its blocks keeps a multiprocessor from
// the product's beginning to its end. It is NVIDIA's, of bfloat16, where cuBLASLt is found on a real GPU; else
// a launch of Load's kernel with a block a multiprocessor, which leaves as much shared memory as cuBLAS
// does, though not as few registers. Its methods are for one goroutine at a time.
type Product struct {
	load   *Load
	lib    *cublas.Library // nil: there is none
	blas   *cublas.Product
	memory mem.Region
	depth  int
}

// leftShared is how many bytes of a multiprocessor's shared memory cuBLAS leaves to others, with the KB that the
// driver keeps for each block.
const leftShared = 6 << 10

// NewProduct looks for cuBLASLt in a file, or where the system has it. Shape comes next.
func NewProduct(load *Load, file string) (*Product, error) {
	p := &Product{load: load}
	if load.dev.Driver().Name() == "emu" {
		return p, nil
	}
	err := load.dev.With(func() (err error) {
		p.lib, err = cublas.Open(file)
		return err
	})
	if err != nil && file == "" { // it need not be there
		return &Product{load: load}, nil
	}
	return p, err
}

// Name is the name of the program that multiplies.
func (p *Product) Name() string {
	if p.lib == nil {
		return "a kernel of one block a multiprocessor"
	}
	return "cuBLASLt"
}

// Shape has Launch multiply matrices of side × depth and depth × side elements. Without cuBLAS side has no
// meaning, and the time is in proportion to depth too.
func (p *Product) Shape(side, depth int) error {
	p.depth = depth
	if p.lib == nil {
		return nil
	}
	return p.load.dev.With(func() (err error) {
		if err := p.forget(); err != nil {
			return err
		}
		if p.memory, err = p.load.dev.Alloc(cublas.Bytes(side, side, depth)); err != nil {
			return err
		}
		if err := p.fill(); err != nil {
			return err
		}
		p.blas, err = p.lib.Product(side, side, depth, p.memory.Ptr())
		return err
	})
}

// fill writes numbers from 0.5 to 1 with both signs: a GPU takes more power for them, and so more time, than
// for zeros.
func (p *Product) fill() error {
	const part = 1 << 20
	b := make([]byte, part)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < part; i += 2 {
		v := rnd.Uint32()
		b[i], b[i+1] = byte(v&0x7f), byte(0x3f|v>>8&0x80)
	}
	for at := 0; at < p.memory.Len(); at += part {
		to := p.memory.Slice(at, min(part, p.memory.Len()-at))
		if err := p.load.dev.Write(to, b[:to.Len()]); err != nil {
			return err
		}
	}
	return nil
}

// Launch queues the product.
func (p *Product) Launch(s gpu.Stream) error {
	if p.lib == nil {
		return p.load.launchBlocks(s, p.load.wave, p.depth, max(0, p.load.shared-leftShared))
	}
	return p.load.dev.With(func() error { return p.blas.Queue(uintptr(s)) })
}

func (p *Product) forget() (err error) {
	if p.blas != nil {
		err = p.blas.Close()
		p.blas = nil
	}
	if !p.memory.IsNil() {
		err = errors.Join(err, p.load.dev.Free(p.memory))
		p.memory = mem.Region{}
	}
	return err
}

// Close gives back what the product has taken, before the Load's. Launches have to be done.
func (p *Product) Close() error {
	if p.lib == nil {
		return nil
	}
	return p.load.dev.With(func() error { return errors.Join(p.forget(), p.lib.Close()) })
}
