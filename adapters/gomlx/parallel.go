package gomlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/ringo-go/ringo"
)

// A parallel is an optimizer that gives another one the mean of all ranks' gradients.
type parallel struct {
	optimizers.Interface
	with train.OptimizeWithGradients
}

// DataParallel is an optimizer that gives optimizer o the mean of all ranks' gradients: each rank trains with its own
// part of a batch, and all ranks change their weights in the same way, bit for bit. All ranks should have equal parts
// of a batch, as examples of smaller parts weigh more. The error is ringo.ErrUnsupported if o cannot be given gradients
// (train.OptimizeWithGradients); all of GoMLX's optimizers can.
//
// Its graphs must be SPMD, see Backend.Distribute. Cost: an all-reduce of all gradients and of one more number, which
// counts the ranks, as Shrink may make them fewer after the graph is built.
func DataParallel(o optimizers.Interface) (optimizers.Interface, error) {
	with, ok := o.(train.OptimizeWithGradients)
	if !ok {
		return nil, fmt.Errorf("gomlx: optimizer %T cannot be given gradients (UpdateGraphWithGradients): %w", o,
			ringo.ErrUnsupported)
	}
	return &parallel{o, with}, nil
}

// UpdateGraph implements optimizers.Interface.
func (p *parallel) UpdateGraph(ctx *mlctx.Context, _ *graph.Graph, loss *graph.Node) {
	if !loss.Shape().IsScalar() {
		panic(fmt.Errorf("gomlx: the loss is %s, an optimizer needs a scalar: %w", loss.Shape(), ringo.ErrInvalid))
	}
	p.UpdateGraphWithGradients(ctx, ctx.BuildTrainableVariablesGradientsGraph(loss), loss.DType())
}

// UpdateGraphWithGradients implements train.OptimizeWithGradients.
func (p *parallel) UpdateGraphWithGradients(ctx *mlctx.Context, gradients []*graph.Node, loss dtypes.DType) {
	if len(gradients) > 0 {
		gradients = mean(gradients)
	}
	p.with.UpdateGraphWithGradients(ctx, gradients, loss)
}

// mean is the mean of all ranks' values.
func mean(values []*graph.Node) []*graph.Node {
	g := values[0].Graph()
	if g.DistributedStrategy() != distributed.SPMD {
		panic(fmt.Errorf("gomlx: the graph %q is not SPMD, its ranks cannot communicate; call Backend.Distribute with the "+
			"trainer, or Exec.SPMD with Backend.Mesh: %w",
			g.Name(), ringo.ErrInvalid))
	}
	ranks := graph.Const(g, float32(1))
	sums := g.Distributed().AllReduce(append(values[:len(values):len(values)], ranks), backends.ReduceOpSum)
	ranks = sums[len(values)]
	for i := range values {
		sums[i] = graph.Div(sums[i], graph.ConvertDType(ranks, sums[i].DType()))
	}
	return sums[:len(values)]
}

// Distribute makes the graphs of a trainer SPMD over the backend's mesh. Call it before the trainer's first step.
func (b *Backend) Distribute(t *train.Trainer) {
	t.OnExecCreation(func(e *mlctx.Exec, _ train.GraphType) { e.SPMD(b.mesh) })
}
