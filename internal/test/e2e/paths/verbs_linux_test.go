package paths

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/socket"
	"github.com/ringo-go/ringo/transport/verbs"
)

// verbsOver is a network over a library, which has the devices found.
func verbsOver(name string, library ibverbs.Verbs, found transport.Found) transport.Network {
	return transport.Network{
		Name:  name,
		Probe: func(transport.NetworkOptions) (transport.Found, error) { return found, nil },
		Open: func(cfg transport.Config, o transport.NetworkOptions) transport.Transport {
			return verbsTransport{verbs.New(cfg, verbs.Options{Verbs: library, LocalRank: o.Rail, Sharers: o.Ranks, Near: o.Near,
				Listen: func() (net.Listener, string, error) { return socket.Listen(o) }, Door: name}), name}
		},
	}
}

// A verbsTransport has another name than package verbs gives it.
type verbsTransport struct {
	*verbs.Transport
	name string
}

func (n verbsTransport) Name() string { return n.name }

// needDevices is what RDMA devices this host has.
func needDevices(t *testing.T) transport.Found {
	found, err := verbs.Network.Probe(transport.NetworkOptions{})
	if err != nil {
		need.Missing(t, "rdma", "scripts/verbs-guest runs this: "+err.Error())
	}
	return found
}

// sum adds up so many numbers on the GPUs of all ranks, and checks the sums.
func sum(c *ringo.Comm, counts ...int) error {
	if all := strings.Join(c.Paths(), "\n"); !strings.Contains(all, "slots on the GPU, by dma-buf: GPUDirect") {
		return errors.New(all)
	}
	d := c.Device()
	for _, count := range counts {
		in := make([]byte, 4*count)
		for i := range count {
			binary.LittleEndian.PutUint32(in[4*i:], uint32(i*(c.Rank()+1)))
		}
		x, err := d.Alloc(len(in))
		if err == nil {
			err = d.Write(x, in)
		}
		if err == nil {
			err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: count, Type: ringo.Int32, Op: ringo.Sum})
		}
		if err == nil {
			err = c.Synchronize(0)
		}
		if err == nil {
			err = d.Read(in, x)
		}
		if err = errors.Join(err, d.Free(x)); err != nil {
			return fmt.Errorf("%d numbers: %w", count, err)
		}
		for i := range count {
			if got, want := binary.LittleEndian.Uint32(in[4*i:]), uint32(i*c.Size()*(c.Size()+1)/2); got != want {
				return fmt.Errorf("number %d of %d is %d, not %d", i, count, got, want)
			}
		}
	}
	return nil
}

// Sums over slots that devices move between GPUs are right. Slots of a GPU that does not see writes in order are read
// back.
func TestVerbs(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU's memory cannot be mapped by the devices of a test")
	}
	for _, flushes := range []bool{true, false} {
		t.Run(fmt.Sprint("flushes ", flushes), func(t *testing.T) {
			f := rdma.NewFabric(t, "fx0", "fx1")
			found := transport.Found{Kind: "RoCE v2 over IPv4",
				Devices: []transport.NetworkDevice{{Name: "fx0:1"}, {Name: "fx1:1"}}}
			defer paths.WithNetwork(verbsOver("fabric", f, found))()
			m, err := gpu.Of(gputest.Driver(t, gputest.Devices(2), gputest.NVLink(),
				gputest.Emu(cudaemu.Config{RDMA: true, Flushes: flushes})))
			require.NoError(t, err)
			list := make([]*gpu.Device, 2)
			for i := range list {
				list[i], err = m.Device(i)
				require.NoError(t, err)
			}
			comms, err := ringo.OpenLocal(2, ringo.Config{Transport: "fabric", Devices: list})
			require.NoError(t, err)
			var g errgroup.Group
			for _, c := range comms {
				g.Go(func() error { return sum(c, 1, 3000, 100_000) })
			}
			require.NoError(t, g.Wait())
			f.Set(func() { require.Equal(t, flushes, f.Backs > 0) })
			for i, c := range comms {
				require.NoError(t, errors.Join(c.Close(), list[i].Release()))
			}
		})
	}
}

// The same between two processes, on RDMA devices.
func TestVerbsDevices(t *testing.T) {
	found := needDevices(t)
	mapper, err := rdma.OpenMapper()
	require.NoError(t, err)
	defer paths.WithNetwork(verbsOver("mapped", mapper, found))()
	if rank := os.Getenv("RINGO_RANK"); rank != "" {
		require.NoError(t, oneOf(rank))
		return
	}
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	var g errgroup.Group
	for r := range 2 {
		g.Go(func() error {
			cmd := exec.Command(os.Args[0], "-test.run=^TestVerbsDevices$", "-test.timeout=90s")
			cmd.Env = append(os.Environ(), fmt.Sprint("RINGO_RANK=", r), "RINGO_SIZE=2", "RINGO_COMM_ID="+id.String(),
				fmt.Sprint("RINGO_HOSTID=host", r))
			out, err := cmd.CombinedOutput()
			if err == nil && !bytes.Contains(out, []byte("PASS")) {
				err = errors.New("did not run")
			}
			if err != nil {
				return fmt.Errorf("rank %d: %w: %s", r, err, out)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

// oneOf runs one rank in a process of its own.
func oneOf(rank string) error {
	r, err := strconv.Atoi(rank)
	if err != nil {
		return err
	}
	emulated, err := cudaemu.New(cudaemu.Config{Devices: 2, RDMA: true, Flushes: true})
	if err != nil {
		return err
	}
	m, err := gpu.Of(emulated)
	if err != nil {
		return err
	}
	d, err := m.Device(r)
	if err != nil {
		return err
	}
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{Device: d, Transport: "mapped"})
	if err != nil {
		return err
	}
	return errors.Join(sum(c, 3000, 20_000), c.Close(), m.Close())
}

// An all-reduce of 8 bytes between ranks on RDMA devices is right and allocates nothing.
func TestVerbsAllReduce(t *testing.T) {
	needDevices(t)
	comms, err := ringo.OpenLocal(2, ringo.Config{Transport: "ib"})
	require.NoError(t, err)
	defer func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	}()
	require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "ib")
	var data [2][]int64
	round := func(rank int) {
		data[rank][0] = int64(1 + rank)
		if err := ringo.AllReduce(comms[rank], data[rank], ringo.Sum); err != nil || data[rank][0] != 3 {
			t.Errorf("rank %d has %d: %v", rank, data[rank][0], err)
		}
	}
	const warm, runs = 20, 100
	data[0], data[1] = make([]int64, 1), make([]int64, 1)
	var other sync.WaitGroup
	other.Go(func() {
		for range warm + 1 + runs { // AllocsPerRun runs once more
			round(1)
		}
	})
	for range warm {
		round(0)
	}
	require.Zero(t, testing.AllocsPerRun(runs, func() { round(0) }))
	other.Wait()
}
