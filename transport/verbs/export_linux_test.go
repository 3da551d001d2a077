package verbs

import (
	"testing"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/transport"
)

// networkOf is a network over the library v of a test.
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

// A Fabric is a network of two simulated devices.
type Fabric struct {
	transport.Network
	f *fabric
}

// NewFabric makes a Fabric.
func NewFabric(tb testing.TB) *Fabric {
	f := newFabric(tb, "fx0", "fx1")
	return &Fabric{networkOf("fabric", f), f}
}

// ReadBack is how often devices have read back their writes.
func (f *Fabric) ReadBack() int {
	defer f.f.locked()()
	return f.f.backs
}

// Mapped is a network of the system's devices, for which files stand in for dma-bufs.
func Mapped(tb testing.TB) transport.Network {
	needDevice(tb)
	m, err := openMapper()
	if err != nil {
		tb.Fatal(err)
	}
	return networkOf("mapped", m)
}
