package ringo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/transport"
)

// A profile is what one rank tells all others before the first connection. The
// ranks exchange their profiles once; all choices are then pure functions of the
// same profiles, so every rank makes the same ones without another word.
type profile struct {
	Version string
	transport.Info
	Hostname   string
	GPU        string `json:",omitempty"` // name of the rank's GPU, if it has one
	GPUID      string `json:",omitempty"` // tells it from others
	Processors int    `json:",omitempty"` // that it has
	Limits     transport.Limits
	Order      string   `json:",omitempty"` // Config.Deterministic
	Wish       []string // preference of this rank's Config, best first
	Candidates []candidate
	Plan       *planSource `json:",omitempty"` // rank 0's
}

// A candidate is a transport that a rank can use, or the reason why it cannot.
type candidate struct {
	Name    string
	Addr    []byte `json:",omitempty"`
	Refused string `json:",omitempty"`
}

// preference is the order in which transports are tried: the fewest copies first.
var preference = []string{"inproc", "shm", "socket"}

// wish is the order that a Config asks for.
func wish(cfg *Config) ([]string, error) {
	var out []string
	for _, name := range splitList(cfg.Transport) {
		if name == "auto" {
			out = append(out, preference...)
			continue
		}
		if name == "p2p" { // is for GPU memory; see gpuRefusals
			continue
		}
		if !slices.Contains(preference, name) {
			return nil, fmt.Errorf("%w: transport %q is none of auto, p2p, %s", ErrInvalid, name, strings.Join(preference, ", "))
		}
		out = append(out, name)
	}
	if len(out) > 0 {
		return out, nil
	}
	nets := splitList(cfg.Net)
	if len(nets) == 0 {
		return preference, nil
	}
	return append([]string{"inproc", "shm"}, nets...), nil
}

// gpuRefusals says why a Config does not allow each kind of path for GPU memory;
// "" allows it.
func (c *Config) gpuRefusals() (p2p, host, bridge string) {
	p2p, host = c.noP2P, c.noSHM
	list := splitList(c.Transport)
	if len(list) == 0 || slices.Contains(list, "auto") {
		return p2p, host, ""
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	why := "transport " + c.Transport
	if p2p == "" && !has("p2p") {
		p2p = why
	}
	if host == "" && !has("shm", "inproc") {
		host = why
	}
	if !has("socket", "inproc") {
		bridge = why
	}
	return p2p, host, bridge
}

// onlySockets reports whether ranks on these hosts will all be connected by
// sockets, as far as wishes go.
func onlySockets(order, hosts []string) bool {
	if len(hosts) < 2 {
		return false
	}
	if !slices.Contains(order, "inproc") && !slices.Contains(order, "shm") {
		return true
	}
	for i, h := range hosts {
		if slices.Contains(hosts[:i], h) {
			return false
		}
	}
	return true
}

func splitList(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ',' || r == ' ' })
}

func (p *profile) candidate(name string) candidate {
	for _, c := range p.Candidates {
		if c.Name == name {
			return c
		}
	}
	return candidate{Name: name, Refused: "unknown here; transports are " + strings.Join(preference, ", ")}
}

// choose is the transport of the pair a, b, and the reasons against the better
// ones. It is symmetric: both ends get the same answer.
func choose(a, b *profile, reach func(name string, a, b transport.Info) error) (name string, against []string, err error) {
	for _, name := range a.Wish {
		var reason string
		switch ca, cb := a.candidate(name), b.candidate(name); {
		case ca.Refused != "":
			reason = fmt.Sprintf("rank %d on %s: %s", a.Rank, a.Hostname, ca.Refused)
		case cb.Refused != "":
			reason = fmt.Sprintf("rank %d on %s: %s", b.Rank, b.Hostname, cb.Refused)
		default:
			e := reach(name, a.Info, b.Info)
			if e == nil {
				return name, against, nil
			}
			reason = e.Error()
		}
		against = append(against, fmt.Sprintf("not %s (%s)", name, reason))
	}
	return "", against, fmt.Errorf("no transport connects rank %d on %s and rank %d on %s: %s; RINGO_TRANSPORT and RINGO_NET say what may be used (now %s)",
		a.Rank, a.Hostname, b.Rank, b.Hostname, strings.Join(against, "; "), strings.Join(a.Wish, ","))
}

// agree checks that the profiles of all ranks fit together.
func agree(all []profile) error {
	first := &all[0]
	for i := range all {
		p := &all[i]
		switch {
		case p.Rank != i:
			return fmt.Errorf("rank %d says that it is rank %d", i, p.Rank)
		case p.Version != first.Version:
			return fmt.Errorf("rank 0 runs ringo %s, rank %d on %s runs %s; install one version", first.Version, i, p.Hostname, p.Version)
		case !slices.Equal(p.Wish, first.Wish):
			return fmt.Errorf("rank 0 wants transports %s, rank %d on %s wants %s; give all ranks the same RINGO_TRANSPORT and RINGO_NET",
				strings.Join(first.Wish, ","), i, p.Hostname, strings.Join(p.Wish, ","))
		case p.Order != first.Order:
			return fmt.Errorf("rank 0 has Deterministic %q, rank %d on %s has %q; give all ranks the same RINGO_DETERMINISTIC",
				first.Order, i, p.Hostname, p.Order)
		case p.Limits != first.Limits:
			return fmt.Errorf("rank 0 has %d slots of %d bytes, rank %d on %s has %d of %d; give all ranks the same RINGO_SLOTS and RINGO_SLOT_BYTES",
				first.Limits.Slots, first.Limits.SlotBytes, i, p.Hostname, p.Limits.Slots, p.Limits.SlotBytes)
		}
	}
	return nil
}

func (p *profile) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return b
}

func decodeProfiles(blobs [][]byte) ([]profile, error) {
	all := make([]profile, len(blobs))
	for i, b := range blobs {
		if err := json.Unmarshal(b, &all[i]); err != nil {
			return nil, fmt.Errorf("profile of rank %d: %w", i, err)
		}
	}
	return all, nil
}
