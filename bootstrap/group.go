package bootstrap

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
)

// A Group is a set of ranks that found each other: one value a rank. Its
// methods may be called from any goroutine.
type Group interface {
	Rank() int
	Size() int

	// AllGather gives every rank's bytes, by rank. The caller must not change the bytes, for ranks
	// of one process share them. The k-th call of one rank
	// meets the k-th call of every other; so it is a barrier too. A part is at
	// most 16 MiB, their sum at most 1 GiB.
	//
	// It completes on all ranks or fails on all. When ctx ends, the rank asks the
	// hub to withdraw the call: either it has completed and is returned, or it
	// fails on every rank with a *WithdrawnError, which names the rank that gave up and
	// those that had not come, and on this rank wraps ctx's error. A withdrawn call counts, so
	// that the next one meets that of the others. Other errors are a *Failure, a
	// *LeftError and ErrClosed; no AllGather completes after those. (If the hub's
	// own process dies, some ranks may have completed the last call.)
	//
	// Cost: one round trip to the hub, and what differs among size × bytes over each connection.
	// From 64 ranks on the hub sends each host but one copy of what is long.
	AllGather(ctx context.Context, data []byte) ([][]byte, error)

	// Key is the secret of this group for data connections: 32 bytes, the same
	// for every rank, another for every group. The caller must not change it.
	Key() []byte

	// Fail tells all others, once, that this rank has given up, why, and which ranks are to
	// blame (none: this one, which may not come to Regroup then). It waits a moment, at most half a second, for the
	// word to be on its way.
	Fail(reason string, culprits ...int)

	// Failed is closed at the first failure of any other rank, which Failure
	// then returns; before, Failure is nil. If several fail for one reason, a
	// rank that died is named before one that complains, and else the first.
	Failed() <-chan struct{}
	Failure() *Failure

	// OnFailure has f called with that failure, on a goroutine of its own; at once if
	// there was one.
	OnFailure(f func(*Failure))

	// Locate sets how this rank's position in its sequence of collectives is
	// found when the hub asks for it, and when Close tells it with the goodbye.
	// False is that it cannot be said now: the rank is in a call and has not
	// waited long. f must not block, and may be called at any time until Close
	// has returned.
	Locate(f func() (Position, bool))

	// Inquire is for a rank that has waited for a second: the hub hears its
	// position and asks the others for theirs. If two ranks have begun different
	// calls under one Number, or if one has left that this rank waits for, all
	// ranks hear so as their Failure. It does not wait. Call it again every
	// second while the wait lasts; the hub asks all ranks once a second at most.
	// Cost: 1.5 KiB from each rank.
	Inquire(p Position)

	// Late is for a rank whose operation has run out of time: the hub has all others stop,
	// every rank says by Late where it was, and all hear as their Failure who held up whom.
	// It does not wait; the verdict comes at most TrialTime later, with the ranks that have
	// said nothing by then as its culprits.
	Late(p Position)

	// OnHalt has f called, on a goroutine of its own, when the hub wants this rank to stop
	// and to say by Late where it was. It is called before others may be late.
	OnHalt(f func())

	// Regroup is for the ranks that are left after a failure: those that call it go on as a new
	// group, when all have come that have not died or left and that have not been found
	// silent, or when one of them has waited that long. All ranks hear the same. A rank that comes
	// later gets ErrExcluded. Where the new group cannot meet, for one more has died, each calls it again.
	// Where the hub's process has died, and its host says so, they meet at the first rank that lives of those in other
	// processes (at most four are asked), and go on if more than half of those come that may live. That is for once.
	Regroup(ctx context.Context, wait time.Duration) (Regrouping, error)

	// Hub are the ranks here whose process serves the hub.
	Hub() []int

	// Silent are the ranks that answered nothing for a second or more when the hub
	// asked for their positions, by its answer to this rank's last Inquire. Their
	// processes may be stopped, or their hosts cut off and not yet taken for dead.
	Silent() []int

	// Left reports whether another rank has said goodbye, as far as this rank has heard. It hears of the first that
	// does, and of those that it awaits by an Inquire.
	Left(rank int) bool

	// Leave says goodbye: an orderly leave is not a failure. From then on no AllGather of others can
	// complete, and those that wait for this rank hear why. The way to them stays for Part.
	Leave()

	// Part says that this rank has come to a stage of parting, and waits until all others have, or have
	// closed their group or died. It calls Leave before. An error is that of ctx, or that the rendezvous or
	// this process ends, and then others may be at an earlier stage.
	Part(ctx context.Context, stage int) error

	// Close leaves, if Leave has not, and is the last stage of parting. It waits for the
	// hub's answer, at most a second, so that the process may exit at once.
	Close() error
}

// Local makes a group of n ranks inside this process, without network: for
// tests and for ranks that are goroutines.
func Local(n int) []Group {
	secret := salt(auth.NewNonce())
	key := groupKey(secret[:], secret)
	members := make([]*member, n)
	groups := make([]Group, n)
	r := newCoordinator(n, nil, func(to []int, m message) {
		for _, rank := range to {
			members[rank].hear(m)
		}
	})
	r.meet = meetHere
	for rank := range n {
		members[rank] = newMember(rank, n, key, nil)
		members[rank].up = func(m message) { r.hear(rank, m) }
		members[rank].drop = func() { r.lost(rank, "dropped out") }
		groups[rank] = members[rank]
	}
	return groups
}

// Served reports whether a group has its rendezvous, so that its ranks may Regroup.
func Served(g Group) bool { return !isClosed(g.(*member).ended) }

// Address is this rank's own on its way to the rendezvous: the others have come to one that is reached so. It is not
// valid for a group of one process, on the way to a loopback address, and where connections are the program's own.
func Address(g Group) netip.Addr {
	if tcp, ok := g.(*member).at.(*net.TCPAddr); ok && tcp.IP.IsGlobalUnicast() {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Drop ends a rank's membership as its sudden death would: without goodbye.
// For tests.
func Drop(g Group) { g.(*member).drop() }

// Mute keeps what a rank says from the others, as if its process were stopped. For tests.
func Mute(g Group) {
	m := g.(*member)
	m.order.Lock()
	defer m.order.Unlock()
	m.up = func(message) {}
}
