package cudatest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

func testModules(e *env) {
	m := e.module()
	p, n, err := e.d.ModuleGetGlobal(m, "answer")
	e.noErr(err)
	require.Equal(e, 4, n)
	require.Equal(e, []uint32{42}, e.words(p, 1))
	p, n, err = e.d.ModuleGetGlobal(m, "table")
	e.noErr(err)
	require.Equal(e, 24, n)
	require.Equal(e, []uint32{0x04030201, 0x08070605, 0}, e.words(p, 3))

	_, err = e.d.ModuleGetFunction(m, "nowhere")
	e.is(err, cuda.ErrNotFound)
	require.Contains(e, err.Error(), "nowhere")
	_, _, err = e.d.ModuleGetGlobal(m, "nowhere")
	e.is(err, cuda.ErrNotFound)

	f := must.Get(e.d.ModuleGetFunction(m, "add4"))
	get := func(a cuda.FunctionAttribute) int {
		e.Helper()
		v := must.Get(e.d.FuncGetAttribute(a, f))
		return v
	}
	require.Equal(e, 1024, get(cuda.FuncMaxThreadsPerBlock))
	require.Zero(e, get(cuda.FuncSharedBytes))
	require.Zero(e, get(cuda.FuncLocalBytes))
	require.Positive(e, get(cuda.FuncRegisters))
	require.Equal(e, 70, get(cuda.FuncPTXVersion), "the architecture that it is for")

	blocks := must.Get(e.d.OccupancyMaxActiveBlocksPerMultiprocessor(f, 1024, 0))
	require.GreaterOrEqual(e, blocks, 1)
	few := must.Get(e.d.OccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 40<<10))
	many := must.Get(e.d.OccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 0))
	require.Less(e, few, many, "shared memory is bounded")

	// Two modules have variables of their own.
	again := e.module()
	q, _, err := e.d.ModuleGetGlobal(again, "answer")
	e.noErr(err)
	p, _, err = e.d.ModuleGetGlobal(m, "answer")
	e.noErr(err)
	require.NotEqual(e, p, q)
	e.put(p, 43)
	require.Equal(e, []uint32{42}, e.words(q, 1))
}

func testRefusedModules(e *env) {
	for name, c := range map[string]struct {
		ptx  string
		want []cuda.Result
		says string
	}{
		"unknown instruction": {strings.Replace(kernels, "trap;", "frobnicate.u32;", 1), []cuda.Result{cuda.ErrInvalidPTX},
			"frobnicate"},
		"unknown register": {strings.Replace(kernels, "%r1, [v]", "%r9, [v]", 1), []cuda.Result{cuda.ErrInvalidPTX},
			"%r9"},
		"future version": {strings.Replace(kernels, ".version 7.0", ".version 99.0", 1),
			[]cuda.Result{cuda.ErrUnsupportedPTXVersion, cuda.ErrInvalidPTX}, "99.0"},
		"future target": {strings.Replace(kernels, "sm_70", "sm_999", 1),
			[]cuda.Result{cuda.ErrInvalidPTX, cuda.ErrNoBinaryForGPU}, ""},
		"no PTX":  {"hello", []cuda.Result{cuda.ErrInvalidPTX, cuda.ErrInvalidImage}, ""},
		"nothing": {"", []cuda.Result{cuda.ErrInvalidPTX, cuda.ErrInvalidImage, cuda.ErrInvalidValue}, ""},
	} {
		require.NotEqual(e, kernels, c.ptx)
		_, err := e.d.ModuleLoadData([]byte(c.ptx))
		require.Error(e, err, name)
		e.is(err, c.want...)
		require.Contains(e, err.Error(), c.says, name)
	}
}
