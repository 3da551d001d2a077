package bench

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/mem"
)

// A fakeNCCL notes its calls. With dev it also carries out an all-reduce of one rank.
type fakeNCCL struct {
	said  []string
	fails string // the function that fails
	dev   *gpu.Device
}

var errNCCL = errors.New("peer nccl: result 3")

func (f *fakeNCCL) say(name string, args ...any) error {
	if f.said = append(f.said, strings.TrimSuffix(fmt.Sprintln(append([]any{name}, args...)...), "\n")); name == f.fails {
		return errNCCL
	}
	return nil
}

func (f *fakeNCCL) UniqueID() (nccl.ID, error) { return nccl.ID{1, 15: 16}, f.say("UniqueID") }
func (f *fakeNCCL) InitRank(size, rank int, id nccl.ID) (nccl.Comm, error) {
	return 77, f.say("InitRank", size, rank, id[0], id[15])
}
func (f *fakeNCCL) Register(c nccl.Comm, p uintptr, n int) (uintptr, error) {
	return p + 1, f.say("Register", c, p, n)
}

func (f *fakeNCCL) Together(g func() error) error {
	if err := f.say("{"); err != nil {
		return err
	}
	if err := g(); err != nil {
		return err
	}
	return f.say("}")
}

func (f *fakeNCCL) Call(name string, args ...uintptr) error {
	var list []any
	for _, a := range args {
		list = append(list, a)
	}
	if err := f.say(name, list...); err != nil || f.dev == nil || name != "ncclAllReduce" {
		return err
	}
	data := make([]byte, 4*args[2])
	n := f.dev.Number()
	return errors.Join(f.dev.Read(data, mem.Device(n, args[0], len(data))),
		f.dev.Write(mem.Device(n, args[1], len(data)), data))
}

// Each operation makes the calls of NCCL that nccl-tests makes.
func TestNCCLOperations(t *testing.T) {
	comms, err := ringo.OpenLocal(3, ringo.Config{})
	require.NoError(t, err)
	for _, c := range comms {
		defer c.Close()
	}
	for _, c := range []struct {
		kind ringo.Kind
		rank int
		want string
	}{ // 10 elements of 8 bytes, type 8; product; rank 1 is the root; communicator 77, stream 5
		{ringo.KindAllReduce, 0, "ncclAllReduce 4096 8192 10 8 1 77 5"},
		{ringo.KindReduce, 0, "ncclReduce 4096 8192 10 8 1 1 77 5"},
		{ringo.KindBroadcast, 0, "ncclBroadcast 4096 8192 10 8 1 77 5"},
		{ringo.KindAllGather, 0, "ncclAllGather 4096 8192 10 8 77 5"},
		{ringo.KindReduceScatter, 0, "ncclReduceScatter 4096 8192 10 8 1 77 5"},
		{ringo.KindAlltoAll, 2,
			"{; ncclSend 4096 10 8 0 77 5; ncclRecv 8192 10 8 0 77 5; ncclSend 4176 10 8 1 77 5; ncclRecv 8272 10 8 1 77 5; " +
				"ncclSend 4256 10 8 2 77 5; ncclRecv 8352 10 8 2 77 5; }"},
		{ringo.KindGather, 1,
			"{; ncclRecv 8192 10 8 0 77 5; ncclRecv 8272 10 8 1 77 5; ncclRecv 8352 10 8 2 77 5; ncclSend 4096 10 8 1 77 5; }"},
		{ringo.KindGather, 2, "{; ncclSend 4096 10 8 1 77 5; }"},
		{ringo.KindScatter, 1,
			"{; ncclSend 4096 10 8 0 77 5; ncclSend 4176 10 8 1 77 5; ncclSend 4256 10 8 2 77 5; ncclRecv 8192 10 8 1 77 5; }"},
		{ringo.KindScatter, 0, "{; ncclRecv 8192 10 8 1 77 5; }"},
		{ringo.KindSend, 0, "{; ncclSend 4096 10 8 1 77 5; ncclRecv 8192 10 8 2 77 5; }"},
		{ringo.KindSend, 2, "{; ncclSend 4096 10 8 0 77 5; ncclRecv 8192 10 8 1 77 5; }"},
	} {
		call := &ringo.Call{Kind: c.kind, In: mem.Device(0, 4096, 240), Out: mem.Device(0, 8192, 240), Count: 10,
			Type: ringo.Float64, Op: ringo.Prod, Root: 1, Stream: 5}
		for name, want := range map[string]error{"": nil, "ncclAllReduce": errNCCL, "ncclSend": errNCCL, "{": errNCCL,
			"}": errNCCL} {
			f := &fakeNCCL{fails: name}
			n := &ncclPeer{w: newWorker(nil, comms[c.rank]), lib: f, comm: 77}
			err := n.operation(call)()
			if said := strings.Join(f.said, "; "); name == "" {
				require.Equal(t, c.want, said, "%v", c.kind)
			} else if !strings.Contains(c.want, name) {
				want = nil
			} else {
				require.True(t, strings.HasSuffix(said, name) ||
					strings.Contains(f.said[len(f.said)-1], name), "it ends with the failure")
			}
			require.Equal(t, want, err, "%v, %s fails", c.kind, name)
		}
	}
}

