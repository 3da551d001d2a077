package gomlx

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/ringotest"
)

// devices is a backend whose ranks are goroutines.
func devices(t testing.TB, n int) *Backend {
	b, err := Open(t.Context(), fmt.Sprint(n), ringo.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		b.Finalize()
		require.True(t, b.IsFinalized())
	})
	return b
}

// over is a backend whose only device is the rank of c.
func over(t testing.TB, c *ringo.Comm) *Backend {
	inner, err := simplego.New(goConfig)
	require.NoError(t, err)
	b, err := New(inner, c)
	require.NoError(t, err)
	return b
}

// spmd compiles and runs a graph, for which f gets a parameter for each value of a device. values are those of device
// 0, then of device 1, and so on.
func spmd(t testing.TB, b *Backend, mesh *distributed.DeviceMesh,
	f func(d *graph.DistributedOps, in []*graph.Node) []*graph.Node, values ...any) []*tensors.Tensor {
	g := graph.NewGraph(b, t.Name())
	require.NoError(t, g.SetSPMD(mesh))
	if mesh.NumDevices() == 1 { // Graph.Run of GoMLX 0.26 has no default for a mesh of one
		require.NoError(t, g.SetDeviceAssignment([]backends.DeviceNum{0}))
	}
	in := []*graph.Node{}
	for i := range len(values) / mesh.NumDevices() {
		in = append(in, graph.Parameter(g, fmt.Sprint("in", i), tensors.FromAnyValue(values[i]).Shape()))
	}
	g.Compile(f(g.Distributed(), in)...)
	defer g.Finalize()
	return g.Run(values...)
}

// All reductions of GoMLX, of all types of Ringo.
func TestAllReduce(t *testing.T) {
	b := devices(t, 3)
	for _, tc := range []struct {
		op           backends.ReduceOpType
		ranks        []any
		want         any
		differently  []any
		wantOfOthers any
	}{
		{backends.ReduceOpSum, []any{float32(1), float32(2), float32(4)}, float32(7), []any{[]int8{1}, []int8{2}, []int8{3}},
			[]int8{6}},
		{backends.ReduceOpProduct, []any{[]float64{3, 1}, []float64{5, 2}, []float64{7, 3}}, []float64{105, 6},
			[]any{uint8(2), uint8(3), uint8(4)}, uint8(24)},
		{backends.ReduceOpMax, []any{[]int32{-3}, []int32{-1}, []int32{-2}}, []int32{-1},
			[]any{[]bool{true, false}, []bool{false, false}, []bool{false, false}}, []bool{true, false}},
		{backends.ReduceOpMin, []any{[]uint64{3}, []uint64{1 << 63}, []uint64{9}}, []uint64{3},
			[]any{[]bool{true, false}, []bool{true, true}, []bool{true, true}}, []bool{true, false}},
		{backends.ReduceOpSum, []any{int64(1 << 40), int64(1), int64(-2)}, int64(1<<40 - 1),
			[]any{uint32(1), uint32(2), uint32(1 << 31)}, uint32(3 + 1<<31)},
		{backends.ReduceOpSum, []any{bfloat16.FromFloat32(1.5), bfloat16.FromFloat32(2), bfloat16.FromFloat32(-8)},
			bfloat16.FromFloat32(-4.5),
			[]any{[][]float32{{1, 2}, {3, 4}}, [][]float32{{1, 2}, {3, 4}}, [][]float32{{1, 2}, {3, 4}}},
			[][]float32{{3, 6}, {9, 12}}},
	} {
		var values []any
		for r := range tc.ranks {
			values = append(values, tc.ranks[r], tc.differently[r])
		}
		outs := spmd(t, b, b.Mesh(),
			func(d *graph.DistributedOps, in []*graph.Node) []*graph.Node { return d.AllReduce(in, tc.op) }, values...)
		require.Len(t, outs, 6)
		for i, out := range outs {
			require.Equal(t, []any{tc.want, tc.wantOfOthers}[i%2], out.Value(), "%s, output %d", tc.op, i)
			device, err := out.Device()
			require.NoError(t, err)
			require.Equal(t, backends.DeviceNum(i/2), device)
		}
	}
}

