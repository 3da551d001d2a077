package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/kernels/ptx"
)

type textFunc func(ptx.Name) ([]byte, error)

var ptxText textFunc = ptx.Text

// A moduleKey names a module without its variants; the zero key is that which
// only copies.
type moduleKey struct {
	t  kernels.DataType
	op string
}

// A module is code on the device.
type module struct {
	handle cuda.Module
	run    cuda.Function
	// of the module that only copies
	table, together cuda.Function
}

// Prepare loads what running programs with a Reducer needs, or what copying needs
// if it is nil, so that no Run has to. Run does the same when something is
// missing; that takes 0.1 s or so.
func (e *Engine) Prepare(r *kernels.Reducer) error {
	_, p, err := e.kernel(r)
	if err == nil && p.Finishes {
		_, err = e.finisher(r)
	}
	return err
}

// finisher is the kernel that ends an average of integers.
func (e *Engine) finisher(r *kernels.Reducer) (device.Kernel, error) {
	if e.finish == nil {
		c, err := device.New(e.driver, e.ctx)
		if err != nil {
			return device.Kernel{}, err
		}
		e.finish = c
	}
	return e.finish.Kernel(r)
}

// kernel finds or loads the kernel of a reduction.
func (e *Engine) kernel(r *kernels.Reducer) (*module, kernels.Program, error) {
	var key moduleKey
	var p kernels.Program
	variants := copyVariants
	if r != nil {
		var ok bool
		if p, ok = r.Program(); !ok {
			return nil, p, &kernels.InvalidError{Type: r.Type(), Op: kernels.RedOp{Kind: kernels.KindUser}, Reason: "a function in Go cannot run on a GPU"}
		}
		key = moduleKey{r.Type(), p.Op}
	}
	if m := e.modules[key]; m != nil {
		return m, p, nil
	}
	if r != nil {
		variants = ptx.RunVariants(key.t.String(), key.op)
	}
	var m *module
	err := e.quietly(func() (err error) {
		m, err = e.load(variants)
		return err
	})
	if err != nil {
		return nil, p, fmt.Errorf("grid: device %d: %w", e.dev, err)
	}
	e.modules[key] = m
	return m, p, nil
}

var copyVariants = []ptx.Name{ptx.Copy}

// load takes the first variant that the device has the instructions for and the
// driver takes.
func (e *Engine) load(variants []ptx.Name) (*module, error) {
	var errs []error
	for _, name := range variants {
		if name.SM > e.capability {
			continue
		}
		m, err := e.loadModule(name)
		if err == nil {
			return m, nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", name, err))
	}
	if errs == nil {
		return nil, fmt.Errorf("compute capability %d.%d: a GPU of 7.0 (Volta) or newer is needed", e.capability/10, e.capability%10)
	}
	return nil, errors.Join(errs...)
}

func (e *Engine) loadModule(name ptx.Name) (*module, error) {
	text, err := e.text(name)
	if err != nil {
		return nil, err
	}
	m := &module{}
	if m.handle, err = e.driver.ModuleLoadData(text); err != nil {
		return nil, err
	}
	m.run, err = e.driver.ModuleGetFunction(m.handle, name.Run())
	if err == nil && name == ptx.Copy {
		m.table, err = e.driver.ModuleGetFunction(m.handle, ptx.Table)
	}
	if err == nil && name == ptx.Copy {
		m.together, err = e.driver.ModuleGetFunction(m.handle, ptx.Together)
	}
	if err != nil {
		return nil, errors.Join(err, e.driver.ModuleUnload(m.handle))
	}
	return m, nil
}
