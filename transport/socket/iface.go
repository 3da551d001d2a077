package socket

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// An iface is a network interface that is up, with its addresses.
type iface struct {
	Name  string
	Addrs []netip.Prefix
}

// An ifaceAddr is an address to listen on.
type ifaceAddr struct {
	Iface string
	Addr  netip.Addr // with the interface as its zone if link-local
}

// maxInterfaces is how many interfaces a rank listens on.
const maxInterfaces = 8

// chooseAll picks the interfaces for TCP: if IfName has several words, the first that fits each
// word, otherwise the one that choose picks. Loopback and link-local addresses count only if there
// are no others: from another host they lead nowhere, or only with a zone.
func chooseAll(ifs []iface, o Options) ([]ifaceAddr, error) {
	first, err := choose(ifs, o)
	wanted := parseIfName(o.IfName)
	if err != nil || !wanted.names() || len(wanted.words) == 1 {
		return []ifaceAddr{first}, err
	}
	var all []ifaceAddr
	for _, w := range wanted.words {
		for _, f := range ifs {
			addr, ok := bestAddr(f.Addrs, o.Family)
			known := slices.ContainsFunc(all, func(p ifaceAddr) bool { return p.Iface == f.Name })
			if one := (ifName{exact: wanted.exact, words: []string{w}}); !ok || known || !one.match(f.Name) {
				continue
			}
			all = append(all, ifaceAddr{f.Name, addr})
			break
		}
	}
	if slices.ContainsFunc(all, func(p ifaceAddr) bool { return p.reach() == wide }) {
		all = slices.DeleteFunc(all, func(p ifaceAddr) bool { return p.reach() < wide })
	}
	if all[0].reach() == link {
		return []ifaceAddr{first}, nil
	}
	return all[:min(len(all), maxInterfaces)], nil
}

// How far an address reaches.
const (
	link = iota // needs a zone
	host
	wide
)

func (p ifaceAddr) reach() int {
	switch {
	case p.Addr.IsLinkLocalUnicast():
		return link
	case p.Addr.IsLoopback():
		return host
	}
	return wide
}

// choose picks the interface and address for TCP, in NCCL's order: an interface that
// IfName names, or else (1) ib*, (2) anything but docker*, lo*, virbr*, (3) docker*,
// (4) lo*, (5) virbr*. A class keeps the order of ifs. Of an interface's addresses a
// global IPv4 comes first, then a global IPv6, then a link-local one.
func choose(ifs []iface, o Options) (ifaceAddr, error) {
	best, found := 6, ifaceAddr{}
	wanted := parseIfName(o.IfName)
	for _, f := range ifs {
		if !wanted.match(f.Name) {
			continue
		}
		addr, ok := bestAddr(f.Addrs, o.Family)
		if !ok {
			continue
		}
		class := classOf(f)
		if wanted.names() {
			class = 0 // the user has named it
		}
		if class < best {
			if addr.Is6() && addr.IsLinkLocalUnicast() {
				addr = addr.WithZone(f.Name)
			}
			best, found = class, ifaceAddr{f.Name, addr}
		}
	}
	if best < 6 {
		return found, nil
	}
	return ifaceAddr{}, fmt.Errorf("no interface%s%s; there are: %s",
		clause(o.IfName != "", fmt.Sprintf(" named %q", o.IfName)),
		clause(o.Family != 0, fmt.Sprintf(" with an IPv%d address", o.Family)), list(ifs))
}

// Address is the address of this machine that Options.IfName and Family choose.
func Address(o Options) (netip.Addr, error) {
	ifs, err := interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	p, err := choose(ifs, o)
	return p.Addr, err
}

func clause(use bool, s string) string {
	if use {
		return s
	}
	return ""
}

func list(ifs []iface) string {
	var s []string
	for _, f := range ifs {
		s = append(s, fmt.Sprintf("%s%v", f.Name, f.Addrs))
	}
	if s == nil {
		return "none that is up"
	}
	return strings.Join(s, ", ")
}

func classOf(f iface) int {
	switch {
	case strings.HasPrefix(f.Name, "ib"):
		return 1
	case strings.HasPrefix(f.Name, "docker"):
		return 3
	case strings.HasPrefix(f.Name, "lo"):
		return 4
	case strings.HasPrefix(f.Name, "virbr"):
		return 5
	}
	return 2
}

func bestAddr(ps []netip.Prefix, family int) (best netip.Addr, ok bool) {
	rank := func(a netip.Addr) int {
		switch {
		case a.Is4() && !a.IsLinkLocalUnicast():
			return 3
		case !a.IsLinkLocalUnicast():
			return 2
		}
		return 1
	}
	for _, p := range ps {
		a := p.Addr().Unmap()
		if !a.IsValid() || a.IsMulticast() || a.IsUnspecified() ||
			family == 4 && !a.Is4() || family == 6 && !a.Is6() {
			continue
		}
		if !ok || rank(a) > rank(best) {
			best, ok = a, true
		}
	}
	return best, ok
}

// An ifName is a parsed Options.IfName.
type ifName struct {
	exclude, exact bool
	words          []string
}

func parseIfName(s string) (p ifName) {
	s, p.exclude = strings.CutPrefix(s, "^")
	s, p.exact = strings.CutPrefix(s, "=")
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			p.words = append(p.words, w)
		}
	}
	return p
}

// names reports whether interfaces are asked for by name.
func (p ifName) names() bool { return len(p.words) > 0 && !p.exclude }

func (p ifName) match(name string) bool {
	if len(p.words) == 0 {
		return true
	}
	for _, w := range p.words {
		if name == w || !p.exact && strings.HasPrefix(name, w) {
			return !p.exclude
		}
	}
	return p.exclude
}

// interfaces are the interfaces of this machine that are up.
func interfaces() (ifs []iface, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		f := iface{Name: i.Name}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				f.Addrs = append(f.Addrs, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()))
			}
		}
		ifs = append(ifs, f)
	}
	return ifs, nil
}
