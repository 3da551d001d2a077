package gomlx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"

	"github.com/ringo-go/ringo"
)

// A Failure is the error of a program that could not be carried out. GoMLX's executors donate a model's variables to a
// step, so a step that fails leaves the model without them. A Failure still has these variables as they were.
type Failure struct {
	Program string
	Err     error // a *ringo.Error if communication failed

	b      *Backend
	inputs map[string]*buffer // donated, by the names of their parameters
}

func (f *Failure) Error() string { return fmt.Sprintf("program %q: %v", f.Program, f.Err) }

// Unwrap is Err.
func (f *Failure) Unwrap() error { return f.Err }

// Restore gives a model its variables back, as they were before the step. A second call gives nothing.
func (f *Failure) Restore(model *mlctx.Context) error {
	for v := range model.IterVariables() {
		in := f.inputs[v.ParameterName()]
		if in == nil || v.HasValue() {
			continue
		}
		t, err := tensors.FromBuffer(f.b, in)
		if err == nil {
			err = v.SetValue(t)
		}
		if err != nil {
			return fmt.Errorf("gomlx: variable %s: %w", v.ScopeAndName(), err)
		}
		delete(f.inputs, v.ParameterName())
	}
	return nil
}

// Recover goes on with the remaining ranks after a step or an Agree has failed since a rank died, left or stopped. It
// restores the model, Shrinks, and has all ranks Agree on the newest model, again and again if more ranks die
// meanwhile. Every remaining rank calls Recover, as the next step fails on each. step is the number of steps of this
// rank that have succeeded; the result is the number of steps from which all ranks go on. failed is returned as it is
// if no rank was lost, and together with the reason if the ranks cannot go on.
func (b *Backend) Recover(ctx context.Context, model *mlctx.Context, step int, failed error) (int, error) {
	if !lost(failed) {
		return 0, failed
	}
	if f, ok := errors.AsType[*Failure](failed); ok {
		if err := f.Restore(model); err != nil {
			return 0, errors.Join(failed, err)
		}
	}
	for {
		if err := b.Shrink(ctx); err != nil {
			return 0, errors.Join(failed, err)
		}
		newest, err := b.Agree(model, step)
		if err == nil || !lost(err) {
			return newest, err
		}
	}
}

