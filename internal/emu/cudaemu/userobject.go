package cudaemu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A userObject counts references, of the program and of graphs.
type userObject struct {
	handle  cuda.UserObject
	destroy func()
	own     int // of the program
	all     int
	by      Caller
}

// release gives up references and destroys the object with the last.
func (m *Machine) release(o *userObject, n int) {
	if o.all -= n; o.all == 0 {
		delete(m.objects, o.handle)
		m.handles.back(objectHandle, uintptr(o.handle))
		m.exec.afterwards(o.destroy)
	}
}

func (m *Machine) releaseAll(held map[*userObject]int) {
	list := slices.SortedFunc(maps.Keys(held), func(a, b *userObject) int { return cmp.Compare(a.handle, b.handle) })
	for _, o := range list {
		m.release(o, held[o])
	}
	clear(held)
}

// retainAll adds the references of from to those of to.
func retainAll(to, from map[*userObject]int) {
	for o, n := range from {
		o.all += n
		to[o] += n
	}
}

func (c *call) object(h cuda.UserObject, references int) (*userObject, error) {
	o := c.objects[h]
	if o == nil || references <= 0 {
		return nil, c.fail(cuda.ErrInvalidValue, "%d references to user object %#x", references, uintptr(h))
	}
	return o, nil
}

func (m *Machine) UserObjectCreate(destroy func(), references int) (cuda.UserObject, error) {
	c, err := m.begin("cuUserObjectCreate")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if destroy == nil || references <= 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "%d references, or no function", references)
	}
	o := &userObject{handle: cuda.UserObject(m.handles.give(objectHandle)), destroy: destroy, own: references,
		all: references, by: m.caller(nil)}
	m.objects[o.handle] = o
	return o.handle, nil
}

func (m *Machine) UserObjectRetain(h cuda.UserObject, references int) error {
	return m.onObject("cuUserObjectRetain", h, references, func(_ *call, o *userObject) error {
		o.own += references
		o.all += references
		return nil
	})
}

func (m *Machine) UserObjectRelease(h cuda.UserObject, references int) error {
	return m.onObject("cuUserObjectRelease", h, references, func(c *call, o *userObject) error {
		if references > o.own {
			return c.fail(cuda.ErrInvalidValue, "%d references released, %d held", references, o.own)
		}
		o.own -= references
		m.release(o, references)
		return nil
	})
}

func (m *Machine) onObject(name string, h cuda.UserObject, references int, f func(*call, *userObject) error) error {
	c, err := m.begin(name)
	return on(c, err, func(c *call, h cuda.UserObject) (*userObject, error) { return c.object(h, references) }, h, f)
}

func (m *Machine) GraphRetainUserObject(gh cuda.Graph, h cuda.UserObject, references int, move bool) error {
	c, err := m.begin("cuGraphRetainUserObject")
	if err != nil {
		return err
	}
	defer c.end()
	g, err := c.graph(gh)
	if err != nil {
		return err
	}
	o, err := c.object(h, references)
	if err != nil {
		return err
	}
	if move {
		if references > o.own {
			return c.fail(cuda.ErrInvalidValue, "%d references moved, %d held", references, o.own)
		}
		o.own -= references
	} else {
		o.all += references
	}
	g.objects[o] += references
	return nil
}
