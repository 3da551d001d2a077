// Package paths is how the ranks of a communicator reach each other: which
// transport carries which pair, agreed by all ranks, with the reasons against better
// ones. Package gpupaths does the same for GPU memory. This one is part of a communicator, and nothing
// here is promised to other modules but what package ringo has as its own.
//
// The ranks exchange profiles (profile.go) when a communicator is opened. Every later
// choice is a pure function of what all have said, so all ranks make the same one. A
// rank listens only on what some pair of its own wants to use; what cannot be used is
// said with its reason, and the pairs concerned try the next transport (agree.go).
// Links (links.go) are the connections, made on first use.
//
// A network connects hosts (networks.go). The ranks look for one when a pair of them needs it
// or the Config names one, and all use the same.
//
// The trap: a new network stands in the list networks, another transport in onHost and in
// Get, and nowhere else.
package paths

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/shm"
	"github.com/ringo-go/ringo/transport/socket"
)

// A Config says which paths a communicator may use, and with what; see ringo.Config.
type Config struct {
	Transport, Net   string // preferences
	NetFrom          string // the variable that Net is from
	Plugins          string // network plugins, as NCCL_NET_PLUGIN lists them
	Networking       transport.NetworkOptions
	NoP2P, NoSHM     string // why GPUs may not reach each other's memory, and processes not share the host's
	SlotBytes, Slots int    // of a queue; SlotBytes 0 is the default for where the ranks are
	ShmDir           string
	Cores            int
	Linger           time.Duration // how long Close waits for a peer to take what was sent to it
	GDR              GDR
	Lines            string // "0" or "1": whether lines go between GPUs, whatever the link; "" by the link
}

// GDR says how networks may get to memory of GPUs, as NCCL's variables do.
type GDR struct {
	DMABuf string // NCCL_DMABUF_ENABLE: "0" does without dma-buf
	Level  string // NCCL_NET_GDR_LEVEL: how far GPU and card may be apart, as setting.LevelOfNCCL gives it; "" by default
}

// Default sizes of slots.
const (
	DefaultSlotBytes       = 128 << 10
	DefaultSocketSlotBytes = 512 << 10
)

// wideRanks is for how many ranks at most networks have larger slots than shared memory. A connection then takes a few
// MiB at each end, too much for an all-to-all of more ranks.
const wideRanks = 64

