package ringo

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
)

// A footprint is what a process has in use.
type footprint struct {
	goroutines, descriptors int
	memory                  []int // bytes, of each GPU
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d bytes of GPUs", f.goroutines, f.descriptors, f.memory)
}

// footprintOf measures the process and its GPUs. What the emulator itself needs does not count.
func footprintOf(list []*gpu.Device) (f footprint, err error) {
	f.goroutines = runtime.NumGoroutine()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return f, err
	}
	for _, file := range files {
		if to, _ := os.Readlink("/proc/self/fd/" + file.Name()); strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "/memfd:ringo") && !strings.HasPrefix(to, "/memfd:ringo-emu") {
			f.descriptors++
		}
	}
	for _, d := range list {
		free, total, err := d.Memory()
		if err != nil {
			return f, err
		}
		f.memory = append(f.memory, total-free)
	}
	return f, nil
}

// since is what has come to be in use since a footprint.
func (f footprint) since(before footprint) footprint {
	d := footprint{goroutines: f.goroutines - before.goroutines, descriptors: f.descriptors - before.descriptors}
	for i := range f.memory {
		d.memory = append(d.memory, f.memory[i]-before.memory[i])
	}
	return d
}

// settled is the footprint when it has stopped to change: goroutines that have done their
// work may need a moment to end.
func settled(t testing.TB, list []*gpu.Device, fits func(footprint) bool) footprint {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		f, err := footprintOf(list)
		require.NoError(t, err)
		if fits(f) || time.Now().After(end) {
			return f
		}
	}
}

// smallCalls makes small calls of all ranks, which may be driven by one thread.
func smallCalls(t testing.TB, list []*gpu.Device, comms []*Comm, memory []Region) {
	t.Helper()
	for _, kind := range []Kind{KindAllReduce, KindBroadcast, KindAllReduce} {
		for r, c := range comms {
			require.NoError(t, c.Do(&Call{Kind: kind, In: memory[r], Out: memory[r], Count: memory[r].Len() / 4, Type: Float32}))
		}
	}
	for r, c := range comms {
		require.NoError(t, list[r].Synchronize(0))
		require.NoError(t, c.Err())
	}
}

// Communicators of one process that have done small calls only cost it little, and nothing
// is left of them.
func TestFootprint(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	for _, n := range []int{1, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := devices(t, 2)
			memory := []Region{alloc(t, list[0], make([]byte, 1024)), alloc(t, list[1], make([]byte, 1024))}
			before := settled(t, list, func(footprint) bool { return true })
			all := make([][]*Comm, n)
			for i := range all {
				all[i] = onDevices(t, list, Config{})
				smallCalls(t, list, all[i], memory)
			}
			fits := func(f footprint) bool {
				f = f.since(before)
				return f.goroutines <= 1 && f.descriptors == 0 // one watcher for all
			}
			f := settled(t, list, fits)
			t.Logf("%d communicators of 2 ranks: %v", n, f.since(before))
			require.True(t, fits(f), "%v", f.since(before))
			for _, comms := range all {
				for _, c := range comms {
					require.NoError(t, c.Close())
				}
			}
			f = settled(t, list, func(f footprint) bool { return f.since(before).goroutines == 0 })
			require.Equal(t, footprint{memory: []int{0, 0}}, f.since(before), "after Close")
		})
	}
}
