//go:build !linux

package transporttest

import (
	"errors"
	"testing"

	"github.com/ringo-go/ringo/transport"
)

// openBuffer fails: it needs Linux.
func openBuffer(transport.Memory) ([]byte, func() error, error) {
	return nil, nil, errors.New("memory is exported by files on Linux alone")
}

// FileSlots skips the test: it needs Linux.
func FileSlots(tb testing.TB, bytes int) (s Slots) {
	tb.Skip("memory is exported by files on Linux alone")
	return s
}
