package device

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// regions are of device 3, n bytes each.
func regions(n int, at ...uintptr) []mem.Region {
	var r []mem.Region
	for _, p := range at {
		r = append(r, mem.Device(3, p, n))
	}
	return r
}

func TestArguments(t *testing.T) {
	f := &fake{capability: 90}
	c, err := New(f, 1, 5)
	require.NoError(t, err)
	at := func(n int, p uintptr) mem.Region { return mem.Device(3, p, n) }
	good := regions(64, 0x2000)
	tests := []struct {
		name string
		args Args
		want string
	}{
		{"no source", Args{Dst: at(64, 0x1000)}, "srcs: 0 sources, want 1 to 8"},
		{"nine sources", Args{Dst: at(64, 0x1000), Srcs: make([]mem.Region, 9)}, "srcs: 9 sources, want 1 to 8"},
		{"null dst", Args{Dst: at(64, 0), Srcs: good}, "dst: null"},
		{"null source", Args{Dst: at(64, 0x1000), Srcs: regions(64, 0x2000, 0)}, "srcs[1]: null"},
		{"host", Args{Dst: at(64, 0x1000), Srcs: []mem.Region{mem.Host(make([]byte, 64))}},
			"srcs[0]: host memory: register it and pass its device pointer"},
		{"foreign", Args{Dst: mem.Device(4, 0x1000, 64), Srcs: good},
			"dst: memory of device 4, which device 3 does not reach: enable peer access"},
		{"lengths", Args{Dst: at(64, 0x1000), Srcs: regions(60, 0x2000)}, "srcs[0]: 60 bytes, but dst has 64"},
		{"half an element", Args{Dst: at(62, 0x1000), Srcs: regions(62, 0x2000)},
			"dst: 62 bytes are no whole number of elements of 4"},
		{"alignment", Args{Dst: at(64, 0x1002), Srcs: good}, "dst: address 0x1002 is no multiple of the element's 4 bytes"},
		{"overlap", Args{Dst: at(64, 0x2004), Srcs: good}, "srcs[0]: it overlaps dst without starting at the same byte"},
		{"end of memory", Args{Dst: at(64, ^uintptr(31)), Srcs: good},
			"dst: 64 bytes from 0xffffffffffffffe0 exceed the address space"},
		{"contributions", Args{Dst: at(64, 0x1000), Srcs: good, Contributions: 2},
			"contributions: 0x2 names more than 1 sources"},
		{"scalar of sum", Args{Dst: at(64, 0x1000), Srcs: good, Scalar: 0x3000}, "scalar: only premulsum has one"},
	}
	k, err := c.Kernel(reducer(t, kernels.Int32, kernels.Sum, 2))
	require.NoError(t, err)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := k.Launch(0, &test.args)
			var wrong *ArgumentError
			require.ErrorAs(t, err, &wrong)
			require.EqualError(t, err, "device: int32_sum_sm_70: "+test.want)
		})
	}
	require.Zero(t, f.launches)

	k, err = c.Kernel(reducer(t, kernels.Int32, kernels.PreMulSum(2), 2))
	require.NoError(t, err)
	err = k.Launch(0, &Args{Dst: at(64, 0x1000), Srcs: good, Scalar: 0x3002})
	require.EqualError(t, err,
		"device: int32_premulsum_sm_70: scalar: address 0x3002 is no multiple of the element's 4 bytes")

	require.NoError(t, k.Launch(0, &Args{Dst: at(0, 0), Srcs: regions(0, 0)}), "nothing to do")
	require.Zero(t, f.launches)
	require.NoError(t, k.Launch(0, &Args{Dst: at(64, 0x1000), Srcs: []mem.Region{mem.Device(5, 0x1000, 64)}}),
		"in place, a peer")
	require.Equal(t, 1, f.launches)
}

