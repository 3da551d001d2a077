package cudaemu_test

import (
	"fmt"
	"runtime"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// A kernel that writes after the end of its memory: on hardware it may well go
// unnoticed, as the next page belongs to somebody.
func Example() {
	m, err := cudaemu.New(cudaemu.Config{Lazy: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	runtime.LockOSThread() // the current context belongs to the thread
	defer runtime.UnlockOSThread()
	ctx, _ := m.DevicePrimaryCtxRetain(0)
	m.CtxSetCurrent(ctx)

	p, _ := m.MemAlloc(100)
	module, _ := m.ModuleLoadData([]byte(ptxText))
	store, _ := m.ModuleGetFunction(module, "store")
	args := struct {
		p uintptr
		v uint32
	}{p + 100, 1}
	m.LaunchKernel(store, &cuda.Launch{}, cuda.ArgsOf(&args))
	fmt.Println(m.CtxSynchronize() != nil)
	for _, f := range m.Reports() {
		fmt.Println(f.Kind, "by thread", f.Thread, "of kernel", f.Kernel)
	}
	// Output:
	// true
	// out of bounds by thread [0 0 0] of kernel store
}
