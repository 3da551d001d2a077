package trace

import "fmt"

// Check is an error about times that cannot be: steps must follow each other within the call, and waits lie within
// their step, or at the call's end.
func (c *Call) Check() error {
	if c.End < c.Start {
		return fmt.Errorf("rank %d: %s ends before it begins", c.Rank, c.Title())
	}
	var step *Span
	after, within := c.Start, int64(0) // where the spans before end, in the call and in the step
	for i := range c.Steps {
		s := &c.Steps[i]
		if step != nil && (s.What == Step || s.Step < 0) {
			after, step = step.End, nil
		}
		from, to := after, c.End
		switch {
		case s.What == Step:
			step, within = s, s.Start
		case s.Step < 0:
			after = s.End
		case step == nil || s.Step != step.Step || s.Round != step.Round || s.Part != step.Part:
			return fmt.Errorf("rank %d: %s: %q does not follow its step", c.Rank, c.Title(), s.Title())
		default:
			from, to, within = within, step.End, s.End
		}
		if s.Start < from || s.End > to || s.End < s.Start {
			return fmt.Errorf("rank %d: %s: %q from %d to %d is not within %d to %d", c.Rank, c.Title(), s.Title(), s.Start,
				s.End, from, to)
		}
	}
	return nil
}

// Check is an error about times that cannot be: those of Call.Check, and calls of a track that do not follow each
// other. Calls on GPUs need not, as they may wait for their streams side by side.
func (t *Trace) Check() error {
	type track struct {
		comm        string
		rank, track int
		gpu, models bool
	}
	last := map[track]*Call{}
	for i := range t.Calls {
		c := &t.Calls[i]
		if err := c.Check(); err != nil {
			return err
		}
		l := track{c.Comm, c.Rank, c.Track, c.GPU, c.Model}
		if before := last[l]; before != nil && c.Start < before.End && !c.GPU {
			return fmt.Errorf("rank %d: %s begins before %s ends", c.Rank, c.Title(), before.Title())
		}
		last[l] = c
	}
	return nil
}
