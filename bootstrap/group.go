package bootstrap

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

// A Group is a set of ranks that found each other: one value a rank. Its
// methods may be called from any goroutine.
type Group interface {
	Rank() int
	Size() int

	// AllGather returns every rank's bytes, by rank. The caller must not change the bytes, for ranks
	// of one process share them. The k-th call of one rank meets the k-th call of every other; so it
	// is a barrier too. A part has at most 16 MiB, all parts together at most 1 GiB.
	//
	// AllGather completes on all ranks or fails on all. When ctx ends, the rank asks the
	// hub to withdraw the call: either the call has completed and is returned, or it
	// fails on every rank with a *WithdrawnError, which names the rank that gave up and
	// the ranks that had not come, and on this rank wraps ctx's error. A withdrawn call
	// counts, so that the next calls of all ranks meet. Other errors are a *Failure, a
	// *LeftError and ErrClosed; no AllGather completes after those. (If the hub's
	// own process dies, some ranks may have completed the last call.)
	//
	// Cost: one round trip to the hub, and all parts over each connection, less the bytes that parts
	// have in common. From 64 ranks on the hub sends each host only one copy of a long result.
	AllGather(ctx context.Context, data []byte) ([][]byte, error)

	// Key is the secret of this group for data connections: 32 bytes, the same
	// for every rank, another for every group. The caller must not change it.
	Key() []byte

	// Fail tells all others, once, that this rank has given up, why, and which ranks are to
	// blame (none: this rank, for which Regroup then waits only a short time). It waits half a second at most
	// until the message is on its way.
	Fail(reason string, culprits ...int)

	// FailWith is Fail of a rank whose connection with a peer broke, silently if the peer's host answered nothing
	// (IsSilence). The group finds out which rank, host or path is to
	// blame, and tells this rank too, within InquestTime.
	FailWith(reason string, peer int, silent bool)

	// Seek finds out why the hub does not answer, and makes that the Failure. It waits for InquestTime at most.
	Seek()

	// Failed is closed at the first failure of any other rank, or when the group answers this one's complaint. Failure
	// returns
	// that failure, nil before. If several ranks fail for one reason, the failure
	// names a rank that died rather than one that complains, and else the first.
	Failed() <-chan struct{}
	Failure() *Failure

	// OnFailure has f called with that failure, on a goroutine of its own; at once if
	// there is one already.
	OnFailure(f func(*Failure))

	// Locate sets the function that finds this rank's position in its sequence of
	// collectives, for the hub's question and for the goodbye of Leave and Close. f
	// returns false if the position cannot be told now: the rank is in a call and has
	// not waited long. f must not block, and may be called at any time until Close
	// has returned.
	Locate(f func() (Position, bool))

	// Inquire is for a rank that has waited for a second: the hub gets its
	// position and asks the others for theirs. If two ranks have begun different
	// calls under one Number, or if this rank waits for one that has left, all
	// ranks get that as their Failure. Inquire does not wait. Call it again every
	// second while the wait lasts; the hub asks all ranks once a second at most.
	// Cost: 1.5 KiB from each rank.
	Inquire(p Position)

	// Late is for a rank whose operation has run out of time: the hub makes all others stop,
	// every rank tells by Late where it was stopped, and all get as their Failure which ranks
	// held up which. Late does not wait; the verdict comes at most TrialTime later. Ranks that
	// have told nothing until then are its culprits.
	Late(p Position)

	// OnHalt has f called, on a goroutine of its own, when the hub wants this rank to stop and
	// to tell by Late where it was. Call OnHalt before any rank may call Late.
	OnHalt(f func())

	// Regroup is for the ranks that are left after a failure: the ranks that call it go on as a new
	// group. The group is complete when all ranks have called that have not died, left or been found
	// silent, or when one rank has waited for wait. All ranks get the same Members. A rank that comes
	// later gets ErrExcluded. So do the ranks at one end of a path between two that live, if the failure is that nothing
	// moves there, or that their connection broke once more. If the new group cannot meet, since one more rank has died,
	// each calls Regroup again.
	// If the hub's process has died, and its host says so, the ranks meet at the first living rank in another
	// process (at most four are asked), and go on if more than half of the ranks come that may live. That works once.
	Regroup(ctx context.Context, wait time.Duration) (Regrouping, error)

	// Hub are the ranks in the group whose process serves the hub.
	Hub() []int

	// Silent are the ranks that had not answered the hub's question for their position
	// for a second or more, as of this rank's last Inquire. Their processes may be
	// stopped, or their hosts cut off and not yet taken for dead.
	Silent() []int

	// Left reports whether another rank has said goodbye, as far as this rank knows. It is told of the first rank that
	// leaves, and of the ranks in Position.Awaits of its Inquire.
	Left(rank int) bool

	// Leave says goodbye: an orderly leave is not a failure. From then on no AllGather of others can
	// complete, and ranks that wait for this one hear why. The connection stays for Part.
	Leave()

	// Part tells the others that this rank has come to a stage of parting, and waits until all others have
	// come to it, closed their group or died. It calls Leave first. Errors: that of ctx, ErrExit, or that
	// the rendezvous has ended; then others may be at an earlier stage.
	Part(ctx context.Context, stage int) error

	// Close leaves, if Leave was not called, and is the last stage of parting. It waits for the
	// hub's answer, at most a second, so that the process may exit at once.
	Close() error
}

