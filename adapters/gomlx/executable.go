package gomlx

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/ringo-go/ringo"
)

// An executable is a compiled program: steps that are levels or collectives. Values have numbers.
type executable struct {
	b         *Backend
	name      string
	names     []string // of the parameters
	shapes    []shapes.Shape
	params    []int // the parameters' values
	outputs   []int
	outShapes []shapes.Shape
	steps     []step
	last      []int // by value: the last step that needs it; len(steps) for an output
	devices   int
	assigned  []backends.DeviceNum
	ended     bool // by Finalize
	talks     int  // the last step that is a collective, −1 if there is none
}

// A step is a level or a collective, with the values that it takes and makes.
type step struct {
	level      backends.Executable
	collective *collective
	ins, outs  []int
}

// Compile implements backends.Builder.
func (b *builder) Compile(outputs []backends.Op, _ []*backends.ShardingSpec) (backends.Executable, error) {
	if err := b.check("Compile", outputs...); err != nil {
		return nil, err
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("Compile: program %q has no output: %w", b.name, ringo.ErrInvalid)
	}
	e := &executable{b: b.backend, name: b.name, names: b.names, devices: b.devices, assigned: b.assigned, talks: -1}
	for _, p := range b.params {
		e.params = append(e.params, p.value)
		e.shapes = append(e.shapes, p.shape)
	}
	for _, o := range outputs {
		o := o.(*op)
		shape, err := o.shapeOf()
		if err != nil {
			return nil, err
		}
		e.outputs = append(e.outputs, b.valueOf(o))
		e.outShapes = append(e.outShapes, shape)
	}
	b.compiled = true
	for _, l := range b.levels {
		if len(l.outputs) > 0 {
			s, err := l.compile()
			if err != nil {
				e.Finalize()
				return nil, fmt.Errorf("Compile: program %q: %w", b.name, err)
			}
			e.steps = append(e.steps, s)
		}
		for _, c := range l.collectives {
			e.talks = len(e.steps)
			e.steps = append(e.steps, step{collective: c, ins: valuesOf(c.ins), outs: valuesOf(c.outs)})
		}
	}
	e.last = make([]int, b.values)
	for i, s := range e.steps {
		for _, v := range s.ins {
			e.last[v] = i
		}
	}
	for _, v := range e.outputs {
		e.last[v] = len(e.steps)
	}
	return e, nil
}

// compile compiles a level. The backend below refuses an output that is there twice, even under two ops, and a
// parameter that comes after the last output. So a copied output ends the program: the smallest.
func (l *level) compile() (step, error) {
	outs := make([]backends.Op, len(l.outputs))
	sizes := make([]int, len(outs))
	for i, o := range l.outputs {
		outs[i] = o.as[l]
		shape, err := l.OpShape(outs[i])
		if err != nil {
			return step{}, err
		}
		sizes[i] = shape.Size()
	}
	var err error
	for i := range outs {
		if slices.Contains(outs[:i], outs[i]) {
			if outs[i], err = l.Identity(outs[i]); err != nil {
				return step{}, err
			}
		}
	}
	smallest := slices.Index(sizes, slices.Min(sizes))
	if outs[smallest], err = l.Identity(outs[smallest]); err != nil {
		return step{}, err
	}
	exec, err := l.Builder.Compile(outs, nil)
	return step{level: exec, ins: valuesOf(l.inputs), outs: valuesOf(l.outputs)}, err
}

func valuesOf(ops []*op) []int {
	values := make([]int, len(ops))
	for i, o := range ops {
		values[i] = o.value
	}
	return values
}

// Finalize implements backends.Executable.
func (e *executable) Finalize() {
	if e.ended {
		return
	}
	for _, s := range e.steps {
		if s.level != nil { // a collective has no level
			s.level.Finalize()
		}
	}
	e.ended = true
}

// Inputs implements backends.Executable.
func (e *executable) Inputs() (names []string, inputShapes []shapes.Shape) { return e.names, e.shapes }

