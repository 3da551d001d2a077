package socket

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"

	"github.com/libp2p/go-reuseport"
)

// listenTCP listens on a free port of the chosen interface. The zone is that
// of link-local peers.
func listenTCP(o Options) (l net.Listener, zone string, err error) {
	ifs, err := interfaces()
	if err != nil {
		return nil, "", err
	}
	p, err := choose(ifs, o)
	if err != nil {
		return nil, "", err
	}
	l, err = reuseport.Listen("tcp", netip.AddrPortFrom(p.Addr, 0).String())
	if err != nil {
		return nil, "", fmt.Errorf("interface %s: %w", p.Iface, err)
	}
	return l, p.Iface, nil
}

func listenUnix() (net.Listener, error) {
	return net.Listen("unix", unixPath("ringo-"+rand.Text()))
}
