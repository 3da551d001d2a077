package ringo

import (
	"fmt"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// A Choice is how a communicator of Size ranks carries out a collective.
type Choice struct {
	Kind     Kind
	Size     int
	Bytes    int // of Count elements
	Algo     string
	Reason   string
	Others   []string // algorithms that could be asked for instead
	Schedule sched.Schedule
	// Then is what follows when the ranks have combined what Schedule has brought, in
	// order of rank; nil if nothing does.
	Then sched.Schedule
}

// Explain says how n ranks, in blocks of local on a host (0: all on one), would
// carry out a collective whose Count elements are so many bytes, and why, without
// doing it. cfg gives Algo and Deterministic, for sums of floats.
func Explain(kind Kind, n, local, bytes, root int, cfg Config) (Choice, error) {
	forced, err := parseAlgo(cfg.Algo)
	if err == nil {
		err = cfg.checkOrder()
	}
	if err != nil {
		return Choice{}, err
	}
	if kind >= kinds || kind == KindSend || kind == KindRecv || n < 1 || local < 0 || bytes < 0 || root < 0 || root >= n {
		return Choice{}, fmt.Errorf("%w: explain %v of %d bytes on %d ranks, root %d", ErrInvalid, kind, bytes, n, root)
	}
	topo := topology{ranks: n, local: n}
	if local > 1 && n%local == 0 {
		topo.local = local
	}
	a, reason := choosePlan(kind, topo, bytes, forced)
	ch := Choice{Kind: kind, Size: n, Bytes: bytes, Algo: a.String(), Reason: reason}
	for _, t := range book[kind] {
		if t.algo != a && t.offers(topo) {
			ch.Others = append(ch.Others, t.algo.String())
		}
	}
	if cfg.Deterministic != "" && orderMatters(kind, Float32, kernels.KindSum, n) {
		ch.byRank(topo, root, wholeOnHost)
		return ch, nil
	}
	ch.Schedule = programKey{kind: kind, algo: a, peer: int32(root)}.schedule(topo)
	return ch, nil
}

// byRank makes it the choice of a reduction that is combined in order of rank.
func (ch *Choice) byRank(topo topology, root, whole int) {
	ch.Algo, ch.Others = algoByRank.String(), nil
	ch.Reason = "Deterministic: contributions are moved as they are and combined in order of rank"
	first, then := parts(ch.Kind, ch.Bytes, whole)
	chunk := ch.Bytes
	if then != kinds {
		chunk /= topo.ranks
	}
	schedule := func(kind Kind) sched.Schedule {
		a, _ := choosePlan(kind, topo, chunk, algoAuto)
		return programKey{kind: kind, algo: a, peer: int32(root)}.schedule(topo)
	}
	ch.Schedule = schedule(first)
	if then != kinds {
		ch.Then = schedule(then)
	}
}

// DeviceAlgorithms are the algorithms that can carry out a collective on GPU memory
// here, for Count elements of so many bytes, in registered memory or not; the
// words are those of Config.Algo and of a Plan.
func (c *Comm) DeviceAlgorithms(kind Kind, bytes int, registered bool) []string {
	if kind >= kinds || c.dev == nil || c.dev.engine == nil {
		return nil
	}
	return c.dev.names(kind, bytes, registered)
}

// DeviceChoice is the one of them that does, and why.
func (c *Comm) DeviceChoice(kind Kind, bytes int, registered bool) (algorithm, because string) {
	if kind >= kinds || c.dev == nil || c.dev.engine == nil {
		return "", c.noDevice
	}
	return c.dev.choose(kind, bytes, registered).String(), c.dev.because(kind, bytes, registered)
}

// Paths says over which transports this rank reaches the others, and why not
// over better ones.
func (c *Comm) Paths() []string { return c.notes }

// Transport names the transport to a peer.
func (c *Comm) Transport(peer int) string { return c.links.via(peer) }

// DeviceTransport names the path of GPU memory to a peer: "p2p", "host memory",
// "bridge over socket"; "" if there is none, and for the rank itself.
func (c *Comm) DeviceTransport(peer int) string {
	if c.dev == nil || c.dev.engine == nil {
		return ""
	}
	return c.dev.net.via(peer)
}
