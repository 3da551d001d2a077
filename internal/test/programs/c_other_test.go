//go:build !linux || !(amd64 || arm64)

package programs

import "testing"

// inC skips the test: there is no libnccl.so.2 on this system.
func inC(bool) func(t *testing.T) []*handle {
	return func(t *testing.T) []*handle {
		t.Skip("libnccl.so.2 is for Linux")
		return nil
	}
}
