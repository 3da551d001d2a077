// What the tests of this package share.

package gpucomm

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// open makes the GPU halves of a communicator, a rank a device, closed at the end of the
// test. change is made to every rank's options.
func open(t testing.TB, list []*gpu.Device, change func(*Options)) []*Comm {
	t.Helper()
	return openOn(t, bootstrap.Local(len(list)), list, change)
}

func openOn(t testing.TB, groups []bootstrap.Group, list []*gpu.Device, change func(*Options)) []*Comm {
	t.Helper()
	return openHosts(t, groups, strings.Repeat("a", len(list)), list, change)
}

// openHosts is openOn with the ranks on hosts, a letter each.
func openHosts(t testing.TB, groups []bootstrap.Group, hosts string, list []*gpu.Device,
	change func(*Options)) []*Comm {
	t.Helper()
	comms, errs := make([]*Comm, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for r, group := range groups {
		wg.Go(func() {
			var leave func() error
			comms[r], leave, errs[r] = openRank(group, hosts[r:r+1], list[r], change)
			t.Cleanup(func() { require.NoError(t, leave()) })
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return comms
}

// openRank opens the GPU half of a communicator on a rank. The caller calls leave, which gives everything back, also
// after an error.
func openRank(group bootstrap.Group, host string, d *gpu.Device, change func(*Options)) (g *Comm, leave func() error,
	err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l := life.New(group, host, "", 20*time.Second)
	me := paths.Profile{Info: transport.Info{Rank: group.Rank(), Host: host}}
	var given Options
	if change != nil {
		change(&given)
	}
	share, err := gpupaths.Take(nil, &me, d, string(group.Key()), given.Chooser.Budget)
	giveBack := func() error {
		share.GiveBack()
		return group.Close()
	}
	if err == nil {
		err = gpupaths.Describe(&me, d)
	}
	if err != nil {
		return nil, giveBack, err
	}
	cfg := paths.Config{Slots: 8, Cores: 1, Networking: transport.NetworkOptions{Interface: "lo"}}
	net, err := paths.Connect(ctx, group, me, cfg, &l.Guard, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, giveBack, err
	}
	apart := func() error { return errors.Join(net.Close(), giveBack()) }
	o := Options{
		Device: d, Quota: share, Life: l, Group: group, Chooser: choice.Chooser{Topo: choice.TopologyOf(net.Hosts())},
		Numberer: &request.Numberer{Life: l}, Host: net, Paths: &cfg, JoinTimeout: 20 * time.Second,
		Lock: l.Turn.Lock, InTurn: l.Turn.Keep, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	g, missing, err := Open(ctx, o)
	if missing != "" {
		err = errors.Join(err, errors.New(missing))
	}
	return g, func() error {
		if g == nil {
			return apart()
		}
		var finished error
		if err == nil {
			l.Turn.Lock(context.Background())
			finished = g.Finish()
			l.Turn.Unlock()
			l.Close()
		}
		return errors.Join(finished, g.Leave(apart))
	}, err
}

// each runs f on all ranks at once.
func each(t testing.TB, comms []*Comm, f func(g *Comm) error) {
	t.Helper()
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, g := range comms {
		wg.Go(func() { errs[r] = f(g) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// memories is n bytes of memory on each device.
func memories(t testing.TB, list []*gpu.Device, n int) []mem.Region {
	t.Helper()
	all := make([]mem.Region, len(list))
	for r, d := range list {
		var err error
		all[r], err = d.Alloc(n)
		require.NoError(t, err)
		require.NoError(t, d.Write(all[r], make([]byte, n)))
		t.Cleanup(func() { require.NoError(t, d.Free(all[r])) })
	}
	return all
}

// do carries out a call as a communicator does.
func (g *Comm) do(c *call.Call) error {
	g.Life.Turn.Lock(context.Background())
	defer g.Life.Turn.Unlock()
	return g.Do(c)
}

// BenchmarkAdmit is the check of memory that is known.
func BenchmarkAdmit(b *testing.B) {
	list := gputest.GPUs(b, 1)
	g := open(b, list, nil)[0]
	x, y := memories(b, list, 4096)[0], memories(b, list, 4096)[0]
	g.admission.add(x)
	g.admission.add(y)
	for b.Loop() {
		if err := errors.Join(g.admission.admitMemory("In", x, 4), g.admission.admitMemory("Out", y, 4)); err != nil {
			b.Fatal(err)
		}
	}
}

// The driver is asked once for an allocation, not for each span of it that calls are on.
func TestAdmitOncePerAllocation(t *testing.T) {
	list := gputest.GPUs(t, 1)
	g, x := open(t, list, nil)[0], memories(t, list, 4096)[0]
	for at := 0; at < 4096; at += 64 {
		part := x.Slice(at, 64)
		require.NoError(t, g.do(&call.Call{Kind: call.AllReduce, In: part, Out: part, Count: 16, Type: kernels.Float32}))
	}
	require.Equal(t, []mem.Region{x}, g.admission.memory)
}
