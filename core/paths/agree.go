package paths

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// An offer is what a rank says of one transport: where the rank listens, or why it cannot. An offer of a network also
// says which devices the rank has found, and may come before the rank listens.
type offer struct {
	Addr    []byte   `json:",omitempty"`
	Listens bool     `json:",omitempty"`
	Refused string   `json:",omitempty"`
	Kind    string   `json:",omitempty"` // transport.Found
	Devices []string `json:",omitempty"`
	Used    []string `json:",omitempty"` // transport.Found
	Mbps    int      `json:",omitempty"` // of all devices together, 0 if one of them does not say
	Silent  string   `json:",omitempty"` // the devices that do not say their Mbps
	Given   int      `json:",omitempty"` // Config.HostMbps
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

// Agree has all ranks listen on the transports that their pairs want to use, the best first, and tell each other. A
// pair whose transport is refused by one of its ends tries the next one; when nobody refuses any more, all pairs have
// the best that they can have. wanted says which pairs need a transport, the same on all ranks. refused, unless "", is
// why this rank offers nothing to others. A network that the Config names is looked for even if no pair needs it.
//
// Cost: one gather, and one more for each round in which somebody refused.
func Agree(ctx context.Context, g Group, profiles []Profile, t *Transports, wanted func(a, b int) bool,
	refused string) (*Agreement, error) {
	a := &Agreement{rank: g.Rank(), profiles: profiles, transports: t, wanted: wanted, refused: refused,
		offers: make([]map[string]offer, len(profiles))}
	for r := range a.offers {
		a.offers[r] = map[string]offer{}
	}
	for more := true; more; {
		all, err := Exchange(ctx, g, plain.JSON(a.listen()), func(b []byte) (o map[string]offer, err error) {
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
		more = a.judge() || more
	}
	if t.named && a.network() == "" {
		return nil, a.noNetwork()
	}
	return a, nil
}

// listen makes the offers that this rank's pairs want and that are not made yet.
func (a *Agreement) listen() map[string]offer {
	made := map[string]offer{}
	for r := range a.profiles {
		name := "inproc" // to itself
		if r != a.rank {
			if !a.wanted(min(r, a.rank), max(r, a.rank)) {
				continue
			}
			name, _ = a.choose(r, a.rank)
		}
		before := a.offers[a.rank][name]
		if _, now := made[name]; name == "" || before.Listens || before.Refused != "" || now {
			continue
		}
		var o offer
		if a.refused != "" && r != a.rank {
			o.Refused = a.refused
		} else {
			o = a.transports.offer(name, true)
		}
		made[name] = o
	}
	if a.transports.named {
		name := a.network()
		_, before := a.offers[a.rank][name]
		if _, now := made[name]; name != "" && !before && !now {
			made[name] = a.transports.offer(name, false)
		}
	}
	return made
}

// offer is this rank's offer of a transport. listen, which may be false for a network alone, makes the rank listen.
func (t *Transports) offer(name string, listen bool) (o offer) {
	if n := t.find(name); n != nil {
		found, err := n.Probe()
		if err != nil {
			return offer{Refused: err.Error()}
		}
		o.Kind, o.Used = found.Kind, found.Used
		var silent []string
		for _, d := range found.Devices {
			o.Devices = append(o.Devices, d.Name)
			if o.Mbps += d.Mbps; d.Mbps <= 0 {
				silent = append(silent, d.Name)
			}
		}
		if o.Silent = strings.Join(silent, ", "); o.Silent != "" {
			o.Mbps = 0
		}
		o.Given = n.options.HostMbps
	}
	if !listen {
		return o
	}
	x, err := t.Get(name)
	if err == nil {
		o.Addr, err = x.Listen()
	}
	if err != nil {
		return offer{Refused: err.Error()}
	}
	o.Listens = true
	return o
}

// Choose is the transport of a pair of ranks, and the reasons against the better ones. It is symmetric: both ends get
// the same answer. Before both ends have made their offers the answer is the transport that they are to offer next.
func (a *Agreement) Choose(x, y int) (name string, against []string, err error) {
	name, refusals := a.choose(x, y)
	for _, r := range refusals {
		against = append(against, r.String())
	}
	if name == "" {
		p, q := &a.profiles[min(x, y)], &a.profiles[max(x, y)]
		err = fmt.Errorf("no transport connects rank %d on %s and rank %d on %s: %s; RINGO_TRANSPORT and RINGO_NET say "+
			"what may be used (now %s)",
			p.Rank, p.Hostname, q.Rank, q.Hostname, strings.Join(against, "; "), strings.Join(p.Wish, ","))
	}
	return name, against, err
}

// Placer is the transport between this rank and a peer as a transport.Placer, nil if that transport places no slots.
func (a *Agreement) Placer(peer int) (p transport.Placer) {
	name, _ := a.choose(peer, a.rank)
	if t := a.transports.made[name]; t != nil {
		p, _ = t.(transport.Placer)
	}
	return p
}

// Cards are the names of this rank's devices over which its connections with a peer go: those over which this rank
// dials, and those over which the peer dials, by names that both have. If this rank does not know over which it dials,
// cards are all its devices, and known is false.
func (a *Agreement) Cards(peer int) (cards []string, known bool) {
	name, _ := a.choose(peer, a.rank)
	own, theirs := a.offers[a.rank][name], a.offers[peer][name]
	if cards = slices.Clone(own.Used); len(cards) == 0 {
		return own.Devices, false
	}
	for _, c := range theirs.Used {
		if slices.Contains(own.Devices, c) && !slices.Contains(cards, c) {
			cards = append(cards, c)
		}
	}
	return cards, true
}

// A refusal is why a transport is not used.
type refusal struct{ name, why string }

func (r refusal) String() string {
	return fmt.Sprintf("not %s (%s)", r.name, strings.TrimPrefix(r.why, r.name+": "))
}

// choose is Choose; name is "" if nothing is left.
func (a *Agreement) choose(x, y int) (name string, refusals []refusal) {
	p, q := &a.profiles[min(x, y)], &a.profiles[max(x, y)]
	for _, name := range p.Wish {
		why := a.against(name, p, q)
		if why == "" {
			return name, refusals
		}
		refusals = append(refusals, refusal{name, why})
	}
	return "", refusals
}

// against says why a pair cannot use a transport, "" if it can.
func (a *Agreement) against(name string, p, q *Profile) string {
	if why := a.transports.ruledOut[name]; why != "" {
		return why
	}
	if n := a.transports.find(name); n != nil && n.kind.Open == nil {
		return "" // not built in on this rank, which will say so in its offer
	}
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

// LinksWhere is Links for another choice of the pairs that need a transport, without the notes.
func (a *Agreement) LinksWhere(wanted func(a, b int) bool) (*Links, error) {
	part := *a
	part.wanted = wanted
	l, _, err := part.Links()
	return l, err
}

// Links are this rank's connections, not made yet, with a note in words on each kind of
// path, after one on the network if there is one. An error says which pair has none.
func (a *Agreement) Links() (*Links, []string, error) {
	paths := make([]path, len(a.profiles))
	var notes []string
	seen := map[string]bool{}
	if note := a.networkNote(); note != "" {
		notes = append(notes, note)
	}
	for r := range a.profiles {
		name, refusals := "inproc", []refusal(nil)
		if r != a.rank && a.wanted(min(r, a.rank), max(r, a.rank)) {
			if name, refusals = a.choose(r, a.rank); name == "" {
				_, _, err := a.Choose(r, a.rank)
				return nil, nil, err
			}
		}
		via, err := a.transports.Get(name)
		if err != nil {
			return nil, nil, err
		}
		paths[r] = path{peer: a.profiles[r].Info, addr: a.offers[r][name].Addr, via: via, width: a.transports.widthOf(name)}
		words := []string{name}
		for _, r := range refusals {
			if a.transports.find(r.name) == nil { // networks have a note of their own
				words = append(words, r.String())
			}
		}
		note := strings.Join(words, "; ")
		if r != a.rank && !seen[note] {
			seen[note] = true
			notes = append(notes, note)
		}
	}
	return newLinks(paths), notes, nil
}

// Exchange tells all ranks mine, and returns what each rank has said, parsed, in order of rank.
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
