//go:build unix

package p2p

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// at is the address of the memory in this process.
func (x mapping) at() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x.data))) }

func (x mapping) unmap() error {
	if x.file != nil {
		x.file.Close()
	}
	return os.NewSyscallError("munmap", unix.Munmap(x.data))
}

// mapped maps a file, or memory of this process alone if fd is -1.
func mapped(fd, n, flags int) (mapping, error) {
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return mapping{}, fmt.Errorf("host memory: %d bytes: %w", n, os.NewSyscallError("mmap", err))
	}
	return mapping{data: b}, nil
}
