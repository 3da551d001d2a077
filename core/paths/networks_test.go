// How ranks agree on one network, with fakes of networks.

package paths

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
)

// A fakeNetwork is what one rank has of a network.
type fakeNetwork struct {
	absent  string // what its Probe misses
	kind    string
	refused string // why it cannot listen
	silent  bool   // its second device does not say how fast it is
	probes  atomic.Int32
}

// has is a rank's networks by name. A network that is missing here works.
type has map[string]*fakeNetwork

// meet has ranks with the wish of cfg agree, rank r on hosts[r] with the networks of have[r].
func meet(t *testing.T, cfg Config, hosts []string, have []has) (lists []*Agreement, notes [][]string, errs []error) {
	n := len(hosts)
	lists, notes, errs = make([]*Agreement, n), make([][]string, n), make([]error, n)
	var profiles []Profile
	wish, _, err := cfg.wish()
	require.NoError(t, err)
	for r, h := range hosts {
		profiles = append(profiles, Profile{Info: transport.Info{Rank: r, Host: h, Process: fmt.Sprint(r)}, Hostname: h,
			Wish: wish})
	}
	var ranks sync.WaitGroup
	for r, g := range bootstrap.Local(n) {
		net := &Net{Profiles: profiles, config: cfg, log: discard}
		for _, name := range wish {
			if slices.Contains(onHost, name) {
				continue
			}
			f := have[r][name]
			if f == nil {
				f = &fakeNetwork{kind: name}
			}
			kind := &transport.Network{
				Name: name,
				Probe: func(transport.NetworkOptions) (transport.Found, error) {
					if f.probes.Add(1); f.absent != "" {
						return transport.Found{}, errors.New(f.absent)
					}
					devices := []transport.NetworkDevice{{Name: name + "0", Mbps: 100_000}}
					if f.silent {
						devices = append(devices, transport.NetworkDevice{Name: name + "1"})
					}
					return transport.Found{Kind: f.kind, Devices: devices}, nil
				},
				Open: func(transport.Config, transport.NetworkOptions) transport.Transport {
					return &fake{name: name, refused: f.refused}
				},
			}
			net.networks = append(net.networks, Network{Name: name, kind: kind})
		}
		tr := net.NewTransports(g, transport.Config{Self: profiles[r].Info})
		tr.made["inproc"], tr.made["shm"] = &fake{name: "inproc", reach: func(a, b transport.Info) error {
			if a.Process != b.Process {
				return errors.New("different processes")
			}
			return nil
		}}, &fake{name: "shm", reach: oneHost}
		t.Cleanup(func() { g.Close() })
		ranks.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if lists[r], errs[r] = Agree(ctx, g, profiles, tr, all, ""); errs[r] == nil {
				_, notes[r], errs[r] = lists[r].Links()
			}
		})
	}
	ranks.Wait()
	return lists, notes, errs
}

// TestNetworkChoice: all ranks use the best network that all of them have, and one line says
// which and why none before it.
func TestNetworkChoice(t *testing.T) {
	noIB := has{"ib": {absent: "libibverbs.so.1 is not there"}}
	noPlugin := has{"plugin": {absent: "libnccl-net.so is not there"}}
	silent := has{"ib": {silent: true}, "socket": {silent: true}}
	two, three := []string{"a", "b"}, []string{"a", "b", "c"}
	for _, test := range []struct {
		name  string
		cfg   Config
		hosts []string
		have  []has
		want  string
	}{
		{"the best", Config{}, two, []has{nil, nil}, "network plugin (plugin0)"},
		{"one rank without it", Config{}, three, []has{nil, nil, noPlugin},
			"network ib (ib0); not plugin (rank 2 on c: libnccl-net.so is not there)"},
		{"its init fails on one rank", Config{}, two, []has{{"plugin": {refused: "init: out of memory"}}, nil},
			"network ib (ib0); not plugin (rank 0 on a: init: out of memory)"},
		{"one after the other", Config{}, three, []has{noPlugin, noIB, {"ib": {refused: "port 1 is down"}}},
			"network socket (socket0); not plugin (rank 0 on a: libnccl-net.so is not there); not ib (rank 1 on b: " +
				"libibverbs.so.1 is not there; rank 2 on c: port 1 is down)"},
		{"two kinds", Config{Net: "IB,Socket"}, two, []has{{"ib": {kind: "RoCE"}}, {"ib": {kind: "InfiniBand"}}},
			"network socket (socket0); not ib (rank 0 on a has RoCE, rank 1 on b has InfiniBand)"},
		{"all without it", Config{Net: "IB,Socket"}, three, []has{noIB, noIB, noIB},
			"network socket (socket0); not ib (rank 0 on a, rank 1 on b, rank 2 on c: libibverbs.so.1 is not there)"},
		{"all of one host", Config{Net: "IB,Socket"}, []string{"a", "a", "b", "a", "c", "a"},
			[]has{noIB, noIB, noIB, noIB, noIB, noIB},
			"network socket (socket0); not ib (ranks 0 to 1 on a, rank 2 on b, rank 3 on a and 2 other ranks: libibverbs.so.1 " +
				"is not there)"},
		{"a card that does not say its speed", Config{Net: "IB"}, two, []has{silent, silent},
			"network ib (ib0, ib1); how fast it is is not known, for some cards do not say it (rank 0 on a, rank 1 on b: ib1)"},
		{"interfaces that do not", Config{Net: "Socket"}, two, []has{silent, silent}, "network socket (socket0, socket1)"},
		{"preference", Config{Net: "Socket,IB"}, two, []has{nil, nil}, "network socket (socket0)"},
		{"by transport", Config{Transport: "shm,ib,socket"}, two, []has{noIB, nil},
			"network socket (socket0); not ib (rank 0 on a: libibverbs.so.1 is not there)"},
		{"named on one host", Config{Net: "IB,Socket"}, []string{"a", "a"}, []has{nil, noIB},
			"network socket (socket0); not ib (rank 1 on a: libibverbs.so.1 is not there)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, notes, errs := meet(t, test.cfg, test.hosts, test.have)
			require.NoError(t, errors.Join(errs...))
			for r := range notes {
				require.Equal(t, test.want, notes[r][0], "rank %d", r)
			}
		})
	}
}