// Outputs implements backends.Executable.
func (e *executable) Outputs() []shapes.Shape { return e.outShapes }

// Execute implements backends.Executable. Programs with collectives of one Backend are executed one after the other;
// the order must be the same on all ranks. The error of a step is a *Failure, which has the donated inputs unless the
// last collective had succeeded.
func (e *executable) Execute(inputs []backends.Buffer, donate []bool,
	defaultDevice backends.DeviceNum) ([]backends.Buffer, error) {
	if e.ended {
		return nil, fmt.Errorf("Execute: program %q has ended (Finalize): %w", e.name, ringo.ErrInvalid)
	}
	n := len(e.params)
	if len(inputs) != n*e.devices || len(donate) != 0 && len(donate) != len(inputs) {
		return nil, fmt.Errorf("Execute: program %q: %d inputs and %d marks of donation, want %d × %d: %w",
			e.name, len(inputs), len(donate), e.devices, n, ringo.ErrInvalid)
	}
	if len(donate) == 0 {
		donate = make([]bool, len(inputs))
	}
	if e.talks >= 0 {
		e.b.turn.Lock()
		defer e.b.turn.Unlock()
	}
	runs := make([]run, e.devices)
	errs := make([]error, e.devices)
	var all sync.WaitGroup
	for i := range runs {
		device := defaultDevice
		switch {
		case e.assigned != nil:
			device = e.assigned[i]
		case e.devices > 1:
			device = backends.DeviceNum(i)
		}
		r := &runs[i]
		*r = run{e: e, device: int(device), index: i}
		if err := r.take(inputs[i*n:(i+1)*n], donate[i*n:(i+1)*n]); err != nil {
			return nil, fmt.Errorf("Execute: program %q: %w", e.name, err)
		}
	}
	for i := 1; i < e.devices; i++ {
		all.Go(func() { errs[i] = runs[i].run() })
	}
	errs[0] = runs[0].run()
	all.Wait()
	if err := cause(errs); err != nil {
		return nil, err
	}
	outputs := make([]backends.Buffer, 0, e.devices*len(e.outputs))
	for i := range runs {
		outs, err := runs[i].leave()
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, outs...)
	}
	return outputs, nil
}

// cause is the error of the device that failed first. The other devices only report a failed peer.
func cause(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, ringo.ErrPeer) {
			return err
		}
	}
	return errors.Join(errs...)
}

// A run is one device's execution of a program.
type run struct {
	e      *executable
	device int
	index  int // of the device in the program
	values []value
}

// A value is a result of a level or a collective, or an input. The run may change and free its own values, and donated
// inputs only when all communication has succeeded.
type value struct {
	buffer backends.Buffer // of the backend below
	own    bool
	input  bool
}

// spent reports whether step i is the last step that needs value v, and may change it.
func (r *run) spent(v, i int) bool {
	x := &r.values[v]
	return x.own && r.e.last[v] == i && (!x.input || i > r.e.talks)
}

// take checks the inputs and makes them values; donated ones become the run's own.
func (r *run) take(inputs []backends.Buffer, donate []bool) error {
	r.values = make([]value, len(r.e.last))
	for i, in := range inputs {
		b, ok := in.(*buffer)
		if !ok || b.inner == nil {
			return fmt.Errorf("input %d (%q) is %T, or freed: want a buffer of this backend: %w", i, r.e.names[i], in,
				ringo.ErrInvalid)
		}
		if b.device != backends.DeviceNum(r.device) {
			return fmt.Errorf("input %d (%q) is on device %d, the program runs on %d: %w", i, r.e.names[i], b.device, r.device,
				ringo.ErrInvalid)
		}
		shape, err := r.e.b.inner.BufferShape(b.inner)
		if err != nil {
			return err
		}
		if !shape.Equal(r.e.shapes[i]) {
			return fmt.Errorf("input %d (%q) is %s, want %s: %w", i, r.e.names[i], shape, r.e.shapes[i], ringo.ErrInvalid)
		}
		r.values[r.e.params[i]] = value{buffer: b.inner, own: donate[i], input: true}
	}
	return nil
}