// lost reports whether an error comes of a lost rank or connection, so that other ranks may go on. Other errors would
// come again.
func lost(err error) bool {
	if _, ok := errors.AsType[*ringo.Error](err); !ok {
		return false
	}
	for _, own := range []error{ringo.ErrInvalid, ringo.ErrUnsupported, ringo.ErrMismatch, ringo.ErrAborted,
		ringo.ErrClosed} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// A variable describes a variable. Ranks send descriptions before the data.
type variable struct {
	Scope, Name string
	DType       dtypes.DType
	Dims        []int
	Trainable   bool
}

func (v *variable) shape() shapes.Shape { return shapes.Make(v.DType, v.Dims...) }

// Agree gives all ranks the model of the rank with the most steps; of several, of the lowest. step is the number of
// steps of this rank that have succeeded; the result is the number of steps from which all ranks go on. All ranks call
// Agree: in the beginning, so that all initialize the same model by the same random numbers; after Shrink; and when new
// ranks have come, whose missing variables it makes (their context.Context must be Checked(false)). A model changes
// only once all variables have arrived. Cost: two all-reduces of a number and a broadcast of the variables.
func (b *Backend) Agree(model *mlctx.Context, step int) (int, error) {
	if !b.processes {
		return 0, fmt.Errorf("gomlx: Agree: all ranks are this process and share a model: %w", ringo.ErrUnsupported)
	}
	if step < 0 || int64(step) > math.MaxInt64>>maxVariables {
		return 0, fmt.Errorf("gomlx: Agree: step %d: %w", step, ringo.ErrInvalid)
	}
	if v := model.GetVariableByScopeAndName(mlctx.RootScope, mlctx.RNGStateVariableName); v == nil || !v.HasValue() {
		if err := model.ResetRNGState(); err != nil {
			return 0, err
		}
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	comm := b.Comm(0)
	vars, data, err := variablesOf(model)
	if err != nil {
		return 0, err
	}
	mine := int64(step)<<maxVariables | int64(min(len(vars), 1<<maxVariables-1))
	newest := []int64{mine}
	if err := ringo.AllReduce(comm, newest, ringo.Max); err != nil {
		return 0, err
	}
	who := []int64{math.MaxInt64}
	if mine == newest[0] {
		who[0] = int64(comm.Rank())
	}
	if err := ringo.AllReduce(comm, who, ringo.Min); err != nil {
		return 0, err
	}
	root := int(who[0])
	if comm.Rank() == root {
		return step, give(comm, vars, data)
	}
	if vars, data, err = receive(comm, root); err != nil {
		return 0, err
	}
	return int(newest[0] >> maxVariables), assign(model, vars, data, root)
}

// maxVariables is the number of bits for a rank's number of variables, below the bits for its number of steps: of ranks
// with the same steps the one with the most variables is the newest.
const maxVariables = 20

// variablesOf are the variables that have a value.
func variablesOf(model *mlctx.Context) (vars []variable, data []*tensors.Tensor, err error) {
	for v := range model.IterVariables() {
		if !v.HasValue() {
			continue
		}
		t, err := v.Value()
		if err != nil {
			return nil, nil, fmt.Errorf("gomlx: variable %s: %w", v.ScopeAndName(), err)
		}
		vars = append(vars, variable{v.Scope(), v.Name(), t.DType(), t.Shape().Dimensions, v.Trainable})
		data = append(data, t)
	}
	return vars, data, nil
}

// give broadcasts this rank's variables.
func give(comm *ringo.Comm, vars []variable, data []*tensors.Tensor) error {
	text, err := json.Marshal(vars)
	if err != nil {
		return err
	}
	if err := ringo.Broadcast(comm, []int64{int64(len(text))}, comm.Rank()); err != nil {
		return err
	}
	if err := ringo.Broadcast(comm, text, comm.Rank()); err != nil {
		return err
	}
	for _, t := range data {
		var sent error
		if err := t.ConstBytes(func(data []byte) { sent = ringo.Broadcast(comm, data, comm.Rank()) }); err != nil ||
			sent != nil {
			return errors.Join(err, sent)
		}
	}
	return nil
}

// receive gets the variables of another rank.
func receive(comm *ringo.Comm, root int) (vars []variable, data []*tensors.Tensor, err error) {
	size := []int64{0}
	if err := ringo.Broadcast(comm, size, root); err != nil {
		return nil, nil, err
	}
	text := make([]byte, size[0])
	if err := ringo.Broadcast(comm, text, root); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(text, &vars); err != nil {
		return nil, nil, fmt.Errorf("gomlx: Agree: the list of rank %d's variables: %w", root, err)
	}
	for _, v := range vars {
		t := tensors.FromShape(v.shape())
		var came error
		if err := t.MutableBytes(func(data []byte) { came = ringo.Broadcast(comm, data, root) }); err != nil || came != nil {
			return nil, nil, errors.Join(err, came)
		}
		data = append(data, t)
	}
	return vars, data, nil
}

// assign gives a model the variables of rank root. It changes nothing if one does not fit.
func assign(model *mlctx.Context, vars []variable, data []*tensors.Tensor, root int) error {
	for _, s := range vars {
		if v := model.GetVariableByScopeAndName(s.Scope, s.Name); v != nil && !v.Shape().Equal(s.shape()) {
			return fmt.Errorf("gomlx: Agree: variable %s is %s, rank %d has it as %s; all ranks need one program: %w",
				v.ScopeAndName(), v.Shape(), root, s.shape(), ringo.ErrMismatch)
		}
	}
	for i, s := range vars {
		v := model.GetVariableByScopeAndName(s.Scope, s.Name)
		if v == nil {
			model.InAbsPath(s.Scope).Checked(false).VariableWithValue(s.Name, data[i]).SetTrainable(s.Trainable)
			continue
		}
		if err := v.SetValue(data[i]); err != nil {
			return fmt.Errorf("gomlx: Agree: variable %s: %w", v.ScopeAndName(), err)
		}
	}
	return nil
}