// TestNoNetworkWanted: ranks of one host look for no network unless one is named.
func TestNoNetworkWanted(t *testing.T) {
	f := &fakeNetwork{}
	_, notes, errs := meet(t, Config{}, []string{"a", "a"}, []has{{"plugin": f}, {"plugin": f}})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, []string{"shm; not inproc (different processes)"}, notes[0])
	require.Zero(t, f.probes.Load())
}

// TestNoNetwork: a network that is insisted on and cannot be is an error on all ranks, on one
// host too. It says who lacks what, and what to change.
func TestNoNetwork(t *testing.T) {
	for _, hosts := range [][]string{{"a", "b"}, {"a", "a"}} {
		_, _, errs := meet(t, Config{Net: "IB", NetFrom: "NCCL_NET"}, hosts,
			[]has{nil, {"ib": {absent: "libibverbs.so.1 is not there"}}})
		for _, err := range errs {
			require.EqualError(t, err,
				"unsupported: no network: NCCL_NET asks for IB alone: not ib (rank 1 on "+hosts[1]+": libibverbs.so.1 is not "+
					"there); "+
					"unset NCCL_NET to have the best network that works, or name another one after it: NCCL_NET=IB,socket")
		}
	}
}

// TestPlugins: several libraries are several networks, and an unknown name is a plugin's.
func TestPlugins(t *testing.T) {
	names := func(cfg Config) (list []string) {
		nets, err := cfg.Networks()
		require.NoError(t, err)
		for _, n := range nets {
			list = append(list, n.Name+"|"+n.options.Plugin.Library+"|"+n.options.Plugin.Named)
		}
		return list
	}
	require.Equal(t, []string{"plugin||", "ib||", "socket||"}, names(Config{}))
	require.Equal(t, []string{"plugin|fast|", "ib||", "socket||"}, names(Config{Plugins: "fast"}))
	require.Equal(t, []string{"plugin (/a/B.so)|/a/B.so|", "plugin (c)|c|", "socket||"},
		names(Config{Plugins: "/a/B.so, c", Net: "Plugin,Socket"}))
	require.Equal(t, []string{"aws libfabric (a)|a|aws libfabric", "aws libfabric (b)|b|aws libfabric"},
		names(Config{Plugins: "a,b", Net: "AWS Libfabric"}))
	nets, err := (&Config{Plugins: "none"}).Networks()
	require.NoError(t, err)
	_, err = nets[0].Probe()
	require.ErrorContains(t, err, "NCCL_NET_PLUGIN is none")
}

// The cards of a pair are those over which either end dials.
func TestCards(t *testing.T) {
	a := &Agreement{transports: &Transports{made: map[string]transport.Transport{"fast": &fake{name: "fast"}}}}
	for r := range 5 {
		a.profiles = append(a.profiles, Profile{Info: transport.Info{Rank: r}, Wish: []string{"fast"}})
		a.offers = append(a.offers,
			map[string]offer{"fast": {Devices: []string{"fx0", "fx1", "fx2"},
				Used: [][]string{{"fx1"}, {"fx2"}, {"fx1"}, {"other"}, nil}[r]}})
	}
	for peer, want := range map[int][]string{1: {"fx1", "fx2"}, 2: {"fx1"}, 3: {"fx1"}, 4: {"fx1"}} {
		cards, known := a.Cards(peer)
		require.True(t, known)
		require.Equal(t, want, cards, "with rank %d", peer)
	}
	a.rank = 4
	cards, known := a.Cards(0)
	require.False(t, known)
	require.Equal(t, []string{"fx0", "fx1", "fx2"}, cards)
}

