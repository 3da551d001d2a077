package ringo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A gpuPath is how the GPUs of two ranks are connected.
type gpuPath uint8

const (
	noPath     gpuPath = iota
	overP2P            // queues in the receiver's device memory
	overHost           // queues in the receiver's host memory, which both processes have pinned
	overBridge         // queues in each one's own host memory, and a transport between
)

var gpuPathNames = [...]string{"nothing", "p2p", "host memory", "bridge"}

// A deviceNet is what connects this rank's GPU with those of all others. It is a
// grid.Links. The ranks agree on the path of each pair: they try one kind after the
// other, the best first, and tell each other what came of it.
type deviceNet struct {
	rank, size int
	group      interface {
		AllGather(ctx context.Context, mine []byte) ([][]byte, error)
	}
	driver cuda.Driver
	ctx    cuda.Context
	dev    cuda.Device
	self   transport.Info
	cfg    *Config

	paths   []gpuPath // of pairs, see pair
	against []string  // of pairs: why not better ones
	geometry
	memory    *p2p.Memory
	host      *p2p.HostMemory
	own       grid.Links // of the rank to itself
	ownMemory grid.Board
	near      grid.Links // over P2P
	pinned    grid.Links // over host memory
	bridge    *bridgeNet
	broken    atomic.Pointer[engine.StepError] // the first connection of a bridge that broke
}

// A geometry is the shapes of queues that all ranks have in mind before they meet.
type geometry struct {
	board  grid.Board // on devices
	pinned grid.Board // in host memory
	bridge grid.Geometry
}

// geometryOf is for a number of ranks, of which so many at most share one GPU of
// so many multiprocessors: their blocks have to run side by side.
func geometryOf(ranks, sharing, processors int) geometry {
	g := geometry{
		board: grid.DefaultBoard(ranks),
		pinned: grid.Board{
			Ranks: ranks,
			Near:  grid.Geometry{Lanes: 16, Slots: 4, SlotBytes: 64 << 10},
			Far:   grid.Geometry{Lanes: max(1, min(8, 32/ranks)), Slots: 4, SlotBytes: 64 << 10},
		},
		bridge: grid.Geometry{Lanes: 4, Slots: 8, SlotBytes: 128 << 10},
	}
	if ranks > 8 { // all pairs have memory from the beginning
		g.bridge = grid.Geometry{Lanes: 1, Slots: 4, SlotBytes: 128 << 10}
	}
	if sharing > 1 {
		most := max(1, processors/sharing)
		for _, q := range []*grid.Geometry{&g.board.Near, &g.board.Far, &g.pinned.Near, &g.pinned.Far, &g.bridge} {
			q.Lanes = min(q.Lanes, most)
		}
	}
	return g
}

// pair is the index of a pair of ranks.
func (n *deviceNet) pair(a, b int) int { return min(a, b)*n.size + max(a, b) }

func (n *deviceNet) path(a, b int) gpuPath { return n.paths[n.pair(a, b)] }

// uses reports whether this rank has a path of a kind to another one.
func (n *deviceNet) uses(p gpuPath) bool {
	for r := range n.size {
		if r != n.rank && n.path(n.rank, r) == p {
			return true
		}
	}
	return false
}

// only reports whether all pairs of ranks have the same kind of path.
func (n *deviceNet) only(p gpuPath) bool {
	for a := range n.size {
		for b := range a {
			if n.path(a, b) != p {
				return false
			}
		}
	}
	return true
}

// connect finds the paths of all pairs. missing says, in the same words on all
// ranks, why there is none for some pair.
func (n *deviceNet) connect(ctx context.Context, c *Comm) (missing string, err error) {
	n.paths, n.against = make([]gpuPath, n.size*n.size), make([]string, n.size*n.size)
	noP2P, noHost, noBridge := n.cfg.gpuRefusals()
	if n.size == 1 {
		noP2P = "" // there is nobody to refuse it to
	}
	if err := n.connectP2P(ctx, noP2P); err != nil {
		return "", err
	}
	if !n.only(overP2P) {
		if err := n.connectHost(ctx, noHost); err != nil {
			return "", err
		}
	}
	if slices.ContainsFunc(n.pairs(), func(i int) bool { return n.paths[i] == noPath }) {
		if err := n.connectBridge(ctx, c, noBridge); err != nil {
			return "", err
		}
	}
	for _, i := range n.pairs() {
		if n.paths[i] == noPath {
			return fmt.Sprintf("nothing connects ranks %d and %d: %s", i/n.size, i%n.size, n.against[i]), nil
		}
	}
	return "", nil
}

