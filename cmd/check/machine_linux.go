package check

import "golang.org/x/sys/unix"

// shmSize is the size of /dev/shm and what of it is free, in bytes.
func shmSize() (size, free uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs("/dev/shm", &s) != nil {
		return 0, 0, false
	}
	return uint64(s.Blocks) * uint64(s.Bsize), uint64(s.Bavail) * uint64(s.Bsize), true
}

func hardLimit(name string) (uint64, bool) {
	var l unix.Rlimit
	which, ok := map[string]int{"nofile": unix.RLIMIT_NOFILE, "memlock": unix.RLIMIT_MEMLOCK,
		"nproc": unix.RLIMIT_NPROC}[name]
	if !ok || unix.Getrlimit(which, &l) != nil {
		return 0, false
	}
	return l.Max, true
}
