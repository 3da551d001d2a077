package bench

import (
	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// control lets the ranks of a measurement agree with each other. It uses the measured
// communicator, so it needs no other network. Since that communicator may be at fault,
// each rank also reports its own findings.
type control struct {
	comm    *ringo.Comm
	number  []int64
	amount  []float64
	meet    ringo.Call
	tell    ringo.Call
	collect ringo.Call
}

func newControl(c *ringo.Comm) control {
	x, y := make([]int64, 1), make([]float64, 1)
	return control{
		comm: c, number: x, amount: y,
		meet: ringo.Call{Kind: ringo.KindBarrier},
		tell: ringo.Call{Kind: ringo.KindBroadcast, In: mem.Of(x), Out: mem.Of(x), Count: 1, Type: ringo.Int64},
		collect: ringo.Call{Kind: ringo.KindAllReduce, In: mem.Of(y), Out: mem.Of(y), Count: 1, Type: ringo.Float64,
			Op: ringo.Sum},
	}
}

// barrier waits until all ranks have come to it.
func (c *control) barrier() error { return c.comm.Do(&c.meet) }

// decide is rank 0's x on all ranks.
func (c *control) decide(x int64) (int64, error) {
	c.number[0] = x
	err := c.comm.Do(&c.tell)
	return c.number[0], err
}

// sum is the sum of x over all ranks.
func (c *control) sum(x float64) (float64, error) {
	c.amount[0] = x
	err := c.comm.Do(&c.collect)
	return c.amount[0], err
}
