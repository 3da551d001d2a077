package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A port is a port of an open device that may be used.
type port struct {
	dev      *device
	number   int
	attr     ibverbs.PortAttr
	gid      ibverbs.GID
	gidIndex int
	gidType  ibverbs.GIDType
}

func (p *port) String() string { return fmt.Sprintf("%s:%d", p.dev.name, p.number) }

func (p *port) ethernet() bool { return p.attr.LinkLayer == ibverbs.LinkEthernet }

// find opens the devices that Options name and returns their usable ports. The caller
// releases the devices. If no port is usable the error has the reason for each.
func find(o *Options) (ports []*port, devices []*device, err error) {
	v := o.Verbs
	if v == nil {
		if v, err = ibverbs.Open(); err != nil {
			return nil, nil, err
		}
	}
	names, err := v.GetDeviceList()
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, errors.New("no RDMA device on this host (ls /sys/class/infiniband)")
	}
	want, err := parseHCAs(o.HCAs)
	if err != nil {
		return nil, nil, err
	}
	var refused []string
	for _, name := range names {
		if !want.device(name) {
			refused = append(refused, fmt.Sprintf("%s: not among NCCL_IB_HCA=%s", name, o.HCAs))
			continue
		}
		d, err := acquire(v, name)
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		found := len(ports)
		for n := 1; n <= d.ports; n++ {
			p, err := d.port(n, o)
			switch {
			case !want.port(name, n):
				refused = append(refused, fmt.Sprintf("%s:%d: not among NCCL_IB_HCA=%s", name, n, o.HCAs))
			case err != nil:
				refused = append(refused, fmt.Sprintf("%s:%d: %v", name, n, err))
			default:
				ports = append(ports, p)
			}
		}
		if len(ports) == found {
			release([]*device{d})
			continue
		}
		devices = append(devices, d)
	}
	if len(ports) == 0 {
		return nil, nil, fmt.Errorf("no usable port: %s", strings.Join(refused, "; "))
	}
	return ofOneKind(ports), devices, nil
}

// ofOneKind are the ports of the most frequent kind: the others are on other networks.
func ofOneKind(ports []*port) []*port {
	count, most := map[string]int{}, ""
	for _, p := range ports {
		count[p.kind()]++
	}
	for _, p := range ports {
		if count[p.kind()] > count[most] {
			most = p.kind()
		}
	}
	return slices.DeleteFunc(ports, func(p *port) bool { return p.kind() != most })
}

// active reports whether the port is up now.
func (p *port) active() bool {
	attr, err := p.dev.verbs.QueryPort(p.dev.context, p.number)
	return err == nil && attr.State == ibverbs.PortActive
}

// kind tells apart ports that cannot be connected.
func (p *port) kind() string { return kindOf(p.ethernet(), p.gidType, p.gid) }

func kindOf(ethernet bool, t ibverbs.GIDType, g ibverbs.GID) string {
	switch {
	case !ethernet:
		return "InfiniBand"
	case mapped(g):
		return t.String() + " over IPv4"
	}
	return t.String() + " over IPv6"
}