// Collectives along axes of a mesh.
func TestAlong(t *testing.T) {
	b := devices(t, 6)
	mesh, err := distributed.NewDeviceMesh([]int{2, 3}, []string{"data", "model"})
	require.NoError(t, err)
	along := func(axes ...string) (got []any) {
		outs := spmd(t, b, mesh, func(d *graph.DistributedOps, in []*graph.Node) []*graph.Node {
			return []*graph.Node{d.Along(axes...).AllReduceOne(in[0], backends.ReduceOpSum)}
		}, int32(1), int32(2), int32(4), int32(8), int32(16), int32(32))
		for _, o := range outs {
			got = append(got, o.Value())
		}
		return got
	}
	all := int32(63)
	for range 2 { // the second time the groups have their communicators
		require.Equal(t, []any{int32(9), int32(18), int32(36), int32(9), int32(18), int32(36)}, along("data"))
		require.Equal(t, []any{int32(7), int32(7), int32(7), int32(56), int32(56), int32(56)}, along("model"))
		require.Equal(t, []any{all, all, all, all, all, all}, along("data", "model"))
	}
}

// Ranks that share nothing but a communicator, as processes do.
func TestRanks(t *testing.T) {
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		b := over(t, c)
		require.Contains(t, b.Description(), fmt.Sprintf("rank %d of 3", c.Rank()))
		outs := spmd(t, b, b.Mesh(), func(d *graph.DistributedOps, in []*graph.Node) []*graph.Node {
			sum := d.AllReduceOne(in[0], backends.ReduceOpSum)
			return []*graph.Node{sum, graph.Mul(sum, in[0])}
		}, []float32{float32(c.Rank() + 1), 10})
		require.Equal(t, []float32{6, 30}, outs[0].Value())
		require.Equal(t, []float32{6 * float32(c.Rank()+1), 300}, outs[1].Value())
	}, ringotest.Over(ringotest.Inproc, ringotest.TCP), ringotest.Leaks(false)) // simplego's pool ends with its last task
}

// Random programs have the results of the same operations on a table of integers, wherever collectives cut them.
func TestRandomPrograms(t *testing.T) {
	const ranks, width = 3, 5
	b := devices(t, ranks)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		type vector = [width]int64
		var want [][ranks]vector // by op
		var nodes []*graph.Node
		params := 1 + rng.IntN(4)
		inputs := make([][]int64, ranks*params)
		g := graph.NewGraph(b, fmt.Sprint("seed ", seed))
		require.NoError(t, g.SetSPMD(b.Mesh()))
		made := 0
		parameter := func() {
			var v [ranks]vector
			for r := range ranks {
				for i := range width {
					v[r][i] = rng.Int64N(2000) - 1000
				}
				inputs[r*params+made] = v[r][:]
			}
			nodes = append(nodes, graph.Parameter(g, fmt.Sprint("p", made), shapes.Make(dtypes.Int64, width)))
			want = append(want, v)
			made++
		}
		parameter()
		for range 5 + rng.IntN(25) {
			x, y := rng.IntN(len(nodes)), rng.IntN(len(nodes))
			var v [ranks]vector
			switch kind := rng.IntN(8); {
			case kind == 0 && made < params: // parameters may come late, as an optimizer's variables do
				parameter()
				continue
			case kind == 1:
				k := rng.Int64N(9)
				nodes = append(nodes, graph.Const(g, []int64{k, k, k, k, 1}))
				for r := range ranks {
					v[r] = vector{k, k, k, k, 1}
				}
			case kind == 2:
				nodes = append(nodes, graph.Neg(nodes[x]))
				for r := range ranks {
					for i := range width {
						v[r][i] = -want[x][r][i]
					}
				}
			case kind <= 4: // one or two operands, which may be the same
				sums := g.Distributed().AllReduce([]*graph.Node{nodes[x], nodes[y]}, backends.ReduceOpSum)
				for k, at := range []int{x, y} {
					var v [ranks]vector
					for r := range ranks {
						for other := range ranks {
							for i := range width {
								v[r][i] += want[at][other][i]
							}
						}
					}
					nodes, want = append(nodes, sums[k]), append(want, v)
				}
				continue
			default:
				nodes = append(nodes, graph.Sub(nodes[x], nodes[y]))
				for r := range ranks {
					for i := range width {
						v[r][i] = want[x][r][i] - want[y][r][i]
					}
				}
			}
			want = append(want, v)
		}
		for made < params {
			parameter()
		}
		var outs []int
		var outNodes []*graph.Node
		for range 1 + rng.IntN(4) {
			k := rng.IntN(len(nodes))
			outs, outNodes = append(outs, k), append(outNodes, nodes[k])
		}
		g.Compile(outNodes...)
		for range 2 { // the second run may get memory that the first has freed
			args := make([]any, len(inputs))
			for i, in := range inputs {
				args[i] = in
			}
			for i, got := range g.Run(args...) {
				r, k := i/len(outs), outs[i%len(outs)]
				require.Equal(t, want[k][r][:], got.Value(), "seed %d, rank %d, op %d", seed, r, k)
			}
		}
		g.Finalize()
	}
}

