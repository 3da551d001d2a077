package socket

import (
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/transport"
)

// Network describes sockets to package paths. Its options are those of Options.
var Network = transport.Network{
	Name:     "socket",
	Encrypts: true,
	Given:    true,
	Probe: func(o transport.NetworkOptions) (transport.Found, error) {
		if o.Sockets != nil && o.Sockets.Listener != nil {
			return transport.Found{Devices: []transport.NetworkDevice{{Name: "the program's listener"}}}, nil
		}
		if o.SocketNetwork == "unix" || o.Local && o.Interface == "" {
			return transport.Found{Devices: []transport.NetworkDevice{{Name: "this host"}}}, nil
		}
		ifs, err := interfaces()
		if err != nil {
			return transport.Found{}, err
		}
		all, err := chooseAll(ifs, options(o))
		if err != nil {
			return transport.Found{}, err
		}
		var f transport.Found
		for _, p := range all {
			f.Devices = append(f.Devices, transport.NetworkDevice{Name: p.Iface, Mbps: speedOf(p.Iface),
				Detail: p.Addr.String()})
		}
		return f, nil
	},
	Open: func(cfg transport.Config, o transport.NetworkOptions) transport.Transport {
		return New(cfg, options(o))
	},
}

// Listen opens a TCP port where the sockets of these options would listen, for networks that
// first exchange data over a socket. zone is the zone of link-local peers.
func Listen(o transport.NetworkOptions) (l net.Listener, zone string, err error) {
	return listenTCP(options(o))
}

// speedOf is the rate of an interface in Mbit/s, 0 if it is not known.
func speedOf(iface string) int {
	b, _ := os.ReadFile("/sys/class/net/" + iface + "/speed") // other systems have no such file
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func options(o transport.NetworkOptions) Options {
	return Options{Network: o.SocketNetwork, IfName: o.Interface, Family: o.Family, Streams: o.Streams, Local: o.Local,
		TLS: o.TLS, Rail: o.Rail, Sockets: o.Sockets}
}
