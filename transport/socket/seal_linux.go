//go:build !ringo_portable

package socket

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/secure"
)

// sealMost is how much is encrypted before it is offered to the kernel: four records, whose
// bytes are then still in the core's cache.
const sealMost = 64 << 10

// A seal is the TLS of a stream. It has TLS write its records into memory and offers these to
// the kernel, for crypto/tls cannot go on after a write that took only a part.
type seal struct {
	fd   int
	conn *secure.Conn

	mu    sync.Mutex
	out   []byte // guarded by mu: records
	taken int    // guarded by mu: bytes of out that the kernel has
}

func newSeal(fd int, c *secure.Conn) *seal {
	e := &seal{fd: fd, conn: c}
	c.Move(records{e})
	return e
}

// read reads into b, or into b2 if b is empty.
func (e *seal) read(b, b2 []byte) (int, error) {
	if len(b) == 0 {
		b = b2
	}
	n, err := e.conn.Read(b)
	if n > 0 {
		return n, nil
	}
	if err := e.push(); err != nil && err != errAgain { // TLS may have written an answer
		return 0, err
	}
	return 0, err
}

// write encrypts some of b, unless the kernel has not taken what was encrypted before.
func (e *seal) write(b []byte) (n int, err error) {
	if err := e.push(); err != nil {
		return 0, err
	}
	if n, err = e.conn.Write(b[:min(len(b), sealMost)]); err != nil {
		return n, err
	}
	if err = e.push(); err == errAgain {
		err = nil
	}
	return n, err
}

// push offers records to the kernel. It returns errAgain if some are left.
func (e *seal) push() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.taken < len(e.out) {
		n, err := unix.Write(e.fd, e.out[e.taken:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		e.taken += n
	}
	e.out, e.taken = e.out[:0], 0
	return nil
}

// pending is how many bytes of records the kernel does not have.
func (e *seal) pending() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.out) - e.taken
}

// records are the connection below TLS: reads come from the kernel, writes go to out.
type records struct{ *seal }

func (r records) Read(b []byte) (int, error) {
	return received(unix.Read(r.fd, b))
}

func (r records) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = append(r.out, b...)
	return len(b), nil
}
