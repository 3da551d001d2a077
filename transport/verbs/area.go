package verbs

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
)

// An area is whole pages outside of Go's heap, registered with each device that
// needs to reach them.
type area struct {
	bytes []byte
	mrs   map[*device]*ibverbs.MR
}

func (a *area) addr() uint64 { return uint64(mem.Host(a.bytes).Ptr()) }

// areas is the registration cache of the process. Registering pins pages, which costs
// about 50 µs and 0.1 µs a page. So an area that was given back keeps its registrations
// and serves the next connection of the same size.
var areas cache

// idleBytes is how many bytes the cache keeps for later at most.
const idleBytes = 64 << 20

type cache struct {
	mu   sync.Mutex
	idle []*area
	held int // bytes of idle
}

// take is an area of n bytes that is registered with all devices of with.
func (c *cache) take(n int, with []*device) (*area, error) {
	a, err := c.get(n, with)
	if err != nil {
		return nil, err
	}
	for _, d := range with {
		if a.mrs[d] != nil {
			continue
		}
		mr, err := d.verbs.RegMR(d.pd, uintptr(a.addr()), len(a.bytes), ibverbs.AccessLocalWrite|ibverbs.AccessRemoteWrite)
		if err != nil {
			c.give(a)
			return nil, fmt.Errorf("%s: register %d bytes: %w", d.name, n, lockedMemory(err))
		}
		a.mrs[d] = mr
	}
	return a, nil
}

// get is an area that is registered with devices of with only, since a device can be closed only
// when nothing is registered with it any more.
func (c *cache) get(n int, with []*device) (*area, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.idle) - 1; i >= 0; i-- { // the last one is the warmest
		if a := c.idle[i]; len(a.bytes) == pages(n) && a.knownOnlyTo(with) {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			c.held -= len(a.bytes)
			return a, nil
		}
	}
	b, err := allocate(pages(n))
	if err != nil {
		return nil, fmt.Errorf("%d bytes for slots: %w", n, err)
	}
	return &area{bytes: b, mrs: map[*device]*ibverbs.MR{}}, nil
}

func (a *area) knownOnlyTo(devices []*device) bool {
	for d := range a.mrs {
		if !slices.Contains(devices, d) {
			return false
		}
	}
	return true
}

const page = 4096

func pages(n int) int { return (n + page - 1) / page * page }

// give keeps an area for later, and drops the oldest ones beyond idleBytes.
func (c *cache) give(a *area) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, a)
	c.held += len(a.bytes)
	for c.held > idleBytes {
		c.drop(0)
	}
}

// drop ends the registrations of idle area i and frees its memory. The caller holds mu.
func (c *cache) drop(i int) {
	a := c.idle[i]
	c.idle = append(c.idle[:i], c.idle[i+1:]...)
	c.held -= len(a.bytes)
	for d, mr := range a.mrs {
		_ = d.verbs.DeregMR(mr)
	}
	free(a.bytes)
}

// forget ends the registrations with a device that is about to be closed, and frees areas
// that are then registered with no device.
func (c *cache) forget(d *device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.idle) - 1; i >= 0; i-- {
		a := c.idle[i]
		if mr := a.mrs[d]; mr != nil {
			_ = d.verbs.DeregMR(mr)
			delete(a.mrs, d)
		}
		if len(a.mrs) == 0 {
			c.drop(i)
		}
	}
}
