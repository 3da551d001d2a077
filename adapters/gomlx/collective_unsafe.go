package gomlx

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// Collectives are the collective operations of a Backend's Builder. AllReduce is GoMLX's. The other two are comments in
// GoMLX's interface, with these signatures, and its graphs cannot reach them yet: they are for programs that are built
// with a backends.Builder. A replica group is a list of devices that do the operation among themselves, by their
// numbers in the program's device assignment. If ranks are processes, the only group is device 0, and the operation is
// one of all ranks.
type Collectives interface {
	// AllReduce gives each device of a group the operands of all of them, reduced element by element.
	AllReduce(operands []backends.Op, reduction backends.ReduceOpType, replicaGroups [][]int) ([]backends.Op, error)

	// AllGather gives each device of a group the operands of all of them, one after the other along an axis.
	AllGather(operands []backends.Op, gatherAxis int, replicaGroups [][]int) ([]backends.Op, error)

	// CollectiveBroadcast gives each device of a group the operand of its first. A device in no group gets zeros.
	CollectiveBroadcast(operand backends.Op, replicaGroups [][]int) (backends.Op, error)
}

var _ Collectives = (*builder)(nil)

// A collective is one communication of a program.
type collective struct {
	kind    ringo.Kind
	ins     []*op
	outs    []*op
	shapes  []shapes.Shape // of the results
	op      ringo.RedOp
	groups  [][]int
	members int // number of members of the largest group when the program was built
}

// types are the types of elements that Ringo reduces, by GoMLX's names.
var types = map[dtypes.DType]ringo.DataType{
	dtypes.Int8: ringo.Int8, dtypes.Int32: ringo.Int32, dtypes.Int64: ringo.Int64,
	dtypes.Uint8: ringo.Uint8, dtypes.Uint32: ringo.Uint32, dtypes.Uint64: ringo.Uint64,
	dtypes.Float16: ringo.Float16, dtypes.BFloat16: ringo.BFloat16, dtypes.Float32: ringo.Float32,
	dtypes.Float64: ringo.Float64,
}

// reductions are Ringo's operators, by GoMLX's names.
var reductions = map[backends.ReduceOpType]ringo.RedOp{
	backends.ReduceOpSum: ringo.Sum, backends.ReduceOpProduct: ringo.Prod, backends.ReduceOpMax: ringo.Max,
	backends.ReduceOpMin: ringo.Min,
}

// AllReduce implements backends.CollectiveOps.
func (b *builder) AllReduce(operands []backends.Op, reduction backends.ReduceOpType,
	replicaGroups [][]int) ([]backends.Op, error) {
	red, ok := reductions[reduction]
	if !ok {
		return nil, fmt.Errorf("AllReduce: reduction %s is none of Sum, Product, Max and Min: %w", reduction,
			ringo.ErrInvalid)
	}
	return b.communicate(&collective{kind: ringo.KindAllReduce, op: red, groups: replicaGroups}, operands,
		func(s shapes.Shape, _ int) (shapes.Shape, error) {
			switch _, ok := types[s.DType]; {
			case ok:
			case s.DType == dtypes.Bool && (reduction == backends.ReduceOpMax || reduction == backends.ReduceOpMin):
			default:
				return s, fmt.Errorf("nothing reduces %s by %s here; ConvertDType first: %w", s.DType, reduction,
					ringo.ErrUnsupported)
			}
			return s, nil
		})
}

