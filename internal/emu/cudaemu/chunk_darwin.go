package cudaemu

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Whether this system has machines, and memory that processes share.
const (
	supported = true
	sharing   = false
)

func threadID() int {
	id, _, _ := syscall.RawSyscall(unix.SYS_THREAD_SELFID, 0, 0, 0)
	return int(id)
}

var errNoSharing = errors.New("memory of emulated devices is shared between processes on Linux alone")

func newChunk(l label, watched bool) (*chunk, error) {
	l.watched = watched
	c := &chunk{fd: -1, label: l}
	raw, err := hostPages(int(c.fileBytes()))
	if err != nil {
		return nil, err
	}
	c.raw = raw
	copy(c.raw[len(c.raw)-labelBytes:], l.bytes())
	c.slice()
	return c, nil
}

func openChunk(fd int) (*chunk, error)   { return nil, errNoSharing }
func openOf(pid, fd int) (*chunk, error) { return nil, errNoSharing }
func dup(fd int) (int, error)            { return -1, errNoSharing }
func (c *chunk) close()                  { freeHostPages(c.raw); c.raw, c.data, c.written = nil, nil, nil }
func (c *chunk) hole(off, n uint64) bool { return false }
func hostPages(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}
func freeHostPages(b []byte)     { unix.Munmap(b) }
func outOfMemory(err error) bool { return err == syscall.ENOMEM }
