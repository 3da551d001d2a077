package trace

// Tee is an Observer that tells others, one after the other. Nil Observers are left out; if all are nil, so is Tee.
// Where several set Steps, the slice with the most room is used, and all see its Spans.
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

// owns are the observers' values of Call.Own for a track.
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
