package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/mem"
)

// A fakeNCCL carries out the collectives of emulated GPUs when a group ends.
type fakeNCCL struct {
	rig   *rig
	wrong bool // flip a bit of a collective's result
	hang  chan struct{}
	fails string // the function that fails

	devices []int
	queue   []ncclCall
}

type ncclCall struct {
	name string
	args []uintptr
}

func (n *fakeNCCL) Version() (int, error) { return 22703, nil }

func (n *fakeNCCL) InitAll(devices ...int) (comms []nccl.Comm, err error) {
	n.devices = devices
	for i := range devices {
		comms = append(comms, nccl.Comm(i+1))
	}
	return comms, n.failure("ncclCommInitAll")
}

func (n *fakeNCCL) failure(name string) error {
	if name == n.fails {
		return fmt.Errorf("%s: result 1", name)
	}
	return nil
}

func (n *fakeNCCL) Call(name string, args ...uintptr) error {
	n.queue = append(n.queue, ncclCall{name, args})
	return n.failure(name)
}

func (n *fakeNCCL) Together(f func() error) error {
	n.queue = nil
	if err := f(); err != nil {
		return err
	}
	if n.hang != nil {
		<-n.hang
		return errors.New("late")
	}
	return n.carryOut()
}

// carryOut carries out what the ranks have called.
func (n *fakeNCCL) carryOut() error {
	m, err := gpu.Of(n.rig.machines[0])
	if err != nil {
		return err
	}
	size := len(n.devices)
	devices := make([]*gpu.Device, size)
	for i, number := range n.devices {
		if devices[i], err = m.Device(number); err != nil {
			return err
		}
		defer devices[i].Release()
	}
	read := func(rank int, at, count uintptr) []byte {
		b := make([]byte, 4*count)
		err = errors.Join(err, devices[rank].Read(b, mem.Device(n.devices[rank], at, len(b))))
		return b
	}
	write := func(rank int, at uintptr, b []byte) {
		if n.wrong {
			b[len(b)/2] ^= 16
		}
		err = errors.Join(err, devices[rank].Write(mem.Device(n.devices[rank], at, len(b)), b))
	}
	sent := map[[2]int][]byte{} // by sender and receiver
	var gathered, sum []byte
	for _, c := range n.queue {
		rank := int(c.args[len(c.args)-2]) - 1
		switch c.name {
		case "ncclSend":
			sent[[2]int{rank, int(c.args[3])}] = read(rank, c.args[0], c.args[1])
		case "ncclAllGather":
			gathered = append(gathered, read(rank, c.args[0], c.args[2])...)
		case "ncclAllReduce":
			b := read(rank, c.args[0], c.args[2])
			for i := 0; sum != nil && i < len(b); i += 4 {
				binary.LittleEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:])+binary.LittleEndian.Uint32(sum[i:]))
			}
			sum = b
		}
	}
	for _, c := range n.queue {
		rank := int(c.args[len(c.args)-2]) - 1
		switch c.name {
		case "ncclRecv":
			write(rank, c.args[0], sent[[2]int{int(c.args[3]), rank}])
		case "ncclAllGather":
			write(rank, c.args[1], slices.Clone(gathered))
		case "ncclAllReduce":
			write(rank, c.args[1], slices.Clone(sum))
		}
	}
	return err
}

// NCCL's collectives are verified, and its faults told from those of GPUs.
func TestNCCL(t *testing.T) {
	ill := []cudaemu.Injection{{Call: "cuLaunchKernel", Chance: 1, Device: 2, Result: 999}}
	for _, c := range []struct {
		name   string
		lib    fakeNCCL
		faults []cudaemu.Injection
		want   []string
		says   string
	}{
		{name: "well"},
		{name: "wrong", lib: fakeNCCL{wrong: true}, want: []string{"nccl-fails host a"}, says: "are wrong, element"},
		{name: "fails", lib: fakeNCCL{fails: "ncclAllGather"}, want: []string{"nccl-fails host a"},
			says: "NCCL 2.27.3 fails where ringo's collectives over the same GPUs do well: ncclAllGather: result 1"},
		{name: "does not start", lib: fakeNCCL{fails: "ncclCommInitAll"}, want: []string{"nccl-fails host a"},
			says: "ncclCommInitAll: result 1"},
		{name: "hangs", lib: fakeNCCL{hang: make(chan struct{})}, want: []string{"nccl-fails host a"}, says: "it hangs"},
		{name: "both fail", lib: fakeNCCL{fails: "ncclAllReduce"}, faults: ill,
			want: []string{"gpu-collective host a", "nccl-fails-too host a"}, says: "collectives fail"},
		{name: "ringo fails", faults: ill, want: []string{"gpu-collective host a", "nccl-is-well host a"},
			says: "collectives fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // ranks wait for what others know of a failure
			r := newRig(2, 1, "a")
			r.emu["a"].Faults = c.faults
			c.lib.rig = r
			stages := gpuStages()
			cfg := config{Stages: []stage{stages[0], stages[len(stages)-1], ncclStage()}, gpus: r.source()}
			cfg.gpus.nccl = func(string) (ncclLibrary, error) { return &c.lib, nil }
			for i := range cfg.Stages {
				cfg.Stages[i].Quick = 2 * time.Minute
			}
			if c.lib.hang != nil {
				cfg.Stages[2].Quick = 50 * time.Millisecond
				defer close(c.lib.hang)
			}
			report, errs := runAll(t, local("a"), cfg)
			require.NoError(t, errs[0])
			require.Equal(t, c.want, codes(report), "%v", report.Findings)
			require.Equal(t, "2.27.3", report.Of("GPU NCCL", "version")[0].Text)
			if c.says != "" {
				require.Contains(t, report.Findings[0].Text, c.says)
			}
			if c.want == nil {
				require.Equal(t, "GPUs 0,1", report.Of("GPU NCCL", "all-reduce")[0].Text)
			}
		})
	}
}

// Where NCCL is not installed its stage is left out, and says why.
func TestNCCLThatIsNotThere(t *testing.T) {
	r := newRig(2, 1, "a")
	cfg := config{Stages: []stage{gpuStages()[0], ncclStage()}, NCCL: filepath.Join(t.TempDir(), "libnccl.so.2"),
		gpus: r.source()}
	cfg.gpus.nccl = openNCCL
	report, errs := runAll(t, local("a"), cfg)
	require.NoError(t, errs[0])
	require.Empty(t, report.Findings)
	require.Contains(t, report.Stages[1].result(report), "left out: ")
	require.Contains(t, report.Stages[1].Skipped, "libnccl.so.2")
}

// TestNCCLIsAsked: config.NCCL adds the stage, at the end.
func TestNCCLIsAsked(t *testing.T) {
	for _, c := range []struct {
		cfg  config
		want bool
	}{{config{}, false}, {config{NCCL: nccl.Default}, true}, {config{NCCL: nccl.Default, NoGPUs: true}, false}} {
		j := alone()
		_, _ = run(canceled(t), j, c.cfg)
		require.Equal(t, c.want, j.cfg.Stages[len(j.cfg.Stages)-1].Name == "GPU NCCL")
		require.NoError(t, j.Close())
	}
}
