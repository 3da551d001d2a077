// Package must is for tests: a call that has to succeed takes one line.
package must

import (
	"fmt"
	"runtime/debug"
)

// A Failure is what Get panics with: the error, and where it came.
type Failure struct {
	Err   error
	Stack []byte
}

func (f Failure) Error() string { return fmt.Sprintf("%v\n%s", f.Err, f.Stack) }

// Get returns a call's result, or ends the test with its error.
func Get[T any](v T, err error) T {
	if err != nil {
		panic(Failure{err, debug.Stack()})
	}
	return v
}

// Err returns the error of a call whose result does not matter.
func Err(_ any, err error) error { return err }