// Programs that are built without GoMLX's graphs can use AllGather and CollectiveBroadcast.
func TestGatherAndBroadcast(t *testing.T) {
	b := devices(t, 4)
	run := func(build func(c Collectives, x backends.Op) backends.Op) (got []any) {
		p := b.Builder(t.Name())
		require.NoError(t, p.DistributedSPMD(4))
		shape := shapes.Make(dtypes.Float32, 2, 2)
		x, err := p.Parameter("x", shape, nil)
		require.NoError(t, err)
		e, err := p.Compile([]backends.Op{build(p.(Collectives), x)}, nil)
		require.NoError(t, err)
		defer e.Finalize()
		var ins []backends.Buffer
		for d := range 4 {
			in, err := b.BufferFromFlatData(backends.DeviceNum(d), []float32{float32(d), float32(d) + 0.5, float32(-d), 9},
				shape)
			require.NoError(t, err)
			ins = append(ins, in)
		}
		outs, err := e.Execute(ins, nil, 0)
		require.NoError(t, err)
		for _, o := range outs {
			x, err := tensors.FromBuffer(b, o)
			require.NoError(t, err)
			got = append(got, x.Value())
		}
		return got
	}
	gather := func(axis int, groups [][]int) []any {
		return run(func(c Collectives, x backends.Op) backends.Op {
			outs, err := c.AllGather([]backends.Op{x}, axis, groups)
			require.NoError(t, err)
			return outs[0]
		})
	}
	rows := [][]float32{{0, 0.5}, {0, 9}, {1, 1.5}, {-1, 9}, {2, 2.5}, {-2, 9}, {3, 3.5}, {-3, 9}}
	row := [][]float32{{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}, {0, 9, -1, 9, -2, 9, -3, 9}}
	require.Equal(t, []any{rows, rows, rows, rows}, gather(0, nil))
	require.Equal(t, []any{row, row, row, row}, gather(1, nil))
	left, right := [][]float32{{2, 2.5, 0, 0.5}, {-2, 9, 0, 9}}, [][]float32{{1, 1.5, 3, 3.5}, {-1, 9, -3, 9}}
	require.Equal(t, []any{left, right, left, right}, gather(1, [][]int{{2, 0}, {1, 3}})) // in the group's order
	zero := [][]float32{{0, 0}, {0, 0}}
	require.Equal(t, []any{rows[6:], zero, rows[4:6], rows[6:]}, run(func(c Collectives, x backends.Op) backends.Op {
		out, err := c.CollectiveBroadcast(x, [][]int{{3, 0}, {2}})
		require.NoError(t, err)
		return out
	}))
}

// An output may be there twice, be the same value under another op, an input, a constant, or a collective's result.
func TestOutputs(t *testing.T) {
	b := devices(t, 2)
	p := b.Builder(t.Name())
	require.NoError(t, p.DistributedSPMD(2))
	shape := shapes.Make(dtypes.Int32, 1)
	x, k := first(p.Parameter("x", shape, nil)), first(p.Constant([]int32{5}, 1))
	y := first(p.Neg(x))
	same := first(p.ConvertDType(y, dtypes.Int32)) // the backend in pure Go gives y back
	again := first(p.ConvertDType(y, dtypes.Int32))
	sum := first(p.AllReduce([]backends.Op{y}, backends.ReduceOpSum, nil))[0]
	e := first(p.Compile([]backends.Op{y, same, again, y, x, x, k, k, sum, sum}, nil))
	for _, donate := range []bool{false, true} {
		in := []backends.Buffer{first(b.BufferFromFlatData(0, []int32{1}, shape)),
			first(b.BufferFromFlatData(1, []int32{2}, shape))}
		outs := first(e.Execute(in, []bool{donate, donate}, 0))
		for d := range 2 {
			n := int32(d + 1)
			for i, want := range []int32{-n, -n, -n, -n, n, n, 5, 5, -3, -3} {
				got := first(b.BufferData(outs[10*d+i])).([]int32)
				require.Equal(t, []int32{want}, got, "output %d", i)
				got[0] = 77 // no other output shares its memory
			}
			if !donate {
				require.Equal(t, []int32{n}, first(b.BufferData(in[d])))
			}
		}
	}
}

