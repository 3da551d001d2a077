//go:build !race

package cudaemu_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// TestIdle burns no time when there is nothing to do, and little when everything
// waits. The race detector makes a kernel's looks ten times slower.
func TestIdle(t *testing.T) {
	e := start(t, cudaemu.Config{})
	g := e.gate()
	launch(e, "await", 0, &waitArgs{address(g)})
	time.Sleep(100 * time.Millisecond)
	before := processTime(t)
	time.Sleep(200 * time.Millisecond)
	require.Less(t, processTime(t)-before, 150*time.Millisecond, "a kernel polls")
	g.Store(1)
	e.ok(e.CtxSynchronize())
	before = processTime(t)
	time.Sleep(100 * time.Millisecond)
	require.Less(t, processTime(t)-before, 20*time.Millisecond, "nothing to do")
}
