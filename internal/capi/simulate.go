package capi

import "github.com/ringo-go/ringo"

// GroupSimulateEnd closes a level of the thread's group as GroupEnd does, and at the outermost
// throws its calls away. It returns the thread's group from now on. How long the group would take is
// not said yet.
func (l *Library) GroupSimulateEnd(handle, info uintptr) (uintptr, error) {
	g, err := l.leave(handle)
	if g == nil {
		return handle, err
	}
	g.run = ringo.Group{}
	g.recycle()
	return 0, Unsupported("ncclGroupSimulateEnd")
}
