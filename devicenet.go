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