// A Group lets all ranks tell each other something; a bootstrap.Group is one.
type Group interface {
	Rank() int
	Size() int
	Key() []byte
	Left(rank int) bool
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// A Net is one rank's end of all paths of host memory.
type Net struct {
	Profiles []Profile // of all ranks
	Limits   transport.Limits
	Links    *Links
	Notes    []string // the choice, in words

	config     Config
	log        *slog.Logger
	networks   []Network
	wire       Wire
	transports *Transports
}

// Connect agrees with all ranks on the path of each pair. me is what this rank says of
// itself; Connect completes it.
func Connect(ctx context.Context, g Group, me Profile, cfg Config, guard *fifo.Guard, log *slog.Logger) (*Net, error) {
	n := &Net{config: cfg, log: log}
	var err error
	if me.Wish, n.networks, err = cfg.wish(); err != nil {
		return nil, err
	}
	own := ""
	if cfg.Networking.Sockets != nil {
		own = "the program's own"
	}
	me.Settings = append(slices.Clip(me.Settings),
		Setting{Name: "networks", Value: cfg.named(), Variable: "RINGO_NET or NCCL_NET"},
		Setting{Name: "sockets", Value: own, Variable: "Config.Sockets"})
	me.SlotBytes, me.Slots, me.Cores, me.Process = cfg.SlotBytes, cfg.Slots, cfg.Cores, process()
	n.Profiles, err = Exchange(ctx, g, me.encode(), decodeProfile)
	if err != nil {
		return nil, err
	}
	if err := agree(n.Profiles); err != nil {
		return nil, err
	}
	n.Limits = limits(n.Profiles)
	ranksHere := 0
	for i := range n.Profiles {
		if n.Profiles[i].Host == me.Host {
			ranksHere++
		}
	}
	n.transports = n.NewTransports(g, transport.Config{
		Self: me.Info, Key: g.Key(), Limits: n.Limits, Guard: guard, Left: g.Left, Linger: cfg.Linger,
		Spin: ranksHere <= cfg.Cores, // spinning needs a core for every rank of the host
	})
	if cfg.SlotBytes == 0 && len(n.Profiles) <= wideRanks {
		n.transports.width = DefaultSocketSlotBytes / n.Limits.SlotBytes
	}
	a, err := Agree(ctx, g, n.Profiles, n.transports, func(a, b int) bool { return true }, "")
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.wire = a.wire()
	if n.Links, n.Notes, err = a.Links(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close ends all connections and gives everything back.
func (n *Net) Close() error { return n.transports.Close() }

// Hosts are the identities of the ranks' hosts, by rank.
func (n *Net) Hosts() []string {
	hosts := make([]string, len(n.Profiles))
	for i := range hosts {
		hosts[i] = n.Profiles[i].Host
	}
	return hosts
}

// OnOneHost reports whether all ranks are on one host.
func (n *Net) OnOneHost() bool {
	for i := range n.Profiles {
		if n.Profiles[i].Host != n.Profiles[0].Host {
			return false
		}
	}
	return true
}

// Transports are the transports of one rank, made when they are first asked for.
type Transports struct {
	net    *Net
	config transport.Config
	peers  int // other ranks
	made   map[string]transport.Transport

	networks []Network
	width    int               // how many times config.Limits.SlotBytes a slot of a network has
	named    bool              // the Config names networks
	ruledOut map[string]string // networks that no rank uses, and why
}

// NewTransports are transports of the same kinds with a configuration of their own. A network
// that the ranks have ruled out before stays so.
func (n *Net) NewTransports(g Group, tc transport.Config) *Transports {
	t := &Transports{
		net: n, config: tc, peers: len(n.Profiles) - 1, made: map[string]transport.Transport{},
		networks: slices.Clone(n.networks), ruledOut: map[string]string{}, width: 1,
	}
	t.config.Log = n.log.With("subsys", "NET")
	ranks, rail := 0, 0 // of this host
	for i := range n.Profiles {
		if n.Profiles[i].Host != tc.Self.Host {
			continue
		}
		ranks++
		if i < tc.Self.Rank {
			rail++
		}
	}
	for i := range t.networks {
		o := &t.networks[i].options
		o.Local, o.Rail, o.Ranks = ranks == len(n.Profiles), rail, ranks
	}
	if n.transports != nil {
		maps.Copy(t.ruledOut, n.transports.ruledOut)
	} else {
		t.named = n.config.named() != ""
	}
	return t
}

// widthOf is how many times as large as Limits says the slots of a transport are.
func (t *Transports) widthOf(name string) int {
	if t.find(name) != nil {
		return t.width
	}
	return 1
}

// Get is the transport with a name, made on first use.
func (t *Transports) Get(name string) (transport.Transport, error) {
	if x := t.made[name]; x != nil {
		return x, nil
	}
	var x transport.Transport
	switch n := t.find(name); {
	case n != nil && n.kind.Open != nil:
		tc := t.config
		tc.Limits.SlotBytes *= t.width
		x = n.kind.Open(tc, n.options)
	case n != nil:
		_, err := n.Probe()
		return nil, err
	case name == "inproc":
		x = inproc.New(t.config)
	case name == "shm":
		tc := t.config
		tc.Log = t.net.log.With("subsys", "SHM")
		x = shm.New(tc, shm.Options{Dir: t.net.config.ShmDir, Queues: min(t.peers, 8)})
	default:
		return nil, fmt.Errorf("unknown here; transports are %s", strings.Join(preference(), ", "))
	}
	t.made[name] = x
	return x, nil
}

// Close ends all connections and gives everything back.
func (t *Transports) Close() error {
	var errs []error
	for _, x := range t.made {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// Address is where other machines reach this one by a Config's Interface and Family.
func Address(cfg Config) (netip.Addr, error) {
	return socket.Address(socket.Options{IfName: cfg.Networking.Interface, Family: cfg.Networking.Family})
}
