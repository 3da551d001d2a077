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

func (c *call) object(h cuda.UserObject, references int) *userObject {
	o := c.objects[h]
	if o == nil || references <= 0 {
		c.fail(cuda.ErrInvalidValue, "%d references to user object %#x", references, uintptr(h))
	}
	return o
}

func (m *Machine) UserObjectCreate(destroy func(), references int) (_ cuda.UserObject, err error) {
	c := m.call("cuUserObjectCreate", &err)
	defer c.end()
	c.begin()
	c.refuse(destroy == nil || references <= 0, cuda.ErrInvalidValue, "%d references, or no function", references)
	o := &userObject{handle: cuda.UserObject(m.handles.give(objectHandle)), destroy: destroy, own: references,
		all: references, by: m.caller(nil)}
	m.objects[o.handle] = o
	return o.handle, nil
}

func (m *Machine) UserObjectRetain(h cuda.UserObject, references int) (err error) {
	c := m.call("cuUserObjectRetain", &err)
	defer c.end()
	c.begin()
	o := c.object(h, references)
	o.own += references
	o.all += references
	return nil
}

func (m *Machine) UserObjectRelease(h cuda.UserObject, references int) (err error) {
	c := m.call("cuUserObjectRelease", &err)
	defer c.end()
	c.begin()
	o := c.object(h, references)
	c.refuse(references > o.own, cuda.ErrInvalidValue, "%d references released, %d held", references, o.own)
	o.own -= references
	m.release(o, references)
	return nil
}

func (m *Machine) GraphRetainUserObject(gh cuda.Graph, h cuda.UserObject, references int, move bool) (err error) {
	c := m.call("cuGraphRetainUserObject", &err)
	defer c.end()
	c.begin()
	g := c.graph(gh)
	o := c.object(h, references)
	if move {
		c.refuse(references > o.own, cuda.ErrInvalidValue, "%d references moved, %d held", references, o.own)
		o.own -= references
	} else {
		o.all += references
	}
	g.objects[o] += references
	return nil
}
