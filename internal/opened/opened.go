// Package opened tells tests of communicators that are made of others, so that one which is not closed is named.
package opened

import "sync/atomic"

// Watch, if set, is called with a *ringo.Comm, one that was made of it, and how: "Split". It may return a function that
// is called when that one is closed.
var Watch atomic.Pointer[func(parent, child any, how string) (closed func())]

// Tell calls Watch. The function that it returns is never nil.
func Tell(parent, child any, how string) (closed func()) {
	if f := Watch.Load(); f != nil {
		if closed := (*f)(parent, child, how); closed != nil {
			return closed
		}
	}
	return func() {}
}
