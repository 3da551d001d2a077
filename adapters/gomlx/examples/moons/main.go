// Command moons trains a network that tells two moons of points apart, by GoMLX in pure Go, on any number of processes.
// Each process has its part of every batch, and all have the same weights.
//
//	go build -o /tmp/moons ./examples/moons      # in adapters/gomlx
//	ringo run -np 4 -- /tmp/moons
//	ringo run -np 4 -- /tmp/moons -kill 2@100    # rank 2 dies before step 100, the others go on
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/adapters/gomlx"
)

// options are the flags.
type options struct {
	steps, batch, hidden, layers int
	seed                         uint64
	kill                         string
	victim, dies                 int // rank and step, −1 if none
}

func main() {
	var o options
	flag.IntVar(&o.steps, "steps", 300, "steps of the optimizer")
	flag.IntVar(&o.batch, "batch", 960,
		"points in a batch; each rank has an equal part, and what is left over is left out")
	flag.IntVar(&o.hidden, "hidden", 32, "units of a hidden layer")
	flag.IntVar(&o.layers, "layers", 2, "hidden layers")
	flag.Uint64Var(&o.seed, "seed", 1, "of the points and of the first weights")
	flag.StringVar(&o.kill, "kill", "", "RANK@STEP: this rank kills itself before this step")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "moons:", err)
		os.Exit(1)
	}
}

// check refuses wrong options.
func (o *options) check() error {
	o.victim, o.dies = -1, -1
	if o.kill != "" {
		if n, err := fmt.Sscanf(o.kill, "%d@%d", &o.victim, &o.dies); n < 2 {
			return fmt.Errorf("-kill %q: want RANK@STEP: %w", o.kill, err)
		}
	}
	if o.steps < 1 || o.batch < 1 || o.hidden < 1 || o.layers < 0 {
		return errors.New("-steps, -batch and -hidden want 1 or more, -layers 0 or more")
	}
	return nil
}

// logits is the model: [points, 2] → [points, 1], above 0 for the second moon.
func logits(o options) train.ModelFn {
	return func(ctx *mlctx.Context, _ any, in []*graph.Node) []*graph.Node {
		x := in[0]
		for i := range o.layers {
			x = activations.Relu(layers.Dense(ctx.Inf("hidden_%d", i), x, true, o.hidden))
		}
		return []*graph.Node{layers.Dense(ctx.In("logits"), x, true, 1)}
	}
}

// run trains as one rank.
func run(ctx context.Context, o options, stdout io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	backend, err := gomlx.Open(ctx, "", ringo.Config{})
	if err != nil {
		return err
	}
	defer backend.Finalize()

	model := mlctx.New().Checked(false)
	model.SetParam(optimizers.ParamLearningRate, 0.01)
	if err := model.SetRNGStateFromSeed(int64(o.seed)); err != nil {
		return err
	}
	adam, err := gomlx.DataParallel(optimizers.Adam().FromContext(model).Done())
	if err != nil {
		return err
	}
	trainer := train.NewTrainer(backend, model, logits(o), losses.BinaryCrossentropyLogits, adam, nil, nil)
	backend.Distribute(trainer)

	step, failed := backend.Agree(model, 0) // so that all begin with the same weights
	me := backend.Comm(0).Rank()            // its rank in the beginning
	var began time.Time
	for step < o.steps || failed != nil {
		if failed != nil {
			if step, err = backend.Recover(ctx, model, step, failed); err != nil {
				return err
			}
			if backend.Comm(0).Rank() == 0 {
				fmt.Fprintf(stdout, "%d ranks go on from step %d\n", backend.Comm(0).Size(), step)
			}
		}
		if me == o.victim && step == o.dies {
			die()
		}
		comm := backend.Comm(0)
		points, labels := batch(o.seed, step, o.batch, comm.Rank(), comm.Size())
		if _, failed = trainer.TrainStep(nil, points, labels); failed != nil {
			continue
		}
		if step++; began.IsZero() {
			began = time.Now() // the first step compiles the graph
		}
	}
	return report(backend, model, o, time.Since(began), stdout)
}

// report compares the ranks' weights. Rank 0 prints how good they are.
func report(backend *gomlx.Backend, model *mlctx.Context, o options, took time.Duration, stdout io.Writer) error {
	comm := backend.Comm(0)
	mine := digest(model)
	all := make([]byte, comm.Size()*len(mine))
	if err := ringo.AllGather(comm, all, mine); err != nil {
		return err
	}
	for r := range comm.Size() {
		if !bytes.Equal(all[r*len(mine):(r+1)*len(mine)], mine) {
			return fmt.Errorf("rank %d has other weights than rank %d", r, comm.Rank())
		}
	}
	if comm.Rank() != 0 {
		return nil
	}
	const points = 2000
	right, err := judge(backend, model, o, points)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d ranks, %d steps: %.1f %% of %d other points are right\n", comm.Size(), o.steps,
		100*float64(right)/points, points)
	fmt.Fprintf(stdout, "weights %x on all ranks\n", mine[:8])
	if o.steps > 1 {
		fmt.Fprintf(stdout, "a step took %v\n", (took / time.Duration(o.steps-1)).Round(time.Microsecond))
	}
	return nil
}

// digest is a digest of all weights.
func digest(model *mlctx.Context) []byte {
	h := sha256.New()
	for v := range model.IterVariables() {
		if v.Trainable {
			v.MustValue().ConstBytes(func(b []byte) { h.Write(b) })
		}
	}
	return h.Sum(nil)
}

// judge counts how many of some new points the model gets right.
func judge(backend *gomlx.Backend, model *mlctx.Context, o options, points int) (right int, err error) {
	exec, err := mlctx.NewExec(backend, model.Reuse(), func(ctx *mlctx.Context, x *graph.Node) *graph.Node {
		return logits(o)(ctx, nil, []*graph.Node{x})[0]
	})
	if err != nil {
		return 0, err
	}
	defer exec.Finalize()
	in, labels := batch(o.seed+1, 0, points, 0, 1)
	out, err := exec.SPMD(backend.Mesh()).Exec(in[0])
	if err != nil {
		return 0, err
	}
	got, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return 0, err
	}
	want, err := tensors.CopyFlatData[float32](labels[0])
	for i := range want {
		if (got[i] > 0) == (want[i] > 0) {
			right++
		}
	}
	return right, err
}

// die ends this process as kill -9 does.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil && p.Kill() == nil {
		select {} // until the signal comes
	}
	panic(err)
}