// mbps is the speed of the port's link in Mbit/s, 0 if it is not known. From XDR on the speed is in a
// field of its own, since the older field is too small.
func (p *port) mbps() int {
	speed := cmp.Or(p.attr.ActiveSpeedEx, uint32(p.attr.ActiveSpeed))
	lanes := map[uint8]int{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[p.attr.ActiveWidth]
	return lanes * map[uint32]int{1: 2500, 2: 5000, 4: 10000, 8: 10000, 16: 14000, 32: 25000, 64: 50000, 128: 100000,
		256: 200000}[speed]
}

// port is a port of the device, if it is up and has an address.
func (d *device) port(n int, o *Options) (*port, error) {
	attr, err := d.verbs.QueryPort(d.context, n)
	if err != nil {
		return nil, err
	}
	p := &port{dev: d, number: n, attr: attr}
	if attr.State != ibverbs.PortActive {
		return nil, errors.New("port is not active")
	}
	if !p.ethernet() && attr.LID == 0 {
		return nil, errors.New("port has no LID: is a subnet manager running?")
	}
	if o.PKeyIndex >= int(attr.PKeyTableLen) {
		return nil, fmt.Errorf("its table of partition keys of %d has no entry %d (NCCL_IB_PKEY)",
			attr.PKeyTableLen, o.PKeyIndex)
	}
	return p, p.address(o.GIDIndex)
}

// address chooses the entry of the port's GID table: index, or the best if index is nil.
func (p *port) address(index *int) error {
	var failed error
	read := func(i int) (rank int) {
		gid, kind, err := p.dev.verbs.QueryGID(p.dev.context, p.number, i)
		if err != nil {
			failed = fmt.Errorf("its GIDs cannot be read: %w (a container needs the host's /sys/class/infiniband)", err)
			return 0
		}
		if gid == (ibverbs.GID{}) {
			return 0
		}
		p.gid, p.gidType, p.gidIndex = gid, kind, i
		return bestGID(gid, kind)
	}
	if index != nil {
		if *index < 0 || *index >= int(p.attr.GIDTableLen) || read(*index) == 0 {
			if failed != nil {
				return failed
			}
			return fmt.Errorf("its GID table of %d has no entry %d (NCCL_IB_GID_INDEX)", p.attr.GIDTableLen, *index)
		}
		return nil
	}
	if !p.ethernet() {
		p.gid, _, _ = p.dev.verbs.QueryGID(p.dev.context, p.number, 0)
		return nil // LIDs are enough there
	}
	best := 0
	var top port
	for i := range int(p.attr.GIDTableLen) {
		if rank := read(i); rank > best {
			best, top = rank, *p
		}
	}
	if best == 0 && failed != nil {
		return failed
	}
	if best == 0 {
		return errors.New("no GID: give its network interface an address")
	}
	*p = top
	return nil
}

// bestGID orders the entries of a port's GID table: RoCE v2 before v1, for switches route
// it; then an IPv4 address, a routed IPv6 address and a link-local one.
func bestGID(g ibverbs.GID, t ibverbs.GIDType) int {
	rank := 1
	switch {
	case mapped(g):
		rank = 3
	case g[0] != 0xfe || g[1] != 0x80:
		rank = 2
	}
	if t == ibverbs.GIDRoCE2 {
		rank += 3
	}
	return rank
}

// mapped reports whether a GID is an IPv4 address.
func mapped(g ibverbs.GID) bool {
	return [12]byte(g[:12]) == [12]byte{10: 0xff, 11: 0xff}
}

// suits is the reason why two ports cannot be connected, nil if they can.
func (p *port) suits(peer *railHello) error {
	here, there := p.kind(), kindOf(peer.Ethernet, peer.GIDType, peer.GID)
	if here != there {
		return fmt.Errorf("%v has %s, the peer's %s has %s (NCCL_IB_HCA and NCCL_IB_GID_INDEX choose)", p, here,
			peer.Port, there)
	}
	return nil
}

// hcas is a parsed Options.HCAs.
type hcas struct {
	exclude, exact bool
	items          []hca
}

type hca struct {
	name string
	port int // 0: all
}

func parseHCAs(s string) (h hcas, err error) {
	s, h.exclude = strings.CutPrefix(strings.TrimSpace(s), "^")
	s, h.exact = strings.CutPrefix(s, "=")
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, number, ok := strings.Cut(item, ":")
		x := hca{name: name}
		if ok {
			if x.port, err = strconv.Atoi(number); err != nil || x.port < 1 {
				return h, fmt.Errorf("NCCL_IB_HCA: %q: want NAME or NAME:PORT", item)
			}
		}
		h.items = append(h.items, x)
	}
	return h, nil
}

func (h *hcas) device(name string) bool {
	for _, x := range h.items {
		if h.named(x, name) && (!h.exclude || x.port == 0) {
			return !h.exclude
		}
	}
	return h.exclude || len(h.items) == 0
}

func (h *hcas) port(name string, n int) bool {
	for _, x := range h.items {
		if h.named(x, name) && (x.port == 0 || x.port == n) {
			return !h.exclude
		}
	}
	return h.exclude || len(h.items) == 0
}

func (h *hcas) named(x hca, name string) bool {
	return x.name == name || !h.exact && strings.HasPrefix(name, x.name)
}