// Of hosts whose cards differ the slowest counts, and the one with the fewest; a card whose speed nobody
// knows makes the sum of its host unknown, and so that of all.
func TestWire(t *testing.T) {
	card := func(mbps ...int) (devices []transport.NetworkDevice) {
		for i, m := range mbps {
			devices = append(devices, transport.NetworkDevice{Name: fmt.Sprint("fx", i), Mbps: m})
		}
		return devices
	}
	for name, test := range map[string]struct {
		hosts [][]transport.NetworkDevice
		want  Wire
	}{
		"alike":                   {[][]transport.NetworkDevice{card(100, 100), card(100, 100)}, Wire{"fast", 200, 2}},
		"the second is slower":    {[][]transport.NetworkDevice{card(100, 100, 100), card(100, 50)}, Wire{"fast", 150, 2}},
		"the first is slower":     {[][]transport.NetworkDevice{card(100), card(200, 50)}, Wire{"fast", 100, 1}},
		"one card does not say":   {[][]transport.NetworkDevice{card(100, 0), card(100, 100)}, Wire{"fast", 0, 2}},
		"the second host has one": {[][]transport.NetworkDevice{card(100, 100), card(0, 100)}, Wire{"fast", 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Agreement{}
			for _, devices := range test.hosts {
				kind := transport.Network{Probe: func(transport.NetworkOptions) (transport.Found, error) {
					return transport.Found{Devices: devices}, nil
				}}
				a.transports = &Transports{networks: []Network{{Name: "fast", kind: &kind}}}
				a.profiles = append(a.profiles, Profile{})
				a.offers = append(a.offers, map[string]offer{"fast": a.transports.offer("fast", false)})
			}
			require.Equal(t, test.want, a.wire())
		})
	}
}

// A network is not looked for where the Config rules it out, and one without a card is none.
func TestProbe(t *testing.T) {
	probed := 0
	devices := []transport.NetworkDevice{{Name: "fx0"}}
	kind := &transport.Network{Name: "fast", Probe: func(transport.NetworkOptions) (transport.Found, error) {
		probed++
		return transport.Found{Kind: "fast", Devices: devices}, nil
	}}
	n := Network{kind: kind}
	f, err := n.Probe()
	require.NoError(t, err)
	require.Equal(t, transport.Found{Kind: "fast", Devices: devices}, f)
	devices = nil
	_, err = n.Probe()
	require.EqualError(t, err, "it has no device")

	require.Equal(t, 2, probed)
	n.options.TLS = new(secure.Config)
	_, err = n.Probe()
	require.EqualError(t, err, "RINGO_TLS is on, and it moves data in clear")
	n.options.TLS, n.options.Sockets = nil, new(transport.Sockets)
	_, err = n.Probe()
	require.EqualError(t, err, "Config.Sockets is set, and it does not go over that")
	require.Equal(t, 2, probed)
	kind.Encrypts, kind.Given = true, true
	n.options.TLS = new(secure.Config)
	_, err = n.Probe()
	require.EqualError(t, err, "it has no device")
	require.Equal(t, 3, probed)

	before := len(networks)
	restore := WithNetwork(*kind)
	require.Equal(t, "fast", networks[before].Name)
	restore()
	require.Len(t, networks, before)
}

// A fakePlacer is a fake that places slots.
type fakePlacer struct {
	*fake
	transport.Placer
}

// Slots for a peer are placed by the transport to the peer, if that can.
func TestPlacer(t *testing.T) {
	places := fakePlacer{fake: &fake{name: "fast"}}
	a := &Agreement{transports: &Transports{made: map[string]transport.Transport{"fast": places,
		"slow": &fake{name: "slow"}}}}
	for r, wish := range []string{"fast", "fast", "slow"} {
		a.profiles = append(a.profiles, Profile{Info: transport.Info{Rank: r}, Wish: []string{wish}})
		a.offers = append(a.offers, map[string]offer{"fast": {}, "slow": {}})
	}
	require.Equal(t, transport.Placer(places), a.Placer(1))
	a.rank = 2
	a.profiles[0].Wish = []string{"slow"}
	require.Nil(t, a.Placer(0))
}
