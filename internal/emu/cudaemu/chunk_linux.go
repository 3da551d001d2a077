package cudaemu

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Whether this system has machines, and memory that processes share.
const (
	supported = true
	sharing   = true // between processes
)

func threadID() int { return unix.Gettid() }

// newChunk is memory in a file of its own that has no name: the data, a bit for each
// byte of them, a page with the label.
func newChunk(l label, watched bool) (*chunk, error) {
	fd, err := unix.MemfdCreate("ringo-emu", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l.watched = watched
	c := &chunk{fd: fd, label: l}
	err = unix.Ftruncate(fd, c.fileBytes())
	if err == nil {
		_, err = unix.Pwrite(fd, l.bytes(), c.fileBytes()-labelBytes)
	}
	if err == nil {
		err = c.mmap()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return c, nil
}

// openChunk maps the chunk of a descriptor, and closes the descriptor with the chunk.
func openChunk(fd int) (*chunk, error) {
	page := make([]byte, labelBytes)
	c := &chunk{fd: fd}
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && st.Size < labelBytes {
		err = errNoChunk
	}
	if err == nil {
		_, err = unix.Pread(fd, page, st.Size-labelBytes)
	}
	if err == nil {
		c.label, err = parseLabel(page)
	}
	if err == nil && st.Size != c.fileBytes() {
		err = errNoChunk
	}
	if err == nil {
		err = c.mmap()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return c, nil
}

func (c *chunk) mmap() (err error) {
	c.raw, err = unix.Mmap(c.fd, 0, int(c.fileBytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err == nil {
		c.slice()
	}
	return err
}

// hole reports whether nobody ever wrote n bytes from off.
func (c *chunk) hole(off, n uint64) bool {
	data, err := unix.Seek(c.fd, int64(off), unix.SEEK_DATA)
	return err == nil && data >= int64(off+n) // the label is data behind all
}

// openOf is the chunk of a descriptor of another process.
func openOf(pid, fd int) (*chunk, error) {
	n, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return openChunk(n)
}

// dup is another descriptor of the same file.
func dup(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }

func (c *chunk) close() {
	unix.Munmap(c.raw)
	unix.Close(c.fd)
	c.raw, c.data, c.written = nil, nil, nil
}

// hostPages is memory of the host that begins at a page.
func hostPages(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func freeHostPages(b []byte) { unix.Munmap(b) }

// outOfMemory reports whether a system call's error is a lack of memory.
func outOfMemory(err error) bool {
	return err == syscall.ENOMEM || err == syscall.EMFILE || err == syscall.ENFILE
}
