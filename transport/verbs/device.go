package verbs

import (
	"errors"
	"sync"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A device is open once in a process; the transports share it.
type device struct {
	verbs   ibverbs.Verbs
	name    string
	context *ibverbs.Context
	pd      *ibverbs.PD
	ports   int
	inline  uint32 // bytes; queue pairs are made with this MaxInline
	users   int    // under the lock of devices
	work    sync.WaitGroup

	mu    sync.Mutex
	rails map[*rail]func(ibverbs.EventType) // is called with events
}

type deviceID struct {
	verbs ibverbs.Verbs
	name  string
}

var devices = struct {
	sync.Mutex
	open map[deviceID]*device
}{open: map[deviceID]*device{}}

// inlineBytes is the longest write whose bytes are part of the work request: a header
// and a small payload.
const inlineBytes = 128

// acquire opens a device, or shares the one that is open.
func acquire(v ibverbs.Verbs, name string) (*device, error) {
	devices.Lock()
	defer devices.Unlock()
	id := deviceID{v, name}
	d := devices.open[id]
	if d == nil {
		d = &device{verbs: v, name: name, inline: inlineBytes, rails: map[*rail]func(ibverbs.EventType){}}
		if err := d.start(); err != nil {
			return nil, err
		}
		devices.open[id] = d
	}
	d.users++
	return d, nil
}

func (d *device) start() (err error) {
	if d.context, err = d.verbs.OpenDevice(d.name); err != nil {
		return err
	}
	attr, err := d.verbs.QueryDevice(d.context)
	if err == nil {
		d.ports = int(attr.NumPorts)
		d.pd, err = d.verbs.AllocPD(d.context)
	}
	if err != nil {
		return errors.Join(err, d.verbs.CloseDevice(d.context))
	}
	d.work.Go(d.hear)
	return nil
}

// release gives devices back; the last user closes them.
func release(all []*device) {
	devices.Lock()
	defer devices.Unlock()
	for _, d := range all {
		if d.users--; d.users > 0 {
			continue
		}
		delete(devices.open, deviceID{d.verbs, d.name})
		areas.forget(d)
		d.verbs.StopAsyncEvents(d.context)
		d.work.Wait()
		_ = d.verbs.DeallocPD(d.pd)
		_ = d.verbs.CloseDevice(d.context)
	}
}

// hear passes events of the device and its ports to the rails.
func (d *device) hear() {
	for {
		e, err := d.verbs.GetAsyncEvent(d.context)
		if err != nil {
			return
		}
		d.mu.Lock()
		for r, tell := range d.rails {
			if e.Port == 0 || e.Port == r.port.number {
				tell(e.Type)
			}
		}
		d.mu.Unlock()
	}
}

// listen makes hear call tell with events of the rail's port; tell must not wait.
func (d *device) listen(r *rail, tell func(ibverbs.EventType)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rails[r] = tell
}

func (d *device) unlisten(r *rail) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rails, r)
}
