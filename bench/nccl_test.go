package bench

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/test/nccltest"
)

// ncclWorkers has the ranks of a plan measure with a stand-in for NCCL beside ours on emulated GPUs. It returns the
// rows of both.
func ncclWorkers(t *testing.T, w *nccltest.World, n int, args ...string) (ours []Row, theirs []*Row, err error) {
	t.Helper()
	cfg, err := parse(append(args, "-device", "emu", "-g", fmt.Sprint(n), "-unchecked", "-n", "2", "-w", "1")...)
	require.NoError(t, err)
	cfg.Peers, cfg.Repetitions, cfg.NCCL = []string{"nccl"}, 3, "file"
	m, err := emu.Open(emu.Config{GPUs: make([]emu.GPU, n), Unchecked: true})
	require.NoError(t, err)
	defer m.Close()
	comms, err := ringo.OpenLocal(n, ringo.Config{Devices: m.Devices()})
	require.NoError(t, err)
	w.Device = func(number int) (*gpu.Device, error) { return m.Devices()[number], nil }
	errs := make([]error, n)
	var all sync.WaitGroup
	for i, c := range comms {
		x := newWorker(cfg, c)
		x.library = func(file string) (ncclLibrary, error) {
			require.Equal(t, "file", file)
			return w.Open(), nil
		}
		if i == 0 {
			x.record = func(r Row, peers map[string]*Row) { ours, theirs = append(ours, r), append(theirs, peers["nccl"]) }
		}
		all.Go(func() { errs[i] = errors.Join(x.run(cfg.plan(n), c.Device()), c.Close()) })
	}
	all.Wait()
	return ours, theirs, errors.Join(errs...)
}

// TestNCCLCollectives: each operation makes calls of NCCL that have its results, also in groups.
func TestNCCLCollectives(t *testing.T) {
	for _, args := range [][]string{{"all", "-r", "1", "-d", "float64"}, {"alltoall", "scatter", "sendrecv", "-m", "3"},
		{"allreduce", "-d", "int8", "-o", "sum,prod,max,min,avg"}} {
		ours, theirs, err := ncclWorkers(t, new(nccltest.World), 3, append(args, "-b", "60", "-e", "60")...)
		require.NoError(t, err)
		for i, r := range theirs {
			require.Equal(t, ours[i].key(), r.key())
			require.Zero(t, *r.OutOfPlace.Wrong, "%+v", r)
			if r.InPlace != nil {
				require.Zero(t, *r.InPlace.Wrong, "%+v", r)
			}
		}
	}
}

// TestNCCLInTurn: NCCL and ours are measured in turn on the same memory, and both results are verified.
func TestNCCLInTurn(t *testing.T) {
	for _, c := range []struct {
		fails string
		lazy  bool
	}{{}, {lazy: true}, {fails: "ncclGetUniqueId"}, {fails: "ncclCommInitRank"}, {fails: "ncclCommRegister"},
		{fails: "ncclAllReduce"}, {fails: "ncclCommDeregister"}, {fails: "ncclCommDestroy"}} {
		t.Run(fmt.Sprint(c.fails, c.lazy), func(t *testing.T) {
			w := &nccltest.World{Fails: c.fails, Lazy: c.lazy}
			ours, theirs, err := ncclWorkers(t, w, 1, "allreduce", "-R", "1", "-b", "64", "-e", "64")
			if c.fails != "" {
				require.ErrorIs(t, err, nccltest.Err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []int{1, 2, 1}, []int{w.Called("ncclCommInitRank"), w.Called("ncclCommDeregister"),
				w.Called("ncclCommDestroy")})
			require.Equal(t, []string{"ringo", "nccl"}, []string{ours[0].Program, theirs[0].Program})
			require.Zero(t, *ours[0].OutOfPlace.Wrong)
			require.Equal(t, c.lazy, *theirs[0].OutOfPlace.Wrong > 0)
			require.Equal(t, 2, theirs[0].InPlace.Iterations)
			calls := w.Called("ncclAllReduce")
			require.Zero(t, calls%(2*3), "two forms and three repetitions")
			require.GreaterOrEqual(t, calls, 2*3*(2+1+1), "two iterations, one to warm up and one to verify")
		})
	}
	w := newWorker(&Config{Peers: []string{"nccl"}}, nil)
	w.library = func(string) (ncclLibrary, error) { return nil, nccltest.Err }
	_, err := openNCCL(w)
	require.Equal(t, nccltest.Err, err)
}

// If no iterations are given, as many are made as take about the wanted time: few of a slow operation, many of a quick
// one. Rank 0 decides how many.
func TestEnough(t *testing.T) {
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	require.NoError(t, err)
	list := make([]*worker, 2)
	for i, c := range comms {
		defer c.Close()
		list[i] = newWorker(&Config{}, c)
		list[i].atLeast = 80 * time.Millisecond
	}
	for each, want := range map[time.Duration]struct {
		iterations int
		tried      []int
	}{
		time.Second:            {minIterations, []int{1}},
		3 * time.Millisecond:   {26, []int{1, 4}},
		100 * time.Microsecond: {800, []int{1, 4, 16, 64, 256}},
		0:                      {maxIterations, nil},
	} {
		got := make([]int, 2)
		var tried []int
		onEach(t, list, func(i int, w *worker) (err error) {
			got[i], err = w.enough(func(n int) (time.Duration, error) {
				if i == 0 {
					tried = append(tried, n)
					return time.Duration(n) * each, nil
				}
				return time.Hour, nil // rank 0 decides
			})
			return err
		})
		require.Equal(t, []int{want.iterations, want.iterations}, got, "%v each", each)
		if want.tried != nil {
			require.Equal(t, want.tried, tried, "%v each", each)
		}
	}
	failed := errors.New("failed")
	_, err = list[0].enough(func(int) (time.Duration, error) { return 0, failed })
	require.Equal(t, failed, err)
}
