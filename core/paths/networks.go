package paths

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/built"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/plugin"
	"github.com/ringo-go/ringo/transport/socket"
	"github.com/ringo-go/ringo/transport/verbs"
)

// networks are the kinds of transport that connect hosts, the best first.
var networks = kinds()

func kinds() []transport.Network {
	if built.GPU {
		return []transport.Network{plugin.Network, verbs.Network, socket.Network}
	}
	return []transport.Network{absent("plugin"), absent("ib"), socket.Network}
}

// absent is a network that is not in the program.
func absent(name string) transport.Network {
	return transport.Network{Name: name, Probe: func(transport.NetworkOptions) (transport.Found, error) {
		return transport.Found{}, errors.New("this program was built with the tag ringo_host")
	}}
}

// WithNetwork adds a network, after all others, until restore is called. It is for tests.
func WithNetwork(n transport.Network) (restore func()) {
	before := networks
	networks = append(slices.Clone(networks), n)
	return func() { networks = before }
}

// A Network is one that a Config allows: a kind, and what is set for it.
type Network struct {
	Name    string // tells it from the others of the Config
	kind    *transport.Network
	options transport.NetworkOptions
}

// Probe looks for what the network needs on this machine. An error is the reason why this rank cannot use the network.
func (n *Network) Probe() (transport.Found, error) {
	if strings.EqualFold(n.options.Plugin.Library, "none") {
		return transport.Found{}, errors.New("RINGO_NET_PLUGIN or NCCL_NET_PLUGIN is none")
	}
	if n.options.TLS != nil && !n.kind.Encrypts {
		return transport.Found{}, errors.New("RINGO_TLS is on, and it moves data in clear")
	}
	if n.options.Sockets != nil && !n.kind.Given {
		return transport.Found{}, errors.New("Config.Sockets is set, and it does not go over that")
	}
	f, err := n.kind.Probe(n.options)
	if err == nil && len(f.Devices) == 0 {
		err = errors.New("it has no device")
	}
	return f, err
}

// named are the networks that Net names, "" if none or if Transport decides. Ranks that need no network look for a
// named one too, and fail without it.
func (c *Config) named() string {
	if len(splitList(c.Transport)) > 0 {
		return ""
	}
	return strings.Join(splitList(c.Net), ",")
}

// Networks are the networks that a Config allows, the preferred first.
func (c *Config) Networks() ([]Network, error) {
	_, list, err := c.wish()
	return list, err
}

// automatic are all networks, the best first.
func (c *Config) automatic() (list []Network) {
	for i := range networks {
		list = append(list, c.network(networks[i].Name)...)
	}
	return list
}

// network is the networks that a name in a Config stands for: those of a kind, of which the kind "plugin" has one for
// each library; or, if no kind has the name, the plugins that call themselves so.
func (c *Config) network(name string) (list []Network) {
	kind, named := slices.IndexFunc(networks, func(n transport.Network) bool { return n.Name == name }), ""
	if kind < 0 {
		kind, named = 0, name
	}
	n := Network{Name: name, kind: &networks[kind], options: c.Networking}
	if n.kind.Name != networks[0].Name {
		return []Network{n}
	}
	n.options.Plugin.Named = named
	libraries := splitWords(c.Plugins)
	if len(libraries) < 2 {
		n.options.Plugin.Library = strings.Join(libraries, "")
		return []Network{n}
	}
	for _, library := range libraries {
		n.Name, n.options.Plugin.Library = fmt.Sprintf("%s (%s)", name, library), library
		list = append(list, n)
	}
	return list
}

// find is the network of a name, nil if the Config has none.
func (t *Transports) find(name string) *Network {
	if i := slices.IndexFunc(t.networks, func(n Network) bool { return n.Name == name }); i >= 0 {
		return &t.networks[i]
	}
	return nil
}

// judge looks at the offers of the ranks, and rules out the networks that some rank refuses or has another kind of. It
// reports whether it has ruled out one more. A network is used by all ranks or by none, so that no rank waits on a
// network that its peer has not.
func (a *Agreement) judge() (news bool) {
	out := a.transports.ruledOut
	for i := range a.transports.networks {
		name := a.transports.networks[i].Name
		if out[name] != "" {
			continue
		}
		why := a.byReason(func(r int) string { return a.offers[r][name].Refused })
		if why == "" {
			why = a.otherKind(name)
		}
		if why != "" {
			out[name], news = strings.TrimPrefix(why, name+": "), true
		}
	}
	return news
}

// otherKind says who has found another kind of a network than others, "" if nobody has.
func (a *Agreement) otherKind(name string) string {
	first, kind := -1, ""
	for r := range a.profiles {
		o, made := a.offers[r][name]
		switch {
		case !made:
		case first < 0:
			first, kind = r, o.Kind
		case o.Kind != kind:
			return fmt.Sprintf("%s has %s, %s has %s", a.rankOnHost(first), kind, a.rankOnHost(r), o.Kind)
		}
	}
	return ""
}

