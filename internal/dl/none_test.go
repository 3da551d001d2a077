//go:build !linux || !(amd64 || arm64) || ringo_nogpu || ringo_host

package dl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In a build that opens no libraries each call says why.
func TestNone(t *testing.T) {
	_, err := Open("libc.so.6")
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, why)
	_, err = Library(0).Sym("puts")
	require.ErrorIs(t, err, ErrUnsupported)
}
