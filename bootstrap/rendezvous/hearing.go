package rendezvous

import (
	"slices"

	"github.com/ringo-go/ringo/trace/judge"
)

// A Hearing is what witnesses have said of the hub to a rank that does not hear it. Hosts are named by the ranks that
// stand for them.
type Hearing struct {
	Rank, Home  int   // the rank, and the one that stands for its host
	Here, There []int // ranks of the rank's host, and of the hub's
	Hosts       []int // ranks whose process serves the hub

	hears, lost []int // hosts that answer this one, and those that do not
	said        []judge.Testimony
}

// hubPlace is the place of the hub for judge.Losses.
const hubPlace = -1

// Note takes the statement of a host that lives.
func (h *Hearing) Note(from int, s Statement) {
	t := judge.Testimony{From: from}
	if from != h.Home {
		h.hears = append(h.hears, from)
		switch s.Seen {
		case Hears:
			t.Hears = []int{hubPlace}
		case Missing:
			t.Lost = []int{hubPlace}
		}
	}
	for _, other := range s.Told {
		if !slices.Contains(h.There, other) {
			t.Hears = append(t.Hears, other)
			h.said = append(h.said, judge.Testimony{From: other, Lost: []int{hubPlace}})
		}
	}
	h.said = append(h.said, t)
}

// Miss notes a host that answers nothing.
func (h *Hearing) Miss(host int) {
	if host != h.Home {
		h.lost = append(h.lost, host)
	}
}

// Verdict is the Failure that explains all statements. again asks the hub once more, nil if the hub has answered.
func (h *Hearing) Verdict(why string, again func() bool) *Failure {
	own := judge.Testimony{From: h.Home, Hears: h.hears, Lost: append([]int{hubPlace}, h.lost...)}
	slices.Sort(own.Lost)
	l := judge.Losses(append([]judge.Testimony{own}, h.said...))
	if l.Path && (again == nil || again()) { // what was cut works again
		l = judge.Loss{Candidates: l.Culprits}
	}
	f := &Failure{Rank: -1, Reason: "the rendezvous answers nothing: " + why}
	switch there := h.ranks(hubPlace); {
	case slices.Equal(l.Culprits, []int{hubPlace}):
		f.Culprits, f.Died = there, true
		f.Reason = why + ", and it answers no other host: it is down or cut off"
		if len(there) > 0 {
			f.Rank = there[0]
		}
	case l.Path && len(there) > 0:
		f.Culprits, f.Path = []int{there[0], h.ranks(h.Home)[0]}, true
		slices.Sort(f.Culprits)
	case l.Path:
		f.Candidates = h.ranks(h.Home)[:1]
	default:
		f.Candidates = h.ranks(append(l.Culprits, l.Candidates...)...)
	}
	return f
}

// ranks are the ranks of places.
func (h *Hearing) ranks(places ...int) (ranks []int) {
	for _, p := range places {
		switch p {
		case hubPlace:
			ranks = append(append(ranks, h.There...), h.Hosts...)
		case h.Home:
			ranks = append(append(ranks, h.Here...), h.Rank)
		default:
			ranks = append(ranks, p)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