func (a *Agreement) rankOnHost(r int) string {
	return fmt.Sprintf("rank %d on %s", r, a.profiles[r].Hostname)
}

// byReason says who has which reason: "ranks 0 to 3 on a: no card; rank 5 on b: …".
func (a *Agreement) byReason(reason func(r int) string) string {
	var reasons []string
	who := map[string][]int{}
	for r := range a.profiles {
		if why := reason(r); why != "" {
			if who[why] == nil {
				reasons = append(reasons, why)
			}
			who[why] = append(who[why], r)
		}
	}
	var words []string
	for _, why := range reasons {
		words = append(words, a.ranksOnHosts(who[why])+": "+why)
	}
	return strings.Join(words, "; ")
}

// ranksOnHosts names ranks and their hosts, in runs of ranks that follow each other on one host.
func (a *Agreement) ranksOnHosts(ranks []int) string {
	const most = 3 // runs that are named
	var words []string
	for len(ranks) > 0 {
		if len(words) == most {
			return fmt.Sprintf("%s and %d other ranks", strings.Join(words, ", "), len(ranks))
		}
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n && a.profiles[ranks[n]].Hostname == a.profiles[ranks[0]].Hostname {
			n++
		}
		word := a.rankOnHost(ranks[0])
		if n > 1 {
			word = fmt.Sprintf("ranks %d to %d on %s", ranks[0], ranks[n-1], a.profiles[ranks[0]].Hostname)
		}
		words, ranks = append(words, word), ranks[n:]
	}
	return strings.Join(words, ", ")
}

// network is the network that the ranks use, or are to try next; "" if all are ruled out.
func (a *Agreement) network() string {
	for i := range a.transports.networks {
		if name := a.transports.networks[i].Name; a.transports.ruledOut[name] == "" {
			return name
		}
	}
	return ""
}

// networkNote says which network was chosen and why none before it; "" if none was needed.
func (a *Agreement) networkNote() string {
	name := a.network()
	o, asked := a.offers[a.rank][name]
	if !asked {
		return ""
	}
	words := []string{"network " + name}
	if len(o.Devices) > 0 {
		words[0] += " (" + strings.Join(o.Devices, ", ") + ")"
	}
	if n := a.transports.find(name); n != nil && n.options.TLS != nil {
		words[0] += fmt.Sprintf(" over TLS (%v)", n.options.TLS)
	}
	words = append(words, a.notBetter(name)...)
	// Interfaces of virtual machines do not say how fast they are as a rule; cards do.
	if silent := a.byReason(func(r int) string { return a.offers[r][name].Silent }); silent != "" &&
		name != socket.Network.Name {
		words = append(words, "how fast it is is not known, for some cards do not say it ("+silent+")")
	}
	return strings.Join(words, "; ")
}

// notBetter says why each network before name is not used; before "" are all.
func (a *Agreement) notBetter(name string) (words []string) {
	for i := range a.transports.networks {
		n := &a.transports.networks[i]
		if n.Name == name {
			break
		}
		words = append(words, refusal{n.Name, a.transports.ruledOut[n.Name]}.String())
	}
	return words
}

// noNetwork is the error where nothing that a Config names can be used.
func (a *Agreement) noNetwork() error {
	cfg := &a.transports.net.config
	from := cmp.Or(cfg.NetFrom, "Config.Net")
	return fmt.Errorf("%w: no network: %s asks for %s alone: %s; unset %s to have the best network that works, or name "+
		"another one after it: %s=%s,socket",
		call.ErrUnsupported, from, cfg.Net, strings.Join(a.notBetter(""), "; "), from, from, cfg.Net)
}

// Wire is the network between hosts, as all ranks have agreed: the zero Wire if they need none. Of hosts whose cards
// differ the slowest counts. A HostMbps in a Config, the least if there are several, counts in place of the cards.
func (n *Net) Wire() Wire { return n.wire }

// A Wire is a network as the choice of algorithms sees it.
type Wire struct {
	Network string
	Mbps    int // of all cards of a host together, 0 if some host does not know
	Cards   int // of a host
}

func (a *Agreement) wire() (w Wire) {
	given := 0
	for r := range a.profiles {
		o, made := a.offers[r][a.network()]
		if !made {
			continue
		}
		if w.Network == "" {
			w = Wire{Network: a.network(), Mbps: o.Mbps, Cards: len(o.Devices)}
		}
		w.Mbps, w.Cards = min(w.Mbps, o.Mbps), min(w.Cards, len(o.Devices))
		if o.Given > 0 && (given == 0 || o.Given < given) {
			given = o.Given
		}
	}
	w.Mbps = cmp.Or(given, w.Mbps)
	return w
}