func TestLaunch(t *testing.T) {
	require.EqualValues(t, 120, unsafe.Sizeof(args{}), "as in combine.cu")
	f := &fake{capability: 90}
	c, err := New(f, 1)
	require.NoError(t, err)
	tests := []struct {
		name           string
		t              kernels.DataType
		op             kernels.RedOp
		bytes          int
		at             []uintptr // dst and srcs
		blocks, blockX uint32
		want           args
	}{
		{"one element", kernels.Float32, kernels.Sum, 4, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 1, k: 1}},
		{"vectors", kernels.BFloat16, kernels.Sum, 64 << 10, []uintptr{0x100000, 0x200000, 0x300000}, 10, 416,
			args{count: 32 << 10, k: 2}},
		{"few vectors", kernels.Uint8, kernels.Sum, 2080, []uintptr{0x100000, 0x200000}, 2, 128,
			args{count: 2080, k: 1}},
		{"vectors of long elements", kernels.Float64, kernels.Sum, 2048, []uintptr{0x100000, 0x200000}, 1, 128,
			args{count: 256, k: 1}},
		{"many vectors", kernels.BFloat16, kernels.Sum, 1 << 30, []uintptr{1 << 32, 2 << 32, 3 << 32}, 20, 512,
			args{count: 1 << 29, k: 2}},
		{"elements", kernels.BFloat16, kernels.Sum, 8 << 10, []uintptr{0x100000, 0x200002}, 10, 416,
			args{count: 4 << 10, k: 1}},
		{"average of integers", kernels.Int8, kernels.Avg, 16, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 16, k: 1, value: 1 << 62, finish: 1}},
		{"average of long integers", kernels.Uint64, kernels.Avg, 16, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 2, k: 1, value: 4, finish: 1}},
		{"average of floats", kernels.BFloat16, kernels.Avg, 16, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 8, k: 1, value: 0x3e800000, scaled: 1}},
		{"average of float64", kernels.Float64, kernels.Avg, 16, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 2, k: 1, value: 0x3fd0000000000000, scaled: 1}},
		{"scalar of integers", kernels.Int64, kernels.PreMulSum(-2), 16, []uintptr{0x1000, 0x2000}, 1, 32,
			args{count: 2, k: 1, value: 1<<64 - 2, scaled: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k, err := c.Kernel(reducer(t, test.t, test.op, 4))
			require.NoError(t, err)
			r := regions(test.bytes, test.at...)
			a := Args{Dst: r[0], Srcs: r[1:], Contributions: 1, Finish: true}
			require.NoError(t, k.Launch(7, &a))
			test.want.dst = uint64(test.at[0])
			for i, p := range test.at[1:] {
				test.want.src[i] = uint64(p)
			}
			require.Equal(t, test.want, f.args)
			require.Equal(t, cuda.Launch{Grid: cuda.Dim3{X: test.blocks}, Block: cuda.Dim3{X: test.blockX}, Stream: 7}, f.launch)
		})
	}
}

// quiet is a fake that does not look at its launches.
type quiet struct{ fake }

func (*quiet) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return nil }

func TestLaunchAllocates(t *testing.T) {
	c, err := New(&quiet{fake{capability: 90}}, 1)
	require.NoError(t, err)
	k, err := c.Kernel(reducer(t, kernels.Float32, kernels.Avg, 2))
	require.NoError(t, err)
	r := regions(1<<20, 1<<32, 2<<32, 3<<32)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		err = k.Launch(0, &Args{Dst: r[0], Srcs: r[1:], Contributions: 3, Finish: true})
	}))
	require.NoError(t, err)
}

func BenchmarkLaunchChecks(b *testing.B) {
	c, err := New(&quiet{fake{capability: 90}}, 1)
	require.NoError(b, err)
	k, err := c.Kernel(reducer(b, kernels.Float32, kernels.Sum, 2))
	require.NoError(b, err)
	r := regions(1<<20, 1<<32, 2<<32, 3<<32)
	a := Args{Dst: r[0], Srcs: r[1:]}
	for b.Loop() {
		_ = k.Launch(0, &a)
	}
}
