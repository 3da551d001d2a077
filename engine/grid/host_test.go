package grid

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// onHost has the host's engine carry out the same, over channels.
func onHost(t testing.TB, s sched.Schedule, jobs []engine.Job) {
	t.Helper()
	conns := map[[2]sched.Rank]*conn{}
	for from := range sched.Rank(len(jobs)) {
		for to := range sched.Rank(len(jobs)) {
			conns[[2]sched.Rank{from, to}] = &conn{slots: make(chan []byte, 4096), stamps: make(chan transport.Stamp, 4096)}
		}
	}
	var ranks errgroup.Group
	for r := range jobs {
		ranks.Go(func() (err error) {
			if jobs[r].Program, err = engine.Compile(s, sched.Rank(r), hostLinks{conns, sched.Rank(r)}); err != nil {
				return err
			}
			return engine.New(transport.Limits{SlotBytes: 1 << 10, Slots: 4}).Run(&jobs[r])
		})
	}
	require.NoError(t, ranks.Wait())
}

// hostLinks are the links of one rank.
type hostLinks struct {
	conns map[[2]sched.Rank]*conn // by sender and receiver
	rank  sched.Rank
}

func (l hostLinks) Send(to sched.Rank) (transport.SendConn, error) {
	return l.conns[[2]sched.Rank{l.rank, to}], nil
}

func (l hostLinks) Recv(from sched.Rank) (transport.RecvConn, error) {
	return l.conns[[2]sched.Rank{from, l.rank}], nil
}

// A conn is both ends of a connection.
type conn struct {
	slots  chan []byte
	stamps chan transport.Stamp
	slot   []byte // reserved
}

func (c *conn) Reserve(n int) (mem.Region, error) {
	c.slot = make([]byte, n)
	return mem.Host(c.slot), nil
}

func (c *conn) Publish(s transport.Stamp) error {
	c.slots <- c.slot
	c.stamps <- s
	return nil
}

func (c *conn) Next() (mem.Region, transport.Stamp, error) {
	return mem.Host(<-c.slots), <-c.stamps, nil
}
func (c *conn) Release() error { return nil }
func (c *conn) Close() error   { return nil }
