package gomlx

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/ringotest"
)

const rows, features = 12, 3

// lines are a rank's points of a batch, with different points for each step: y is linear in x.
func lines(step, rank, ranks int) (x, y *tensors.Tensor) {
	n := rows / ranks
	xs, ys := make([]float32, n*features), make([]float32, n)
	for i := range n {
		row := float32(step*rows + rank*n + i)
		for k := range features {
			xs[i*features+k] = float32(int(row*7+float32(k)*5)%11) - 5
			ys[i] += float32(k+1) * xs[i*features+k]
		}
		ys[i] += 2
	}
	return tensors.FromFlatDataAndDimensions(xs, n, features), tensors.FromFlatDataAndDimensions(ys, n, 1)
}

// Adam has variables of its own, but hardly depends on the size of gradients. SGD depends on it, and has none.
func adam() optimizers.Interface { return optimizers.Adam().LearningRate(0.05).Done() }
func sgd() optimizers.Interface {
	return optimizers.StochasticGradientDescent().WithLearningRate(0.01).WithDecay(false).Done()
}

// linear is a model and its trainer.
func linear(t testing.TB, b *Backend, optimizer func() optimizers.Interface) (*mlctx.Context, *train.Trainer) {
	model := mlctx.New().Checked(false)
	o, err := DataParallel(optimizer())
	require.NoError(t, err)
	trainer := train.NewTrainer(b, model, func(ctx *mlctx.Context, _ any, in []*graph.Node) []*graph.Node {
		return []*graph.Node{layers.Dense(ctx, in[0], true, 1)}
	}, losses.MeanSquaredError, o, nil, nil)
	b.Distribute(trainer)
	return model, trainer
}

// weights are all trainable numbers of a model.
func weights(t testing.TB, model *mlctx.Context) (all []float32) {
	for v := range model.IterVariables() {
		if v.Trainable {
			value, err := v.Value()
			require.NoError(t, err)
			all = append(all, tensors.MustCopyFlatData[float32](value)...)
		}
	}
	return all
}

// alone is the weights that one rank learns from whole batches.
func alone(t testing.TB, steps int, optimizer func() optimizers.Interface) []float32 {
	b := devices(t, 1)
	model, trainer := linear(t, b, optimizer)
	require.NoError(t, model.SetRNGStateFromSeed(7))
	for step := range steps {
		x, y := lines(step, 0, 1)
		_, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
		require.NoError(t, err)
	}
	return weights(t, model)
}

// Ranks learn the same weights from their parts of batches as one rank from whole batches.
func TestTrainRanks(t *testing.T) {
	for _, optimizer := range []func() optimizers.Interface{adam, sgd} {
		const steps = 20
		want := alone(t, steps, optimizer)
		ringotest.Run(t, 3, func(c *ringo.Comm) {
			b := over(t, c)
			model, trainer := linear(t, b, optimizer)
			if c.Rank() == 0 {
				require.NoError(t, model.SetRNGStateFromSeed(7))
			}
			step, err := b.Agree(model, 0) // the others get the seed of rank 0
			require.NoError(t, err)
			require.Zero(t, step)
			for step := range steps {
				x, y := lines(step, c.Rank(), c.Size())
				_, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
				require.NoError(t, err)
			}
			got := weights(t, model)
			require.InDeltaSlice(t, want, got, 1e-4)
			all := make([]float32, len(got)*c.Size())
			require.NoError(t, ringo.AllGather(c, all, got))
			for r := range c.Size() {
				require.Equal(t, got, all[r*len(got):(r+1)*len(got)], "the same bits on rank %d", r)
			}
		}, ringotest.Leaks(false))
	}
}

// GoMLX's own distributed step learns the same on devices that are goroutines.
func TestTrainDevices(t *testing.T) {
	const steps = 20
	want := alone(t, steps, sgd)
	b := devices(t, 3)
	model, trainer := linear(t, b, sgd)
	require.NoError(t, model.SetRNGStateFromSeed(7))
	spec, err := distributed.BuildSpec(b.Mesh()).S("replica").R().Done()
	require.NoError(t, err)
	for step := range steps {
		x, y := lines(step, 0, 1)
		dx, err := distributed.ShardTensor(spec, x)
		require.NoError(t, err)
		dy, err := distributed.ShardTensor(spec, y)
		require.NoError(t, err)
		_, err = trainer.DistributedTrainStep(distributed.SPMD, nil, nil, []*distributed.Tensor{dx},
			[]*distributed.Tensor{dy})
		require.NoError(t, err)
	}
	for v := range model.IterVariables() {
		if v.Trainable {
			d, err := v.DistributedValue()
			require.NoError(t, err)
			shards := d.Shards()
			require.Len(t, shards, 3)
			for _, s := range shards[1:] {
				require.True(t, shards[0].Equal(s), "%s: the same bits", v.ScopeAndName())
			}
		}
	}
	require.InDeltaSlice(t, want, weights(t, model), 1e-4)
}

