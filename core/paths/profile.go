package paths

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// A Profile is what one rank tells all others before the first connection.
type Profile struct {
	Version string
	transport.Info
	Hostname         string   // readable, for errors
	Pid              int      // readable, for histories
	Origin           string   `json:",omitempty"` // the communicator of which others were made up to this one
	Number           int      `json:",omitempty"` // the rank there
	Wish             []string // preference of this rank's Config, best first
	SlotBytes, Slots int
	Settings         []Setting // that must be the same on all ranks
	FromRank0        []byte    `json:",omitempty"` // what rank 0 decides for all
	Cores            int       // that the ranks of the host may use
	Card             []byte    `json:",omitempty"` // what the program wants all to know of the rank

	GPU        string `json:",omitempty"` // name of the rank's GPU, "" without one
	GPUID      string `json:",omitempty"` // tells it from others
	Processors int    `json:",omitempty"` // multiprocessors of the GPU
	BulkCopies bool   `json:",omitempty"` // the GPU has them
	Blocks     int    `json:",omitempty"` // thread blocks that the account of the rank's process gives its kernels
	MaxBlocks  int    `json:",omitempty"` // that the rank wants instead; 0: any
	MinBlocks  int    `json:",omitempty"` // that the rank wants at least
	Policy     uint8  `json:",omitempty"` // choice.Policy
}

// A Setting is something that all ranks must have set to the same value.
type Setting struct{ Name, Value, Variable string }

// onHost is the order in which transports are tried that end at the host: the fewest copies
// first. Networks come after them.
var onHost = []string{"inproc", "shm"}

// wish is the order of transports that a Config asks for, and the networks among them.
func (c *Config) wish() (out []string, nets []Network, err error) {
	add := func(more []Network) {
		for _, n := range more {
			out, nets = append(out, n.Name), append(nets, n)
		}
	}
	for _, name := range splitList(c.Transport) {
		switch {
		case name == "auto":
			out = append(out, onHost...)
			add(c.automatic())
		case name == "p2p": // is for GPU memory; see GPURefusals
		case slices.Contains(onHost, name):
			out = append(out, name)
		case slices.ContainsFunc(networks, func(n transport.Network) bool { return n.Name == name }):
			add(c.network(name))
		default:
			return nil, nil, fmt.Errorf("%w: transport %q is none of auto, p2p, %s", call.ErrInvalid, name,
				strings.Join(preference(), ", "))
		}
	}
	if len(out) > 0 {
		return out, nets, nil
	}
	for _, name := range onHost {
		if name != "shm" || c.NoSHM == "" {
			out = append(out, name)
		}
	}
	names := splitList(c.Net)
	for _, name := range names {
		if name == "p2p" || name == "auto" || slices.Contains(onHost, name) {
			from := cmp.Or(c.NetFrom, "Config.Net")
			return nil, nil, fmt.Errorf("%w: %s=%s: %s is no network between hosts; those are %s, and what a plugin calls "+
				"itself; unset %s, and set RINGO_TRANSPORT=%s if ranks of one host are meant",
				call.ErrInvalid, from, c.Net, name, strings.Join(preference()[len(onHost):], ", "), from, name)
		}
		add(c.network(name))
	}
	if len(names) == 0 {
		add(c.automatic())
	}
	return out, nets, nil
}

// preference are the names of all transports, in the order in which they are tried.
func preference() []string {
	names := slices.Clone(onHost)
	for i := range networks {
		names = append(names, networks[i].Name)
	}
	return names
}

// GPURefusals says why a Config does not allow each kind of path for GPU memory;
// "" allows it.
func (c *Config) GPURefusals() (p2p, host, bridge string) {
	p2p, host = c.NoP2P, c.NoSHM
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
	if !has(append(preference()[len(onHost):], "inproc")...) {
		bridge = why
	}
	return p2p, host, bridge
}

func splitList(s string) []string { return splitWords(strings.ToLower(s)) }

// splitWords splits a list at its commas. A name may have blanks in it, but none around it.
func splitWords(s string) (words []string) {
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// agree checks that the profiles of all ranks fit together. The error is an ErrMismatch.
func agree(all []Profile) error {
	if err := differ(all); err != nil {
		return fmt.Errorf("%w: %w", call.ErrMismatch, err)
	}
	return nil
}

func differ(all []Profile) error {
	first := &all[0]
	for i := range all {
		p := &all[i]
		switch {
		case p.Rank != i:
			return fmt.Errorf("rank %d says that it is rank %d", i, p.Rank)
		case p.Version != first.Version:
			return fmt.Errorf("rank 0 runs ringo %s, rank %d on %s runs %s; install one version", first.Version, i,
				p.Hostname, p.Version)
		case !slices.Equal(p.Wish, first.Wish):
			return fmt.Errorf("rank 0 wants transports %s, rank %d on %s wants %s; give all ranks the same RINGO_TRANSPORT, "+
				"RINGO_NET, RINGO_NET_PLUGIN and RINGO_SHM_DISABLE",
				strings.Join(first.Wish, ","), i, p.Hostname, strings.Join(p.Wish, ","))
		case p.Slots != first.Slots || p.SlotBytes != first.SlotBytes:
			return fmt.Errorf("rank 0 has %d slots of %s, rank %d on %s has %d of %s; give all ranks the same RINGO_SLOTS and "+
				"RINGO_SLOT_BYTES",
				first.Slots, bytesOf(first.SlotBytes), i, p.Hostname, p.Slots, bytesOf(p.SlotBytes))
		case len(p.Settings) != len(first.Settings):
			return fmt.Errorf("rank 0 has %d settings, rank %d on %s has %d; install one version", len(first.Settings), i,
				p.Hostname, len(p.Settings))
		}
		for k, s := range p.Settings {
			if f := first.Settings[k]; s != f {
				return fmt.Errorf("rank 0 has %s %q, rank %d on %s has %q; give all ranks the same %s", f.Name, f.Value, i,
					p.Hostname, s.Value, f.Variable)
			}
		}
	}
	return nil
}

func bytesOf(n int) string {
	if n == 0 {
		return "default size"
	}
	return fmt.Sprintf("%d bytes", n)
}

// limits is how many slots the ranks' queues have, and of which size. The default size depends on where the ranks are:
// large slots save sockets system calls, small ones of shared memory stay in a core's cache.
func limits(all []Profile) transport.Limits {
	l := transport.Limits{SlotBytes: all[0].SlotBytes, Slots: all[0].Slots}
	if l.SlotBytes == 0 {
		l.SlotBytes = DefaultSlotBytes
		if onlySockets(all) {
			l.SlotBytes = DefaultSocketSlotBytes
		}
	}
	return l
}

// onlySockets reports whether several ranks have nothing but networks between them, by their wishes and hosts.
func onlySockets(all []Profile) bool {
	if len(all) < 2 {
		return false
	}
	if order := all[0].Wish; !slices.Contains(order, "inproc") && !slices.Contains(order, "shm") {
		return true
	}
	seen := map[string]bool{}
	for i := range all {
		if seen[all[i].Host] {
			return false
		}
		seen[all[i].Host] = true
	}
	return true
}

func (p *Profile) encode() []byte { return plain.JSON(p) }

func decodeProfile(b []byte) (p Profile, err error) {
	err = json.Unmarshal(b, &p)
	return p, err
}

// process tells apart address spaces, also across containers that give their processes
// the same numbers.
var process = sync.OnceValue(func() string {
	var b [8]byte
	rand.Read(b[:])
	return fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(b[:]))
})
