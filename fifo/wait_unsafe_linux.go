package fifo

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of the system call futex.
const (
	futexWait = 0 // not FUTEX_PRIVATE_FLAG: the word is shared by processes
	futexWake = 1
)

// sharedParker sleeps on a futex in the memory that the two processes share.
type sharedParker struct{}

func (sharedParker) yield() {
	if pollers.Load() > 1 { // several ranks poll in this process: another may need this P of Go's scheduler
		runtime.Gosched()
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0); errno != 0 {
		t := unix.NsecToTimespec(int64(instead))
		_ = unix.Nanosleep(&t, nil)
	}
}

// instead is how long a thread sleeps that may not yield (seccomp): the other party may need this core.
const instead = 10 * time.Microsecond

// move forbids this thread its core for a moment, then allows the same cores as before.
func (sharedParker) move() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed, others unix.CPUSet
	var here uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0)
	if errno != 0 || unix.SchedGetaffinity(0, &allowed) != nil {
		return
	}
	others = allowed
	others.Clear(int(here))
	if others.Count() > 0 && unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &allowed)
	}
}

// park tells the Go scheduler of the sleep, so that another goroutine gets the
// processor. Errors are early returns: EAGAIN (not parked any more), EINTR,
// ETIMEDOUT.
func (sharedParker) park(state *atomic.Uint32, d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(state)), futexWait,
		uintptr(parked), uintptr(unsafe.Pointer(&t)), 0, 0)
}

func (sharedParker) wake(state *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(state)), futexWake, 1, 0, 0, 0)
}
