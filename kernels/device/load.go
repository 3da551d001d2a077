package device

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// A RefusedError says that the driver took no variant of a module.
type RefusedError struct {
	Type, Op   string
	Capability int   // of the device: 90 for 9.0
	Err        error // the driver's errors, joined; nil if the device is too old for all variants
}

func (e *RefusedError) Unwrap() error { return e.Err }

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("device: no kernel for %s of %s at compute capability %d.%d", e.Op, e.Type, e.Capability/10,
		e.Capability%10)
	if e.Err == nil {
		return s + ": a GPU of 7.0 (Volta) or newer is needed"
	}
	return s + ": " + e.Err.Error()
}

// refusals are the driver's results after which an older variant of a text may still
// be loaded.
var refusals = []cuda.Result{
	cuda.ErrInvalidPTX, cuda.ErrUnsupportedPTXVersion, cuda.ErrNoBinaryForGPU, cuda.ErrInvalidImage,
	cuda.ErrInvalidSource, cuda.ErrNotSupported,
}

// Refused reports whether an error of loading a text is a refusal, which the driver would repeat.
func Refused(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// load loads a module's newest variant that the device has the instructions for and
// the driver takes.
func (c *Combiner) load(key ptx.Name) (m *module, err error) {
	err = cuda.Quietly(c.driver, c.ctx, func() (err error) {
		m, err = c.loadVariant(key)
		return err
	})
	return m, err
}

func (c *Combiner) loadVariant(key ptx.Name) (*module, error) {
	var errs []error
	for _, name := range ptx.Variants(key.Type, key.Op) {
		if name.SM > c.capability {
			continue
		}
		m, err := c.loadModule(name)
		if err == nil {
			return m, nil
		}
		err = fmt.Errorf("%v: %w", name, err)
		if !Refused(err) {
			return nil, fmt.Errorf("device: load %w", err)
		}
		errs = append(errs, err)
	}
	return nil, &RefusedError{key.Type, key.Op, c.capability, errors.Join(errs...)}
}

func (c *Combiner) loadModule(name ptx.Name) (*module, error) {
	text, err := c.text(name)
	if err != nil {
		return nil, err
	}
	m := &module{name: name}
	if m.handle, err = c.driver.ModuleLoadData(text); err != nil {
		return nil, err
	}
	if m.combine, err = c.kernel(m.handle, name.Combine(), combineThreads); err == nil {
		m.plain, err = c.kernel(m.handle, name.Plain(), plainThreads)
	}
	if err != nil {
		return nil, errors.Join(err, c.driver.ModuleUnload(m.handle))
	}
	return m, nil
}

func (c *Combiner) kernel(m cuda.Module, name string, threads int) (kernel, error) {
	f, err := c.driver.ModuleGetFunction(m, name)
	if err != nil {
		return kernel{}, err
	}
	blocks, err := c.driver.OccupancyMaxActiveBlocksPerMultiprocessor(f, threads, 0)
	if err != nil {
		return kernel{}, err
	}
	return kernel{f, threads, c.sms * max(1, blocks)}, nil
}
