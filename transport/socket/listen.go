package socket

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
)

// listenTCP listens on a free port of the chosen interface. zone is the zone of
// link-local peers.
func listenTCP(o Options) (l net.Listener, zone string, err error) {
	if o.Local && o.IfName == "" {
		return listenLoopback(o.Family)
	}
	ifs, err := interfaces()
	if err != nil {
		return nil, "", err
	}
	p, err := choose(ifs, o)
	if err != nil {
		return nil, "", err
	}
	return p.listen()
}

// listen listens on a free port.
func (p ifaceAddr) listen() (l net.Listener, zone string, err error) {
	l, err = net.Listen("tcp", netip.AddrPortFrom(p.Addr, 0).String())
	if err != nil {
		return nil, "", fmt.Errorf("interface %s: %w", p.Iface, err)
	}
	return l, p.Iface, nil
}

// listenLoopback listens on a port that only processes of this host can reach.
func listenLoopback(family int) (l net.Listener, zone string, err error) {
	if family != 6 {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil || family == 4 {
			return l, "", err
		}
	}
	l, err = net.Listen("tcp", "[::1]:0")
	return l, "", err
}

func listenUnix() (l net.Listener, zone string, err error) {
	l, err = net.Listen("unix", unixPath("ringo-"+rand.Text()))
	return l, "", err
}