// AllGather implements Collectives.
func (b *builder) AllGather(operands []backends.Op, gatherAxis int, replicaGroups [][]int) ([]backends.Op, error) {
	c := &collective{kind: ringo.KindAllGather, groups: replicaGroups}
	results, err := b.communicate(c, operands, func(s shapes.Shape, members int) (shapes.Shape, error) {
		if gatherAxis < 0 || gatherAxis >= s.Rank() {
			return s, fmt.Errorf("axis %d of %s: %w", gatherAxis, s, ringo.ErrInvalid)
		}
		return shapes.Make(s.DType, append([]int{members}, s.Dimensions...)...), nil
	})
	if err != nil {
		return nil, err
	}
	// A result is [members, dims...]. The axis of members moves before the gathered axis and is merged with it.
	for i, r := range results {
		dims := c.shapes[i].Dimensions
		order := []int{}
		for axis := range dims {
			order = append(order, axis)
		}
		order = slices.Insert(order[1:], gatherAxis, 0)
		moved, err := b.Transpose(r, order...)
		if err != nil {
			return nil, err
		}
		whole := slices.Clone(dims[1:])
		whole[gatherAxis] *= c.members
		if results[i], err = b.Reshape(moved, whole...); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// CollectiveBroadcast implements Collectives.
func (b *builder) CollectiveBroadcast(operand backends.Op, replicaGroups [][]int) (backends.Op, error) {
	results, err := b.communicate(&collective{kind: ringo.KindBroadcast, groups: replicaGroups}, []backends.Op{operand},
		func(s shapes.Shape, _ int) (shapes.Shape, error) { return s, nil })
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// communicate adds a collective, whose results are for the next level. result tells the shape of a result from the
// operand's.
func (b *builder) communicate(c *collective, operands []backends.Op,
	result func(s shapes.Shape, members int) (shapes.Shape, error)) ([]backends.Op, error) {
	name := c.kind.String()
	if err := b.check(name, operands...); err != nil {
		return nil, err
	}
	if err := b.checkGroups(c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	n := 0
	for i, o := range operands {
		o := o.(*op)
		shape, err := o.shapeOf()
		if err == nil {
			shape, err = result(shape, c.members)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: operand %d: %w", name, i, err)
		}
		n = max(n, o.n)
		c.ins = append(c.ins, o)
		c.shapes = append(c.shapes, shape)
	}
	results := make([]backends.Op, len(operands))
	for i, o := range c.ins {
		b.valueOf(o)
		out := b.given(n+1, c.shapes[i])
		c.outs = append(c.outs, out)
		results[i] = out
	}
	b.level(n).collectives = append(b.level(n).collectives, c)
	b.level(n + 1)
	return results, nil
}

// checkGroups refuses groups that are not of the program's devices. No groups become one of all devices.
func (b *builder) checkGroups(c *collective) error {
	if b.devices != b.backend.NumDevices() {
		return fmt.Errorf("a program of %d of %d devices cannot communicate, the others would not come; use a mesh of all: "+
			"%w",
			b.devices, b.backend.NumDevices(), ringo.ErrUnsupported)
	}
	if len(c.groups) == 0 {
		all := []int{}
		for d := range b.devices {
			all = append(all, d)
		}
		c.groups = [][]int{all}
	}
	seen := map[int]bool{}
	for _, g := range c.groups {
		for _, d := range g {
			if d < 0 || d >= b.devices || seen[d] {
				return fmt.Errorf("replica groups %v, want each of devices 0 to %d once: %w", c.groups, b.devices-1,
					ringo.ErrInvalid)
			}
			seen[d] = true
		}
		c.members = max(c.members, len(g))
	}
	if len(seen) < b.devices && (c.kind != ringo.KindBroadcast || b.backend.processes) {
		return fmt.Errorf("replica groups %v leave out some of %d devices: %w", c.groups, b.devices, ringo.ErrInvalid)
	}
	if c.kind == ringo.KindAllGather && slices.ContainsFunc(c.groups, func(g []int) bool { return len(g) != c.members }) {
		return fmt.Errorf("replica groups %v differ in size: %w", c.groups, ringo.ErrInvalid)
	}
	if b.backend.processes {
		c.members = b.backend.Comm(0).Size()
	}
	return nil
}

// run carries out a device's part. ins and outs are the data of buffers of the backend below, and may be the same.
func (c *collective) run(b *Backend, device, index int, ins, outs []any) error {
	comm, err := b.part(device, index, c.groups)
	if err != nil {
		return err
	}
	if comm == nil { // this device is in no group
		for _, o := range outs {
			clear(bytesOf(o))
		}
		return nil
	}
	if c.kind == ringo.KindAllGather && comm.Size() != c.members {
		return fmt.Errorf("%s: the program was built for %d ranks, now there are %d; build it anew: %w", c.kind, c.members,
			comm.Size(), ringo.ErrInvalid)
	}
	g := ringo.NewGroup()
	for i := range ins {
		in, out := bytesOf(ins[i]), bytesOf(outs[i])
		t, ok := types[c.shapes[i].DType]
		if !ok || c.kind != ringo.KindAllReduce {
			t = ringo.Uint8 // bytes that are only moved, or bools: their Max is "or", their Min is "and"
		}
		count := len(in) / t.Size()
		if count == 0 {
			continue
		}
		g.Add(comm, &ringo.Call{Kind: c.kind, In: mem.Host(in), Out: mem.Host(out), Count: count, Type: t, Op: c.op,
			Exact: true})
	}
	return g.Run()
}

// bytesOf is the memory of a slice of numbers.
func bytesOf(flat any) []byte {
	v := reflect.ValueOf(flat)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// part is the communicator of the group of a device of this process, nil if the device is in no group. index is the
// device's number in the program. All ranks call part at the same time; the first time it splits their communicator.
func (b *Backend) part(device, index int, groups [][]int) (*ringo.Comm, error) {
	whole := b.Comm(device)
	if b.processes || len(groups) == 1 && len(groups[0]) == whole.Size() {
		return whole, nil
	}
	color, key := ringo.NoColor, 0
	for i, g := range groups {
		if k := slices.Index(g, index); k >= 0 {
			color, key = i, k
		}
	}
	name := fmt.Sprint(groups)
	b.mu.Lock()
	part, ok := b.parts[device][name]
	b.mu.Unlock()
	if ok {
		return part, nil
	}
	part, err := whole.Split(context.Background(), color, key)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[device][name] = part
	return part, nil
}
