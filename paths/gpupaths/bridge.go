package gpupaths

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/paths"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A bridgeNet connects this rank's GPU with those that share no memory with it. Kernels use
// queues in pinned memory of this process, and a bridge moves slots between these queues and
// transports of its own. The memory is allocated when a communicator is opened, since
// allocating may wait for kernels; connections are made on first use, in the background.
type bridgeNet struct {
	shape      func(peer int) grid.Geometry
	memory     *p2p.HostMemory
	addr       uint64
	guard      fifo.Guard
	transports *paths.Transports
	links      *paths.Links
	bridge     *bridge.Bridge
	offset     map[int]int // by peer: of its queues in memory
	bytes      int         // of memory

	mu   sync.Mutex
	ends map[bridgeEnd]grid.End
}

// A bridgeEnd names the queues to a peer, or from it.
type bridgeEnd struct {
	peer  int
	sends bool
}

// connectBridge agrees with all ranks on a transport for each pair that has no path yet.
// refused is why this rank does not allow it, "" if it does.
func (n *Net) connectBridge(ctx context.Context, refused string) error {
	b := &bridgeNet{shape: func(peer int) grid.Geometry { return n.bridgeGeometry(n.rank, peer) }, offset: map[int]int{}, ends: map[bridgeEnd]grid.End{}}
	n.bridge = b
	b.transports = n.host.NewTransports(n.group, transport.Config{
		Self: n.self, Key: n.group.Key(), Guard: &b.guard,
		Limits: transport.Limits{SlotBytes: max(n.geometry.near.SlotBytes, n.geometry.far.SlotBytes), Slots: max(n.geometry.near.Slots, n.geometry.far.Slots)},
	})
	wanted := func(x, y int) bool { return n.path(x, y) == transport.NoPath }
	agreed, err := paths.Agree(ctx, n.group, n.host.Profiles, b.transports, wanted, refused)
	if err != nil {
		return err
	}
	reach := func(x, y int) error {
		_, _, err := agreed.Choose(x, y)
		return err
	}
	for r := range n.size {
		if r != n.rank && wanted(n.rank, r) && reach(n.rank, r) == nil {
			b.offset[r] = b.bytes
			b.bytes += 2 * laneSetBytes(b.shape(r))
		}
	}
	if err := b.allocate(n); err != nil && refused == "" {
		refused = err.Error()
	}
	err = n.try(ctx, transport.OverBridge, reach, func(int) error {
		if refused != "" {
			return errors.New(refused)
		}
		return nil
	})
	if err != nil {
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

// allocate makes the memory of all queues.
func (b *bridgeNet) allocate(n *Net) error {
	if len(b.offset) == 0 {
		return nil
	}
	var err error
	b.memory = p2p.NewHost(p2p.Config{
		Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: b.bytes,
	})
	b.addr, err = b.memory.Address()
	return err
}

// end is one direction as a kernel sees it, and as the bridge does: a queue for each lane.
func (b *bridgeNet) end(key bridgeEnd) (grid.End, []bridge.Queue, error) {
	at, ok := b.offset[key.peer]
	if !ok {
		return grid.End{}, nil, fmt.Errorf("no bridge to rank %d", key.peer)
	}
	shape := b.shape(key.peer)
	if key.sends {
		at += laneSetBytes(shape)
	}
	post := at + shape.Bytes()
	seen := post + shape.Lanes*grid.LaneStride
	e := grid.End{Geometry: shape, Queues: b.addr + uint64(at), Post: b.addr + uint64(post), Seen: b.addr + uint64(seen)}
	memory := b.memory.Bytes()
	queues := make([]bridge.Queue, shape.Lanes)
	for l := range queues {
		var err error
		queues[l], err = bridge.NewQueue(shape.Slots, shape.SlotBytes,
			memory[at+l*shape.QueueBytes():][:shape.QueueBytes()],
			memory[post+l*grid.LaneStride:][:grid.LaneStride],
			memory[seen+l*grid.LaneStride:][:grid.LaneStride])
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
		b.bridge.Out(int(to), q, func() (transport.SendConn, error) { return b.links.Dial(to) })
	})
}

// Recv is the end of the queues from a peer.
func (b *bridgeNet) Recv(from sched.Rank) (grid.End, error) {
	return b.once(bridgeEnd{int(from), false}, func(q []bridge.Queue) {
		b.bridge.In(int(from), q, func() (transport.RecvConn, error) { return b.links.Accept(from) })
	})
}

func (b *bridgeNet) close() error {
	var errs []error
	if b.bridge != nil {
		errs = append(errs, b.bridge.Close())
	}
	errs = append(errs, b.transports.Close())
	if b.memory != nil {
		errs = append(errs, b.memory.Close())
	}
	return errors.Join(errs...)
}
