package gomlx

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/ringo-go/ringo"
)

//go:generate go run ./internal/opsgen

// A builder builds a program for a Backend. Collectives cut the program into levels: level 0 has the ops that need no
// collective's result, level 1 the ops that need results of collectives whose operands are of level 0, and so on. Each
// level is a program of the backend below. Between two levels Ringo carries out the collectives.
//
// The collectives of a level are carried out in the order in which they were built. That order is the same on all
// ranks, as these build the same program.
type builder struct {
	backend  *Backend
	name     string
	levels   []*level
	params   []*op // of the program, in their order
	names    []string
	values   int // number of values that cross levels, come from outside, or leave
	devices  int // number of devices that carry out the program together
	assigned []backends.DeviceNum
	compiled bool
}

// A level is the part of a program between two steps of communication.
type level struct {
	backends.Builder // of the backend below
	b                *builder
	n                int
	inputs           []*op // the ops whose values are its parameters, in their order
	outputs          []*op // ops of this level whose values are needed elsewhere
	collectives      []*collective
}

// An op is a result of an operation, a constant or a parameter, as GoMLX's graphs have it.
type op struct {
	b     *builder
	n     int                    // the first level that can use it
	as    map[*level]backends.Op // the op of the backend below, at each level that uses it
	value int                    // number of its value; −1 while no other level needs it and it is no output

	// the level that computes it; nil for a parameter of the program or a collective's result
	home  *level
	make  func(at *level) (backends.Op, error) // makes a constant at a level
	shape shapes.Shape                         // where home is nil
}

func newBuilder(b *Backend, name string) *builder {
	p := &builder{backend: b, name: name, devices: 1}
	p.level(0)
	return p
}

// level is level n, which is added if it is the next one.
func (b *builder) level(n int) *level {
	if n == len(b.levels) {
		name := b.name
		if n > 0 {
			name = fmt.Sprintf("%s, level %d", b.name, n)
		}
		b.levels = append(b.levels, &level{Builder: b.backend.inner.Builder(name), b: b, n: n})
	}
	return b.levels[n]
}

// check refuses ops of other programs, and any op after Compile.
func (b *builder) check(name string, ops ...backends.Op) error {
	if b.compiled {
		return fmt.Errorf("%s: program %q is compiled and takes no more: %w", name, b.name, ringo.ErrInvalid)
	}
	for i, o := range ops {
		if p, ok := o.(*op); !ok || p == nil || p.b != b {
			return fmt.Errorf("%s: operand %d (%T) is not of program %q: %w", name, i, o, b.name, ringo.ErrInvalid)
		}
	}
	return nil
}

// place finds the level that carries out an operation on ops, and replaces each op by the op of the backend below
// there.
func (b *builder) place(name string, refs ...*backends.Op) (*level, error) {
	ops := make([]backends.Op, len(refs))
	for i, r := range refs {
		ops[i] = *r
	}
	if err := b.check(name, ops...); err != nil {
		return nil, err
	}
	n := 0
	for _, o := range ops {
		n = max(n, o.(*op).n)
	}
	at := b.level(n)
	for i, o := range ops {
		inner, err := at.operand(o.(*op))
		if err != nil {
			return nil, fmt.Errorf("%s: operand %d: %w", name, i, err)
		}
		*refs[i] = inner
	}
	return at, nil
}

// on carries out an operation with one result on ops, at the level that place finds.
func (b *builder) on(name string, do func(at *level) (backends.Op, error), refs ...*backends.Op) (backends.Op, error) {
	at, err := b.place(name, refs...)
	if err != nil {
		return nil, err
	}
	return at.op(do(at))
}

// pointers appends pointers to the elements of list to refs.
func pointers(refs []*backends.Op, list []backends.Op) []*backends.Op {
	for i := range list {
		refs = append(refs, &list[i])
	}
	return refs
}

// operand is an op at this level. If an earlier level computes it, a parameter brings its value.
func (l *level) operand(o *op) (backends.Op, error) {
	if inner, ok := o.as[l]; ok {
		return inner, nil
	}
	var inner backends.Op
	var err error
	if o.make != nil {
		inner, err = o.make(l)
	} else {
		inner, err = l.bring(o)
	}
	if err == nil {
		o.as[l] = inner
	}
	return inner, err
}

// bring makes a parameter of this level for the value of an op.
func (l *level) bring(o *op) (backends.Op, error) {
	shape, err := o.shapeOf()
	if err != nil {
		return nil, err
	}
	inner, err := l.Parameter(fmt.Sprintf("value %d", l.b.valueOf(o)), shape, nil)
	if err == nil {
		l.inputs = append(l.inputs, o)
	}
	return inner, err
}

