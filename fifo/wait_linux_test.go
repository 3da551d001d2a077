package fifo

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread that moves keeps the set of cores that it may use.
func TestMove(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	for range 3 {
		sharedParker{}.move()
	}
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)
}

// A thread that may not yield gives its core away all the same.
func TestYieldForbidden(t *testing.T) {
	errs := make(chan error)
	var took time.Duration
	const times = 100
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends, and the filter with it
		err := forbidYield()
		begin := time.Now()
		for range times {
			sharedParker{}.yield()
		}
		took = time.Since(begin)
		errs <- err
	}()
	if err := <-errs; err != nil {
		t.Skip("no seccomp here: ", err)
	}
	require.GreaterOrEqual(t, took, times*instead)
}

// forbidYield has sched_yield fail with EPERM, on this thread.
func forbidYield() error {
	const load, ifEqual, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the call
		{Code: ifEqual, K: unix.SYS_SCHED_YIELD, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// Where several ranks of one process poll, one that yields lets goroutines run too.
func TestYieldAmongRanks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pollers.Add(2)
	defer pollers.Add(-2)
	var ran atomic.Bool
	go ran.Store(true)
	for range 10 { // the scheduler may choose this goroutine again
		sharedParker{}.yield()
	}
	require.True(t, ran.Load())
}

// A goroutine is counted in pollers while it polls, and not after.
func TestPollersAreCounted(t *testing.T) {
	g := Geometry{Slots: 2, SlotBytes: 8}
	c, err := NewConsumer(aligned(g.Size(), 2*lineBytes), g, Waiting{Guard: new(Guard)})
	require.NoError(t, err)
	c.yieldFor = time.Hour
	over := make(chan error)
	go func() {
		_, _, err := c.Next()
		over <- err
	}()
	for pollers.Load() != 1 {
		runtime.Gosched()
	}
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-over, ErrClosed)
	require.Zero(t, pollers.Load())
}

// A thread that moves leaves its core, whichever that is, if it may use another.
func TestMoveLeaves(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()
	if all.Count() < 2 {
		t.Skip("one core")
	}
	here := func() int {
		var core uint32
		_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0)
		require.Zero(t, errno)
		return int(core)
	}
	tried := 0
	for core := 0; tried < 2; core++ {
		if !all.IsSet(core) {
			continue
		}
		tried++
		left := false
		for range 50 { // the system may bring it back at once
			var one unix.CPUSet
			one.Set(core)
			require.NoError(t, unix.SchedSetaffinity(0, &one))
			if here() != core {
				t.Skip("this system does not keep threads to cores")
			}
			sharedParker{}.move()
			require.Equal(t, core, here(), "there is no other that it may use")
			require.NoError(t, unix.SchedSetaffinity(0, &all))
			if here() != core {
				continue
			}
			sharedParker{}.move()
			if left = here() != core; left {
				break
			}
		}
		require.True(t, left, "core %d", core)
	}
}
