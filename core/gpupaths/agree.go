// How the ranks agree on the path of each pair.

package gpupaths

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// connect finds the paths of all pairs. missing is that of Connect.
func (n *Net) connect(ctx context.Context, cfg *paths.Config) (missing string, err error) {
	n.paths, n.against = make([]transport.GPUPath, n.size*n.size), make([]string, n.size*n.size)
	n.links, n.forced = make([]cuda.Link, n.size*n.size), cfg.Lines
	noP2P, noHost, noBridge := cfg.GPURefusals()
	if n.size == 1 {
		noP2P = "" // there is nobody to refuse it to
	}
	if err := n.connectP2P(ctx, noP2P); err != nil {
		return "", err
	}
	if !n.all(n.peers) {
		if err := n.connectHost(ctx, noHost); err != nil {
			return "", err
		}
	}
	if slices.ContainsFunc(n.indices(), func(i int) bool { return n.paths[i] == transport.NoPath }) {
		if err := n.connectBridge(ctx, noBridge, cfg); err != nil {
			return "", err
		}
	}
	for _, i := range n.indices() {
		if n.paths[i] == transport.NoPath {
			return fmt.Sprintf("nothing connects ranks %d and %d: %s", i/n.size, i%n.size, n.against[i]), nil
		}
	}
	return "", nil
}

// try has all ranks try one kind of path for the pairs that have none yet. reach says why it
// cannot connect a pair, from what all ranks know, so that all say the same; a < b. Otherwise
// both ranks of the pair call open, and the pair has the path if both succeed. word is what this rank
// says besides, and words are those of all ranks.
func (n *Net) try(ctx context.Context, p transport.GPUPath, word string, reach func(a, b int) error,
	open func(peer int) error) (words []string, err error) {
	failed := make([]string, n.size)
	for r := range n.size {
		if r == n.rank || n.path(n.rank, r) != transport.NoPath || reach(min(n.rank, r), max(n.rank, r)) != nil {
			continue
		}
		if err := open(r); err != nil {
			failed[r] = err.Error()
		}
	}
	said, err := paths.Exchange(ctx, n.group, plain.JSON(tried{failed, word}), func(b []byte) (t tried, err error) {
		if err = json.Unmarshal(b, &t); err == nil && len(t.Failed) != n.size {
			err = fmt.Errorf("%d entries", len(t.Failed))
		}
		return t, err
	})
	if err != nil {
		return nil, err
	}
	for r := range said {
		words = append(words, said[r].Word)
	}
	for b := range n.size {
		for a := range b {
			i := n.pair(a, b)
			if n.paths[i] != transport.NoPath {
				continue
			}
			why := said[a].Failed[b]
			if why == "" {
				why = said[b].Failed[a]
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
	return words, nil
}

// A tried is what a rank tells all others of one kind of path: why it cannot, by peer, and a word
// besides.
type tried struct {
	Failed []string
	Word   string `json:",omitempty"`
}

// share has all ranks make their memory known, and opens the memory of peers for which reach has no objection. It
// returns offers and addresses by rank.
func share[O any](ctx context.Context, n *Net, p transport.GPUPath, mine []byte, parse func([]byte) (O, error),
	reach func(a, b *O) error, open func(*O) (uint64, error)) (offers []O, addrs []uint64, err error) {
	if offers, err = paths.Exchange(ctx, n.group, mine, parse); err != nil {
		return nil, nil, err
	}
	addrs = make([]uint64, n.size)
	_, err = n.try(ctx, p, "",
		func(a, b int) error { return reach(&offers[a], &offers[b]) },
		func(peer int) (err error) {
			addrs[peer], err = open(&offers[peer])
			return err
		})
	return offers, addrs, err
}

func (n *Net) connectP2P(ctx context.Context, refused string) (err error) {
	if err := n.allocate(refused); err != nil {
		return err
	}
	offers, addrs, err := share(ctx, n, transport.OverP2P, n.memory.Offer(), p2p.ParseOffer, p2p.Reach, n.memory.Open)
	if err != nil {
		return err
	}
	n.name(offers)
	if !n.uses(transport.OverP2P) && !n.uses(transport.OverPCIe) && n.size > 1 && refused == "" {
		if err := n.memory.Close(true); err != nil {
			return err
		}
		if err := n.allocate("nobody to share with"); err != nil {
			return err
		}
	}
	addrs[n.rank] = n.memory.Address()
	return n.connectQueues(ctx, addrs)
}

// name keeps the links of the pairs that have P2P. Where a link may tear lines, the path becomes OverPCIe.
func (n *Net) name(offers []p2p.Offer) {
	for _, i := range n.indices() {
		if n.paths[i] != transport.OverP2P {
			continue
		}
		if n.links[i] = p2p.LinkOf(&offers[i/n.size], &offers[i%n.size]); !n.links[i].Whole() {
			n.paths[i] = transport.OverPCIe
		}
	}
}

// allocate makes this rank's device memory: a board without its queues. If refused says why it is not shared, it is a
// board of one rank.
func (n *Net) allocate(refused string) (err error) {
	n.ownMemory = n.device
	if refused != "" {
		n.ownMemory = grid.Board{Ranks: 1, Near: n.device.Near, Far: n.device.Far}
	}
	cfg := n.config(n.ownMemory.Zero())
	cfg.Refused = refused
	n.memory, err = p2p.New(cfg)
	return err
}

func (n *Net) config(bytes int) p2p.Config {
	return p2p.Config{Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: bytes}
}

func (n *Net) connectHost(ctx context.Context, refused string) error {
	n.shared = p2p.NewHost(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: n.boards.pinned.Bytes(), Refused: refused,
	})
	_, addrs, err := share(ctx, n, transport.OverHost, n.shared.Offer(), p2p.ParseHostOffer, p2p.ReachHost, n.shared.Open)
	if err != nil {
		return err
	}
	if !n.uses(transport.OverHost) {
		return n.shared.Close()
	}
	if addrs[n.rank], err = n.shared.Address(); err != nil {
		return err
	}
	n.pinned = hostLinks{n.boards.pinned.Links(n.hosts.number(n.rank), pick(&n.hosts, n.rank, addrs)), &n.hosts}
	return nil
}
