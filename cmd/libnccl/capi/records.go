package capi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// records are a communicator's windows as kernels see them. The handle of a window on a GPU is the address of
// its record in the GPU's memory. All records lie in one block.
type records struct {
	mu     sync.Mutex
	device *gpu.Device // guarded by mu; nil before the first record
	block  mem.Region  // guarded by mu
	used   int         // guarded by mu; bytes
	spare  []uintptr   // guarded by mu; records given back
	tables []*listed   // guarded by mu; each names the next
}

// RecordBytes is the length of a record of NCCL 2.28.9, and recordStep the distance of two.
const (
	RecordBytes = 72
	recordStep  = 128
)

// take is room for a record, 0 if there is none.
func (t *records) take(d *gpu.Device) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.spare); n > 0 {
		at := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return at
	}
	return t.carve(d, recordStep)
}

// carve is a multiple of recordStep bytes of the block, 0 if there are none. mu is held.
func (t *records) carve(d *gpu.Device, n int) uintptr {
	if t.device == nil {
		block, err := d.AllocMapped(deviceBlock)
		if err != nil {
			return 0
		}
		t.device, t.block = d, block
		t.used = int(-block.Ptr() % recordStep)
	}
	if t.used+n > t.block.Len() {
		return 0
	}
	at := t.block.Ptr() + uintptr(t.used)
	t.used += n
	return at
}

// put gives back room of take. No kernel uses it any more.
func (t *records) put(at uintptr) {
	if at == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = append(t.spare, at)
}

// free gives back the block, at the communicator's end.
func (t *records) free() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.device
	if d == nil {
		return nil
	}
	t.device, t.spare, t.tables = nil, nil, nil
	return d.Free(t.block)
}

// compiled is the record that kernels compiled with NCCL's headers read: the address of rank 0's memory, the distance
// to the next rank's in units of 4 GiB, and this rank's number among the ranks that reach each other and among all.
// The fields behind are for multicast and networks, and are 0.
func (w *window) compiled(rank, worldRank int) (b [RecordBytes]byte) {
	e := binary.LittleEndian
	e.PutUint64(b[8:], w.base)
	e.PutUint32(b[16:], uint32(rank))
	e.PutUint32(b[20:], uint32(worldRank))
	e.PutUint32(b[24:], uint32(w.stride>>32))
	return b
}

// layOut writes the addresses of all ranks' memory into the window's record. All ranks call it together. A rank that
// reaches no other is alone in its record. Where the ranks' memory cannot be mapped at equal distances the record
// has no addresses.
func (w *window) layOut(r *ringo.Comm) error {
	size, rank := reach(r)
	if size == 1 {
		w.base, w.stride = uint64(w.at), 1<<32
	} else {
		flat, err := w.ring.Flat()
		if err != nil {
			return err
		}
		w.base, w.stride, w.reason = flat.Base, flat.Stride, flat.Reason
	}
	if w.record == 0 {
		return nil
	}
	b := w.compiled(rank, r.Rank())
	whole := append(b[:], make([]byte, recordStep-len(b))...) // later versions have more behind it, for networks
	err := w.comm.device.Write(mem.Device(w.comm.device.Number(), w.record, len(whole)), whole)
	if err == nil && w.base != 0 && !w.resource {
		err = w.comm.records.list(w)
	}
	return err
}

// addWindow gives a window its handle: the address of its record on a GPU, and a number else.
func (l *Library) addWindow(w *window) uintptr {
	number := l.windows.Add(w)
	if w.comm.device == nil {
		return number
	}
	if w.record = w.comm.records.take(w.comm.device); w.record == 0 {
		return number
	}
	l.changeNumbers(func(numbers map[uintptr]uintptr) { numbers[w.record] = number })
	return w.record
}

// changeNumbers changes a copy of the map from records to windows' numbers, and puts it in place: threads read
// the map without a lock.
func (l *Library) changeNumbers(f func(map[uintptr]uintptr)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := map[uintptr]uintptr{}
	if old := l.numbers.Load(); old != nil {
		maps.Copy(numbers, *old)
	}
	f(numbers)
	l.numbers.Store(&numbers)
}

