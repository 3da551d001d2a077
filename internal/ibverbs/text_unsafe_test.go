package ibverbs

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A string of C ends before its first zero.
func TestText(t *testing.T) {
	for _, s := range []string{"", "mlx5_0"} {
		b := []byte(s + "\x00rest")
		require.Equal(t, s, text(uintptr(unsafe.Pointer(&b[0]))))
		runtime.KeepAlive(b)
	}
}
