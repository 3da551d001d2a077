package verbs

import (
	"testing"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/transport"
)

// networkOf is a network of a library of a test's.
func networkOf(name string, v ibverbs.Verbs) transport.Network {
	with := func(o transport.NetworkOptions) Options {
		own := options(o)
		own.Verbs = v
		return own
	}
	return transport.Network{
		Name:  name,
		Probe: func(o transport.NetworkOptions) (transport.Found, error) { return probe(with(o)) },
		Open: func(cfg transport.Config, o transport.NetworkOptions) transport.Transport {
			return named{New(cfg, with(o)), name}
		},
	}
}

type named struct {
	*Transport
	name string
}

func (n named) Name() string { return n.name }

// A Fabric is two devices that are none.
type Fabric struct {
	transport.Network
	f *fabric
}

// NewFabric makes a Fabric.
func NewFabric(tb testing.TB) *Fabric {
	f := newFabric(tb, "fx0", "fx1")
	return &Fabric{networkOf("fabric", f), f}
}

// ReadBack is how often a device has read back what it had written.
func (f *Fabric) ReadBack() int {
	defer f.f.locked()()
	return f.f.backs
}

// Mapped is the system's devices, which map the files of dma-bufs.
func Mapped(tb testing.TB) transport.Network {
	needDevice(tb)
	m, err := openMapper()
	if err != nil {
		tb.Fatal(err)
	}
	return networkOf("mapped", m)
}
