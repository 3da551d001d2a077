package cuda

import (
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// A Sight is the driver's answers about a stream, asked for before an operation is queued on it.
type Sight struct {
	Stream  Stream
	Context Context // current on this thread, 0 for none
	Capture CaptureStatus
	ID      uint64 // of the stream; 0 if Capture is not CaptureNone, or it was not asked for
	Err     error  // of the questions; without meaning where the stream's context is not current
}

// Look asks for the current context and for the capture of a stream, and with id for the
// stream's ID. The real driver is entered once: entering C takes longer than these functions.
func Look(d Driver, s Stream, id bool) Sight {
	if d, ok := d.(*libcuda); ok {
		return d.look(s, id)
	}
	v := Sight{Stream: s}
	if v.Context, v.Err = d.CtxGetCurrent(); v.Err != nil {
		return v
	}
	if v.Capture, v.Err = d.StreamIsCapturing(s); v.Err != nil || !id || v.Capture != CaptureNone { // see lookFrames
		return v
	}
	v.ID, v.Err = d.StreamGetId(s)
	return v
}

// A lookFrame is the three calls of Look, one after the other; see frame.
type lookFrame struct {
	current, capturing, id dl.Frame
	out                    struct {
		context Context
		capture int32
		id      uint64
	}
}

// lookFrames are on the heap, whose objects do not move, so the addresses of their outputs stay valid.
var lookFrames = sync.Pool{New: func() any {
	f := new(lookFrame)
	f.current.Args[0] = uintptr(unsafe.Pointer(&f.out.context))
	f.current.Next = &f.capturing
	f.capturing.Args[1] = uintptr(unsafe.Pointer(&f.out.capture))
	// drivers refuse the ID of a stream that captures, and a refusal may break the capture
	f.capturing.Last = &f.out.capture
	f.id.Args[1] = uintptr(unsafe.Pointer(&f.out.id))
	return f
}}

func (d *libcuda) look(s Stream, id bool) (v Sight) {
	f := lookFrames.Get().(*lookFrame)
	defer lookFrames.Put(f)
	v.Stream = s
	if f.current.Fn, v.Err = d.addr(cuCtxGetCurrent); v.Err != nil {
		return v
	}
	if f.capturing.Fn, v.Err = d.addr(cuStreamIsCapturing); v.Err != nil {
		return v
	}
	f.capturing.Args[0], f.id.Args[0] = uintptr(s), uintptr(s)
	f.capturing.Next = nil
	if id {
		if f.id.Fn, v.Err = d.addr(cuStreamGetId); v.Err != nil {
			return v
		}
		f.capturing.Next = &f.id
	}
	f.out.capture, f.out.id = 0, 0
	f.capturing.Result, f.id.Result = 0, 0
	f.current.Call()
	v.Context, v.Capture = f.out.context, CaptureStatus(f.out.capture)
	switch {
	case result(f.current.Result) != 0:
		v.Err = d.failed(cuCtxGetCurrent, result(f.current.Result))
	case result(f.capturing.Result) != 0:
		v.Err = d.failed(cuStreamIsCapturing, result(f.capturing.Result))
	case v.Capture != CaptureNone: // the ID was not asked for
	case result(f.id.Result) != 0:
		v.Err = d.failed(cuStreamGetId, result(f.id.Result))
	default:
		v.ID = f.out.id
	}
	return v
}
