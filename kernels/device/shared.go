package device

import (
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
)

// borrowed are the Combiners that contexts share.
var borrowed = struct {
	sync.Mutex
	of map[home]*Combiner
}{of: map[home]*Combiner{}}

type home struct {
	driver cuda.Driver
	ctx    cuda.Context
}

// Borrow is New for those who share the Combiner of a context: to load a module
// may wait for the context's kernels, which must not wait for who loads it. Each
// closes it once.
func Borrow(d cuda.Driver, ctx cuda.Context) (*Combiner, error) {
	borrowed.Lock()
	defer borrowed.Unlock()
	key := home{d, ctx}
	c := borrowed.of[key]
	if c == nil {
		var err error
		if c, err = New(d, ctx); err != nil {
			return nil, err
		}
		borrowed.of[key] = c
	}
	c.borrowers++
	return c, nil
}

// givenBack reports whether nobody has a Combiner any more.
func (c *Combiner) givenBack() bool {
	borrowed.Lock()
	defer borrowed.Unlock()
	if c.borrowers == 0 {
		return true // it is its maker's alone
	}
	if c.borrowers--; c.borrowers > 0 {
		return false
	}
	delete(borrowed.of, home{c.driver, c.ctx})
	return true
}
