//go:build ringo_notls

package internal_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/secure"
)

// TestWithout: who asks for TLS, and who speaks it, hears that there is none. Others do not notice.
func TestWithout(t *testing.T) {
	_, err := secure.New("", "", "")
	require.EqualError(t, err, "tls: this program is built without it (-tags ringo_notls)")
	var none *secure.Config
	require.Equal(t, "off", none.String())
	for first, refused := range map[byte]bool{22: true, 'R': false} {
		mine, theirs := net.Pipe()
		go func() {
			theirs.Write([]byte{first, 7})
			theirs.Close()
		}()
		c, sealed, err := none.Either(mine)
		require.Equal(t, refused, sealed)
		require.Equal(t, refused, err != nil)
		if err == nil {
			all, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, []byte{first, 7}, all)
		}
		mine.Close()
	}
}
