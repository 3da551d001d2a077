// Package gpupaths is how the GPUs of a communicator's ranks reach each other: over
// NVLink or PCIe (peer access), over host memory that both processes have pinned, or by
// a bridge over a transport of host memory. It is the grid.Links of engine/grid.
//
// The ranks agree on the path of each pair: they try one kind after the other, the best
// first, and tell each other what came of it (net.go). To a kernel the three look the
// same: addresses in an End (links.go). All memory is there from the beginning, since
// allocating later may wait for kernels that wait for us.
//
// The trap: what connects two GPUs is found by trying, since drivers promise peer access
// that then fails; so an error of one rank's attempt is not an error of Connect.
package gpupaths

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/paths"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Net is what connects this rank's GPU with those of all others. It is a grid.Links.
type Net struct {
	rank, size int
	group      paths.Group
	host       *paths.Net
	driver     cuda.Driver
	ctx        cuda.Context
	dev        cuda.Device
	self       transport.Info

	paths   []transport.GPUPath // of pairs, see pair
	against []string            // of pairs: why not better ones
	geometry
	memory    *p2p.Memory
	shared    *p2p.HostMemory
	own       grid.Links // of the rank to itself
	ownMemory grid.Board
	near      grid.Links // over P2P
	pinned    grid.Links // over host memory
	bridge    *bridgeNet
	broken    atomic.Pointer[engine.StepError] // the first connection of a bridge that broke
}

// Connect agrees with all ranks on the path of each pair of GPUs. missing says, in the same
// words on all ranks, why there is none for some pair; then GPU memory cannot be used.
func Connect(ctx context.Context, g paths.Group, host *paths.Net, d *gpu.Device, cfg *paths.Config) (n *Net, missing string, err error) {
	handle, err := d.Context()
	if err != nil {
		return nil, "", err
	}
	all := host.Profiles
	n = &Net{
		rank: g.Rank(), size: g.Size(), group: g, host: host, self: all[g.Rank()].Info,
		driver: d.Driver(), ctx: handle, dev: d.Handle(), geometry: geometryOf(g.Size(), sharing(all), all[0].Processors),
	}
	if missing, err = n.connect(ctx, cfg); err != nil || missing != "" {
		return nil, missing, errors.Join(err, n.Close())
	}
	return n, "", nil
}

// Blocks is how many blocks a kernel of this rank has at most.
func (n *Net) Blocks() int { return n.blocks }

// Broken is the first connection of a bridge that broke, nil if all are well.
func (n *Net) Broken() *engine.StepError { return n.broken.Load() }

// pair is the index of a pair of ranks.
func (n *Net) pair(a, b int) int { return min(a, b)*n.size + max(a, b) }

func (n *Net) path(a, b int) transport.GPUPath { return n.paths[n.pair(a, b)] }

// uses reports whether this rank has a path of a kind to another one.
func (n *Net) uses(p transport.GPUPath) bool {
	for r := range n.size {
		if r != n.rank && n.path(n.rank, r) == p {
			return true
		}
	}
	return false
}

// only reports whether all pairs of ranks have the same kind of path.
func (n *Net) only(p transport.GPUPath) bool {
	for a := range n.size {
		for b := range a {
			if n.path(a, b) != p {
				return false
			}
		}
	}
	return true
}

// connect finds the paths of all pairs; see Connect for missing.
func (n *Net) connect(ctx context.Context, cfg *paths.Config) (missing string, err error) {
	n.paths, n.against = make([]transport.GPUPath, n.size*n.size), make([]string, n.size*n.size)
	noP2P, noHost, noBridge := cfg.GPURefusals()
	if n.size == 1 {
		noP2P = "" // there is nobody to refuse it to
	}
	if err := n.connectP2P(ctx, noP2P); err != nil {
		return "", err
	}
	if !n.only(transport.OverP2P) {
		if err := n.connectHost(ctx, noHost); err != nil {
			return "", err
		}
	}
	if slices.ContainsFunc(n.pairs(), func(i int) bool { return n.paths[i] == transport.NoPath }) {
		if err := n.connectBridge(ctx, noBridge); err != nil {
			return "", err
		}
	}
	for _, i := range n.pairs() {
		if n.paths[i] == transport.NoPath {
			return fmt.Sprintf("nothing connects ranks %d and %d: %s", i/n.size, i%n.size, n.against[i]), nil
		}
	}
	return "", nil
}

func (n *Net) pairs() []int {
	var list []int
	for b := range n.size {
		for a := range b {
			list = append(list, n.pair(a, b))
		}
	}
	return list
}

// try has all ranks try one kind of path for the pairs that have none yet. reach
// is a pure function of what all ranks know; open is this rank's attempt with a
// peer that reach lets through.
func (n *Net) try(ctx context.Context, p transport.GPUPath, reach func(a, b int) error, open func(peer int) error) error {
	failed := make([]string, n.size)
	for r := range n.size {
		if r == n.rank || n.path(n.rank, r) != transport.NoPath || reach(min(n.rank, r), max(n.rank, r)) != nil {
			continue
		}
		if err := open(r); err != nil {
			failed[r] = err.Error()
		}
	}
	mine, err := json.Marshal(failed)
	if err != nil {
		return err
	}
	blobs, err := n.group.AllGather(ctx, mine)
	if err != nil {
		return err
	}
	all := make([][]string, n.size)
	for r, b := range blobs {
		if err := json.Unmarshal(b, &all[r]); err != nil || len(all[r]) != n.size {
			return fmt.Errorf("what rank %d says of its paths: %w", r, errors.Join(err, fmt.Errorf("%d entries", len(all[r]))))
		}
	}
	for b := range n.size {
		for a := range b {
			i := n.pair(a, b)
			if n.paths[i] != transport.NoPath {
				continue
			}
			why := all[a][b]
			if why == "" {
				why = all[b][a]
			}
			if err := reach(a, b); err != nil {
				why = err.Error()
			}
			if why == "" {
				n.paths[i] = p
				continue
			}
			why = strings.TrimPrefix(why, "p2p: ")
			switch {
			case n.against[i] == "":
				n.against[i] = why
			case !strings.HasSuffix(n.against[i], why):
				n.against[i] += "; " + why
			}
		}
	}
	return nil
}

