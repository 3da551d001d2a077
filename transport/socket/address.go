package socket

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// An address says where a rank listens. Listen returns its text: words separated by
// spaces, in any order, each at most once.
//
//	tcp=192.0.2.7:40123#PLACE unix=@ringo-6f1c...#PLACE
//
// A zone is never in it: link-local peers are reached through the zone of the
// rank that dials.
type address struct {
	TCP   netip.AddrPort // invalid if there is none
	Place string         // behind the port, see listen.Place
	Unix  string         // with its place; "" if there is none
}

const maxAddress = 512

func (a address) text() []byte {
	var words []string
	if a.TCP.IsValid() {
		words = append(words, "tcp="+netip.AddrPortFrom(a.TCP.Addr().Unmap().WithZone(""), a.TCP.Port()).String()+behind(a.Place))
	}
	if a.Unix != "" {
		words = append(words, "unix="+a.Unix)
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
		case name == "tcp" && !a.TCP.IsValid():
			a.TCP, a.Place, err = parseTCP(value)
			if err == nil && (a.TCP.Port() == 0 || a.TCP.Addr().Zone() != "") {
				err = fmt.Errorf("it has no port or a zone")
			}
		case name == "unix" && a.Unix == "" && value != "" && strings.IndexFunc(value, unicode.IsControl) < 0:
			a.Unix = value
		default:
			err = fmt.Errorf("word %q", word)
		}
		if err != nil {
			return address{}, fmt.Errorf("address %q: %w", b, err)
		}
	}
	if !a.TCP.IsValid() && a.Unix == "" {
		return a, fmt.Errorf("address %q: nothing to dial", b)
	}
	return a, nil
}

func behind(place string) string {
	if place == "" {
		return ""
	}
	return "#" + place
}

// parseTCP takes an address with its place apart.
func parseTCP(s string) (at netip.AddrPort, place string, err error) {
	s, place, _ = strings.Cut(s, "#")
	at, err = netip.ParseAddrPort(s)
	return at, place, err
}