// NCCL and ours are measured in turn on the same memory, and both results are verified.
func TestNCCLInTurn(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails string
		lazy  bool
	}{{name: "well"}, {name: "does nothing", lazy: true}, {fails: "UniqueID"}, {fails: "InitRank"}, {fails: "Register"},
		{fails: "ncclAllReduce"}, {fails: "ncclCommDeregister"}, {fails: "ncclCommDestroy"}} {
		t.Run(c.name+c.fails, func(t *testing.T) {
			cfg, err := parse("allreduce", "--device", "emu", "-g", "1", "-R", "1", "-unchecked", "-b", "64", "-e", "64", "-n",
				"2", "-w", "1")
			require.NoError(t, err)
			cfg.Peers, cfg.Repetitions, cfg.NCCL = []string{"nccl"}, 3, "file"
			m, err := emu.Open(emu.Config{GPUs: make([]emu.GPU, 1), Unchecked: true})
			require.NoError(t, err)
			defer m.Close()
			comms, err := ringo.OpenLocal(1, ringo.Config{Devices: m.Devices()[:1]})
			require.NoError(t, err)
			defer comms[0].Close()
			f := &fakeNCCL{fails: c.fails}
			if !c.lazy {
				f.dev = m.Devices()[0]
			}
			w := newWorker(cfg, comms[0])
			w.library = func(file string) (ncclLibrary, error) {
				require.Equal(t, "file", file)
				return f, nil
			}
			var ours Row
			var theirs *Row
			w.record = func(r Row, peers map[string]*Row) { ours, theirs = r, peers["nccl"] }
			err = w.run(cfg.plan(1), m.Devices()[0])
			if c.fails != "" {
				require.ErrorIs(t, err, errNCCL)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"UniqueID", "InitRank 1 0 1 16"}, f.said[:2])
			require.Equal(t, "ncclCommDestroy 77", f.said[len(f.said)-1])
			require.Equal(t, 2, strings.Count(strings.Join(f.said, "\n"), "ncclCommDeregister 77"))
			require.Equal(t, "ringo", ours.Program)
			require.Equal(t, "nccl", theirs.Program)
			require.Equal(t, ours.key(), theirs.key())
			require.Zero(t, *ours.OutOfPlace.Wrong)
			require.Equal(t, c.lazy, *theirs.OutOfPlace.Wrong > 0)
			require.Equal(t, 2, theirs.InPlace.Iterations)
			calls := 0
			for _, s := range f.said {
				if strings.HasPrefix(s, "ncclAllReduce") {
					calls++
				}
			}
			require.Zero(t, calls%(2*3), "two forms and three repetitions")
			require.GreaterOrEqual(t, calls, 2*3*(2+1+1), "two iterations, one to warm up and one to verify")
		})
	}
	w := newWorker(&Config{Peers: []string{"nccl"}}, nil)
	w.library = func(string) (ncclLibrary, error) { return nil, errNCCL }
	_, err := openNCCL(w)
	require.Equal(t, errNCCL, err)
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
