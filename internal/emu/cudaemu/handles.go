package cudaemu

// handles gives objects their handles. The handle of a destroyed object is the next one
// for its kind, as on hardware sooner or later: so a program that takes equal handles for
// the same object is found out.
type handles struct {
	last uintptr // the last one that was new; no two live objects share one
	free [handleKinds][]uintptr
}

// A handleKind is a kind of object that is destroyed.
type handleKind uint8

const (
	streamHandle handleKind = iota
	eventHandle
	graphHandle
	nodeHandle
	execHandle
	objectHandle
	moduleHandle
	functionHandle
	memHandle
	contextHandle // never given back: a thread's stack may hold it
	handleKinds
)

// give is a handle for a new object.
func (h *handles) give(k handleKind) uintptr {
	if f := h.free[k]; len(f) > 0 {
		h.free[k] = f[:len(f)-1]
		return f[len(f)-1]
	}
	h.last += 16
	return h.last
}

// back takes the handle of an object that was destroyed.
func (h *handles) back(k handleKind, v uintptr) { h.free[k] = append(h.free[k], v) }