// run carries out all steps. After an error the run's own values are freed, except inputs that a Failure has.
func (r *run) run() error {
	for i, s := range r.e.steps {
		var err error
		if s.collective != nil {
			err = r.communicate(i, s)
		} else if err = r.compute(i, s); err != nil && i < r.e.talks {
			r.e.b.Comm(r.device).Abort(err) // the others would wait for this rank
		}
		if err != nil {
			f := &Failure{Program: r.e.name, Err: err, b: r.e.b, inputs: map[string]*buffer{}}
			for k, v := range r.e.params {
				if x := r.values[v]; x.own && i <= r.e.talks {
					f.inputs[r.e.names[k]] = &buffer{inner: x.buffer, device: backends.DeviceNum(r.device)}
					r.values[v] = value{}
				}
			}
			r.free()
			return f
		}
	}
	return nil
}

// compute executes a level.
func (r *run) compute(i int, s step) error {
	ins := make([]backends.Buffer, len(s.ins))
	donate := make([]bool, len(s.ins))
	for k, v := range s.ins {
		ins[k] = r.values[v].buffer
		if r.spent(v, i) {
			donate[k] = true
			r.values[v] = value{}
		}
	}
	outs, err := s.level.Execute(ins, donate, 0)
	if err != nil {
		return err
	}
	for k, v := range s.outs {
		r.values[v] = value{buffer: outs[k], own: true}
	}
	return nil
}

// communicate carries out a collective, in place if the operand is not needed any more.
func (r *run) communicate(i int, s step) error {
	inner := r.e.b.inner
	ins, outs := make([]any, len(s.ins)), make([]any, len(s.ins))
	made := make([]backends.Buffer, len(s.ins))
	var err error
	for k, v := range s.ins {
		if ins[k], err = inner.BufferData(r.values[v].buffer); err != nil {
			return err
		}
		if s.collective.kind == ringo.KindAllReduce && r.spent(v, i) && !slices.Contains(s.ins[:k], v) &&
			!slices.Contains(s.ins[k+1:], v) {
			made[k], outs[k] = r.values[v].buffer, ins[k]
			r.values[v] = value{}
			continue
		}
		if made[k], outs[k], err = inner.NewSharedBuffer(0, s.collective.shapes[k]); err != nil {
			return err
		}
	}
	err = s.collective.run(r.e.b, r.device, r.index, ins, outs)
	for k, v := range s.outs {
		r.values[v] = value{buffer: made[k], own: true}
	}
	for _, v := range s.ins {
		if r.spent(v, i) {
			err = errors.Join(err, inner.BufferFinalize(r.values[v].buffer))
			r.values[v] = value{}
		}
	}
	return err
}

// leave returns the outputs and frees the other values. An output that is there twice, or is not the run's own, is
// copied.
func (r *run) leave() ([]backends.Buffer, error) {
	outs := make([]backends.Buffer, len(r.e.outputs))
	for i, v := range r.e.outputs {
		x := r.values[v]
		if !x.own || slices.Contains(r.e.outputs[i+1:], v) {
			flat, err := r.e.b.inner.BufferData(x.buffer)
			if err != nil {
				return nil, err
			}
			if x.buffer, err = r.e.b.inner.BufferFromFlatData(0, flat, r.e.outShapes[i]); err != nil {
				return nil, err
			}
		} else {
			r.values[v] = value{}
		}
		outs[i] = &buffer{inner: x.buffer, device: backends.DeviceNum(r.device)}
	}
	r.free()
	return outs, nil
}

// free frees the values that are still the run's own.
func (r *run) free() {
	for v, x := range r.values {
		if x.own {
			_ = r.e.b.inner.BufferFinalize(x.buffer) // an error means that the backend below has freed it
			r.values[v] = value{}
		}
	}
}
