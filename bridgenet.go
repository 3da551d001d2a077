package ringo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A bridgeNet connects this rank's GPU with those that share no memory with it,
// over transports of its own: queues in pinned memory of this process, and a
// bridge between them and the transports. Memory is there from the beginning,
// since allocating may wait for kernels; connections are made on first use, in
// the background.
type bridgeNet struct {
	shape      grid.Geometry
	memory     *p2p.HostMemory
	addr       uint64
	guard      fifo.Guard
	transports []transport.Transport
	links      *links
	bridge     *bridge.Bridge
	place      map[int]int // of each peer's queues in memory

	mu   sync.Mutex
	ends map[bridgeEnd]grid.End
}

type bridgeEnd struct {
	peer  int
	sends bool
}

// connectBridge agrees on a transport for each pair that has no path yet.
func (n *deviceNet) connectBridge(ctx context.Context, c *Comm, refused string) error {
	b := &bridgeNet{shape: n.geometry.bridge, place: map[int]int{}, ends: map[bridgeEnd]grid.End{}}
	n.bridge = b
	me := profile{Info: n.self, Hostname: n.cfg.hostname(), Wish: c.profiles[n.rank].Wish}
	tc := transport.Config{
		Self: n.self, Key: c.group.Key(), Guard: &b.guard,
		Limits: transport.Limits{SlotBytes: b.shape.SlotBytes, Slots: b.shape.Slots},
		Log:    c.log.With("subsys", "NET"),
	}
	byName := map[string]transport.Transport{}
	for _, name := range preference {
		cand := candidate{Name: name, Refused: refused}
		t := c.newTransport(name, tc)
		b.transports = append(b.transports, t)
		byName[name] = t
		if refused == "" {
			var err error
			if cand.Addr, err = t.Listen(); err != nil {
				cand.Refused = err.Error()
			}
		}
		me.Candidates = append(me.Candidates, cand)
	}
	peers, err := exchange(ctx, n, me.encode(), func(b []byte) (p profile, err error) { return p, json.Unmarshal(b, &p) })
	if err != nil {
		return err
	}
	reach := func(name string, a, b transport.Info) error { return byName[name].Reach(a, b) }
	paths := make([]path, n.size)
	for i := range paths {
		paths[i] = path{peer: peers[i].Info, via: byName["inproc"]} // of pairs that need none
		if i == n.rank || n.path(n.rank, i) != noPath {
			continue
		}
		if name, _, err := choose(&peers[min(i, n.rank)], &peers[max(i, n.rank)], reach); err == nil {
			paths[i].addr, paths[i].via = peers[i].candidate(name).Addr, byName[name]
			b.place[i] = 2 * len(b.place) * b.laneSetBytes()
		}
	}
	b.links = newLinks(paths)
	if err := b.allocate(n); err != nil && refused == "" {
		refused = err.Error()
	}
	err = n.try(ctx, overBridge,
		func(i, k int) error {
			_, _, err := choose(&peers[i], &peers[k], reach)
			return err
		},
		func(int) error {
			if refused != "" {
				return errors.New(refused)
			}
			return nil
		})
	if err != nil {
		return err
	}
	b.bridge = bridge.New(bridge.Config{
		Guard: &b.guard,
		Fail: func(peer int, phase string, err error) {
			n.broken.CompareAndSwap(nil, &engine.StepError{Peer: sched.Rank(peer), Phase: phase, Err: err})
		},
	})
	return nil
}

// allocate makes the memory of all queues.
func (b *bridgeNet) allocate(n *deviceNet) error {
	if len(b.place) == 0 {
		return nil
	}
	var err error
	b.memory = p2p.NewHost(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: 2 * len(b.place) * b.laneSetBytes(),
	})
	b.addr, err = b.memory.Address()
	return err
}

// laneSetBytes is what the lanes of one direction take: queues, then the two
// counters of each.
func (b *bridgeNet) laneSetBytes() int { return b.shape.Bytes() + 2*b.shape.Lanes*grid.LaneStride }

// end lays out the lanes of one direction.
func (b *bridgeNet) end(key bridgeEnd) (grid.End, []bridge.Queue, error) {
	at, ok := b.place[key.peer]
	if !ok {
		return grid.End{}, nil, fmt.Errorf("no bridge to rank %d", key.peer)
	}
	if key.sends {
		at += b.laneSetBytes()
	}
	post := at + b.shape.Bytes()
	seen := post + b.shape.Lanes*grid.LaneStride
	e := grid.End{Geometry: b.shape, Queues: b.addr + uint64(at), Post: b.addr + uint64(post), Seen: b.addr + uint64(seen)}
	memory := b.memory.Bytes()
	queues := make([]bridge.Queue, b.shape.Lanes)
	for l := range queues {
		var err error
		queues[l], err = bridge.NewQueue(b.shape.Slots, b.shape.SlotBytes,
			memory[at+l*b.shape.QueueBytes():][:b.shape.QueueBytes()],
			memory[post+l*grid.LaneStride:][:grid.LaneStride],
			memory[seen+l*grid.LaneStride:][:grid.LaneStride])
		if err != nil {
			return e, nil, err
		}
	}
	return e, queues, nil
}

// once makes an end the first time that it is asked for.
func (b *bridgeNet) once(key bridgeEnd, start func([]bridge.Queue)) (grid.End, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.ends[key]; ok {
		return e, nil
	}
	e, queues, err := b.end(key)
	if err != nil {
		return e, err
	}
	b.ends[key] = e
	start(queues)
	return e, nil
}

// Send is the end of the queues to a peer.
func (b *bridgeNet) Send(to sched.Rank) (grid.End, error) {
	return b.once(bridgeEnd{int(to), true}, func(q []bridge.Queue) {
		p := b.links.paths[to]
		b.bridge.Out(int(to), q, func() (transport.SendConn, error) { return p.via.Dial(p.peer, p.addr) })
	})
}

// Recv is the end of the queues from a peer.
func (b *bridgeNet) Recv(from sched.Rank) (grid.End, error) {
	return b.once(bridgeEnd{int(from), false}, func(q []bridge.Queue) {
		p := b.links.paths[from]
		b.bridge.In(int(from), q, func() (transport.RecvConn, error) { return p.via.Accept(p.peer) })
	})
}

func (b *bridgeNet) close() error {
	var errs []error
	if b.bridge != nil {
		errs = append(errs, b.bridge.Close())
	}
	for _, t := range b.transports {
		errs = append(errs, t.Close())
	}
	if b.memory != nil {
		errs = append(errs, b.memory.Close())
	}
	return errors.Join(errs...)
}
