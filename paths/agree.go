package paths

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// An offer is what a rank says of one transport: where it listens, or why it cannot.
type offer struct {
	Addr    []byte `json:",omitempty"`
	Refused string `json:",omitempty"`
}

// An Agreement is what all ranks have offered each other, and so which transport
// carries which pair.
type Agreement struct {
	rank       int
	profiles   []Profile
	transports *Transports
	wanted     func(a, b int) bool
	refused    string
	offers     []map[string]offer // by rank
}

// Agree has all ranks listen on what their pairs want to use, the best first, and tell
// each other. A pair whose transport is refused by one of its ends tries the next one;
// when nobody refuses any more, all pairs have what they can have. wanted says which
// pairs need a transport; it is the same on all ranks. refused, unless "", is why this
// rank offers nothing.
//
// Cost: one gather, and one more for each round in which somebody refused.
func Agree(ctx context.Context, g Group, profiles []Profile, t *Transports, wanted func(a, b int) bool, refused string) (*Agreement, error) {
	a := &Agreement{rank: g.Rank(), profiles: profiles, transports: t, wanted: wanted, refused: refused, offers: make([]map[string]offer, len(profiles))}
	for r := range a.offers {
		a.offers[r] = map[string]offer{}
	}
	for more := true; more; {
		mine, err := json.Marshal(a.listen())
		if err != nil {
			return nil, err
		}
		all, err := Exchange(ctx, g, mine, func(b []byte) (o map[string]offer, err error) {
			err = json.Unmarshal(b, &o)
			return o, err
		})
		if err != nil {
			return nil, err
		}
		more = false
		for r, offers := range all {
			for name, o := range offers {
				a.offers[r][name] = o
				more = more || o.Refused != ""
			}
		}
	}
	return a, nil
}

// listen makes the offers that this rank's pairs want and that it has not made yet.
func (a *Agreement) listen() map[string]offer {
	made := map[string]offer{}
	for r := range a.profiles {
		name := "inproc" // to itself
		if r != a.rank {
			if !a.wanted(min(r, a.rank), max(r, a.rank)) {
				continue
			}
			name, _, _ = a.Choose(r, a.rank)
		}
		_, before := a.offers[a.rank][name]
		_, now := made[name]
		if name == "" || before || now {
			continue
		}
		var o offer
		t, err := a.transports.Get(name)
		switch {
		case a.refused != "" && r != a.rank:
			o.Refused = a.refused
		case err == nil:
			o.Addr, err = t.Listen()
			fallthrough
		default:
			if err != nil {
				o.Refused = err.Error()
			}
		}
		made[name] = o
	}
	return made
}

// Choose is the transport of a pair of ranks, and the reasons against the better ones.
// It is symmetric: both ends get the same answer. Before both ends have made their
// offers it is what they are to offer next.
func (a *Agreement) Choose(x, y int) (name string, against []string, err error) {
	p, q := &a.profiles[min(x, y)], &a.profiles[max(x, y)]
	for _, name := range p.Wish {
		reason := a.against(name, p, q)
		if reason == "" {
			return name, against, nil
		}
		against = append(against, fmt.Sprintf("not %s (%s)", name, strings.TrimPrefix(reason, name+": ")))
	}
	return "", nil, fmt.Errorf("no transport connects rank %d on %s and rank %d on %s: %s; RINGO_TRANSPORT and RINGO_NET say what may be used (now %s)",
		p.Rank, p.Hostname, q.Rank, q.Hostname, strings.Join(against, "; "), strings.Join(p.Wish, ","))
}

// against says why a pair cannot use a transport, "" if it can.
func (a *Agreement) against(name string, p, q *Profile) string {
	t, err := a.transports.Get(name)
	if err != nil {
		return err.Error()
	}
	if err := t.Reach(p.Info, q.Info); err != nil {
		return err.Error()
	}
	for _, end := range []*Profile{p, q} {
		if why := a.offers[end.Rank][name].Refused; why != "" {
			return fmt.Sprintf("rank %d on %s: %s", end.Rank, end.Hostname, why)
		}
	}
	return ""
}

// LinksWhere are Links of those pairs alone that some function names.
func (a *Agreement) LinksWhere(wanted func(a, b int) bool) (*Links, error) {
	part := *a
	part.wanted = wanted
	l, _, err := part.Links()
	return l, err
}

// Links are this rank's connections, not made yet, with a note in words on each kind of
// path. An error says which pair has none.
func (a *Agreement) Links() (*Links, []string, error) {
	paths := make([]path, len(a.profiles))
	var notes []string
	seen := map[string]bool{}
	for r := range a.profiles {
		name, against, err := "inproc", []string(nil), error(nil)
		if r != a.rank && a.wanted(min(r, a.rank), max(r, a.rank)) {
			if name, against, err = a.Choose(r, a.rank); err != nil {
				return nil, nil, err
			}
		}
		via, err := a.transports.Get(name)
		if err != nil {
			return nil, nil, err
		}
		paths[r] = path{peer: a.profiles[r].Info, addr: a.offers[r][name].Addr, via: via}
		note := strings.Join(append([]string{name}, against...), "; ")
		if r != a.rank && !seen[note] {
			seen[note] = true
			notes = append(notes, note)
		}
	}
	return newLinks(paths), notes, nil
}

// Exchange gives what all ranks say, in order of rank.
func Exchange[T any](ctx context.Context, g Group, mine []byte, parse func([]byte) (T, error)) ([]T, error) {
	blobs, err := g.AllGather(ctx, mine)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(blobs))
	for r, b := range blobs {
		if all[r], err = parse(b); err != nil {
			return nil, fmt.Errorf("what rank %d says of its paths: %w", r, err)
		}
	}
	return all, nil
}
