// The queues on GPUs: addresses at Open, memory later.

package gpupaths

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport/p2p"
)

// connectQueues reserves addresses for the queues on GPUs, and opens those of the ranks
// with a path over P2P. Their memory comes when a program needs it. If some rank cannot do
// that with one of its peers, all ranks allocate all queues now. memory is the addresses of
// what else the ranks have on their GPUs.
func (n *Net) connectQueues(ctx context.Context, memory []uint64) error {
	self := n.hosts.number(n.rank)
	alone := n.ownMemory.Ranks == 1 // nobody else has this rank's queues
	if alone {
		self = 0
	}
	n.queues = p2p.NewRange(n.config(0), n.ownMemory.Pieces(self), n.sharesWithProcesses())
	offers, err := paths.Exchange(ctx, n.group, n.queues.Offer(), p2p.ParseRangeOffer)
	if err != nil {
		return err
	}
	at := make([]uint64, n.size)
	why := n.queues.Refused()
	for r := range n.size {
		if why != "" || r != n.rank && !n.peers(n.rank, r) {
			continue
		}
		if at[r], err = n.queues.Open(&offers[r]); err != nil {
			why = err.Error()
		}
	}
	all, err := n.group.AllGather(ctx, []byte(why))
	if err != nil {
		return err
	}
	here := n.hosts.of(n.rank)
	bring := func(owner sched.Rank, piece int) error { return n.queues.Bring(&offers[here[owner]], piece) }
	for _, why := range all {
		if len(why) == 0 {
			continue
		}
		if at, err = n.allocateQueues(ctx); err != nil {
			return fmt.Errorf("%w (all queues are allocated at once because: %s)", err, why)
		}
		bring = nil
		break
	}
	number := n.hosts.number(n.rank)
	n.near = hostLinks{n.device.LinksApart(number, pick(&n.hosts, n.rank, memory), pick(&n.hosts, n.rank, at), bring),
		&n.hosts}
	n.own = n.near
	if alone {
		own := bring
		if own != nil {
			own = func(_ sched.Rank, piece int) error { return bring(number, piece) }
		}
		n.own = ownLinks{n.ownMemory.LinksApart(0, memory[n.rank:n.rank+1], at[n.rank:n.rank+1], own)}
	}
	return nil
}

// Mapped is how many bytes of this GPU the queues have that Suspend gives back.
func (n *Net) Mapped() int {
	if n.queues == nil {
		return 0
	}
	return n.queues.Mapped()
}

// Suspend gives the memory of the queues back, until Resume. All ranks do both together: they have met before each, and
// meet once more after Resume.
func (n *Net) Suspend() error {
	if n.queues == nil {
		return nil
	}
	return n.queues.Suspend()
}

// Resume ends Suspend.
func (n *Net) Resume() error {
	if n.queues == nil {
		return nil
	}
	return n.queues.Resume()
}

// Fixed is how many bytes of this GPU are taken until Close.
func (n *Net) Fixed() (bytes int) {
	for _, m := range []*p2p.Memory{n.memory, n.allQueues} {
		if m != nil {
			bytes += m.Bytes()
		}
	}
	if n.bridge != nil {
		bytes += n.bridge.slots.bytes()
	}
	return bytes
}

// sharesWithProcesses reports whether a rank of another process has a path over P2P.
func (n *Net) sharesWithProcesses() bool {
	for r := range n.size {
		if r != n.rank && n.peers(n.rank, r) && n.host.Profiles[r].Process != n.self.Process {
			return true
		}
	}
	return false
}

// allocateQueues allocates all queues, and gives their addresses by rank.
func (n *Net) allocateQueues(ctx context.Context) (at []uint64, err error) {
	if err := n.queues.Close(true); err != nil {
		return nil, err
	}
	n.queues = nil
	bytes := 0
	for _, b := range n.ownMemory.Pieces(0) { // any rank's pieces have the same sum
		bytes += b
	}
	if n.allQueues, err = p2p.New(n.config(bytes)); err != nil {
		return nil, err
	}
	offers, err := paths.Exchange(ctx, n.group, n.allQueues.Offer(), p2p.ParseOffer)
	if err != nil {
		return nil, err
	}
	at = make([]uint64, n.size)
	for r := range n.size {
		if r == n.rank || n.peers(n.rank, r) {
			if at[r], err = n.allQueues.Open(&offers[r]); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}
