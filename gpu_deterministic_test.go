package ringo

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
)

// onGPUs carries a trial out on GPU memory, which it allocates unless there is some.
// Nothing is allocated or freed beside the operation: that may wait for all kernels
// of a GPU, which ranks may share.
func (x trial) onGPUs(comms []*Comm, memory ...Region) error {
	n := len(comms)
	ins := x.ins(n)
	wants := x.wants(ins)
	own := len(memory) == 0
	if own {
		memory = make([]Region, n)
	}
	calls := make([]Call, n)
	for _, step := range []func(r int, c *Comm, d *gpu.Device) error{
		func(r int, _ *Comm, d *gpu.Device) (err error) {
			if half := max(len(ins[r]), len(wants[r]), 16); own {
				if memory[r], err = d.Alloc(2 * half); err != nil {
					return err
				}
			}
			half := memory[r].Len() / 2
			room := half
			if x.count == 0 {
				room = 0 // a call that moves nothing has no memory
			}
			calls[r] = x.call(r, n, memory[r].Slice(0, room), memory[r].Slice(half, room))
			calls[r].Stream, err = d.NewStream()
			return errors.Join(err, d.Write(memory[r].Slice(0, len(ins[r])), ins[r]))
		},
		func(r int, c *Comm, _ *gpu.Device) error {
			return errors.Join(c.Do(&calls[r]), c.Synchronize(calls[r].Stream))
		},
		func(r int, _ *Comm, d *gpu.Device) error {
			got := make([]byte, len(wants[r]))
			err := errors.Join(d.Read(got, calls[r].Out.Slice(0, len(got))), d.DestroyStream(calls[r].Stream))
			if own {
				err = errors.Join(err, d.Free(memory[r]))
			}
			return errors.Join(err, x.compare(r, wants[r], got))
		},
	} {
		for r, err := range each(comms, func(c *Comm) error { return step(c.Rank(), c, c.Device()) }) {
			if err != nil {
				return fmt.Errorf("rank %d of %d: %w", r, n, err)
			}
		}
	}
	return nil
}

// rankPaths are ways in which GPUs are connected, for a reduction in order of rank.
var rankPaths = []struct {
	name   string
	n      int
	config func(r int) Config
	parts  bool
}{
	{"p2p", 3, func(int) Config { return exact }, false},
	{"p2p, ring", 2, func(int) Config { return with(func(c *Config) { c.Algo = "ring" }) }, false},
	{"p2p, in parts", 3, func(int) Config { return with(func(c *Config) { c.Algo = "steps" }) }, true},
	{"host memory", 3, func(int) Config { return with(func(c *Config) { c.noP2P = "off" }) }, false},
	{"host memory, in parts", 3, func(int) Config { return with(func(c *Config) { c.noP2P, c.Algo = "off", "steps" }) }, true},
	{"bridge", 2, func(int) Config { return with(func(c *Config) { c.noP2P, c.noSHM = "off", "off" }) }, true},
	{"two hosts", 4, func(r int) Config { return with(func(c *Config) { c.HostID = fmt.Sprint("host", r/2) }) }, true},
}

// ordered asks for a reduction of bytes of BFloat16 on GPU memory.
func ordered(kind Kind, bytes int, op RedOp) choice.Question {
	return choice.Question{Kind: kind, Bytes: bytes, Type: BFloat16, Op: op.Kind, OnGPU: true}
}

// TestDeviceDeterministic: GPUs give the bits that the host gives, and a plain loop.
func TestDeviceDeterministic(t *testing.T) {
	for _, tc := range rankPaths {
		t.Run(tc.name, func(t *testing.T) {
			comms := onHosts(t, devices(t, tc.n, gputest.NVLink()), tc.config)
			for i, x := range race.Some(6, trials(tc.n, 1, 333, 0, 2500)) {
				if i%5 == 0 {
					require.NoError(t, x.onGPUs(comms))
				}
			}
			for _, kind := range reductions {
				require.NoError(t, trial{kind: kind, typ: Float16, op: PreMulSum(2)}.onGPUs(comms), "nothing to do")
			}
			ans := comms[0].gpu.Chooser().Choose(ordered(KindAllReduce, 5000, Avg))
			require.Equal(t, tc.parts, ans.By == choice.ByFold)
		})
	}
}

// Much data for one rank is combined in shares, in place and out of place, in
// several pieces, with something left over.
func TestDeviceDeterministicReduce(t *testing.T) {
	comms := onHosts(t, devices(t, 3, gputest.NVLink()), func(int) Config { return exact })
	for _, c := range comms {
		chooser := c.gpu.Chooser()
		chooser.SharesFrom, chooser.SharesPiece = 4<<10, 3*2048
	}
	for i, op := range orderedOps {
		for _, inPlace := range []bool{false, true} {
			x := trial{KindReduce, BFloat16, op, 7001 - i, 1, inPlace, uint64(i)}
			require.NoError(t, x.onGPUs(comms))
		}
	}
	chooser := comms[0].gpu.Chooser()
	require.Equal(t, choice.ByShares, chooser.Choose(ordered(KindReduce, 4096, Avg)).By)
	require.Equal(t, call.TwoShot, chooser.Choose(ordered(KindReduce, 4096, Avg)).Algo)
	require.Equal(t, call.Direct, chooser.Choose(ordered(KindReduce, 2048, Avg)).Algo)
	require.NotEqual(t, call.TwoShot, chooser.Choose(ordered(KindReduce, 4096, Max)).Algo, "in any order")
}

