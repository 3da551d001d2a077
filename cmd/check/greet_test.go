package check

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServeGoesOn: serve goes on after passing errors of Accept, such as a lack of descriptors.
func TestServeGoesOn(t *testing.T) {
	ln := &unlucky{errs: []error{errors.New("too many open files"), errors.New("too many open files"), net.ErrClosed}}
	new(job).serve(ln, "", nil)
	require.Empty(t, ln.errs)
}

// unlucky is a listener whose Accept returns a list of errors.
type unlucky struct {
	net.Listener
	errs []error
}

func (u *unlucky) Accept() (net.Conn, error) {
	err := u.errs[0]
	u.errs = u.errs[1:]
	return nil, err
}
