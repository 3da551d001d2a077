//go:build unix && !(linux && (amd64 || arm64))

package matrix

import (
	"testing"
	"time"
)

// programs skips the test: there is no libnccl.so.2 on this system.
func programs(bool) func(t *testing.T, timeout, join time.Duration) []*handle {
	return func(t *testing.T, _, _ time.Duration) []*handle {
		t.Skip("libnccl.so.2 is for Linux")
		return nil
	}
}
