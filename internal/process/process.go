// Package process holds what the communicators of one process share: listeners, GPUs' accounts, files of logs. Nothing
// here is promised to other modules.
//
// A Registry is a kind of such things, and Shared is one that counts users. Their contents hang on a Process. A program
// has one, the default; a test that wants to be alone opens its communicators in a Process of its own, see With. Where
// the key is known to one communicator alone, or the thing is the operating system's, In(nil) will do.
package process

import (
	"context"
	"sync"
)

// A Process has one value of each Registry. The zero Process has none yet.
type Process struct{ values sync.Map } // of *Registry to its value

// usual is the Process of all that says nothing else.
var usual Process

type key struct{}

// With returns a context under which communicators are opened in p.
func With(ctx context.Context, p *Process) context.Context { return context.WithValue(ctx, key{}, p) }

// Of returns the Process of a context, the default if it has none.
func Of(ctx context.Context) *Process {
	if p, ok := ctx.Value(key{}).(*Process); ok {
		return p
	}
	return &usual
}

// A Registry is one kind of things that a process has, in a T: maps and the lock that guards them. Fresh makes the T
// when a Process first needs it; nil makes a zero T. A Registry is a plain value, so that a program which uses none of
// it does not link it.
type Registry[T any] struct{ Fresh func() *T }

// In returns the value of a Process, that of the default for nil.
func (r *Registry[T]) In(p *Process) *T {
	if p == nil {
		p = &usual
	}
	v, ok := p.values.Load(r)
	if !ok {
		made := new(T)
		if r.Fresh != nil {
			made = r.Fresh()
		}
		v, _ = p.values.LoadOrStore(r, made)
	}
	return v.(*T)
}

// Shared are things of which a process has one for each key. The first user makes it, and End ends it after the last.
type Shared[K comparable, V any] struct {
	End      func(V) error
	registry Registry[uses[K, V]]
}

type uses[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*use[V]
}

type use[V any] struct {
	users int // guarded by mu of uses

	mu    sync.Mutex // held while the thing is made or ended
	made  bool
	value V
}

// Open returns the thing of a key until Leave, and makes it if nobody has it. One thing of a key has ended before the
// next is made.
func (s *Shared[K, V]) Open(p *Process, k K, make func() (V, error)) (v V, err error) {
	all := s.registry.In(p)
	all.mu.Lock()
	u := all.of[k]
	if u == nil {
		if all.of == nil {
			all.of = map[K]*use[V]{}
		}
		u = new(use[V])
		all.of[k] = u
	}
	u.users++
	all.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.made {
		if u.value, err = make(); err != nil {
			all.left(k, u)
			return v, err
		}
		u.made = true
	}
	return u.value, nil
}

// Leave ends what one Open began, and the thing with its last user.
func (s *Shared[K, V]) Leave(p *Process, k K) error {
	all := s.registry.In(p)
	all.mu.Lock()
	u := all.of[k]
	all.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	all.mu.Lock()
	last := u.users == 1
	all.mu.Unlock()
	defer all.left(k, u)
	if !last {
		return nil
	}
	u.made = false
	return s.End(u.value)
}

// left counts a user less.
func (all *uses[K, V]) left(k K, u *use[V]) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if u.users--; u.users == 0 {
		delete(all.of, k)
	}
}

// Len returns how many things a process has.
func (s *Shared[K, V]) Len(p *Process) int {
	all := s.registry.In(p)
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.of)
}
