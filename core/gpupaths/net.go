// Package gpupaths is how the GPUs of a communicator's ranks reach each other: over
// NVLink or PCIe (peer access), over host memory that both processes have pinned, or by
// a bridge over a transport of host memory. It is the grid.Links of engine/grid. It is part of a
// communicator, and nothing here is promised to other modules.
//
// The ranks agree on the path of each pair: they try the three kinds in this order and tell
// each other what came of it (agree.go). A kernel does not see the difference: it gets the
// addresses of queues (links.go). Memory is allocated when a communicator is opened, since
// allocating later may wait for kernels that wait for this rank. The exception are the queues
// on GPUs, most of all memory, which is mapped when a program needs it (queues.go).
//
// The trap: drivers promise peer access that then fails, so a path is found by trying. An
// attempt that fails on one rank is no error of Connect; the pair takes the next kind.
package gpupaths

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Net is what connects this rank's GPU with those of all others. It is a grid.Links.
type Net struct {
	pairs
	group  paths.Group
	host   *paths.Net
	driver cuda.Driver
	ctx    cuda.Context
	dev    cuda.Device
	self   transport.Info

	hosts     hosts
	boards    // of this host
	geometry  geometry
	budget    choice.Budget
	memory    *p2p.Memory     // of this GPU, without queues
	queues    *p2p.Range      // of this GPU; nil if allQueues is there
	allQueues *p2p.Memory     // of this GPU, where memory cannot be mapped later
	shared    *p2p.HostMemory // of this process, pinned
	own       grid.Links      // of the rank to itself
	ownMemory grid.Board      // the shape of memory
	near      grid.Links      // over P2P
	pinned    grid.Links      // over host memory
	bridge    *bridgeNet
	broken    atomic.Pointer[engine.StepError] // the first connection of a bridge that broke
	onBroken  atomic.Pointer[func()]
}

// Connect agrees with all ranks on the path of each pair of GPUs. missing says, in the same
// words on all ranks, why some pair has none; n is nil then. d and cfg are this rank's.
func Connect(ctx context.Context, g paths.Group, host *paths.Net, d *gpu.Device, quota *Quota,
	cfg *paths.Config) (n *Net, missing string, err error) {
	handle, err := d.Context()
	if err != nil {
		return nil, "", err
	}
	all := host.Profiles
	budget := choice.Agree(members(all))
	quota.settle(budget.Most)
	n = &Net{
		pairs: pairs{rank: g.Rank(), size: g.Size()}, group: g, host: host, self: all[g.Rank()].Info,
		driver: d.Driver(), ctx: handle, dev: d.Handle(), budget: budget, hosts: hostsOf(all),
	}
	n.geometry = geometryOf(&n.hosts, leastCores(all), budget.Lanes())
	n.boards = n.geometry.boards[len(n.hosts.of(n.rank))]
	if missing, err = n.connect(ctx, cfg); err != nil || missing != "" {
		return nil, missing, errors.Join(err, n.Close(true))
	}
	return n, "", nil
}

// leastCores is the least number of cores that a rank's host has.
func leastCores(all []paths.Profile) int {
	least := all[0].Cores
	for i := range all {
		least = min(least, all[i].Cores)
	}
	return least
}

// Shared reports whether ranks share a GPU.
func (n *Net) Shared() bool { return choice.Sharing(members(n.host.Profiles)) > 1 }

// Budget is how many blocks a kernel has, as all ranks agreed.
func (n *Net) Budget() choice.Budget { return n.budget }

// OnBroken has f called when a connection of the bridge breaks, and at once if one has.
func (n *Net) OnBroken(f func()) {
	n.onBroken.Store(&f)
	if n.Broken() != nil {
		f()
	}
}

// Broken is how the first connection of the bridge broke, nil if none has.
func (n *Net) Broken() *engine.StepError { return n.broken.Load() }

// Wake tells the bridge that an operation is queued, so that it looks at its queues.
func (n *Net) Wake() {
	if n.bridge != nil && n.bridge.bridge != nil {
		n.bridge.bridge.Wake()
	}
}

// Vigilant has the bridge look at its queues often, since graphs that hold operations may be
// launched at any time, and nobody calls Wake then.
func (n *Net) Vigilant(on bool) {
	if n.bridge != nil && n.bridge.bridge != nil {
		n.bridge.bridge.Vigilant(on)
	}
}

// Stop ends the work of the bridge, and all waits for memory of other processes.
func (n *Net) Stop(cause error) {
	if n.queues != nil {
		n.queues.Stop(cause)
	}
	if n.bridge != nil {
		n.bridge.guard.Abort(cause)
	}
}

// Close gives everything back. No kernel of this process uses it any more. If the ranks have
// not parted, kernels of others may still write to this rank's memory, and nobody gets it.
func (n *Net) Close(parted bool) error {
	var errs []error
	if n.bridge != nil {
		errs = append(errs, n.bridge.close())
	}
	if n.shared != nil {
		errs = append(errs, n.shared.Close())
	}
	if n.queues != nil {
		errs = append(errs, n.queues.Close(parted))
	}
	if n.allQueues != nil {
		errs = append(errs, n.allQueues.Close(parted))
	}
	if n.memory != nil {
		errs = append(errs, n.memory.Close(parted))
	}
	return errors.Join(errs...)
}

// Fabric is the GPUs of all ranks, and the best and the worst path between two of them.
func (n *Net) Fabric(topo choice.Topology) *choice.Fabric {
	f := &choice.Fabric{Topo: topo, Near: transport.OverP2P, Far: transport.OverP2P}
	for i := range n.host.Profiles {
		f.GPUs = append(f.GPUs, n.host.Profiles[i].GPU)
	}
	for i, pair := range n.indices() {
		if p := n.paths[pair]; i == 0 {
			f.Near, f.Far = p, p
		} else {
			f.Near, f.Far = min(f.Near, p), max(f.Far, p)
		}
	}
	return f
}

// Apart is the first pair of ranks whose GPUs have no peer access to each other, and why. ok
// is false if all pairs have it.
func (n *Net) Apart() (a, b int, why string, ok bool) {
	for _, i := range n.indices() {
		if !n.paths[i].Peer() {
			return i / n.size, i % n.size, n.against[i], true
		}
	}
	return 0, 0, "", false
}

// Segment makes a segment of this rank's GPU memory ready to be shared with the others.
func (n *Net) Segment(addr uint64, bytes int) (*p2p.Segment, error) {
	return p2p.NewSegment(p2p.Config{Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: bytes}, addr)
}

// Context is the context of this rank's GPU.
func (n *Net) Context() cuda.Context { return n.ctx }
