//go:build unix

package cudatest

import "golang.org/x/sys/unix"

// pages is memory of the host that begins on a page.
func pages(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func freePages(b []byte) { _ = unix.Munmap(b) }

func closeFile(fd int) error { return unix.Close(fd) }