// Ranks whose programs differ get ErrMismatch, from which Recover does not go on.
func TestProgramsDiffer(t *testing.T) {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		b := over(t, c)
		p := b.Builder(t.Name())
		shape := shapes.Make(dtypes.Float64, 2+c.Rank())
		x := first(p.Parameter("x", shape, nil))
		e := first(p.Compile(first(p.AllReduce([]backends.Op{x}, backends.ReduceOpSum, nil)), nil))
		in := first(b.BufferFromFlatData(0, make([]float64, shape.Size()), shape))
		_, err := e.Execute([]backends.Buffer{in}, nil, 0)
		require.ErrorIs(t, err, ringo.ErrMismatch)
		require.ErrorContains(t, err, "rank 0 calls AllReduce #1 (count 2, float64, sum)")
		require.ErrorContains(t, err, "rank 1 calls AllReduce #1 (count 3, float64, sum)")
		step, again := b.Recover(t.Context(), mlctx.New(), 3, err)
		require.Zero(t, step)
		require.Equal(t, err, again)
	}, ringotest.Leaks(false))
}

// The shape of a program with AllGather depends on the number of ranks. After a rank has left, it fails and says that
// it must be built anew. A program with AllReduce stays good.
func TestProgramOfMoreRanks(t *testing.T) {
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		b := over(t, c)
		shape := shapes.Make(dtypes.Int32, 1)
		build := func(f func(c Collectives, x []backends.Op) ([]backends.Op, error)) func() (any, error) {
			p := b.Builder(t.Name())
			x := first(p.Parameter("x", shape, nil))
			e := first(p.Compile(first(f(p.(Collectives), []backends.Op{x})), nil))
			return func() (any, error) {
				in := first(b.BufferFromFlatData(0, []int32{int32(c.Rank() + 1)}, shape))
				outs, err := e.Execute([]backends.Buffer{in}, nil, 0)
				if err != nil {
					return nil, err
				}
				return b.BufferData(outs[0])
			}
		}
		gather := build(func(c Collectives, x []backends.Op) ([]backends.Op, error) { return c.AllGather(x, 0, nil) })
		sum := build(func(c Collectives, x []backends.Op) ([]backends.Op, error) {
			return c.AllReduce(x, backends.ReduceOpSum, nil)
		})
		require.Equal(t, []int32{1, 2, 3}, first(gather()))
		require.Equal(t, []int32{6}, first(sum()))
		require.NoError(t, ringo.Barrier(c)) // or rank 2 would leave before others have their sum
		if c.Rank() == 2 {
			require.NoError(t, b.Close())
			return
		}
		require.NoError(t, b.Shrink(t.Context()))
		_, err := gather()
		require.ErrorIs(t, err, ringo.ErrInvalid)
		require.ErrorContains(t, err, "the program was built for 3 ranks, now there are 2; build it anew")
		require.Equal(t, []int32{3}, first(sum()))
		require.NoError(t, b.Close())
	}, ringotest.Leaks(false))
}

