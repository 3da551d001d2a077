package verbs

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func onFabric(f *rdma.Fabric, o Options) transporttest.Open {
	o.Verbs = f
	return func(_ testing.TB, cfg transport.Config) transport.Transport { return New(cfg, o) }
}

// Credits are given in lots, so a sender may be up to half a queue further ahead.
var loose = transporttest.Options{Loose: true}

func TestConformance(t *testing.T) {
	t.Run("a port", func(t *testing.T) {
		transporttest.Conformance(t, onFabric(rdma.NewFabric(t, "fx0"), Options{}), loose)
	})
	t.Run("rails", func(t *testing.T) {
		transporttest.Conformance(t, onFabric(rdma.NewFabric(t, "fx0", "fx1", "fx2"), Options{Rails: 3}), loose)
	})
	t.Run("nothing by value", func(t *testing.T) {
		f := rdma.NewFabric(t, "fx0")
		f.NoInline = true
		transporttest.Conformance(t, onFabric(f, Options{}), loose)
	})
}

// expect makes a Fabric refuse queue pairs that do not match o.
func expect(f *rdma.Fabric, o Options) {
	if err := o.check(); err != nil {
		panic(err)
	}
	f.Expect = rdma.Attributes{PKeyIndex: o.PKeyIndex, Timeout: o.Timeout, Retries: o.Retries,
		ServiceLevel: o.ServiceLevel, TrafficClass: o.TrafficClass}
}
