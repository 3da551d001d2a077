package cudatest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A kernel's fault ends its context for good, so it happens in a child.
func testIllegalAddress(e *env)    { e.child("fault", "illegal") }
func testMisalignedAddress(e *env) { e.child("fault", "misaligned") }
func testTrap(e *env)              { e.child("fault", "trap") }

func childFault(e *env, arg string) {
	store, stop := e.kernelForGood("store"), e.kernelForGood("stop")
	p := must.Get(e.d.MemAlloc(64))
	var want []cuda.Result
	var err error
	switch arg {
	case "illegal":
		args := storeArgs{0x10, 1}
		err = e.d.LaunchKernel(store, &cuda.Launch{}, cuda.ArgsOf(&args))
		want = []cuda.Result{cuda.ErrIllegalAddress}
	case "misaligned":
		args := storeArgs{p + 1, 1}
		err = e.d.LaunchKernel(store, &cuda.Launch{}, cuda.ArgsOf(&args))
		want = []cuda.Result{cuda.ErrMisalignedAddress}
	case "trap": // hardware reports traps in either way
		err = e.d.LaunchKernel(stop, &cuda.Launch{}, nil)
		want = []cuda.Result{cuda.ErrLaunchFailed, cuda.ErrIllegalInstruction}
	}
	e.noErr(err)
	e.dead = true
	err = e.d.CtxSynchronize()
	e.is(err, want...)
	require.Contains(e, err.Error(), fmt.Sprintf("device %d", e.dev))
	require.Contains(e, err.Error(), "process", "the remedy: only a new process helps")
	e.is(must.Err(e.d.MemAlloc(64)), want...) // the context is dead
	e.is(e.d.MemFree(p), want...)
}

// kernelForGood is a kernel that is never unloaded: a dead context refuses that.
func (e *env) kernelForGood(name string) cuda.Function {
	e.Helper()
	m := must.Get(e.d.ModuleLoadData([]byte(kernels)))
	return must.Get(e.d.ModuleGetFunction(m, name))
}
