package p2p

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// create makes zero memory that other processes of this user can open by way of
// /proc. All its pages are allocated, so that a lack of memory is an error here.
func create(n int) (mapping, *File, error) {
	// Allocating more than the machine has would wake the kernel's OOM killer.
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && uint64(n) > uint64(info.Totalram)*uint64(info.Unit) {
		return mapping{}, nil, fmt.Errorf("host memory: %d bytes: %w", n, unix.ENOMEM)
	}
	fd, err := unix.MemfdCreate("ringo-gpu", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return mapping{}, nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "memfd:ringo-gpu")
	for {
		if err = unix.Fallocate(fd, 0, 0, int64(n)); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return mapping{}, nil, fmt.Errorf("host memory: %d bytes: %w", n, os.NewSyscallError("fallocate", err))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		f.Close()
		return mapping{}, nil, os.NewSyscallError("fcntl F_ADD_SEALS", err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		f.Close()
		return mapping{}, nil, os.NewSyscallError("fstat", err)
	}
	x, err := mapped(fd, n, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		f.Close()
		return x, nil, err
	}
	x.file = f
	return x, &File{os.Getpid(), fd, uint64(s.Dev), s.Ino}, nil
}

// open maps what create made in another process.
func open(f *File, n int) (mapping, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", f.PID, f.FD), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return mapping{}, os.NewSyscallError("open", err)
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return mapping{}, os.NewSyscallError("fstat", err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || uint64(s.Dev) != f.Dev || s.Ino != f.Ino || s.Size < int64(n) {
		return mapping{}, errors.New("its file is another one by now, or the processes are in different PID namespaces")
	}
	return mapped(fd, n, unix.MAP_SHARED|unix.MAP_POPULATE)
}
