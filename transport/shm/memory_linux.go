package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes a file of size bytes, all zero and all allocated, that has no name: a
// memfd, or an unlinked file in dir. The caller closes it.
func allocate(size int, dir string) (*os.File, error) {
	f, err := create(dir)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if err := reserve(f, size, dir); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func create(dir string) (*os.File, error) {
	if dir == "" {
		fd, err := unix.MemfdCreate("ringo", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return nil, os.NewSyscallError("memfd_create", err)
		}
		return os.NewFile(uintptr(fd), "memfd:ringo"), nil
	}
	f, err := os.CreateTemp(dir, "ringo-") // mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func reserve(f *os.File, size int, dir string) error {
	fd := int(f.Fd())
	if tooMuch(size) {
		return noMemory(size, dir, unix.ENOMEM)
	}
	err := retry(func() error { return unix.Fallocate(fd, 0, 0, int64(size)) })
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM):
		return noMemory(size, dir, err)
	case err != nil:
		return fmt.Errorf("shared memory: %w", os.NewSyscallError("fallocate", err))
	}
	if dir == "" {
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			return fmt.Errorf("shared memory: %w", os.NewSyscallError("fcntl F_ADD_SEALS", err))
		}
	}
	return nil
}

// tooMuch reports that the machine has less memory than size. Allocating that would
// wake the kernel's OOM killer.
func tooMuch(size int) bool {
	var s unix.Sysinfo_t
	return unix.Sysinfo(&s) == nil && uint64(size) > uint64(s.Totalram)*uint64(s.Unit)
}

func noMemory(size int, dir string, cause error) error {
	if dir == "" {
		return fmt.Errorf("shared memory: %s needed, the host or container has not so much: allow it more memory, use smaller slots, or sockets: %w",
			bytes(size), cause)
	}
	free := "not so much"
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil {
		free = bytes(int(s.Bavail) * int(s.Bsize))
	}
	return fmt.Errorf("shared memory: %s needed, %s free in %s: enlarge it (docker run --shm-size, mount -o remount,size=), leave the directory unset to use memfd, or use sockets: %w",
		bytes(size), free, dir, cause)
}

func bytes(n int) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// trust says why the memory that a peer sent is too small or could become so: touching
// it would then be SIGBUS. Only a memfd can be sealed; with a directory, peers that
// know the key have to be honest.
func trust(fd, size int, dir string) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size < int64(size) || s.Blocks*512 < int64(size) {
		return fmt.Errorf("shared memory of %d bytes, %d allocated: %d needed", s.Size, s.Blocks*512, size)
	}
	if dir != "" {
		return nil
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return errors.New("shared memory that its sender could shrink: set the same directory on all ranks, or on none")
	}
	return nil
}

// share maps size bytes of fd, with all pages present.
func share(fd, size int) ([]byte, error) {
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	return b, nil
}

// retry repeats f while signals interrupt it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