// In registered memory, which kernels of all ranks read.
func TestDeviceDeterministicWindows(t *testing.T) {
	list := devices(t, 3, gputest.NVLink())
	comms := onHosts(t, list, func(int) Config { return with(func(c *Config) { c.Algo = "window" }) })
	memory := memories(t, list, 64<<10)
	register(t, comms, memory, 0, 64<<10)
	all := trials(3, 1, 333, 0, 1000)
	for i := 0; i < len(all); i += 5 {
		require.NoError(t, all[i].onGPUs(comms, memory...))
	}
	op := trial{kind: KindAllReduce, typ: BFloat16, op: Avg, count: 64}.call(0, 3, memory[0].Slice(0, 128), memory[0].Slice(128, 128))
	require.Equal(t, call.Window, comms[0].gpu.Answer(&op).Algo)
	op.Op = PreMulSum(2)
	require.Equal(t, call.OneShot, comms[0].gpu.Answer(&op).Algo, "scales differ")
	chooser := comms[0].gpu.Chooser()
	for _, chooser.Forced = range []call.Algo{call.Copies, call.Ring} {
		q := ordered(KindAllReduce, 1<<20, Avg)
		require.Equal(t, call.TwoShot, chooser.Choose(q).Algo)
		q.Registered = true
		require.Equal(t, call.Window, chooser.Choose(q).Algo, "%v has another order", chooser.Forced)
	}
}

// More ranks than the kernels of direct algorithms are for, on fewer GPUs.
func TestDeviceDeterministicMany(t *testing.T) {
	const n = 9
	list := make([]*gpu.Device, n)
	for i, d := range devices(t, 3) {
		for r := i; r < n; r += 3 {
			list[r] = d
		}
	}
	comms := onHosts(t, list, func(int) Config { return with(func(c *Config) { c.Timeout = 10 * time.Second }) })
	for i, kind := range reductions {
		require.NoError(t, trial{kind, BFloat16, Sum, 500, 3, i%2 == 0, 1}.onGPUs(comms))
		require.NoError(t, trial{kind, Float16, Avg, 77, 3, i%2 == 1, 2}.onGPUs(comms))
	}
}

// Data larger than the shares that are held at a time.
func TestDeviceDeterministicPieces(t *testing.T) {
	comms := onHosts(t, devices(t, 2), func(int) Config { return with(func(c *Config) { c.Algo = "steps" }) })
	for _, c := range comms {
		r, err := c.gpu.Reduction()
		require.NoError(t, err)
		r.RoomFor, r.Whole = 4<<10, 1<<10
	}
	for i, kind := range reductions {
		for j, op := range []RedOp{Avg, PreMulSum(0.7)} {
			require.NoError(t, trial{kind, BFloat16, op, 7001, 1, (i+j)%2 == 0, uint64(i)}.onGPUs(comms), "%v", op)
		}
	}
}

// On a GPU, too, a user's operator is refused before any rank hears of it.
func TestDeviceDeterministicUserOp(t *testing.T) {
	list := devices(t, 2)
	comms := onDevices(t, list, exact)
	x := alloc(t, list[0], make([]byte, 64))
	err := comms[0].Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 4, Type: Float32, Op: UserOp("mine", func(DataType, []byte, []byte) {})})
	require.ErrorContains(t, err, "a function in Go cannot run on a GPU")
}

// TestDeviceDeterministicRandom tries what nobody thought of, on GPUs and on the host.
func TestDeviceDeterministicRandom(t *testing.T) {
	var groups [][]*Comm
	for _, p := range rankPaths[:5] {
		groups = append(groups, onHosts(t, devices(t, p.n), p.config))
	}
	rapid.Check(t, func(t *rapid.T) {
		comms := rapid.SampledFrom(groups).Draw(t, "path")
		x := trial{
			kind:    rapid.SampledFrom(reductions).Draw(t, "kind"),
			typ:     rapid.SampledFrom(floatTypes).Draw(t, "type"),
			op:      rapid.SampledFrom(orderedOps).Draw(t, "op"),
			count:   rapid.IntRange(0, 300).Draw(t, "count"),
			root:    rapid.IntRange(0, 1).Draw(t, "root"),
			inPlace: rapid.Bool().Draw(t, "in place"),
			seed:    rapid.Uint64().Draw(t, "seed"),
		}
		if err := x.onGPUs(comms); err != nil {
			t.Fatal(err)
		}
	})
}
