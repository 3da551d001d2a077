package gpu_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	_ "github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/ringotest"
)

// Ranks of ringotest have a GPU each, where collectives work as on host memory. The test is here and not in ringotest,
// whose test binary has no emulator.
func TestRanksWithGPUs(t *testing.T) {
	var ran atomic.Int32
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		ran.Add(1)
		t := ringotest.Of(c)
		x := []int64{int64(c.Rank()) + 1}
		require.NoError(t, ringo.AllReduce(c, x, ringo.Sum))
		require.EqualValues(t, 6, x[0])
		d := c.Device()
		require.NotNil(t, d)
		m := must.Get(d.Alloc(4))
		defer d.Free(m)
		require.NoError(t, d.Write(m, []byte{byte(c.Rank() + 1), 0, 0, 0}))
		require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: m, Out: m, Count: 1, Type: ringo.Int32}))
		require.NoError(t, c.Synchronize(0))
		got := make([]byte, 4)
		require.NoError(t, d.Read(got, m))
		require.EqualValues(t, 6, got[0])
	}, ringotest.Over(ringotest.GPU))
	require.EqualValues(t, 3, ran.Load())
}

// A failing is a test that may fail.
type failing struct {
	testing.TB // the real one
	mu         sync.Mutex
	text       strings.Builder
	failed     bool
}

func (f *failing) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(&f.text, format+"\n", args...)
}

func (f *failing) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) FailNow() { f.Fatalf("failed") }

func (f *failing) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Memory of an emulated GPU that a rank leaves behind fails its test.
func TestRanksLeaveMemory(t *testing.T) {
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ringotest.Run(f, 1, func(c *ringo.Comm) {
			_, err := c.Device().Alloc(64)
			require.NoError(f, err)
		}, ringotest.Over(ringotest.GPU))
	}()
	<-done
	require.Contains(t, f.text.String(), "emulated GPUs")
	require.True(t, f.Failed())
}
