//go:build !linux && !darwin

package cudaemu

import "errors"

// Whether this system has machines, and memory that processes share.
const (
	supported = false
	sharing   = false
)

var errNoSystem = errors.New("no emulated devices on this operating system")

func threadID() int                                  { return 0 }
func newChunk(l label, watched bool) (*chunk, error) { return nil, errNoSystem }
func openChunk(fd int) (*chunk, error)               { return nil, errNoSystem }
func openOf(pid, fd int) (*chunk, error)             { return nil, errNoSystem }
func dup(fd int) (int, error)                        { return -1, errNoSystem }
func (c *chunk) close()                              {}
func (c *chunk) hole(off, n uint64) bool             { return false }
func hostPages(n int) ([]byte, error)                { return nil, errNoSystem }
func freeHostPages(b []byte)                         {}
func outOfMemory(err error) bool                     { return false }
