package cuda

import (
	"sync"

	"github.com/ringo-go/ringo/internal/dl"
)

// callbacks are the Go functions that the driver may call. C knows them by a
// number, since it must not hold Go pointers.
var callbacks struct {
	sync.Mutex
	last uintptr
	f    map[uintptr]callback
}

type callback struct {
	f    func()
	once bool
}

// callbackAddr is the C function void f(void *number) that runs the callback of a number.
var callbackAddr = sync.OnceValue(func() uintptr { return dl.Callback(runCallback) })

func addCallback(f func(), once bool) uintptr {
	callbacks.Lock()
	defer callbacks.Unlock()
	if callbacks.f == nil {
		callbacks.f = map[uintptr]callback{}
	}
	callbacks.last++
	callbacks.f[callbacks.last] = callback{f, once}
	return callbacks.last
}

func dropCallback(number uintptr) {
	callbacks.Lock()
	defer callbacks.Unlock()
	delete(callbacks.f, number)
}

func runCallback(number uintptr) {
	callbacks.Lock()
	c := callbacks.f[number]
	if c.once {
		delete(callbacks.f, number)
	}
	callbacks.Unlock()
	c.f()
}

// LaunchHostFunc queues f. In a stream that is being captured f becomes a node of
// the graph, runs in each of its launches, and is dropped with the graph.
func (d *libcuda) LaunchHostFunc(s Stream, f func()) error {
	info := CaptureInfo{}
	status, err := d.StreamIsCapturing(s)
	if err == nil && status == CaptureActive {
		info, err = d.StreamGetCaptureInfo(s)
	}
	if err != nil {
		return err
	}
	number := addCallback(f, info.Status != CaptureActive)
	if info.Status == CaptureActive {
		err = d.dropWith(info.Graph, number)
		if err != nil {
			return err
		}
	}
	if err := d.call(cuLaunchHostFunc, uintptr(s), callbackAddr(), number); err != nil {
		if info.Status != CaptureActive {
			dropCallback(number)
		}
		return err
	}
	return nil
}

// dropWith drops a callback when the graph and the graphs made of it are gone.
func (d *libcuda) dropWith(g Graph, number uintptr) error {
	o, err := d.UserObjectCreate(func() { dropCallback(number) }, 1)
	if err != nil {
		dropCallback(number)
		return err
	}
	if err := d.GraphRetainUserObject(g, o, 1, true); err != nil {
		d.UserObjectRelease(o, 1) // drops it
		return err
	}
	return nil
}

// noDestructorSync is the flag that cuUserObjectCreate demands.
const noDestructorSync = 1

// UserObjectCreate makes a count of references; destroy is called when it is zero.
func (d *libcuda) UserObjectCreate(destroy func(), references int) (UserObject, error) {
	number := addCallback(destroy, true)
	o, err := d.get(cuUserObjectCreate, number, callbackAddr(), uintptr(references), noDestructorSync)
	if err != nil {
		dropCallback(number)
	}
	return UserObject(o), err
}
