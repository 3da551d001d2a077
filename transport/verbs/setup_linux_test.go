package verbs

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/rdma"
)

// A refusing fabric fails at one of the calls by which connections are made, and carries out the others.
type refusing struct {
	*rdma.Fabric
	mu   sync.Mutex
	left int // calls before that one
	call string
}

var errRefused = errors.New("refused by the device")

func (f *refusing) fails(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left == -1 {
		f.call = call
		return errRefused
	}
	return nil
}

// failed is the call that has failed, "" if none has.
func (f *refusing) failed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.call
}

// disarm makes all later calls succeed.
func (f *refusing) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 1 << 30
}

// tried makes a call, unless this is the one that fails.
func tried[T any](f *refusing, name string, call func() (T, error)) (none T, err error) {
	if err := f.fails(name); err != nil {
		return none, err
	}
	return call()
}

func (f *refusing) GetDeviceList() ([]string, error) {
	return tried(f, "GetDeviceList", f.Fabric.GetDeviceList)
}

func (f *refusing) OpenDevice(name string) (*ibverbs.Context, error) {
	return tried(f, "OpenDevice", func() (*ibverbs.Context, error) { return f.Fabric.OpenDevice(name) })
}

func (f *refusing) QueryDevice(c *ibverbs.Context) (ibverbs.DeviceAttr, error) {
	return tried(f, "QueryDevice", func() (ibverbs.DeviceAttr, error) { return f.Fabric.QueryDevice(c) })
}

func (f *refusing) QueryPort(c *ibverbs.Context, port int) (ibverbs.PortAttr, error) {
	return tried(f, "QueryPort", func() (ibverbs.PortAttr, error) { return f.Fabric.QueryPort(c, port) })
}

func (f *refusing) AllocPD(c *ibverbs.Context) (*ibverbs.PD, error) {
	return tried(f, "AllocPD", func() (*ibverbs.PD, error) { return f.Fabric.AllocPD(c) })
}

func (f *refusing) RegMR(p *ibverbs.PD, addr uintptr, n, access int) (*ibverbs.MR, error) {
	return tried(f, "RegMR", func() (*ibverbs.MR, error) { return f.Fabric.RegMR(p, addr, n, access) })
}

func (f *refusing) CreateCQ(c *ibverbs.Context, entries int) (*ibverbs.CQ, error) {
	return tried(f, "CreateCQ", func() (*ibverbs.CQ, error) { return f.Fabric.CreateCQ(c, entries) })
}

func (f *refusing) CreateQP(p *ibverbs.PD, q *ibverbs.CQ, c ibverbs.QPCap) (*ibverbs.QP, error) {
	return tried(f, "CreateQP", func() (*ibverbs.QP, error) { return f.Fabric.CreateQP(p, q, c) })
}

func (f *refusing) ModifyQP(q *ibverbs.QP, a *ibverbs.QPAttr, mask int) error {
	if err := f.fails("ModifyQP"); err != nil {
		return err
	}
	return f.Fabric.ModifyQP(q, a, mask)
}

func (f *refusing) PostRecv(q *ibverbs.QP, w *ibverbs.RecvWR) error {
	if err := f.fails("PostRecv"); err != nil {
		return err
	}
	return f.Fabric.PostRecv(q, w)
}

// TestSetupFails: whichever call a device refuses while two ranks connect, one of them returns the error, and nothing
// that was made before is left in the fabric.
func TestSetupFails(t *testing.T) {
	calls := map[string]bool{}
	for fault, done := 0, false; !done; fault++ {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			f := &refusing{Fabric: rdma.NewFabric(t, "fx0"), left: fault}
			err := f.connect(t)
			f.disarm()
			if done = f.failed() == ""; done {
				require.NoError(t, err)
				return
			}
			calls[f.failed()] = true
			if f.failed() == "QueryPort" && err == nil {
				return // a port whose state cannot be read is tried
			}
			require.ErrorContains(t, err, errRefused.Error(), f.failed())
		})
	}
	for _, call := range []string{"GetDeviceList", "OpenDevice", "QueryDevice", "QueryPort", "AllocPD", "RegMR",
		"CreateCQ", "CreateQP", "ModifyQP", "PostRecv"} {
		require.Contains(t, calls, call)
	}
}

// connect has two ranks connect and send a message. The transports are closed when it returns.
func (f *refusing) connect(t *testing.T) error {
	var ranks []*conntest.Rank[*Transport]
	for r := range 2 {
		m := &conntest.Rank[*Transport]{Config: conntest.Config(r, few)}
		m.Transport = New(m.Config, Options{Verbs: f})
		defer func() { require.NoError(t, m.Transport.Close()) }()
		var err error
		if m.Addr, err = m.Transport.Listen(); err != nil {
			return err
		}
		ranks = append(ranks, m)
	}
	s, r, err := conntest.TryConnect(ranks[0], ranks[1])
	if err != nil {
		return err
	}
	f.disarm()
	return conntest.Flow(s, r, 1, func(int) int { return 0 })
}
