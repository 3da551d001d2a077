package grid

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/kernels/ptx"
)

type textFunc func(ptx.Name) ([]byte, error)

var ptxText textFunc = ptx.Text

// A moduleKey names a module, whichever variant is loaded; without op it only copies.
type moduleKey struct {
	t      kernels.DataType
	op     string
	source string // of kernels/cuda
	ranks  int    // of a module for one number of ranks; 0: for any
}

// A module is code in a context. The Engines of a context share it, see cuda.Store.
type module struct {
	mu     sync.Mutex
	handle cuda.Module // 0 until loaded; guarded by mu
	run    cuda.Function
	// of the module that only copies
	messages, notes, over cuda.Function
	loose                 cuda.Function // of windows
	rows                  cuda.Function // of norms
}

// modules are the modules that an Engine has loaded.
type modules struct {
	memory     *memory
	text       textFunc
	capability int // of the device
	ranks      int
	dynamic    map[string]int // bytes of dynamic shared memory, by source, where it is more than a kernel has unasked
	found      map[moduleKey]*module
	latest     latest
	finish     *device.Combiner
}

func (s *modules) close() error {
	clear(s.found)
	s.latest = latest{}
	if s.finish == nil {
		return nil
	}
	c := s.finish
	s.finish = nil
	return c.Close()
}

// stored returns the module of a key, which may not be loaded yet.
func (s *modules) stored(key moduleKey) *module {
	m, _ := cuda.Stored(s.memory.store, key, func() (*module, error) { return new(module), nil }, func(m *module) error {
		if m.handle == 0 {
			return nil
		}
		return s.memory.driver.ModuleUnload(m.handle)
	})
	return m
}

// finisher is the kernel that ends an average of integers.
func (s *modules) finisher(r *kernels.Reducer) (device.Kernel, error) {
	if s.finish == nil {
		c, err := device.Borrow(s.memory.driver, s.memory.ctx)
		if err != nil {
			return device.Kernel{}, err
		}
		s.finish = c
	}
	return s.finish.Kernel(r)
}

// kernel finds or loads the interpreter for a Reducer, nil to copy.
func (s *modules) kernel(r *kernels.Reducer) (*module, kernels.Program, error) {
	return s.module(r, "run")
}

// module finds or loads the module of a source of kernels/cuda for a Reducer, nil to copy. "rows" is "norm" for any
// number of ranks.
func (s *modules) module(r *kernels.Reducer, source string) (*module, kernels.Program, error) {
	if l := &s.latest; l.m != nil && l.r == r && l.source == source {
		return l.m, l.p, nil
	}
	m, p, err := s.find(r, source)
	if err == nil {
		s.latest = latest{r, source, m, p}
	}
	return m, p, err
}

// latest is the module found last: most calls ask for the same one again.
type latest struct {
	r      *kernels.Reducer
	source string
	m      *module
	p      kernels.Program
}

// find is module without a look at latest.
func (s *modules) find(r *kernels.Reducer, source string) (*module, kernels.Program, error) {
	key := moduleKey{source: source}
	if source == "rows" { // the module of norms for any number of ranks
		key.source = "norm"
	}
	if source == "direct" || source == "many" || source == "norm" {
		key.ranks = s.ranks
	}
	var p kernels.Program
	if r != nil {
		var ok bool
		if p, ok = r.Program(); !ok {
			return nil, p, &kernels.InvalidError{Type: r.Type(), Op: kernels.RedOp{Kind: kernels.KindUser},
				Reason: "a function in Go cannot run on a GPU"}
		}
		key.t, key.op = r.Type(), p.Op
	}
	if m := s.found[key]; m != nil {
		return m, p, nil
	}
	variants, all := key.variants(), key
	all.ranks = 0 // most are for any number of ranks
	if len(variants) > 0 {
		all.ranks = variants[0].Ranks
	}
	m := s.stored(all)
	if err := s.memory.quietly(func() error { return s.load(m, variants) }); err != nil {
		return nil, p, fmt.Errorf("grid: device %d: %w", s.memory.dev, err)
	}
	s.found[key] = m
	return m, p, nil
}

func (k moduleKey) variants() []ptx.Name {
	t := ""
	if k.op != "" {
		t = k.t.String()
	}
	return ptx.VariantsOf(k.source, t, k.op, k.ranks)
}

// load takes the first variant that the device has the instructions for and the
// driver takes.
func (s *modules) load(m *module, variants []ptx.Name) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle != 0 {
		return nil
	}
	var errs []error
	for _, name := range variants {
		if name.SM > s.capability {
			continue
		}
		err := s.loadVariant(m, name)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", name, err))
	}
	if errs == nil {
		return fmt.Errorf("compute capability %d.%d: a GPU of 7.0 (Volta) or newer is needed", s.capability/10,
			s.capability%10)
	}
	return errors.Join(errs...)
}

func (s *modules) loadVariant(m *module, name ptx.Name) error {
	d := s.memory.driver
	text, err := s.text(name)
	if err != nil {
		return err
	}
	handle, err := d.ModuleLoadData(text)
	if err != nil {
		return err
	}
	kernels := map[string]*cuda.Function{name.Run(): &m.run}
	switch name.Source {
	case ptx.Window.Source:
		kernels[name.Loose()] = &m.loose
	case "norm":
		if name.Ranks == 0 {
			kernels[name.Rows()] = &m.rows
		}
	}
	switch name {
	case ptx.Copy:
		kernels[ptx.Messages], kernels[ptx.Notes], kernels[ptx.Over] = &m.messages, &m.notes, &m.over
	case ptx.Bulk:
		kernels[ptx.BulkMessages] = &m.messages
	}
	for kernel, f := range kernels {
		if *f, err = d.ModuleGetFunction(handle, kernel); err != nil {
			return errors.Join(err, d.ModuleUnload(handle))
		}
		if n := s.dynamic[name.Source]; n > 0 {
			if err = d.FuncSetAttribute(*f, cuda.FuncMaxDynamicShared, n); err != nil {
				return errors.Join(err, d.ModuleUnload(handle))
			}
		}
	}
	m.handle = handle
	return nil
}
