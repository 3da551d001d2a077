//go:build linux && (amd64 || arm64) && !ringo_nogpu && !ringo_host

package ibverbs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/need"
)

var built struct {
	sync.Once
	path string
	err  error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(status)
}

// calls is testdata/calls.c, compiled by gcc.
func calls(t testing.TB) dl.Library {
	t.Helper()
	gcc := need.Tool(t, "gcc")
	built.Do(func() {
		dir, err := os.MkdirTemp("", "dl")
		if built.err = err; err == nil {
			built.path = filepath.Join(dir, "calls.so")
			built.err = exec.Command(gcc, "-shared", "-fPIC", "-O1", "-pthread", "-o", built.path, "testdata/calls.c").Run()
		}
	})
	require.NoError(t, built.err)
	lib, err := dl.Open(built.path)
	require.NoError(t, err)
	return lib
}

func sym(t testing.TB, name string) uintptr {
	t.Helper()
	p, err := calls(t).Sym(name)
	require.NoError(t, err)
	return p
}

func TestOpenAndSym(t *testing.T) {
	_, err := dl.Open("libnosuchthing.so.9")
	require.ErrorContains(t, err, "libnosuchthing.so.9")
	_, err = calls(t).Sym("no_such_function")
	require.ErrorContains(t, err, "no_such_function")
	again, err := dl.Open(built.path)
	require.NoError(t, err)
	require.Equal(t, calls(t), again)
}

func TestCall(t *testing.T) {
	weigh := sym(t, "weigh")
	require.EqualValues(t, 650, dl.Call(weigh, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
	require.EqualValues(t, -1, int32(dl.Call(sym(t, "minus_one"))))
	require.Zero(t, dl.Call(sym(t, "aligned")))
	var v int64
	dl.Call(sym(t, "put"), uintptr(unsafe.Pointer(&v)), 99)
	require.EqualValues(t, 99, v)
}

func TestFrame(t *testing.T) {
	f := &dl.Frame{Fn: sym(t, "weigh"), Args: [12]uintptr{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	f.Call()
	require.EqualValues(t, 650, f.Result)
	require.Zero(t, testing.AllocsPerRun(100, f.Call))
	f.Fn = sym(t, "minus_one")
	f.Call()
	require.EqualValues(t, -1, int32(f.Result))
	f.Fn = sym(t, "aligned")
	f.Call()
	require.Zero(t, f.Result)
}

// A frame's Next is called after it, unless the frame's result, or the number that its Last points to, is not 0.
func TestFramesInARow(t *testing.T) {
	put, weigh := sym(t, "put_well"), sym(t, "weigh")
	var v [3]int64
	last := &dl.Frame{Fn: weigh, Args: [12]uintptr{5}, Result: 7}
	third := &dl.Frame{Fn: put, Args: [12]uintptr{uintptr(unsafe.Pointer(&v[2])), 3}}
	second := &dl.Frame{Fn: put, Args: [12]uintptr{uintptr(unsafe.Pointer(&v[1])), 2}, Next: last}
	first := &dl.Frame{Fn: put, Args: [12]uintptr{uintptr(unsafe.Pointer(&v[0])), 1}, Next: second}
	last.Next = third
	first.Call()
	require.Equal(t, [3]int64{1, 2, 0}, v)
	require.EqualValues(t, 5, last.Result)
	last.Args[0] = 0
	first.Call()
	require.Equal(t, [3]int64{1, 2, 3}, v)
	require.Zero(t, testing.AllocsPerRun(100, first.Call))
	v = [3]int64{}
	first.Last, second.Last = (*int32)(unsafe.Pointer(&v[2])), (*int32)(unsafe.Pointer(&v[0]))
	first.Call()
	require.Equal(t, [3]int64{1, 2, 0}, v, "what Last points to is looked at when the function has returned")
}

func TestFramesConcurrently(t *testing.T) {
	weigh := sym(t, "weigh")
	var group sync.WaitGroup
	for i := range uintptr(8) {
		group.Go(func() {
			f := &dl.Frame{Fn: weigh}
			for j := range uintptr(500) {
				f.Args = [12]uintptr{i, 11: j}
				f.Call()
				if f.Result != i+12*j {
					t.Errorf("%d and %d: %d", i, j, f.Result)
				}
				if j%100 == 0 {
					runtime.GC()
				}
			}
		})
	}
	group.Wait()
}

// C calls Go, on the thread of the call and on one of its own; Go's stack
// moves meanwhile.
func TestCallback(t *testing.T) {
	got := map[uintptr]int{}
	f := dl.Callback(func(p uintptr) { got[p] = deep(1000) })
	for i, name := range []string{"call_back", "call_on_thread"} {
		fn, p := sym(t, name), uintptr(10+i)
		r := dl.Call(fn, f, p)
		require.EqualValues(t, 7*(1-i), r)
		frame := &dl.Frame{Fn: fn, Args: [12]uintptr{f, p + 10}}
		frame.Call()
		require.EqualValues(t, 7*(1-i), frame.Result)
	}
	require.Equal(t, map[uintptr]int{10: 1000, 11: 1000, 20: 1000, 21: 1000}, got)
}

// deep recurses n times with large frames.
func deep(n int) int {
	var b [512]byte
	b[n%512] = 1
	if n == 0 {
		return int(b[1])
	}
	return deep(n-1) + int(b[n%512])
}

func BenchmarkCall(b *testing.B) {
	fn := sym(b, "weigh")
	for b.Loop() {
		dl.Call(fn, 1, 2, 3, 4)
	}
}

func BenchmarkFrame(b *testing.B) {
	f := &dl.Frame{Fn: sym(b, "weigh")}
	for b.Loop() {
		f.Call()
	}
}