// A Regrouping lists the ranks that go on after a failure, and where they meet, or their group if they have met.
type Regrouping struct {
	Members []int // ranks of the old group, ascending; their order is that of the new one
	ID      ID    // the ID that the members have to Join, zero if there is a Group
	Group   Group // the new group, if all ranks are in one process or the hub's process has died; else nil
}

// ErrExcluded is the error of Regroup and Meet on a rank that came too late, that the others take for dead, or that
// does not reach one of them.
var ErrExcluded = errors.New("the others have gone on without this rank")

// Local makes a group of n ranks inside this process, without network: for
// tests and for ranks that are goroutines.
func Local(n int) []Group {
	secret := auth.NewNonce()
	key := groupKey(secret[:], secret)
	members, groups := make([]*member, n), make([]Group, n)
	r := newCoordinator(rendezvous.Config{Size: n}, local{members})
	var open atomic.Int64
	open.Store(int64(n))
	for rank := range n {
		m := newMember(rank, n, key, nil)
		m.uplink.up = func(msg message) { r.hear(rank, msg) }
		m.uplink.drop = func() { r.lost(rank, "dropped out") }
		m.uplink.hangUp = func() {
			if open.Add(-1) == 0 {
				r.end()
				r.tasks.Wait()
			}
		}
		members[rank], groups[rank] = m, m
	}
	return groups
}

// Served reports whether this rank is still connected to the rendezvous, so that it may Regroup.
func Served(g Group) bool { return !isClosed(g.(*member).uplink.ended) }

// Address is this rank's own address on its connection to the rendezvous, which all others reach. It is not valid for
// a group of one process, on a loopback connection, and on connections of the program's own.
func Address(g Group) netip.Addr {
	if tcp, ok := g.(*member).at.(*net.TCPAddr); ok && tcp.IP.IsGlobalUnicast() {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Drop ends a rank's membership as its sudden death would: without goodbye.
// For tests.
func Drop(g Group) { g.(*member).uplink.drop() }

// Mute drops all further messages of a rank, as if its process were stopped. For tests.
func Mute(g Group) {
	m := g.(*member)
	m.uplink.order.Lock()
	defer m.uplink.order.Unlock()
	m.uplink.up = func(message) {}
}

// A local is the outside of a group whose ranks are all in this process.
type local struct{ members []*member }

func (l local) tell(to []int, m message) {
	for _, rank := range to {
		l.members[rank].hear(m)
	}
}

func (l local) meet(m rendezvous.Meet) rendezvous.Met {
	return rendezvous.Met{Number: m.Number, Here: Local(len(m.Members))}
}

func (l local) miss(m rendezvous.Miss)          { m.At.Here.([]Group)[m.Member].(*member).uplink.drop() }
func (l local) regrouping([]int)                {}
func (l local) failed(Failure)                  {}
func (l local) hears(int) bool                  { return true }
func (l local) reach(context.Context, int) bool { return true }