func (l *Library) numberOf(handle uintptr) uintptr {
	if numbers := l.numbers.Load(); numbers != nil {
		if n, ok := (*numbers)[handle]; ok {
			return n
		}
	}
	return handle
}

// window is the window of a handle.
func (l *Library) window(handle uintptr) (*window, error) { return l.windows.Get(l.numberOf(handle)) }

// takeWindow is window, and the end of the handle.
func (l *Library) takeWindow(handle uintptr) (*window, error) {
	w, err := l.windows.Take(l.numberOf(handle))
	l.changeNumbers(func(numbers map[uintptr]uintptr) { delete(numbers, handle) })
	return w, err
}

// dropWindows ends the handles of a communicator's windows.
func (l *Library) dropWindows(c *comm) {
	l.changeNumbers(func(numbers map[uintptr]uintptr) {
		maps.DeleteFunc(numbers, func(_, number uintptr) bool {
			w, err := l.windows.Get(number)
			return err != nil || w.comm == c
		})
	})
	l.windows.drop(func(w *window) bool { return w.comm == c })
}

// A Resource is memory of a device communicator: a window of all ranks, that nobody else uses.
type Resource struct {
	Window uintptr
	Record [RecordBytes]byte
	Table  uintptr // address of the table of the communicator's other windows
}

// Resource makes a window of n zeroed bytes for kernels of all ranks. All ranks call it together with the same n. It
// calls give with the result: at once, or in a group at the group's end. EndResource ends the window.
func (l *Library) Resource(group, handle uintptr, n uint64, give func(Resource)) (err error) {
	const name = "ncclDevCommCreate"
	defer func() { l.Fail(group, err) }()
	c, r, err := l.ready(handle)
	if err != nil {
		return err
	}
	size, _ := reach(r)
	switch {
	case c.device == nil:
		return fmt.Errorf("%s: %w: the communicator is on host memory", name, ringo.ErrUnsupported)
	case size < r.Size():
		return fmt.Errorf("%w; ranks do not reach each other's GPU memory", Unsupported(name))
	}
	job := job{c, nil, func() (*ringo.Comm, error) {
		x, err := l.makeResource(c, r, n)
		if err == nil {
			give(x)
		}
		return nil, errorOf(name, err)
	}}
	if group == 0 { // waits, as WindowRegister
		return job.carryOut()
	}
	return l.job(group, job)
}

// makeResource is the part of Resource that all ranks do together.
func (l *Library) makeResource(c *comm, r *ringo.Comm, n uint64) (x Resource, err error) {
	w := &window{comm: c, bytes: int(n), number: -1, resource: true}
	w.at, err = l.allocate(c.device, n)
	if err == nil {
		err = c.device.Write(mem.Device(c.device.Number(), w.at, int(n)), make([]byte, n))
	}
	x.Window = l.addWindow(w)
	switch {
	case err == nil:
		err = l.register(w, r)
	default: // the others hear of it
		_, e := r.Register(mem.Device(c.device.Number(), w.at, 0))
		err = errors.Join(err, e)
	}
	if err == nil && w.base == 0 {
		err = fmt.Errorf("ncclDevCommCreate: %w: %s", ringo.ErrUnsupported, w.reason)
	}
	if err == nil {
		_, rank := reach(r)
		x.Record = w.compiled(rank, r.Rank())
		x.Table, err = c.records.table(c.device)
	}
	if err != nil {
		return Resource{}, errors.Join(err, l.EndResource(c.handle, x.Window))
	}
	return x, nil
}

// EndResource ends a Resource. Its memory is freed when all ranks have ended it, as a window's.
func (l *Library) EndResource(handle, window uintptr) error {
	at, err := l.WindowAt(handle, window)
	if err != nil {
		return err
	}
	return errors.Join(l.Deregister(handle, window), l.MemFree(at))
}
