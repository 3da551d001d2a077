// Package meter measures the GPUs of a host, for package check: how fast each one's memory and the
// links between them are, and whether they keep and carry what is written. Times are those
// of the driver's events, so the emulator, whose clock Config.Speed models, is measured as hardware is.
//
// The trap: a kernel that hangs takes its GPU with it. Waiting ends after GPU.Patience with a *HangError,
// and from then on nothing may be asked of that GPU, not even to give memory back.
package meter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A GPU is one that is measured, by one goroutine at a time.
type GPU struct {
	Number   int
	Patience time.Duration // how long any work may take

	d          cuda.Driver
	dev        cuda.Device
	ctx        cuda.Context
	stream     cuda.Stream
	start, end cuda.Event
	module     cuda.Module
	kernels    map[string]cuda.Function
	blocks     int // of fill and compare
	found      uintptr
	stuck      error // a *HangError
}

// most is how many wrong words a comparison keeps.
const most = 128

// A HangError is of work that does not end.
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
	var errs [4]error
	g.stream, errs[0] = g.d.StreamCreate(cuda.StreamNonBlocking, 0)
	g.start, errs[1] = g.d.EventCreate(cuda.EventDefault)
	g.end, errs[2] = g.d.EventCreate(cuda.EventDefault)
	g.found, errs[3] = g.d.MemAlloc(foundAt + most*record)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if g.module, err = g.d.ModuleLoadData([]byte(text())); err != nil {
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

// Close gives back what Open has taken, unless the GPU hangs: then it is the process's end that does.
func (g *GPU) Close() error {
	if g.stuck != nil {
		return nil
	}
	err := g.with(func() error {
		var errs []error
		if g.module != 0 {
			errs = append(errs, g.d.ModuleUnload(g.module))
		}
		for _, e := range []cuda.Event{g.start, g.end} {
			if e != 0 {
				errs = append(errs, g.d.EventDestroy(e))
			}
		}
		if g.stream != 0 {
			errs = append(errs, g.d.StreamDestroy(g.stream))
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

// emulated reports whether the GPU is slow, and needs little to be measured.
func (g *GPU) emulated() bool { return g.d.Name() == "emu" }

// endTime is how long work that was begun may go on when its context has ended.
const endTime = time.Second

// wait waits for the GPU's stream. That the context ends is no fault of the GPU, which is given a moment to end its work.
func (g *GPU) wait(ctx context.Context, what string) error {
	began := time.Now()
	patience := g.Patience
	for i := 0; ; i++ {
		done, err := g.d.StreamQuery(g.stream)
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
	l := &cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Stream: g.stream}
	return g.d.LaunchKernel(g.kernels[name], l, cuda.ArgsOf(args))
}

// timed is how long one of n times f's work takes on the stream, the median of some repetitions after
// one that warms up. The context must be current.
func (g *GPU) timed(ctx context.Context, what string, n int, f func() error) (time.Duration, error) {
	repetitions := 5
	if g.emulated() {
		repetitions, n = 1, 1
	}
	var all []time.Duration
	for i := range 1 + repetitions {
		if err := g.d.EventRecord(g.start, g.stream); err != nil {
			return 0, err
		}
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if err := g.d.EventRecord(g.end, g.stream); err != nil {
			return 0, err
		}
		if err := g.wait(ctx, what); err != nil {
			return 0, err
		}
		ms, err := g.d.EventElapsedTime(g.start, g.end)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			all = append(all, time.Duration(float64(ms)*1e6/float64(n)))
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// rate is bytes a second.
func rate(bytes int, took time.Duration) float64 {
	return float64(bytes) / max(took, 1).Seconds()
}
