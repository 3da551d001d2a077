package check

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// An exercise is a collective of ranks whose results each of them knows, of uint32.
type exercise struct {
	kind    ringo.Kind
	ranks   int
	count   int // of the call
	in, out int // elements of a rank's In and Out
}

// newExercise is an exercise of at most count elements a rank.
func newExercise(k ringo.Kind, count, ranks int) exercise {
	each := max(1, count/ranks)
	switch k {
	case ringo.KindAllReduce:
		return exercise{k, ranks, count, count, count}
	case ringo.KindAlltoAll:
		return exercise{k, ranks, each, each * ranks, each * ranks}
	}
	return exercise{k, ranks, each, each, each * ranks}
}

// element is element i of a rank's In.
func element(rank, i int) uint32 { return (uint32(rank)+1)*2654435761 + uint32(i)*40503 }

// input is a rank's In.
func (e exercise) input(rank int) []uint32 {
	in := make([]uint32, e.in)
	for i := range in {
		in[i] = element(rank, i)
	}
	return in
}

// memory allocates a rank's In, filled, and its Out.
func (e exercise) memory(d *gpu.Device, rank int) (in, out mem.Region, free func() error, err error) {
	if in, err = d.Alloc(4 * e.in); err != nil {
		return in, out, nil, err
	}
	if out, err = d.Alloc(4 * e.out); err != nil {
		return in, out, nil, errors.Join(err, d.Free(in))
	}
	free = func() error { return errors.Join(d.Free(in), d.Free(out)) }
	if err = d.Write(in, mem.Of(e.input(rank)).Bytes()); err != nil {
		return in, out, nil, errors.Join(err, free())
	}
	return in, out, free, nil
}

// read checks the elements of a rank's Out on a GPU.
func (e exercise) read(d *gpu.Device, rank int, out mem.Region) error {
	got := make([]uint32, e.out)
	if err := d.Read(mem.Of(got).Bytes(), out); err != nil {
		return err
	}
	return e.verify(rank, got)
}

// verify checks the elements of a rank's Out.
func (e exercise) verify(rank int, got []uint32) error {
	wrong, first := 0, ""
	for i, v := range got {
		want := uint32(0)
		switch e.kind {
		case ringo.KindAllReduce:
			for r := range e.ranks {
				want += element(r, i)
			}
		case ringo.KindAllGather:
			want = element(i/e.count, i%e.count)
		case ringo.KindAlltoAll:
			want = element(i/e.count, rank*e.count+i%e.count)
		}
		if v != want {
			if wrong++; wrong > 1 {
				continue
			}
			first = fmt.Sprintf("element %d is %#x and not %#x", i, v, want)
			if e.kind != ringo.KindAllReduce {
				first += fmt.Sprintf(", and from rank %d of %d", i/e.count, e.ranks)
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%v of %d elements: %d are wrong, %s", e.kind, e.count, wrong, first)
	}
	return nil
}
