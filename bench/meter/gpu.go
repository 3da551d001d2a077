package meter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// A GPU is one whose memory and links are measured, by one goroutine at a time.
type GPU struct {
	Number   int
	Patience time.Duration // how long any work may take

	d       cuda.Driver
	dev     cuda.Device
	ctx     cuda.Context
	timer   *Timer
	module  cuda.Module
	kernels map[string]cuda.Function
	blocks  int // of fill and compare
	found   uintptr
	stuck   error // a *HangError
}

// Constants that kernels/cuda/meter.cu has too.
const (
	threads = 256 // of a block of fill, compare and multiply
	foundAt = 64  // where the records begin in the memory of a comparison
	record  = 24  // bytes: the address, the word wanted, the word read
)

// most is how many wrong words a comparison keeps.
const most = 128

// A HangError is the error of work that does not end.
type HangError struct {
	GPU   int
	What  string
	After time.Duration
}

func (e *HangError) Error() string {
	return fmt.Sprintf("GPU %d: %s has not ended after %v", e.GPU, e.What, e.After.Round(time.Millisecond))
}

// Open makes a GPU's context, if nobody has, and loads the kernels. It takes up to a second.
func Open(d cuda.Driver, number int, patience time.Duration) (*GPU, error) {
	g := &GPU{Number: number, Patience: patience, d: d, kernels: map[string]cuda.Function{}}
	var err error
	if g.dev, err = d.DeviceGet(number); err != nil {
		return nil, err
	}
	if g.ctx, err = d.DevicePrimaryCtxRetain(g.dev); err != nil {
		return nil, err
	}
	if err := g.with(g.load); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *GPU) with(f func() error) error { return cuda.With(g.d, g.ctx, f) }

func (g *GPU) load() (err error) {
	if g.timer, err = NewTimer(g.d); err != nil {
		return err
	}
	if g.found, err = g.d.MemAlloc(foundAt + most*record); err != nil {
		return err
	}
	if g.module, err = loadModule(g.d); err != nil {
		return err
	}
	for _, name := range []string{"fill", "compare", "chase", "store", "look"} {
		if g.kernels[name], err = g.d.ModuleGetFunction(g.module, name); err != nil {
			return err
		}
	}
	sms, err := g.d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, g.dev)
	g.blocks = 8 * sms // 2,048 threads on each
	return err
}

// loadModule loads kernels/cuda/meter.cu into the current context.
func loadModule(d cuda.Driver) (cuda.Module, error) {
	text, err := ptx.Text(ptx.Meter)
	if err != nil {
		return 0, err
	}
	return d.ModuleLoadData(text)
}

// Close gives back what Open has taken, unless the GPU hangs: then only the end of the process does.
func (g *GPU) Close() error {
	if g.stuck != nil {
		return nil
	}
	err := g.with(func() error {
		var errs []error
		if g.module != 0 {
			errs = append(errs, g.d.ModuleUnload(g.module))
		}
		if g.timer != nil {
			errs = append(errs, g.timer.Close())
		}
		if g.found != 0 {
			errs = append(errs, g.d.MemFree(g.found))
		}
		return errors.Join(errs...)
	})
	return errors.Join(err, g.d.DevicePrimaryCtxRelease(g.dev))
}

// Health is why the GPU cannot be used any more, nil if it can.
func (g *GPU) Health() error {
	if g.stuck != nil {
		return g.stuck
	}
	return g.with(func() error { return g.wait(context.Background(), "its work") })
}

// emulated reports whether the GPU is emulated: it is slow, and few repetitions suffice.
func (g *GPU) emulated() bool { return g.d.Name() == "emu" }

// endTime is how long work that was begun may go on when its context has ended.
const endTime = time.Second

// wait waits for the GPU's stream. If ctx ends, which is no fault of the GPU, the GPU has endTime to end its work.
func (g *GPU) wait(ctx context.Context, what string) error {
	began := time.Now()
	patience := g.Patience
	for i := 0; ; i++ {
		done, err := g.d.StreamQuery(g.timer.Stream)
		if done || err != nil {
			return err
		}
		took := time.Since(began)
		if ctx.Err() != nil {
			patience = min(patience, took+endTime)
			ctx = context.Background()
		}
		if took > patience {
			g.stuck = &HangError{g.Number, what, took}
			return g.stuck
		}
		if i < 1000 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// launch queues a kernel.
func launch[T any](g *GPU, name string, blocks, threads int, args *T) error {
	l := &cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Stream: g.timer.Stream}
	return g.d.LaunchKernel(g.kernels[name], l, cuda.ArgsOf(args))
}

// timed is the time of f's work on the stream, of n times in a row: the median of some repetitions
// after one that warms up. The context must be current.
func (g *GPU) timed(ctx context.Context, what string, n int, f func() error) (time.Duration, error) {
	repetitions := 5
	if g.emulated() {
		repetitions, n = 1, 1
	}
	return median(repetitions, func() (float64, error) {
		return g.timer.Once(n, func(int) error { return f() }, func() error { return g.wait(ctx, what) })
	})
}

// median is the median of some measurements in microseconds, after one that warms up.
func median(repetitions int, measure func() (us float64, err error)) (time.Duration, error) {
	var all []float64
	for i := range 1 + repetitions {
		us, err := measure()
		if err != nil {
			return 0, err
		}
		if i > 0 {
			all = append(all, us)
		}
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2] * 1e3), nil
}

// rate is bytes a second.
func rate(bytes int, took time.Duration) float64 {
	return float64(bytes) / max(took, 1).Seconds()
}
