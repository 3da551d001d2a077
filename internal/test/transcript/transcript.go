// Package transcript keeps what a process or a log has written so far, for tests that read it
// meanwhile, and plays what was written down of a machine.
package transcript

import (
	"bytes"
	"sync"
)

// A Transcript is an io.Writer whose text can be read while somebody writes.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (t *Transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

// String is all that was written.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
