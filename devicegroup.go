package ringo

import (
	"fmt"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// exchangeOnDevice queues sends and receives of a group on GPU memory so that
// they progress side by side, with c.run held.
func (c *Comm) exchangeOnDevice(calls []*Call) error {
	for _, call := range calls {
		if err := c.checkDevice(call); err != nil {
			return err
		}
		if call.Stream != calls[0].Stream {
			return c.errorOf(call, 0, fmt.Errorf("%w: the sends and receives of a group are on different streams", ErrInvalid))
		}
	}
	d := c.dev
	jobs := make([]*grid.Job, len(calls))
	failed := calls[0]
	err := d.gpu.With(func() error {
		for _, call := range calls {
			if err := d.admit(c, call); err != nil {
				return c.refuse(call, err)
			}
		}
		if err := c.begin(calls[0]); err != nil {
			return err
		}
		for i, call := range calls {
			r, err := c.request(call, d.choose(call.Kind, call.bytes(), false))
			if err == nil {
				jobs[i] = new(grid.Job)
				err = d.prepare(c, call, &r, jobs[i])
			}
			if err != nil {
				failed = call
				return err
			}
		}
		return d.inOrder(calls[0].Stream, func() error { return d.engine.RunTogether(jobs) })
	})
	return c.placed(failed, err)
}

// prepare makes the job of a request, with the device's context current.
func (d *device) prepare(c *Comm, call *Call, r *request, j *grid.Job) error {
	p, err := d.program(c, r.key)
	if err != nil {
		return err
	}
	*j = jobOf(call, r)
	j.Program = p
	j.InL, j.OutL = c.layouts(call, p.Shape(), r.size)
	return nil
}

// program finds or makes the program of a key.
func (d *device) program(c *Comm, key programKey) (*grid.Program, error) {
	if p := d.programs[key]; p != nil {
		return p, nil
	}
	p, err := d.engine.Compile(key.schedule(c.topo), sched.Rank(c.rank))
	if err == nil {
		d.programs[key] = p
	}
	return p, err
}
