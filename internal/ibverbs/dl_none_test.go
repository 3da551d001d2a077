//go:build !linux || !(amd64 || arm64) || ringo_nogpu || ringo_host

package ibverbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
)

// In a build that opens no libraries each call says why.
func TestNone(t *testing.T) {
	_, err := dl.Open("libc.so.6")
	require.ErrorIs(t, err, dl.ErrUnsupported)
	require.Regexp(t, "built with the tag ringo_nogpu or ringo_host|only Linux on amd64 and arm64 is supported", err.Error())
	_, err = dl.Library(0).Sym("puts")
	require.ErrorIs(t, err, dl.ErrUnsupported)
}