func (n *deviceNet) pairs() []int {
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
func (n *deviceNet) try(ctx context.Context, p gpuPath, reach func(a, b int) error, open func(peer int) error) error {
	failed := make([]string, n.size)
	for r := range n.size {
		if r == n.rank || n.path(n.rank, r) != noPath || reach(min(n.rank, r), max(n.rank, r)) != nil {
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
			if n.paths[i] != noPath {
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

func (n *deviceNet) connectP2P(ctx context.Context, refused string) (err error) {
	if err := n.allocate(refused); err != nil {
		return err
	}
	offers, err := exchange(ctx, n, n.memory.Offer(), p2p.ParseOffer)
	if err != nil {
		return err
	}
	addrs := make([]uint64, n.size)
	err = n.try(ctx, overP2P,
		func(a, b int) error { return p2p.Reach(&offers[a], &offers[b]) },
		func(peer int) (err error) {
			addrs[peer], err = n.memory.Open(&offers[peer])
			return err
		})
	if err != nil {
		return err
	}
	if !n.uses(overP2P) && n.size > 1 && refused == "" {
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
		n.own = alone{n.ownMemory.Links(0, addrs[n.rank:n.rank+1])}
	}
	return nil
}

// allocate makes this rank's device memory: a board, or just the queues to itself
// if it is not to be shared.
func (n *deviceNet) allocate(refused string) (err error) {
	n.ownMemory = n.board
	if refused != "" {
		n.ownMemory = grid.Board{Ranks: 1, Near: n.board.Near, Far: n.board.Far}
	}
	n.memory, err = p2p.New(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: n.ownMemory.Bytes(), Refused: refused,
	})
	return err
}

func (n *deviceNet) connectHost(ctx context.Context, refused string) error {
	n.host = p2p.NewHost(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: n.geometry.pinned.Bytes(), Refused: refused,
	})
	offers, err := exchange(ctx, n, n.host.Offer(), p2p.ParseHostOffer)
	if err != nil {
		return err
	}
	addrs := make([]uint64, n.size)
	err = n.try(ctx, overHost,
		func(a, b int) error { return p2p.ReachHost(&offers[a], &offers[b]) },
		func(peer int) (err error) {
			addrs[peer], err = n.host.Open(&offers[peer])
			return err
		})
	if err != nil {
		return err
	}
	if !n.uses(overHost) {
		return n.host.Close()
	}
	if addrs[n.rank], err = n.host.Address(); err != nil {
		return err
	}
	n.pinned = n.geometry.pinned.Links(sched.Rank(n.rank), addrs)
	return nil
}

// exchange gives all ranks' offers, in order.
func exchange[T any](ctx context.Context, n *deviceNet, mine []byte, parse func([]byte) (T, error)) ([]T, error) {
	blobs, err := n.group.AllGather(ctx, mine)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(blobs))
	for i, b := range blobs {
		if all[i], err = parse(b); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// alone is the connection of a rank to itself, in memory that has no other.
type alone struct{ grid.Links }

func (l alone) Send(sched.Rank) (grid.End, error) { return l.Links.Send(0) }
func (l alone) Recv(sched.Rank) (grid.End, error) { return l.Links.Recv(0) }

// Send is part of grid.Links.
func (n *deviceNet) Send(to sched.Rank) (grid.End, error) {
	l, err := n.linksTo(to)
	if err != nil {
		return grid.End{}, err
	}
	return l.Send(to)
}

// Recv is part of grid.Links.
func (n *deviceNet) Recv(from sched.Rank) (grid.End, error) {
	l, err := n.linksTo(from)
	if err != nil {
		return grid.End{}, err
	}
	return l.Recv(from)
}

// A gpuLink makes the ends of queues.
type gpuLink interface {
	Send(to sched.Rank) (grid.End, error)
	Recv(from sched.Rank) (grid.End, error)
}

func (n *deviceNet) linksTo(peer sched.Rank) (gpuLink, error) {
	if peer < 0 || int(peer) >= n.size {
		return nil, fmt.Errorf("rank %d: there are %d", peer, n.size)
	}
	if int(peer) == n.rank {
		return n.own, nil
	}
	switch n.path(n.rank, int(peer)) {
	case overP2P:
		return n.near, nil
	case overHost:
		return n.pinned, nil
	case overBridge:
		return n.bridge, nil
	}
	return nil, fmt.Errorf("no path to rank %d", peer)
}

// Geometry is part of grid.Links.
func (n *deviceNet) Geometry(from, to sched.Rank) grid.Geometry {
	if from != to {
		switch n.path(int(from), int(to)) {
		case overHost:
			return n.geometry.pinned.Geometry(from, to)
		case overBridge:
			return n.geometry.bridge
		}
	}
	return n.board.Geometry(from, to)
}

// Mail is part of grid.Links: nil unless all pairs have P2P.
func (n *deviceNet) Mail() ([]uint64, int) {
	if !n.only(overP2P) {
		return nil, 0
	}
	return n.near.Mail()
}

// Signs is part of grid.Links: nil unless all pairs have the same kind of memory.
func (n *deviceNet) Signs() []uint64 {
	switch {
	case n.size > 1 && n.only(overHost):
		return n.pinned.Signs()
	case n.only(overP2P) && n.ownMemory.Ranks == n.size:
		return n.near.Signs()
	}
	return nil
}

// via names the path to a peer.
func (n *deviceNet) via(peer int) string {
	if peer < 0 || peer >= n.size || peer == n.rank {
		return ""
	}
	p := n.path(n.rank, peer)
	if p == overBridge {
		return "bridge over " + n.bridge.links.via(peer)
	}
	return gpuPathNames[p]
}

// notes says what the paths are, and why not better ones.
func (n *deviceNet) notes() []string {
	if n.size == 1 {
		return []string{"GPU memory: p2p"}
	}
	var notes []string
	ranks := map[string][]string{} // by what is said of them
	for r := range n.size {
		if r == n.rank {
			continue
		}
		what := n.via(r)
		if why := n.against[n.pair(n.rank, r)]; why != "" {
			what += "|" + why
		}
		if ranks[what] == nil {
			notes = append(notes, what)
		}
		ranks[what] = append(ranks[what], fmt.Sprint(r))
	}
	for i, what := range notes {
		list, s := ranks[what], ""
		if len(list) > 1 {
			s = "s"
		}
		path, why, ok := strings.Cut(what, "|")
		notes[i] = fmt.Sprintf("GPU memory: %s with rank%s %s", path, s, strings.Join(list, ", "))
		if ok {
			notes[i] += " (" + why + ")"
		}
	}
	return notes
}

// wake says that an operation is queued.
func (n *deviceNet) wake() {
	if n.bridge != nil && n.bridge.bridge != nil {
		n.bridge.bridge.Wake()
	}
}

// stop ends the work of bridges.
func (n *deviceNet) stop(cause error) {
	if n.bridge != nil {
		n.bridge.guard.Abort(cause)
	}
}

// close gives everything back. No kernel uses it any more.
func (n *deviceNet) close() error {
	var errs []error
	if n.bridge != nil {
		errs = append(errs, n.bridge.close())
	}
	if n.host != nil {
		errs = append(errs, n.host.Close())
	}
	if n.memory != nil {
		errs = append(errs, n.memory.Close())
	}
	return errors.Join(errs...)
}

// describe says which GPU a rank has.
func (p *profile) describe(d *gpu.Device) error {
	var err error
	if p.GPU, err = d.Name(); err != nil {
		return err
	}
	uuid, err := d.Driver().DeviceGetUuid(d.Handle())
	if err != nil {
		return err
	}
	p.GPUID = fmt.Sprintf("%x", uuid)
	p.Processors, err = d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle())
	return err
}

// sharing is how many ranks at most have the same GPU.
func sharing(all []profile) int {
	most, ranks := 0, map[string]int{}
	for i := range all {
		ranks[all[i].GPUID]++
		most = max(most, ranks[all[i].GPUID])
	}
	return most
}
