// Modules of PTX: which one a program needs, and loading it once for all Engines of a context.

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

// shared gives the module of a key, which may not be loaded yet.
func (e *Engine) shared(key moduleKey) *module {
	m, _ := cuda.Stored(e.store, key, func() (*module, error) { return new(module), nil }, func(m *module) error {
		if m.handle == 0 {
			return nil
		}
		return e.driver.ModuleUnload(m.handle)
	})
	return m
}

// Prepare loads the kernels that programs with a Reducer need, or those that copy if
// it is nil, so that no Run has to. A Run that misses one loads it, which takes about
// 0.1 s.
func (e *Engine) Prepare(r *kernels.Reducer) error {
	_, p, err := e.kernel(r)
	if err == nil && p.Finishes {
		_, err = e.finisher(r)
	}
	if err == nil {
		_, err = e.bulkModule(r, 0)
	}
	return err
}

// PrepareCopies loads all kernels that only copy: the interpreter's, and direct and
// window kernels where there are any. Call it before any kernel runs: loading may wait
// for the running kernels of the context, and these may wait for a rank that this
// thread calls only after the load.
func (e *Engine) PrepareCopies() error {
	return errors.Join(e.Prepare(nil), ignore(e.PrepareDirect(nil), ErrNoDirect),
		ignore(e.PrepareWindow(nil), ErrNoWindow))
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// finisher is the kernel that ends an average of integers.
func (e *Engine) finisher(r *kernels.Reducer) (device.Kernel, error) {
	if e.finish == nil {
		c, err := device.Borrow(e.driver, e.ctx)
		if err != nil {
			return device.Kernel{}, err
		}
		e.finish = c
	}
	return e.finish.Kernel(r)
}

// kernel finds or loads the interpreter for a Reducer, nil to copy.
func (e *Engine) kernel(r *kernels.Reducer) (*module, kernels.Program, error) {
	return e.module(r, "run")
}

// module finds or loads the module of a source of kernels/cuda for a Reducer, nil to copy. "rows" is "norm" for any
// number of ranks.
func (e *Engine) module(r *kernels.Reducer, source string) (*module, kernels.Program, error) {
	if l := &e.latest; l.m != nil && l.r == r && l.source == source {
		return l.m, l.p, nil
	}
	m, p, err := e.find(r, source)
	if err == nil {
		e.latest = latest{r, source, m, p}
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
func (e *Engine) find(r *kernels.Reducer, source string) (*module, kernels.Program, error) {
	key := moduleKey{source: source}
	if source == "rows" { // the module of norms for any number of ranks
		key.source = "norm"
	}
	if source == "direct" || source == "many" || source == "norm" {
		key.ranks = e.ranks
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
	if m := e.modules[key]; m != nil {
		return m, p, nil
	}
	variants, all := key.variants(), key
	all.ranks = 0 // most are for any number of ranks
	if len(variants) > 0 {
		all.ranks = variants[0].Ranks
	}
	m := e.shared(all)
	if err := e.quietly(func() error { return e.load(m, variants) }); err != nil {
		return nil, p, fmt.Errorf("grid: device %d: %w", e.dev, err)
	}
	e.modules[key] = m
	return m, p, nil
}

func (k moduleKey) variants() []ptx.Name {
	if k.source == "direct" {
		t := ""
		if k.op != "" {
			t = k.t.String()
		}
		return ptx.DirectVariants(t, k.op, k.ranks)
	}
	if k.op == "" && k.source == "bulk" {
		return []ptx.Name{ptx.Bulk}
	}
	if k.op == "" {
		return []ptx.Name{{SM: 70, Source: k.source}}
	}
	switch k.source {
	case "window":
		return ptx.WindowVariants(k.t.String(), k.op)
	case "many":
		return ptx.ManyVariants(k.t.String(), k.op, k.ranks)
	case "norm":
		return ptx.NormVariants(k.t.String(), k.op, k.ranks)
	case "bulk":
		return ptx.BulkVariants(k.t.String(), k.op)
	}
	return ptx.RunVariants(k.t.String(), k.op)
}

// load takes the first variant that the device has the instructions for and the
// driver takes.
func (e *Engine) load(m *module, variants []ptx.Name) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle != 0 {
		return nil
	}
	var errs []error
	for _, name := range variants {
		if name.SM > e.capability {
			continue
		}
		err := e.loadVariant(m, name)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", name, err))
	}
	if errs == nil {
		return fmt.Errorf("compute capability %d.%d: a GPU of 7.0 (Volta) or newer is needed", e.capability/10,
			e.capability%10)
	}
	return errors.Join(errs...)
}

func (e *Engine) loadVariant(m *module, name ptx.Name) error {
	text, err := e.text(name)
	if err != nil {
		return err
	}
	handle, err := e.driver.ModuleLoadData(text)
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
		if *f, err = e.driver.ModuleGetFunction(handle, kernel); err != nil {
			return errors.Join(err, e.driver.ModuleUnload(handle))
		}
		if name.Source == ptx.Bulk.Source {
			if err = e.driver.FuncSetAttribute(*f, cuda.FuncMaxDynamicShared, bulkTables+ringTiles*e.bulk.tile); err != nil {
				return errors.Join(err, e.driver.ModuleUnload(handle))
			}
		}
		if name.Source == "norm" {
			if err = e.roomForRows(*f); err != nil {
				return errors.Join(err, e.driver.ModuleUnload(handle))
			}
		}
	}
	m.handle = handle
	return nil
}
