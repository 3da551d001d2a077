package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes a file of size bytes, all zero, that has no name: a memfd, or an unlinked file in dir. The caller
// closes it. A file in dir is allocated, for touching it would be SIGBUS where there is no room. A memfd has no limit
// but the machine's and the container's: its pages come when they are first touched, so a queue takes what its messages
// need.
func allocate(size int, dir string) (*os.File, error) {
	f, err := create(dir)
	if err == nil {
		err = reserve(f, size, dir)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("shared memory: %w", err)
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
	if dir == "" {
		if err := retry(func() error { return unix.Ftruncate(fd, int64(size)) }); err != nil {
			return os.NewSyscallError("ftruncate", err)
		}
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			return os.NewSyscallError("fcntl F_ADD_SEALS", err)
		}
		return nil
	}
	err := retry(func() error { return unix.Fallocate(fd, 0, 0, int64(size)) })
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM):
		return full(size, dir, err)
	case err != nil:
		return os.NewSyscallError("fallocate", err)
	}
	return nil
}

// vacant is the reason why dir has no room for size bytes, nil if it has.
func vacant(size int, dir string) error {
	var s unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &s) != nil || uint64(size) <= s.Bavail*uint64(s.Bsize) {
		return nil
	}
	return full(size, dir, unix.ENOSPC)
}

func full(size int, dir string, cause error) error {
	free := "not so much"
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil {
		free = bytes(s.Bavail * uint64(s.Bsize))
	}
	return fmt.Errorf("%s needed, %s free in %s: enlarge it (docker run --shm-size, mount -o remount,size=), leave the "+
		"directory unset to use memfd, or use sockets: %w",
		bytes(size), free, dir, cause)
}

func bytes[T int | uint64](n T) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// trust is the reason not to map the memory that a peer sent, nil if there is none: it is
// too small or could shrink, and touching it would then be SIGBUS. Only a memfd can be sealed;
// with a directory, peers that know the key have to be honest.
func trust(fd, size int, dir string) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size < int64(size) || dir != "" && s.Blocks*512 < int64(size) {
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

// share maps size bytes of fd.
func share(fd, size int) ([]byte, error) {
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
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
