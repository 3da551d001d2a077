package plugin

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps on its thread: time.Sleep takes a millisecond at least where nothing else runs.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early
}
