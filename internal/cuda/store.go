package cuda

import (
	"errors"
	"sync"

	"github.com/ringo-go/ringo/internal/process"
)

// A Store is what the users of a context in this process share, until the last of them
// leaves: modules, and memory that one user has freed and the next will need. A driver's
// calls that free memory or unload modules wait for all kernels of the context, and hold up
// all other calls meanwhile. A kernel of one communicator may wait for a rank that the same
// thread drives, so these calls may not happen while there is another communicator.
// A user who comes while the last one gives everything back is kept waiting, and gets a new Store.
//
// All methods may be called from any goroutine, with the context current and captures
// allowed, see Quietly.
type Store struct {
	key storeKey

	mu     sync.Mutex
	device pool                 // guarded by mu
	host   pool                 // guarded by mu
	things map[any]*storedThing // guarded by mu
	order  []*storedThing       // guarded by mu
}

type storeKey struct {
	driver Driver
	ctx    Context
}

var stores = process.Shared[storeKey, *Store]{End: (*Store).end}

// A pool is memory of one kind.
type pool struct {
	bytes map[uintptr]int   // of all blocks
	free  map[int][]uintptr // by bytes
}

type storedThing struct {
	value any
	end   func() error
}

// OpenStore is the Store of a context, with one more user. It calls no driver.
func OpenStore(d Driver, ctx Context) *Store {
	key := storeKey{d, ctx}
	s, _ := stores.Open(nil, key, func() (*Store, error) { return &Store{key: key, things: map[any]*storedThing{}}, nil })
	return s
}

// Close ends one use, and the last Close gives everything back. No kernel may use any of it any more.
func (s *Store) Close() error { return stores.Leave(nil, s.key) }

// end gives everything back.
func (s *Store) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order)+len(s.device.bytes)+len(s.host.bytes) == 0 {
		return nil
	}
	return Quietly(s.key.driver, s.key.ctx, func() error {
		var errs []error
		for i := len(s.order) - 1; i >= 0; i-- {
			errs = append(errs, s.order[i].end())
		}
		for p := range s.device.bytes {
			errs = append(errs, s.key.driver.MemFree(p))
		}
		for p := range s.host.bytes {
			errs = append(errs, s.key.driver.MemFreeHost(p))
		}
		return errors.Join(errs...)
	})
}

// Alloc is n bytes of device memory, until Free. The content is undefined.
func (s *Store) Alloc(n int) (uintptr, error) { return s.get(&s.device, n, s.key.driver.MemAlloc) }

// Free keeps memory of Alloc for the next Alloc of as many bytes. No kernel may use it any more.
func (s *Store) Free(p uintptr) { s.put(&s.device, p) }

// Retire is Free for memory that nobody may get again, neither from here nor from the driver: others
// may still write to it. Memory goes with its context, so Retire holds the context until the process ends.
func (s *Store) Retire(p uintptr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.device.bytes, p)
	dev, err := s.key.driver.CtxGetDevice()
	if err == nil {
		_, err = s.key.driver.DevicePrimaryCtxRetain(dev)
	}
	if err == nil {
		Keep(s.key.driver, p)
	}
	return err
}

// Keep tells a driver that looks for faults, as the emulator does, that others may still touch the allocation at p.
// Memory of MemAlloc stays, with a reference to its context, and is no leak; mapped memory stays as long as anyone has
// it mapped, as ever.
func Keep(d Driver, p uintptr) {
	if k, ok := d.(interface{ Keep(p uintptr) }); ok {
		k.Keep(p)
	}
}

// HostAlloc is n bytes of pinned host memory that all devices can access, until
// FreeHost. The content is undefined.
func (s *Store) HostAlloc(n int) (uintptr, error) {
	return s.get(&s.host, n, func(n int) (uintptr, error) {
		return s.key.driver.MemHostAlloc(n, HostAllocPortable|HostAllocMapped)
	})
}

// FreeHost is Free for memory of HostAlloc.
func (s *Store) FreeHost(p uintptr) { s.put(&s.host, p) }

func (s *Store) get(from *pool, n int, alloc func(n int) (uintptr, error)) (uintptr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if free := from.free[n]; len(free) > 0 {
		from.free[n] = free[:len(free)-1]
		return free[len(free)-1], nil
	}
	p, err := alloc(n)
	if err != nil {
		return 0, err
	}
	if from.bytes == nil {
		from.bytes, from.free = map[uintptr]int{}, map[int][]uintptr{}
	}
	from.bytes[p] = n
	return p, nil
}

func (s *Store) put(in *pool, p uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := in.bytes[p]
	in.free[n] = append(in.free[n], p)
}

// Stored is the value of a key, made for the first user who asks for it. end gives the value
// back when the last user has left the Store. make must not use the Store.
func Stored[T any](s *Store, key any, make func() (T, error), end func(T) error) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.things[key]; x != nil {
		return x.value.(T), nil
	}
	v, err := make()
	if err != nil {
		return v, err
	}
	x := &storedThing{v, func() error { return end(v) }}
	s.things[key] = x
	s.order = append(s.order, x)
	return v, nil
}
