package bootstrap

import (
	"context"
	"net"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// tell sends a message to ranks. Those of this process hear of a failure when it is on its way to the others, as the
// process may end on it. Under mu of the coordinator.
func (h *hub) tell(to []int, m message) {
	var frame []byte
	for _, rank := range to {
		s := h.joined.slots[rank]
		if s.direct == nil {
			if frame == nil {
				frame = rendezvous.Encode(m)
			}
			s.link.sendFrame(frame)
		}
	}
	if _, fails := m.(*rendezvous.Failed); fails && frame != nil && h.later == nil {
		h.later = []func(){}
		h.coordinator.tasks.Go(func() {
			h.flushLinks()
			h.coordinator.mu.Lock()
			defer h.coordinator.mu.Unlock()
			for _, hear := range h.later {
				hear()
			}
			h.later = nil
		})
	}
	for _, rank := range to {
		switch s := h.joined.slots[rank]; {
		case s.direct != nil && h.later != nil:
			h.later = append(h.later, func() { s.direct(m) })
		case s.direct != nil:
			s.direct(m)
		}
	}
}

// regrouping calls Regrouped, with the members' numbers in the first group.
func (h *hub) regrouping(members []int) {
	if h.opt.Regrouped != nil {
		h.opt.Regrouped(h.opt.first(members))
	}
}

// failed calls Failed, with the ranks' numbers in the first group.
func (h *hub) failed(f Failure) {
	if h.opt.Failed == nil {
		return
	}
	if f.Rank >= 0 {
		f.Rank = h.opt.first([]int{f.Rank})[0]
	}
	f.Culprits, f.Candidates = h.opt.first(f.Culprits), h.opt.first(f.Candidates)
	h.opt.Failed(&f)
}

// first is the numbers that ranks had in the first group; nil for nil.
func (o *ListenOptions) first(ranks []int) []int {
	if o.members == nil || ranks == nil {
		return ranks
	}
	first := make([]int, len(ranks))
	for i, r := range ranks {
		first[i] = o.members[r]
	}
	return first
}

// meet opens a new hub at this hub's address, for the members of one group.
func (h *hub) meet(m rendezvous.Meet) rendezvous.Met {
	o := h.opt
	o.members, o.failed = h.opt.first(m.Members), m.Failed
	o.Addr, o.Secret, o.Key, o.Again = h.id.Addr(), "", nil, false
	if o.shared == nil { // else in its turn
		host, _, _ := net.SplitHostPort(o.Addr)
		o.Addr = net.JoinHostPort(host, "0")
	}
	id, err := NewID(o)
	if err != nil && o.shared == nil { // the address may not be this machine's
		o.Addr = ""
		id, err = NewID(o)
	}
	if err != nil {
		return rendezvous.Met{Number: m.Number, Err: err.Error()}
	}
	return rendezvous.Met{Number: m.Number, ID: id[:]}
}

// miss tells the hub of a new group that one of its ranks will not come.
func (h *hub) miss(m rendezvous.Miss) { Gone(ID(m.At.ID), m.Member, m.Why) }

// hears reports whether a rank's host is known to acknowledge what is sent to it.
func (h *hub) hears(rank int) bool {
	s := h.joined.slots[rank]
	return s.direct != nil || s.link.hears(answeredSince)
}

// reach reports whether the host of a rank answers this process.
func (h *hub) reach(ctx context.Context, rank int) bool {
	d := net.Dialer{}
	s := h.joined.slots[rank]
	if at, ok := s.link.conn.LocalAddr().(*net.TCPAddr); ok { // by the way that the rank came
		d.LocalAddr = &net.TCPAddr{IP: at.IP, Zone: at.Zone}
	}
	return answers(d.DialContext(ctx, "tcp", s.address()))
}
