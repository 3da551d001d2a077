package trace

// Tee is an Observer that tells others, one after the other. Nil ones are left out; without any it is nil. Where
// several want Steps, the one with the most room gives it, and all see them.
func Tee(observers ...Observer) Observer {
	var list tee
	for _, o := range observers {
		if o != nil {
			list = append(list, o)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

type tee []Observer

// owns are what the observers have as their own of a track.
type owns struct{ list []any }

func (t tee) Begin(c *Call) {
	mine, ok := c.Own.(*owns)
	if !ok {
		mine = &owns{make([]any, len(t))}
	}
	var steps []Span
	for i, o := range t {
		c.Own, c.Steps = mine.list[i], nil
		o.Begin(c)
		mine.list[i] = c.Own
		if cap(c.Steps) > cap(steps) {
			steps = c.Steps
		}
	}
	c.Own, c.Steps = mine, steps
}

func (t tee) End(c *Call) {
	mine := c.Own.(*owns)
	for i, o := range t {
		c.Own = mine.list[i]
		o.End(c)
		mine.list[i] = c.Own
	}
	c.Own = mine
}
