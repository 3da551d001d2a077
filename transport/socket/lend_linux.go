//go:build !ringo_portable

package socket

import (
	"golang.org/x/sys/unix"
)

// lendMin is the least payload whose pages are lent to the kernel. At 64 KiB the
// second system call and the credit cost as much as the copy; at 128 KiB lending
// is ahead by 15 %, at 512 KiB by 35 %.
const lendMin = 64 << 10

// A loan gives pages of the caller's memory to a socket without a copy:
// vmsplice puts references to them into a pipe, and splice moves those on into
// the socket. On one host the receiver then copies straight from the sender's
// pages, half the memory traffic of write and read. (MSG_ZEROCOPY
// would copy after all on loopback, and sendfile from a memfd is slower: its
// pages are looked up one by one and are not adjacent.)
type loan struct {
	pipe [2]int // both 0 if not open
	in   int    // bytes in the pipe
	no   bool   // the kernel does not lend
	iov  [2]unix.Iovec
}

// write offers c to the socket fd. Where the kernel refuses loans it copies.
func (p *loan) write(fd int, c *chunk) (int, error) {
	if !p.no && p.pipe == [2]int{} {
		p.open(c.left())
	}
	if p.no {
		return p.copy(fd, c)
	}
	if p.in < c.left() {
		head, body := c.rest(c.off + p.in)
		iov := p.iov[:0]
		for _, b := range [2][]byte{head, body} {
			if len(b) > 0 {
				v := unix.Iovec{Base: &b[0]}
				v.SetLen(len(b))
				iov = append(iov, v)
			}
		}
		n, err := unix.Vmsplice(p.pipe[1], iov, unix.SPLICE_F_NONBLOCK)
		clear(p.iov[:])
		switch {
		case err == nil:
			p.in += n
		case err == unix.EINTR, err == unix.EAGAIN && p.in > 0:
		default:
			return p.refuse(fd, c)
		}
	}
	flags := unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE
	if p.in < c.left() {
		flags |= unix.SPLICE_F_MORE
	}
	n, err := unix.Splice(p.pipe[0], nil, fd, nil, p.in, flags)
	switch err {
	case nil:
		p.in -= int(n)
		return int(n), nil
	case unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.EOPNOTSUPP:
		return p.refuse(fd, c)
	}
	return 0, err
}

func (p *loan) open(size int) {
	if err := unix.Pipe2(p.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		p.pipe, p.no = [2]int{}, true
		return
	}
	// Room for a slot in one go. Where the user's pipe quota is used up it stays
	// at 64 KiB, which takes more calls and works.
	_, _ = unix.FcntlInt(uintptr(p.pipe[0]), unix.F_SETPIPE_SZ, size+2*page)
}

// refuse copies from now on. The bytes in the pipe are still in c's memory.
func (p *loan) refuse(fd int, c *chunk) (int, error) {
	p.close()
	p.no = true
	return p.copy(fd, c)
}

func (p *loan) copy(fd int, c *chunk) (int, error) {
	head, body := c.rest(c.off)
	if len(body) == 0 {
		return unix.Write(fd, head)
	}
	return unix.Writev(fd, [][]byte{head, body})
}

func (p *loan) close() {
	if p.pipe != [2]int{} {
		unix.Close(p.pipe[0])
		unix.Close(p.pipe[1])
	}
	p.pipe, p.in = [2]int{}, 0
}
