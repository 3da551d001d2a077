// Package paths is how the ranks of a communicator reach each other: which
// transport carries which pair, agreed by all ranks, with the reasons against better
// ones. Package gpupaths does the same for GPU memory.
//
// The ranks exchange profiles (profile.go) when a communicator is opened. Every later
// choice is a pure function of what all have said, so all ranks make the same one. A
// rank listens only on what some pair of its own wants to use; what cannot be used is
// said with its reason, and the pairs concerned try the next transport (agree.go).
// Links (links.go) are the connections, made on first use.
//
// The trap: a new transport stands in preference and in NewTransport, and nowhere else.
package paths

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/shm"
	"github.com/ringo-go/ringo/transport/socket"
)

// A Config says which paths a communicator may use, and with what; see ringo.Config.
type Config struct {
	Transport, Net   string // preferences
	NoP2P, NoSHM     string // why GPUs may not reach each other's memory, and processes not share the host's
	SlotBytes, Slots int    // of a queue; SlotBytes 0 is the default for where the ranks are
	Interface        string
	Family, Streams  int
	SocketNetwork    string
	ShmDir           string
	Cores            int
	Lines            string // "0" or "1": whether lines go between GPUs, whatever the link; "" by the link
}

// Default sizes of slots.
const (
	DefaultSlotBytes       = 128 << 10
	DefaultSocketSlotBytes = 512 << 10
)

// A Group lets all ranks tell each other something; a bootstrap.Group is one.
type Group interface {
	Rank() int
	Size() int
	Key() []byte
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
	transports *Transports
}

// Connect agrees with all ranks on the path of each pair. me is what this rank says of
// itself; Connect completes it.
func Connect(ctx context.Context, g Group, me Profile, cfg Config, guard *fifo.Guard, log *slog.Logger) (*Net, error) {
	n := &Net{config: cfg, log: log}
	var err error
	if me.Wish, err = wish(&cfg); err != nil {
		return nil, err
	}
	me.SlotBytes, me.Slots, me.Process = cfg.SlotBytes, cfg.Slots, process()
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
		Self: me.Info, Key: g.Key(), Limits: n.Limits, Guard: guard,
		Spin: ranksHere <= cfg.Cores, // spinning needs a core for every rank of the host
	})
	a, err := Agree(ctx, g, n.Profiles, n.transports, func(a, b int) bool { return true }, "")
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
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
	peers  int  // other ranks
	local  bool // all are on this host
	made   map[string]transport.Transport
}

// NewTransports are transports of the same kinds with a configuration of their own.
func (n *Net) NewTransports(g Group, tc transport.Config) *Transports {
	t := &Transports{net: n, config: tc, peers: len(n.Profiles) - 1, local: true, made: map[string]transport.Transport{}}
	t.config.Log = n.log.With("subsys", "NET")
	for i := range n.Profiles {
		t.local = t.local && n.Profiles[i].Host == tc.Self.Host
	}
	return t
}

// absent says why a transport that has a name is not here.
var absent = map[string]string{"ib": "this version has no InfiniBand"}

// Get is the transport with a name.
func (t *Transports) Get(name string) (transport.Transport, error) {
	if x := t.made[name]; x != nil {
		return x, nil
	}
	var x transport.Transport
	cfg := &t.net.config
	switch name {
	case "inproc":
		x = inproc.New(t.config)
	case "shm":
		tc := t.config
		tc.Log = t.net.log.With("subsys", "SHM")
		x = shm.New(tc, shm.Options{Dir: cfg.ShmDir, Queues: min(t.peers, 8)})
	case "socket":
		x = socket.New(t.config, socket.Options{
			Network: cfg.SocketNetwork, IfName: cfg.Interface, Family: cfg.Family, Streams: cfg.Streams, Local: t.local,
		})
	default:
		if why, ok := absent[name]; ok {
			return nil, errors.New(why)
		}
		return nil, fmt.Errorf("unknown here; transports are %s", strings.Join(preference, ", "))
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
	return socket.Address(socket.Options{IfName: cfg.Interface, Family: cfg.Family})
}
