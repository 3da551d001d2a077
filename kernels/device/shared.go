package device

import (
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
)

// Shared holds values that have several users, such as a context's modules, and counts
// the users of each. If each user loaded a module of its own, the load might wait for
// kernels that wait for that user. The zero Shared is empty.
type Shared[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*counted[V]
}

type counted[V any] struct {
	value V
	users int
}

// Borrow is the value of a key, made for its first user. make is called with the
// lock held: it must not wait for other users.
func (s *Shared[K, V]) Borrow(key K, make func() (V, error)) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[key]
	if c == nil {
		v, err := make()
		if err != nil {
			return v, err
		}
		c = &counted[V]{value: v}
		if s.of == nil {
			s.of = map[K]*counted[V]{}
		}
		s.of[key] = c
	}
	c.users++
	return c.value, nil
}

// GiveBack is called once for each Borrow. It reports whether that was the last
// user, who then has to release the value.
func (s *Shared[K, V]) GiveBack(key K) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[key]
	if c.users--; c.users > 0 {
		return false
	}
	delete(s.of, key)
	return true
}

// sharedCombiners are the Combiners of Borrow, one for each context.
var sharedCombiners Shared[home, *Combiner]

type home struct {
	driver cuda.Driver
	ctx    cuda.Context
}

// Borrow is New for users who share the Combiner of a context, see Shared. Each of
// them closes it once.
func Borrow(d cuda.Driver, ctx cuda.Context) (*Combiner, error) {
	return sharedCombiners.Borrow(home{d, ctx}, func() (*Combiner, error) {
		c, err := New(d, ctx)
		if err == nil {
			c.borrowed = true
		}
		return c, err
	})
}