func (n *Net) connectP2P(ctx context.Context, refused string) (err error) {
	if err := n.allocate(refused); err != nil {
		return err
	}
	offers, err := paths.Exchange(ctx, n.group, n.memory.Offer(), p2p.ParseOffer)
	if err != nil {
		return err
	}
	addrs := make([]uint64, n.size)
	err = n.try(ctx, transport.OverP2P,
		func(a, b int) error { return p2p.Reach(&offers[a], &offers[b]) },
		func(peer int) (err error) {
			addrs[peer], err = n.memory.Open(&offers[peer])
			return err
		})
	if err != nil {
		return err
	}
	if !n.uses(transport.OverP2P) && n.size > 1 && refused == "" {
		if err := n.memory.Close(); err != nil {
			return err
		}
		if err := n.allocate("nobody to share with"); err != nil {
			return err
		}
	}
	addrs[n.rank] = n.memory.Address()
	n.near = n.board.Links(sched.Rank(n.rank), addrs)
	n.own = n.near
	if n.ownMemory.Ranks == 1 {
		n.own = ownLinks{n.ownMemory.Links(0, addrs[n.rank:n.rank+1])}
	}
	return nil
}

// allocate makes this rank's device memory: a board, or just the queues to itself
// if it is not to be shared.
func (n *Net) allocate(refused string) (err error) {
	n.ownMemory = n.board
	if refused != "" {
		n.ownMemory = grid.Board{Ranks: 1, Near: n.board.Near, Far: n.board.Far}
	}
	n.memory, err = p2p.New(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: n.ownMemory.Bytes(), Refused: refused,
	})
	return err
}

func (n *Net) connectHost(ctx context.Context, refused string) error {
	n.shared = p2p.NewHost(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: n.geometry.pinned.Bytes(), Refused: refused,
	})
	offers, err := paths.Exchange(ctx, n.group, n.shared.Offer(), p2p.ParseHostOffer)
	if err != nil {
		return err
	}
	addrs := make([]uint64, n.size)
	err = n.try(ctx, transport.OverHost,
		func(a, b int) error { return p2p.ReachHost(&offers[a], &offers[b]) },
		func(peer int) (err error) {
			addrs[peer], err = n.shared.Open(&offers[peer])
			return err
		})
	if err != nil {
		return err
	}
	if !n.uses(transport.OverHost) {
		return n.shared.Close()
	}
	if addrs[n.rank], err = n.shared.Address(); err != nil {
		return err
	}
	n.pinned = n.geometry.pinned.Links(sched.Rank(n.rank), addrs)
	return nil
}

// Wake tells bridges that an operation is queued.
func (n *Net) Wake() {
	if n.bridge != nil && n.bridge.bridge != nil {
		n.bridge.bridge.Wake()
	}
}

// Stop ends the work of bridges.
func (n *Net) Stop(cause error) {
	if n.bridge != nil {
		n.bridge.guard.Abort(cause)
	}
}

// Close gives everything back. No kernel uses it any more.
func (n *Net) Close() error {
	var errs []error
	if n.bridge != nil {
		errs = append(errs, n.bridge.close())
	}
	if n.shared != nil {
		errs = append(errs, n.shared.Close())
	}
	if n.memory != nil {
		errs = append(errs, n.memory.Close())
	}
	return errors.Join(errs...)
}

// Fabric is what this communicator's GPUs are and how they are connected.
func (n *Net) Fabric(topo choice.Topology) *choice.Fabric {
	f := &choice.Fabric{Topo: topo, Near: transport.OverP2P, Far: transport.OverP2P}
	for i := range n.host.Profiles {
		f.GPUs = append(f.GPUs, n.host.Profiles[i].GPU)
	}
	for i, pair := range n.pairs() {
		if p := n.paths[pair]; i == 0 {
			f.Near, f.Far = p, p
		} else {
			f.Near, f.Far = min(f.Near, p), max(f.Far, p)
		}
	}
	return f
}

// Apart is a pair of ranks whose GPUs do not reach each other's memory, and why; ok is false
// if all do.
func (n *Net) Apart() (a, b int, why string, ok bool) {
	for _, i := range n.pairs() {
		if n.paths[i] != transport.OverP2P {
			return i / n.size, i % n.size, n.against[i], true
		}
	}
	return 0, 0, "", false
}

// Span makes a span of this rank's GPU memory ready to be shared with the others.
func (n *Net) Span(addr uint64, bytes int) (*p2p.Span, error) {
	return p2p.NewSpan(p2p.Config{Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: bytes}, addr)
}

// Context is the context of this rank's GPU.
func (n *Net) Context() cuda.Context { return n.ctx }
