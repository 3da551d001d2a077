// Package process holds what the communicators of one process share: listeners, GPUs' accounts, files of logs. Nothing
// here is promised to other modules.
//
// A Registry is a kind of such things. Its contents hang on a Process, and a program has one: the default. A test that
// wants to be alone opens its communicators under a Process of its own, see With. What is told apart by a key that only
// one communicator can have needs no Process: it uses In(nil).
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

// A Registry is one kind of things that a process has, in a T: maps and the lock that guards them.
type Registry[T any] struct{ fresh func() *T }

// NewRegistry makes a Registry, whose value is made when a Process first needs it.
func NewRegistry[T any](fresh func() *T) *Registry[T] { return &Registry[T]{fresh} }

// In returns the value of a Process, that of the default for nil.
func (r *Registry[T]) In(p *Process) *T {
	if p == nil {
		p = &usual
	}
	v, ok := p.values.Load(r)
	if !ok {
		v, _ = p.values.LoadOrStore(r, r.fresh())
	}
	return v.(*T)
}
