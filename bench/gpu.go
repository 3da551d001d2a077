package bench

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// gpuBuffers are a worker's memory on its GPU: twins of its host buffers, in which
// data are made and verified.
type gpuBuffers struct {
	dev     *gpu.Device
	stream  gpu.Stream
	in, out mem.Region
	graph   *gpu.Graph // of Config.Graph operations, while one is measured
	windows []*ringo.Window
}

func newGPUBuffers(dev *gpu.Device, in, out buffer, registered bool) (b *gpuBuffers, err error) {
	b = &gpuBuffers{dev: dev}
	alloc := dev.Alloc
	if registered { // as programs with windows should
		alloc = dev.AllocMapped
	}
	if b.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		r *mem.Region
		n int
	}{{&b.in, len(in.all)}, {&b.out, len(out.all)}} {
		if *m.r, err = alloc(m.n); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

// register registers the memory on all ranks. reason says why that has no effect, "" if
// it has.
func (b *gpuBuffers) register(c *ringo.Comm) (reason string, err error) {
	for _, r := range []mem.Region{b.in, b.out} {
		w, err := c.Register(r)
		if err != nil {
			return "", err
		}
		b.windows = append(b.windows, w)
	}
	return b.windows[0].Reason(), nil
}

// unregister undoes register, when all ranks have come to it.
func (b *gpuBuffers) unregister() error {
	var errs []error
	for _, w := range b.windows {
		errs = append(errs, w.Close())
	}
	b.windows = nil
	return errors.Join(errs...)
}

func (b *gpuBuffers) close() error {
	errs := []error{b.forget()}
	for _, r := range []mem.Region{b.in, b.out} {
		if !r.IsNil() {
			errs = append(errs, b.dev.Free(r))
		}
	}
	return errors.Join(append(errs, b.dev.DestroyStream(b.stream))...)
}

// forget gives the graph back.
func (b *gpuBuffers) forget() error {
	g := b.graph
	if b.graph = nil; g == nil {
		return nil
	}
	return g.Close()
}

// twin is the memory on the GPU that belongs to a part of the host buffers.
func (w *worker) twin(part []byte) mem.Region {
	if len(part) == 0 {
		return mem.Device(w.gpu.dev.Number(), 0, 0)
	}
	host, r := w.in, w.gpu.in
	if !mem.Host(part).Overlaps(mem.Host(host.all)) {
		host, r = w.out, w.gpu.out
	}
	return r.Slice(int(mem.Host(part).Ptr()-mem.Host(host.all).Ptr()), len(part))
}

// upload copies the first in and out bytes of the host buffers, and their fences, to the GPU.
func (w *worker) upload(in, out int) error {
	b := w.gpu
	if err := b.dev.Write(b.in, w.in.all[:in+2*fence]); err != nil {
		return err
	}
	return b.dev.Write(b.out, w.out.all[:out+2*fence])
}

// download copies the same bytes back, once the stream's work is done.
func (w *worker) download(in, out int) error {
	b := w.gpu
	if err := w.comm.Synchronize(b.stream); err != nil {
		return err
	}
	if err := b.dev.Read(w.in.all[:in+2*fence], b.in); err != nil {
		return err
	}
	return b.dev.Read(w.out.all[:out+2*fence], b.out)
}

// captured is the graph of the operation that is measured; all ranks capture together.
func (w *worker) captured(op *operation) (g *gpu.Graph, err error) {
	if w.gpu.graph == nil {
		w.gpu.graph, err = w.capture(op)
	}
	return w.gpu.graph, err
}

// capture makes a graph of Config.Graph times an operation.
func (w *worker) capture(op *operation) (*gpu.Graph, error) {
	g, err := w.gpu.dev.Capture(w.gpu.stream, func() error {
		for range w.cfg.Graph {
			if err := op.do(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return g, nil
}

// ofGPU describes the GPU of rank 0, and how it is measured.
func (r *Report) ofGPU(cfg *Config, d *gpu.Device) (err error) {
	if d == nil {
		return nil
	}
	if r.GPU, err = d.Name(); err != nil {
		return err
	}
	r.Driver, r.Links = d.DriverVersion(), r.links()
	how := "queued one by one"
	if cfg.Graph > 0 {
		how = fmt.Sprintf("graphs of %d operations", cfg.Graph)
	}
	r.Notes = append([]string{fmt.Sprintf("%s, driver of %s; %s", r.GPU, r.Driver, how)}, r.Notes...)
	return nil
}

// gpus opens the driver that Device names; nil for host memory.
func (c *Config) gpus(ranks int) (*gpu.Machine, error) {
	switch c.Device {
	case "cuda":
		full, err := ringo.Config{}.FromEnv()
		if err != nil {
			return nil, err
		}
		return gpu.Open(gpu.Options{Library: full.CUDALibrary})
	case "emu":
		// Each process emulates all devices, so that a rank's has the same number in all.
		return gpu.Open(gpu.Options{Emulate: min(ranks, 64), Unchecked: c.Unchecked})
	}
	return nil, nil
}