// Building a program fails for operations that are not supported, with an error to branch on.
func TestRefused(t *testing.T) {
	b := devices(t, 2)
	build := func() (backends.Builder, backends.Op) {
		p := b.Builder("p")
		require.NoError(t, p.DistributedSPMD(2))
		x, err := p.Parameter("x", shapes.Make(dtypes.Int16, 2), nil)
		require.NoError(t, err)
		return p, x
	}
	p, x := build()
	_, strange := build()
	for _, tc := range []struct {
		what string
		err  error
		is   error
		says string
	}{
		{"type", second(p.AllReduce([]backends.Op{x}, backends.ReduceOpSum, nil)), ringo.ErrUnsupported,
			"operand 0: nothing reduces Int16 by Sum here; ConvertDType first"},
		{"reduction", second(p.AllReduce([]backends.Op{x}, backends.ReduceOpUndefined, nil)), ringo.ErrInvalid,
			"none of Sum"},
		{"groups", second(p.AllReduce([]backends.Op{x}, backends.ReduceOpSum, [][]int{{0, 0}})), ringo.ErrInvalid,
			"each of devices 0 to 1 once"},
		{"too few", second(p.AllReduce([]backends.Op{x}, backends.ReduceOpSum, [][]int{{1}})), ringo.ErrInvalid,
			"leave out some"},
		{"uneven", second(b.Builder("q").(Collectives).AllGather(nil, 0, [][]int{{0}})), ringo.ErrUnsupported,
			"a program of 1 of 2 devices cannot communicate"},
		{"axis", second(p.(Collectives).AllGather([]backends.Op{x}, 1, nil)), ringo.ErrInvalid, "axis 1 of"},
		{"op of another", second(p.Neg(strange)), ringo.ErrInvalid, `operand 0 (*gomlx.op) is not of program "p"`},
		{"sharding", p.DistributedAutoSharding(), ringo.ErrUnsupported, "use SPMD"},
		{"too many", p.DistributedSPMD(3), ringo.ErrInvalid, "this process has 2"},
		{"assignment", p.DeviceAssignment(1, 1), ringo.ErrInvalid, "different ones"},
		{"short assignment", p.DeviceAssignment(1), ringo.ErrInvalid, "1 devices for a program of 2"},
		{"shape of another", second(p.OpShape(strange)), ringo.ErrInvalid, "not of program"},
		{"constant", second(p.Constant(3)), ringo.ErrInvalid, "want a slice"},
		{"parameter", second(p.Parameter("c", shapes.Make(dtypes.Complex64), nil)), ringo.ErrUnsupported,
			`"c": the backend below has no type Complex64`},
		{"output", second(p.Compile(nil, nil)), ringo.ErrInvalid, "no output"},
		{"shrink", b.Shrink(t.Context()), ringo.ErrUnsupported, "all 2 ranks are this process"},
		{"no communicator", second(New(simplego.GetBackend())), ringo.ErrInvalid, "no communicator"},
		{"half of a communicator", second(New(simplego.GetBackend(), b.Comm(1), b.Comm(0))), ringo.ErrInvalid,
			"in their order"},
		{"below", second(New(nil, b.Comm(0))), ringo.ErrUnsupported, "simplego"},
		{"devices", second(backends.NewWithConfig("ringo:many")), ringo.ErrInvalid, `"many" is no number of devices`},
	} {
		require.ErrorIs(t, tc.err, tc.is, tc.what)
		require.ErrorContains(t, tc.err, tc.says, tc.what)
	}
	e, err := p.Compile([]backends.Op{x}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, second(p.Neg(x)), ringo.ErrInvalid, "it is compiled")
	here, err := b.BufferFromFlatData(0, []int16{1, 2}, shapes.Make(dtypes.Int16, 2))
	require.NoError(t, err)
	long, err := b.BufferFromFlatData(1, []int16{1, 2, 3}, shapes.Make(dtypes.Int16, 3))
	require.NoError(t, err)
	require.ErrorContains(t, second(e.Execute([]backends.Buffer{here}, nil, 0)), "1 inputs")
	require.ErrorContains(t, second(e.Execute([]backends.Buffer{here, here}, nil, 0)),
		`input 0 ("x") is on device 0, the program runs on 1`)
	require.ErrorContains(t, second(e.Execute([]backends.Buffer{here, long}, nil, 0)), "want (Int16)[2]")
	require.ErrorContains(t, second(e.Execute([]backends.Buffer{here, 7}, nil, 0)), "is int")
	require.NoError(t, b.BufferFinalize(long))
	require.ErrorIs(t, b.BufferFinalize(long), ringo.ErrInvalid)
	e.Finalize()
	require.ErrorContains(t, second(e.Execute([]backends.Buffer{here, here}, nil, 0)), "has ended")
	require.ErrorIs(t, second(b.BufferFromFlatData(2, []int16{1}, shapes.Make(dtypes.Int16, 1))), ringo.ErrInvalid)
}

func second[T any](_ T, err error) error { return err }

// Buffers go from device to device.
func TestCopyToDevice(t *testing.T) {
	b := devices(t, 2)
	c, err := b.BufferCopyToDevice(first(b.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 1))), 1)
	require.NoError(t, err)
	require.Equal(t, backends.DeviceNum(1), first(b.BufferDeviceNum(c)))
	require.Equal(t, []float32{1}, first(b.BufferData(c)))
}

func first[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// GoMLX makes the backend by its name.
func TestByName(t *testing.T) {
	t.Setenv(backends.ConfigEnvVar, "ringo:2")
	x, err := backends.New()
	require.NoError(t, err)
	defer x.Finalize()
	require.Equal(t, 2, x.NumDevices())
	require.Equal(t, "rank 1 of 2", x.DeviceDescription(1))
	require.True(t, x.Capabilities().Operations[backends.OpTypeAllReduce])
	e := graph.MustNewExec(x, func(x *graph.Node) *graph.Node { return graph.Neg(x) })
	for d := range 2 { // without a mesh a program runs on any device, and needs no other
		outs, err := e.ExecOnDevice(backends.DeviceNum(d), []float32{1, 2})
		require.NoError(t, err)
		require.Equal(t, []float32{-1, -2}, outs[0].Value())
	}
}
