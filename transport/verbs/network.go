package verbs

import (
	"errors"
	"fmt"
	"net"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/socket"
)

// Network describes InfiniBand and RoCE to package paths.
var Network = transport.Network{
	Name: "ib",
	Probe: func(o transport.NetworkOptions) (f transport.Found, err error) {
		if o.IB.Disabled != "" {
			return f, errors.New(o.IB.Disabled)
		}
		return probe(options(o))
	},
	Open: func(cfg transport.Config, o transport.NetworkOptions) transport.Transport {
		return New(cfg, options(o))
	},
}

func options(o transport.NetworkOptions) Options {
	return Options{
		HCAs: o.IB.HCA, GIDIndex: o.IB.GIDIndex, Timeout: o.IB.Timeout, Retries: o.IB.Retries,
		TrafficClass: o.IB.TrafficClass, ServiceLevel: o.IB.ServiceLevel, PKeyIndex: o.IB.PKeyIndex,
		LocalRank: o.Rail, Sharers: o.Ranks, Near: o.Near,
		Listen: func() (net.Listener, string, error) { return socket.Listen(o) },
		Door:   fmt.Sprintf("%q %d %v", o.Interface, o.Family, o.Local),
	}
}

// probe finds the ports that the Options name. The error is why none can be used.
func probe(o Options) (f transport.Found, err error) {
	if err := o.check(); err != nil {
		return f, err
	}
	ports, devices, err := find(&o)
	if err != nil {
		return f, err
	}
	defer release(devices)
	f.Kind = ports[0].kind()
	for _, p := range ports {
		f.Devices = append(f.Devices, transport.NetworkDevice{Name: p.String(), Mbps: p.mbps()})
	}
	order, active := o.prefers(ports)
	for _, i := range order[:active] {
		f.Used = append(f.Used, ports[i].String())
	}
	return f, nil
}
