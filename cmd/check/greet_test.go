package check

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listener that fails now and then, as one that has no more descriptors, is listened on again.
func TestServeGoesOn(t *testing.T) {
	ln := &unlucky{errs: []error{errors.New("too many open files"), errors.New("too many open files"), net.ErrClosed}}
	new(job).serve(ln, "", nil)
	require.Empty(t, ln.errs)
}

// unlucky is a listener of which Accept gives errors.
type unlucky struct {
	net.Listener
	errs []error
}

func (u *unlucky) Accept() (net.Conn, error) {
	err := u.errs[0]
	u.errs = u.errs[1:]
	return nil, err
}
