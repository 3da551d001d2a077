package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// builtIn are NCCL's operators, by number.
var builtIn = [...]ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg}

// An operator is one that PreMulSum has made. Operators are numbered from len(builtIn) on.
type operator struct {
	op ringo.RedOp
	t  ringo.DataType // the only data type of the operator
}

// operator is the operator of a number.
func (c *comm) operator(number int, t ringo.DataType) (ringo.RedOp, error) {
	if number >= 0 && number < len(builtIn) {
		return builtIn[number], nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o, err := c.made(number)
	if err != nil {
		return ringo.RedOp{}, err
	}
	if o.t != t {
		return ringo.RedOp{}, fmt.Errorf("%w: operator %d was made for %v, and the call has %v", ringo.ErrInvalid, number,
			o.t, t)
	}
	return o.op, nil
}

// made is the communicator's own operator of a number. mu is held.
func (c *comm) made(number int) (*operator, error) {
	if i := number - len(builtIn); i >= 0 && i < len(c.ops) && c.ops[i] != nil {
		return c.ops[i], nil
	}
	return nil, fmt.Errorf("%w: operator %d was not made by this communicator, or was destroyed", ringo.ErrInvalid, number)
}

// The residences of a scalar.
const (
	ScalarDevice = iota // in the memory of the rank's GPU, read when an operation runs
	ScalarHost          // in host memory, read by PreMulSum
)

// PreMulSum makes an operator of a communicator, the sum of contributions that are multiplied
// by the scalar at an address, and returns its number.
func (l *Library) PreMulSum(handle, scalar uintptr, dataType, residence int) (int, error) {
	c, _, err := l.known(handle)
	if err != nil {
		return 0, err
	}
	t, err := typeOf(dataType)
	if err != nil {
		return 0, err
	}
	if scalar < firstPage {
		return 0, fmt.Errorf("%w: the scalar is at %#x", ringo.ErrInvalid, scalar)
	}
	var at mem.Region
	switch residence {
	case ScalarHost:
		at = mem.Of(make([]uint64, 1)).Slice(0, t.Size()) // aligned for every type
		copy(at.Bytes(), hostMemory(scalar, t.Size()).Bytes())
	case ScalarDevice:
		if at, err = c.memory("scalar", scalar, t.Size()); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("%w: residence %d of a scalar is neither 0 nor 1", ringo.ErrInvalid, residence)
	}
	o := &operator{op: ringo.PreMulSumAt(at), t: t}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ops {
		if c.ops[i] == nil {
			c.ops[i] = o
			return len(builtIn) + i, nil
		}
	}
	c.ops = append(c.ops, o)
	return len(builtIn) + len(c.ops) - 1, nil
}

// RedOpDestroy ends an operator. Earlier calls with the operator go on.
func (l *Library) RedOpDestroy(handle uintptr, number int) error {
	if number >= 0 && number < len(builtIn) {
		return fmt.Errorf("%w: operator %d is built in", ringo.ErrInvalid, number)
	}
	c, _, err := l.known(handle)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.made(number); err != nil {
		return err
	}
	c.ops[number-len(builtIn)] = nil
	return nil
}