// valueOf is the number of the op's value, which becomes an output of its level.
func (b *builder) valueOf(o *op) int {
	if o.value < 0 {
		o.value = b.values
		b.values++
		o.home.outputs = append(o.home.outputs, o)
	}
	return o.value
}

// given is an op whose value no level computes, for levels from n on.
func (b *builder) given(n int, shape shapes.Shape) *op {
	o := &op{b: b, n: n, as: map[*level]backends.Op{}, value: b.values, shape: shape}
	b.values++
	return o
}

// shapeOf is the shape of the op's value.
func (o *op) shapeOf() (shapes.Shape, error) {
	if o.home == nil {
		return o.shape, nil
	}
	return o.home.OpShape(o.as[o.home])
}

// own is a result of the level.
func (l *level) own(inner backends.Op) *op {
	return &op{b: l.b, n: l.n, as: map[*level]backends.Op{l: inner}, value: -1, home: l}
}

func (l *level) op(inner backends.Op, err error) (backends.Op, error) {
	if err != nil {
		return nil, err
	}
	return l.own(inner), nil
}

func (l *level) ops2(x, y backends.Op, err error) (backends.Op, backends.Op, error) {
	if err != nil {
		return nil, nil, err
	}
	return l.own(x), l.own(y), nil
}

func (l *level) ops3(x, y, z backends.Op, err error) (backends.Op, backends.Op, backends.Op, error) {
	if err != nil {
		return nil, nil, nil, err
	}
	return l.own(x), l.own(y), l.own(z), nil
}

// Name implements backends.Builder.
func (b *builder) Name() string { return b.name }

// OpShape implements backends.Builder.
func (b *builder) OpShape(o backends.Op) (shapes.Shape, error) {
	p, ok := o.(*op)
	if !ok || p == nil || p.b != b {
		return shapes.Invalid(), fmt.Errorf("OpShape: %T is not of program %q: %w", o, b.name, ringo.ErrInvalid)
	}
	return p.shapeOf()
}

// Parameter implements backends.Builder. Each device gets its own part of a sharded input, so the sharding changes
// nothing here. Each level that uses the parameter has its own parameter for it.
func (b *builder) Parameter(name string, shape shapes.Shape, _ *backends.ShardingSpec) (backends.Op, error) {
	if err := b.check("Parameter"); err != nil {
		return nil, err
	}
	if !b.backend.Capabilities().DTypes[shape.DType] {
		return nil, fmt.Errorf("Parameter %q: the backend below has no type %s: %w", name, shape.DType, ringo.ErrUnsupported)
	}
	o := b.given(0, shape)
	b.params = append(b.params, o)
	b.names = append(b.names, name)
	return o, nil
}

// Constant implements backends.Builder. Each level that uses the constant makes it anew.
func (b *builder) Constant(flat any, dims ...int) (backends.Op, error) {
	if err := b.check("Constant"); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("Constant: %T, want a slice of values: %w", flat, ringo.ErrInvalid)
	}
	values := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(values, v)
	dims = slices.Clone(dims)
	again := func(at *level) (backends.Op, error) { return at.Constant(values.Interface(), dims...) }
	inner, err := again(b.level(0))
	if err != nil {
		return nil, err
	}
	o := b.level(0).own(inner)
	o.make = again
	return o, nil
}

// DistributedSPMD implements backends.Builder.
func (b *builder) DistributedSPMD(devices int) error {
	if err := b.check("DistributedSPMD"); err != nil {
		return err
	}
	if devices < 1 || devices > b.backend.NumDevices() {
		return fmt.Errorf("DistributedSPMD: %d devices, this process has %d: %w", devices, b.backend.NumDevices(),
			ringo.ErrInvalid)
	}
	b.devices = devices
	return nil
}

// DistributedAutoSharding implements backends.Builder. It is not supported.
func (b *builder) DistributedAutoSharding(...backends.Mesh) error {
	return fmt.Errorf("DistributedAutoSharding: nothing divides programs here, use SPMD and AllReduce: %w",
		ringo.ErrUnsupported)
}

// DeviceAssignment implements backends.Builder.
func (b *builder) DeviceAssignment(devices ...backends.DeviceNum) error {
	if err := b.check("DeviceAssignment"); err != nil {
		return err
	}
	seen := map[backends.DeviceNum]bool{}
	for _, d := range devices {
		if d < 0 || int(d) >= b.backend.NumDevices() || seen[d] {
			return fmt.Errorf("DeviceAssignment: %v, want different ones of this process' %d devices: %w", devices,
				b.backend.NumDevices(), ringo.ErrInvalid)
		}
		seen[d] = true
	}
	if len(devices) != b.devices {
		return fmt.Errorf("DeviceAssignment: %d devices for a program of %d: %w", len(devices), b.devices, ringo.ErrInvalid)
	}
	b.assigned = slices.Clone(devices)
	return nil
}
