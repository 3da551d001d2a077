package socket

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// An address says where a rank listens. Listen returns its text: words separated by
// spaces, in any order: a TCP port on each interface, the preferred one first, and at most one
// Unix socket; or the address of the program's own listener.
//
//	tcp=192.0.2.7:40123#ID tcp=198.51.100.7:40124#ID unix=@ringo-6f1c...#ID
//	given=train-3.mesh:7000#ID
//
// An address never has a zone: link-local peers are reached through the zone of
// the rank that dials.
type address struct {
	TCP  []port
	Unix string // with the ID of its endpoint; "" if there is none

	Given string // of the program's listener, with the ID; "" if there is none
}

// A port is where a rank listens on one interface.
type port struct {
	At       netip.AddrPort
	Endpoint string // its ID, see listen.Endpoint
}

func (p port) String() string { return p.At.String() + behind(p.Endpoint) }

const maxAddress = 1024

func (a address) text() []byte {
	var words []string
	for _, p := range a.TCP {
		p.At = netip.AddrPortFrom(p.At.Addr().Unmap().WithZone(""), p.At.Port())
		words = append(words, "tcp="+p.String())
	}
	if a.Unix != "" {
		words = append(words, "unix="+a.Unix)
	}
	if a.Given != "" {
		words = append(words, "given="+a.Given)
	}
	return []byte(strings.Join(words, " "))
}

func parseAddress(b []byte) (a address, err error) {
	if len(b) > maxAddress {
		return a, fmt.Errorf("address of %d bytes, at most %d", len(b), maxAddress)
	}
	for _, word := range bytes.Fields(b) {
		name, value, _ := strings.Cut(string(word), "=")
		switch {
		case name == "tcp" && len(a.TCP) < maxInterfaces:
			var p port
			p, err = parsePort(value)
			if err == nil && (p.At.Port() == 0 || p.At.Addr().Zone() != "") {
				err = fmt.Errorf("it has no port or a zone")
			}
			a.TCP = append(a.TCP, p)
		case name == "unix" && a.Unix == "" && value != "" && strings.IndexFunc(value, unicode.IsControl) < 0:
			a.Unix = value
		case name == "given" && a.Given == "" && value != "" && strings.IndexFunc(value, unicode.IsControl) < 0:
			a.Given = value
		default:
			err = fmt.Errorf("word %q", word)
		}
		if err != nil {
			return address{}, fmt.Errorf("address %q: %w", b, err)
		}
	}
	if len(a.TCP) == 0 && a.Unix == "" && a.Given == "" {
		return a, fmt.Errorf("address %q: nothing to dial", b)
	}
	return a, nil
}

func behind(id string) string {
	if id == "" {
		return ""
	}
	return "#" + id
}

// parsePort takes an address apart: host, port and the ID of an endpoint.
func parsePort(s string) (p port, err error) {
	s, p.Endpoint, _ = strings.Cut(s, "#")
	p.At, err = netip.ParseAddrPort(s)
	return p, err
}