// A rank dies in the middle of a step. The others go on as if they had been alone from the start.
func TestRecover(t *testing.T) {
	for _, dies := range []int{0, 8} {
		const steps = 16
		want := alone(t, steps, sgd)
		ringotest.Run(t, 4, func(c *ringo.Comm) {
			b := over(t, c)
			model, trainer := linear(t, b, sgd)
			require.NoError(t, model.SetRNGStateFromSeed(7))
			step, failed := b.Agree(model, 0)
			for step < steps || failed != nil {
				if failed != nil { // Agree may fail too, if rank 1 was done with it before others
					require.ErrorIs(t, failed, ringo.ErrPeer)
					require.ErrorContains(t, failed, "rank 1")
					var err error
					step, err = b.Recover(t.Context(), model, step, failed)
					require.NoError(t, err)
				}
				if c.Rank() == 1 && step == dies {
					ringotest.Of(c).Kill()
				}
				comm := b.Comm(0)
				x, y := lines(step, comm.Rank(), comm.Size())
				if _, failed = trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y}); failed == nil {
					step++
				}
			}
			require.Equal(t, 3, b.Comm(0).Size())
			require.InDeltaSlice(t, want, weights(t, model), 1e-3)
			require.NoError(t, ringo.Barrier(b.Comm(0)))
			require.NoError(t, b.Close())
		}, ringotest.Faults(), ringotest.Leaks(false))
	}
}

// A new rank, and one that is behind, get the newest model.
func TestAgree(t *testing.T) {
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		b := over(t, c)
		model := mlctx.New().Checked(false)
		value := func(name string, x any) { model.In("scope").VariableWithValue(name, x) }
		step := 0
		switch c.Rank() {
		case 1: // the newest
			step = 5
			value("x", []float32{1, 2})
			value("flag", true)
			model.GetVariableByScopeAndName("/scope", "flag").SetTrainable(false)
		case 2: // behind
			step = 4
			value("x", []float32{3, 4})
		}
		step, err := b.Agree(model, step)
		require.NoError(t, err)
		require.Equal(t, 5, step)
		x, flag := model.GetVariableByScopeAndName("/scope", "x"), model.GetVariableByScopeAndName("/scope", "flag")
		require.Equal(t, []float32{1, 2}, x.MustValue().Value())
		require.Equal(t, true, flag.MustValue().Value())
		require.True(t, x.Trainable)
		require.False(t, flag.Trainable)

		built := mlctx.New().Checked(false) // more variables after the same steps: this rank has built its program
		if c.Rank() == 2 {
			built.VariableWithValue("z", int64(9))
		}
		step, err = b.Agree(built, 0)
		require.NoError(t, err)
		require.Zero(t, step)
		require.EqualValues(t, 9, built.GetVariableByScopeAndName("/", "z").MustValue().Value())

		other := mlctx.New().Checked(false)
		other.VariableWithValue("y", make([]int32, 2+c.Rank()/2))
		_, err = b.Agree(other, 9)
		if c.Rank() == 2 {
			require.ErrorIs(t, err, ringo.ErrMismatch)
			require.ErrorContains(t, err, "variable /y is (Int32)[3], rank 0 has it as (Int32)[2]")
		} else {
			require.NoError(t, err)
		}
		_, err = b.Agree(model, -1)
		require.ErrorIs(t, err, ringo.ErrInvalid)
	}, ringotest.Leaks(false))
}

// A rank that comes in the middle of the training goes on learning with the others.
func TestGrow(t *testing.T) {
	const steps = 12
	want := alone(t, steps, sgd)
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	learn := func(t testing.TB, b *Backend, model *mlctx.Context, trainer *train.Trainer, from, to int) {
		for step := from; step < to; step++ {
			x, y := lines(step, b.Comm(0).Rank(), b.Comm(0).Size())
			_, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
			require.NoError(t, err)
		}
		if to == steps {
			require.InDeltaSlice(t, want, weights(t, model), 1e-4)
			require.NoError(t, ringo.Barrier(b.Comm(0)))
			require.NoError(t, b.Close())
		}
	}
	var comer sync.WaitGroup
	defer comer.Wait()
	comer.Go(func() {
		c, err := ringo.Open(t.Context(), ringo.Config{ID: &id, Rank: 2, Size: 3, Transport: "inproc"})
		if !assert.NoError(t, err) {
			return
		}
		b := over(t, c)
		model, trainer := linear(t, b, sgd)
		step, err := b.Agree(model, 0)
		assert.NoError(t, err)
		assert.Equal(t, steps/2, step)
		learn(t, b, model, trainer, step, steps)
	})
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		b := over(t, c)
		model, trainer := linear(t, b, sgd)
		require.NoError(t, model.SetRNGStateFromSeed(7))
		learn(t, b, model, trainer, 0, steps/2)
		var with *bootstrap.ID
		if c.Rank() == 0 {
			with = &id
		}
		require.NoError(t, b.Grow(t.Context(), with, 3))
		step, err := b.Agree(model, steps/2)
		require.NoError(t, err)
		learn(t, b, model, trainer, step, steps)
	}, ringotest.Leaks(false))
}

