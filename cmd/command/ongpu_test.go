package command

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/examples/ongpu"
	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/test/need"
)

// Every function of the example ongpu moves the data that its comment tells, on emulated GPUs, or with REQUIRE=cuda on
// the machine's GPUs.
func TestOnGPU(t *testing.T) {
	const n = 2
	options := gpu.Options{Emulate: n}
	if need.Required("cuda") {
		options = gpu.Options{}
	}
	m, err := gpu.Open(options)
	require.NoError(t, err)
	var devices []*gpu.Device
	for r := range n {
		d, err := m.Device(r % m.Count())
		require.NoError(t, err)
		devices = append(devices, d)
	}
	comms, err := ringo.OpenLocal(n, ringo.Config{Devices: devices})
	require.NoError(t, err)
	errs := make([]error, n)
	var all sync.WaitGroup
	for r, c := range comms {
		all.Go(func() { errs[r] = everything(c) })
	}
	all.Wait()
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
	for r, d := range devices {
		require.NoError(t, errs[r], "rank %d", r)
		if r == 0 || d != devices[0] {
			require.NoError(t, d.Release())
		}
	}
}

func everything(c *ringo.Comm) (err error) {
	d, rank := c.Device(), int32(c.Rank())
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.DestroyStream(s)) }()
	small, err := gpu.Alloc[int32](d, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.Free()) }()
	large, err := gpu.Alloc[int32](d, 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.Free()) }()
	other, err := gpu.Alloc[int32](d, 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Free()) }()
	onRoot := func(b *gpu.Buffer[int32]) *gpu.Buffer[int32] {
		if rank == 1 {
			return b
		}
		return nil
	}
	for _, step := range []struct {
		name string
		do   func() error
		in   *gpu.Buffer[int32]
		from []int32
		out  *gpu.Buffer[int32]
		want []int32 // nil: out is not checked on this rank
	}{
		{"AllReduce", func() error { return ongpu.AllReduce(c, s, small, ringo.Sum) }, small, []int32{rank, 5}, small,
			[]int32{1, 10}},
		{"Reduce", func() error { return ongpu.Reduce(c, s, onRoot(small), small, ringo.Max, 1) }, small, []int32{rank, 5},
			onRoot(small), []int32{1, 5}},
		{"Broadcast", func() error { return ongpu.Broadcast(c, s, small, 1) }, small, []int32{rank, 5 * rank}, small,
			[]int32{1, 5}},
		{"AllGather", func() error { return ongpu.AllGather(c, s, large, small) }, small, []int32{rank, 7}, large,
			[]int32{0, 7, 1, 7}},
		{"ReduceScatter", func() error { return ongpu.ReduceScatter(c, s, small, large, ringo.Sum) },
			large, []int32{0, 1, 2, 3},
			small, []int32{4 * rank, 4*rank + 2}},
		{"AlltoAll", func() error { return ongpu.AlltoAll(c, s, other, large) },
			large, []int32{rank, 1, 2 + rank, 3}, other,
			[]int32{2 * rank, 1 + 2*rank, 2*rank + 1, 1 + 2*rank}},
		{"Gather", func() error { return ongpu.Gather(c, s, onRoot(large), small, 1) },
			small, []int32{rank, 9}, onRoot(large),
			[]int32{0, 9, 1, 9}},
		{"Scatter", func() error { return ongpu.Scatter(c, s, small, onRoot(large), 1) }, large, []int32{4, 5, 6, 7}, small,
			[]int32{4 + 2*rank, 5 + 2*rank}},
		{"Send, Recv", func() error {
			if rank == 0 {
				return ongpu.Send(c, s, small, 1)
			}
			return ongpu.Recv(c, s, small, 0)
		}, small, []int32{3, rank}, small, []int32{3, 0}},
	} {
		if err := step.in.Upload(s, step.from); err != nil {
			return err
		}
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := c.Synchronize(s); err != nil {
			return err
		}
		if step.out == nil {
			continue
		}
		got := make([]int32, step.out.Len())
		if err := step.out.Download(s, got); err != nil {
			return err
		}
		if !slices.Equal(got, step.want) {
			return fmt.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
	var rows [3]*gpu.Buffer[float32] // data, residual, weight
	for i, x := range [][]float32{{2, -1, 1, 0}, {-1, 1, -1, -1}, {1, 10}} {
		b, err := gpu.Alloc[float32](d, len(x))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Free()) }()
		if err := b.Upload(s, x); err != nil {
			return err
		}
		rows[i] = b
	}
	if err := ongpu.AllReduceNorm(c, s, rows[0], rows[1], rows[0], rows[2], 0); err != nil {
		return err
	}
	normed, sum := make([]float32, 4), make([]float32, 4)
	if err := errors.Join(c.Synchronize(s), rows[0].Download(s, normed), rows[1].Download(s, sum)); err != nil {
		return err
	}
	if !slices.Equal(sum, []float32{3, -1, 1, -1}) || !slices.Equal(normed[2:], []float32{1, -10}) {
		return fmt.Errorf("AllReduceNorm: %v and %v", sum, normed)
	}
	if err := ongpu.AllGather(c, s, small, small); !errors.Is(err, ringo.ErrInvalid) {
		return fmt.Errorf("lengths that do not fit: %v", err)
	}
	return nil
}
