package capi

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// A Norm is the step after a sum, see ringo_norm.h. Addresses may be 0.
type Norm struct {
	Rows, Row              uint64
	Epsilon                float32
	PlusOne                bool
	Small                  int // RINGO_SMALL_
	Residual, Bias, Weight uintptr
	Normed, SmallOut       uintptr
	Scale, Scales          uintptr
}

// small are the types of rows in 8 bits, by number.
var small = [...]ringo.DataType{0, ringo.Float8E4M3, ringo.Int8}

// normed adds the Norm of call, the step after its sum, to a ringo.Call.
func (c *comm) normed(to *ringo.Call, call *Call) error {
	n := call.Norm
	if n.Small < 0 || n.Small >= len(small) {
		return fmt.Errorf("%w: small_type %d is not in 0…%d", ringo.ErrInvalid, n.Small, len(small)-1)
	}
	rows, row, size := int(n.Rows), int(n.Row), to.Type.Size()
	all := rows * row
	var errs []error
	at := func(what string, at uintptr, bytes int) (r mem.Region) {
		if at == 0 {
			bytes = 0
		}
		r, err := c.memory(what, at, bytes)
		errs = append(errs, err)
		return r
	}
	to.Out = at("sum", call.Out, all*size)
	to.Norm = &ringo.Norm{
		Row: row, Epsilon: n.Epsilon, PlusOne: n.PlusOne, Residual: at("residual", n.Residual, all*size),
		Bias: at("bias", n.Bias, row*size), Weight: at("weight", n.Weight, row*size),
		Normed: at("normed", n.Normed, all*size),
		Small:  small[n.Small], SmallOut: at("small", n.SmallOut, all), Scale: at("scale", n.Scale, 4),
		Scales: at("scales", n.Scales, 4*rows),
	}
	return errors.Join(errs...)
}