// Recover does not go on from errors that have nothing to do with a lost rank.
func TestNotLost(t *testing.T) {
	b := devices(t, 1)
	odd := errors.New("odd")
	_, err := b.Recover(t.Context(), mlctx.New(), 1, odd)
	require.Equal(t, odd, err)
	for _, cause := range []error{ringo.ErrMismatch, ringo.ErrInvalid} {
		failed := &Failure{Program: "p", Err: &ringo.Error{Op: "AllReduce", Peer: -1, Err: cause}}
		_, err := b.Recover(t.Context(), mlctx.New(), 1, failed)
		require.Equal(t, failed, err)
	}
	_, err = devices(t, 2).Agree(mlctx.New(), 0)
	require.ErrorIs(t, err, ringo.ErrUnsupported)
}

// rigid is an optimizer that cannot be given gradients.
type rigid struct{ optimizers.Interface }

func TestOptimizers(t *testing.T) {
	_, err := DataParallel(rigid{optimizers.Adam().Done()})
	require.ErrorIs(t, err, ringo.ErrUnsupported)
	require.ErrorContains(t, err, "gomlx.rigid cannot be given gradients")

	// A trainer whose graphs are not SPMD says what is missing.
	b := devices(t, 1)
	o, err := DataParallel(optimizers.StochasticGradientDescent())
	require.NoError(t, err)
	trainer := train.NewTrainer(b, mlctx.New(), func(ctx *mlctx.Context, _ any, in []*graph.Node) []*graph.Node {
		return []*graph.Node{layers.Dense(ctx, in[0], true, 1)}
	}, losses.MeanSquaredError, o, nil, nil)
	x, y := lines(0, 0, 1)
	_, err = trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.ErrorContains(t, err, "call Backend.Distribute")
}

// Gradients of several steps are reduced once.
func TestAccumulate(t *testing.T) {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		b := over(t, c)
		model, trainer := linear(t, b, sgd)
		require.NoError(t, trainer.AccumulateGradients(2))
		_, err := b.Agree(model, 0)
		require.NoError(t, err)
		for step := range 8 {
			x, y := lines(step, c.Rank(), c.Size())
			_, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
			require.NoError(t, err)
		}
		require.EqualValues(t, 4, trainer.GlobalStep())
		got := weights(t, model)
		all := make([]float32, len(got)*2)
		require.NoError(t, ringo.AllGather(c, all, got))
		require.Equal(t, all[:len(got)], all[len(got):])
	}, ringotest.Leaks(false))
}

// failing is a backend in pure Go whose programs fail after left executions.
type failing struct {
	backends.Backend
	left *atomic.Int32 // number of executions that will succeed
}

type failingBuilder struct {
	backends.Builder
	left *atomic.Int32
}

type failingExecutable struct {
	backends.Executable
	left *atomic.Int32
}

var errBelow = errors.New("no memory")

func (f failing) Builder(name string) backends.Builder {
	return failingBuilder{f.Backend.Builder(name), f.left}
}

func (f failingBuilder) Compile(outputs []backends.Op, s []*backends.ShardingSpec) (backends.Executable, error) {
	e, err := f.Builder.Compile(outputs, s)
	return failingExecutable{e, f.left}, err
}

func (f failingExecutable) Execute(inputs []backends.Buffer, donate []bool, d backends.DeviceNum) ([]backends.Buffer,
	error) {
	if f.left.Add(-1) < 0 {
		return nil, errBelow
	}
	return f.Executable.Execute(inputs, donate, d)
}

// A level that fails on one device ends the program on all devices, with the cause. The error has the donated inputs if
// the level is before the last collective, else not.
func TestFailingBackend(t *testing.T) {
	for left, kept := range []bool{true, true, false, false} { // two devices, two levels
		inner, err := simplego.New("")
		require.NoError(t, err)
		comms, err := ringo.OpenLocal(2, ringo.Config{})
		require.NoError(t, err)
		f := failing{inner, new(atomic.Int32)}
		f.left.Store(int32(left))
		b, err := New(f, comms...)
		require.NoError(t, err)
		p := b.Builder(t.Name())
		require.NoError(t, p.DistributedSPMD(2))
		shape := shapes.Make(dtypes.Float32, 2)
		x := first(p.Parameter("x", shape, nil))
		sums := first(p.AllReduce([]backends.Op{first(p.Neg(x))}, backends.ReduceOpSum, nil))
		e := first(p.Compile([]backends.Op{first(p.Add(sums[0], x))}, nil))
		in := []backends.Buffer{first(b.BufferFromFlatData(0, []float32{1, 2}, shape)),
			first(b.BufferFromFlatData(1, []float32{1, 2}, shape))}
		_, err = e.Execute(in, []bool{true, true}, 0)
		require.ErrorIs(t, err, errBelow)
		var failed *Failure
		require.ErrorAs(t, err, &failed)
		require.Equal(t, kept, failed.inputs["x"] != nil, "after %d", left)
		if kept {
			require.Equal(t, []float32{1, 2}, first(b.BufferData(failed.inputs["x"])))
		}
		require.NoError(t, b.Close())
	}
}
