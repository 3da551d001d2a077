package gpupaths

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A bridgeNet connects this rank's GPU with those that share no memory with it. Kernels use
// queues in memory of this process, and a bridge moves slots between these queues and
// transports of its own; a transport that is a transport.Placer moves them itself (slots.go). The memory
// is allocated when a communicator is opened, since allocating may wait for kernels; connections are
// made on first use, in the background.
type bridgeNet struct {
	shape      func(peer int) grid.Geometry
	slots      bridgeSlots
	memory     *p2p.HostMemory // heads, counters, and slots that are not on the GPU
	addr       uint64
	guard      fifo.Guard
	limits     transport.Limits
	transports *paths.Transports
	links      *paths.Links
	bridge     *bridge.Bridge
	heads      map[int]int // by peer: offset in memory
	bytes      int         // of memory

	mu   sync.Mutex
	ends map[bridgeEnd]grid.End
}

// A bridgeEnd names the queues to a peer, or from it.
type bridgeEnd struct {
	peer  int
	sends bool
}

// connectBridge agrees with all ranks on a transport for each pair that has no path yet, and on
// whether it moves the slots itself. refused is why this rank does not allow bridges, "" if it does.
func (n *Net) connectBridge(ctx context.Context, refused string, cfg *paths.Config) error {
	b := &bridgeNet{shape: func(peer int) grid.Geometry { return n.bridgeGeometry(n.rank, peer) }, heads: map[int]int{},
		ends: map[bridgeEnd]grid.End{}}
	n.bridge = b
	near, far := n.geometry.near, n.geometry.far
	b.limits = transport.Limits{SlotBytes: max(near.SlotBytes, far.SlotBytes), Slots: near.Slots}
	b.transports = n.host.NewTransports(n.group,
		transport.Config{Self: n.self, Key: n.group.Key(), Guard: &b.guard, Left: n.group.Left, Limits: b.limits})
	wanted := func(x, y int) bool { return n.path(x, y) == transport.NoPath }
	agreed, err := paths.Agree(ctx, n.group, n.host.Profiles, b.transports, wanted, refused)
	if err != nil {
		return err
	}
	reach := func(x, y int) error {
		_, _, err := agreed.Choose(x, y)
		return err
	}
	var peers []int
	for r := range n.size {
		if r != n.rank && wanted(n.rank, r) && reach(n.rank, r) == nil {
			peers = append(peers, r)
		}
	}
	if refused == "" {
		b.slots.find(n, agreed, peers, cfg)
		if err := b.allocate(n, peers); err != nil {
			refused = err.Error()
		} else {
			b.slots.register(b.memory)
		}
	}
	words, err := n.try(ctx, transport.OverBridge, b.slots.why, reach, func(int) error {
		if refused != "" {
			return errors.New(refused)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.slots.settle(n, words); err != nil {
		return err
	}
	if b.links, err = agreed.LinksWhere(func(x, y int) bool { return n.path(x, y) == transport.OverBridge }); err != nil {
		return err
	}
	b.bridge = bridge.New(bridge.Config{
		Guard: &b.guard,
		Fail: func(peer int, phase string, err error) {
			n.broken.CompareAndSwap(nil, &engine.StepError{Peer: sched.Rank(peer), Phase: phase, Err: err})
			if f := n.onBroken.Load(); f != nil {
				(*f)()
			}
		},
	})
	return nil
}

// allocate makes the memory of all queues: for each peer the heads and counters of both directions,
// and then the slots of those that have none on the GPU.
func (b *bridgeNet) allocate(n *Net, peers []int) error {
	if len(peers) == 0 {
		return nil
	}
	for _, r := range peers {
		b.heads[r] = b.bytes
		b.bytes += 2 * headsBytes(b.shape(r))
	}
	for _, r := range peers {
		if _, on := b.slots.onGPU[r]; !on {
			b.slots.onHost[r] = b.bytes
			b.bytes += 2 * slotsBytes(b.shape(r))
		}
	}
	var err error
	b.memory = p2p.NewHost(n.config(b.bytes))
	b.addr, err = b.memory.Address()
	return err
}

// headsBytes is the memory of the heads and counters of one direction of a bridge, two counters
// for each lane; slotsBytes is that of its slots.
func headsBytes(g grid.Geometry) int { return g.Lanes * (g.HeadBytes() + 2*grid.LaneStride) }
func slotsBytes(g grid.Geometry) int { return g.Lanes * g.SlotsBytes() }

// end is one direction as a kernel sees it, and as the bridge does: a queue for each lane.
func (b *bridgeNet) end(key bridgeEnd) (e grid.End, queues []bridge.Queue, err error) {
	at, ok := b.heads[key.peer]
	if !ok {
		return grid.End{}, nil, fmt.Errorf("no bridge to rank %d", key.peer)
	}
	shape, side := b.shape(key.peer), 0
	if key.sends {
		side = 1
	}
	at += side * headsBytes(shape)
	post := at + shape.Lanes*shape.HeadBytes()
	seen := post + shape.Lanes*grid.LaneStride
	addr, slots := b.slots.at(b, key.peer, side*slotsBytes(shape), slotsBytes(shape))
	e = grid.End{Geometry: shape, Queues: addr, Heads: b.addr + uint64(at), Post: b.addr + uint64(post), Seen: b.addr +
		uint64(seen)}
	memory := b.memory.Bytes()
	queues = make([]bridge.Queue, shape.Lanes)
	for l := range queues {
		mine := slots.Slice(l*shape.SlotsBytes(), shape.SlotsBytes())
		heads := memory[at+l*shape.HeadBytes():][:shape.HeadBytes()]
		posted, seen := memory[post+l*grid.LaneStride:][:grid.LaneStride], memory[seen+l*grid.LaneStride:][:grid.LaneStride]
		if b.slots.placed[key.peer] {
			queues[l], err = bridge.NewPlaced(shape.Slots, shape.SlotBytes, mine, heads, posted, seen)
		} else {
			queues[l], err = bridge.NewQueue(shape.Slots, shape.SlotBytes, mine.Bytes(), heads, posted, seen)
		}
		if err != nil {
			return e, nil, err
		}
	}
	return e, queues, nil
}

// once makes an end the first time that it is asked for, and has start connect its queues.
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
		if b.slots.placed[int(to)] {
			b.bridge.OutPlaced(int(to), q, func(lane int) (transport.PlacedSendConn, error) {
				return b.links.DialPlaced(to, q[lane].Placed)
			})
			return
		}
		b.bridge.Out(int(to), q, func() (transport.SendConn, error) { return b.links.Dial(to) })
	})
}

// Recv is the end of the queues from a peer.
func (b *bridgeNet) Recv(from sched.Rank) (grid.End, error) {
	return b.once(bridgeEnd{int(from), false}, func(q []bridge.Queue) {
		if b.slots.placed[int(from)] {
			b.bridge.InPlaced(int(from), q, func(lane int) (transport.PlacedRecvConn, error) {
				return b.links.AcceptPlaced(from, q[lane].Placed)
			})
			return
		}
		b.bridge.In(int(from), q, func() (transport.RecvConn, error) { return b.links.Accept(from) })
	})
}

func (b *bridgeNet) close() error {
	var errs []error
	if b.bridge != nil {
		errs = append(errs, b.bridge.Close())
	}
	errs = append(errs, b.transports.Close())
	if errors.Is(errs[len(errs)-1], transport.ErrHeld) {
		return errors.Join(errs...) // and keep what a device may write to
	}
	if b.memory != nil {
		errs = append(errs, b.memory.Close())
	}
	return errors.Join(append(errs, b.slots.close())...)
}
