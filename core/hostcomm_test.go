// The host halves of ranks of one process: exchanges, v-variants, and the clock of an operation.

package core_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/hostcomm"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A half is the host half of a rank, with the life that it sees.
type half struct {
	*hostcomm.Comm
	life *life.Life
}

// open makes the host halves of n ranks of this process.
func open(t testing.TB, n int, cfg paths.Config) []*half {
	groups := bootstrap.Local(n)
	comms, errs := make([]*half, n), make([]error, n)
	var all sync.WaitGroup
	for r, g := range groups {
		all.Go(func() {
			l := life.New(g, "h", "", time.Minute)
			me := paths.Profile{Info: transport.Info{Rank: r, Host: "h"}, Hostname: "h"}
			net, err := paths.Connect(context.Background(), g, me, cfg, &l.Guard, slog.New(slog.DiscardHandler))
			if errs[r] = err; err != nil {
				return
			}
			ch := &choice.Chooser{Topo: choice.TopologyOf(net.Hosts())}
			comms[r] = &half{hostcomm.New(l, ch, &request.Numberer{Life: l}, net), l}
			t.Cleanup(func() { l.Close(); net.Close(); g.Close() })
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	return comms
}

// each has all ranks do something with their turn held.
func each(t testing.TB, comms []*half, f func(rank int, h *half) error) {
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for r, h := range comms {
		all.Go(func() {
			h.life.Turn.Lock(context.Background())
			defer h.life.Turn.Unlock()
			errs[r] = f(r, h)
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// TestVariantsAllocateNothing: the v-variants keep their layouts from call to call.
func TestVariantsAllocateNothing(t *testing.T) {
	in, out := []int32{1, 2, 3, 4}, make([]int32, 4)
	for name, c := range map[string]*call.Call{
		"AllGatherv": {Kind: call.AllGatherv, In: mem.Of(in), Out: mem.Of(out), Type: kernels.Int32,
			OutCounts: []int{4}},
		"AllGatherv, offsets": {Kind: call.AllGatherv, In: mem.Of(in), Out: mem.Of(out), Type: kernels.Int32,
			OutCounts: []int{3}, OutOffsets: []int{1}},
		"AlltoAllv": {Kind: call.AlltoAllv, In: mem.Of(in), Out: mem.Of(out), Type: kernels.Int32,
			InCounts: []int{4}, OutCounts: []int{4}},
		"AlltoAllv, in its place": {Kind: call.AlltoAllv, In: mem.Of(out), Out: mem.Of(out), Type: kernels.Int32,
			InCounts: []int{4}, OutCounts: []int{4}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 1, paths.Config{Slots: 4, Cores: 1})[0]
			require.NoError(t, c.Check(0, 1))
			clear(out)
			if c.In == c.Out {
				copy(out, in)
			}
			require.Zero(t, testing.AllocsPerRun(20, func() {
				if err := h.Do(c); err != nil {
					t.Error(err)
				}
			}))
			if c.OutOffsets != nil {
				require.Equal(t, in[:3], out[1:])
			} else {
				require.Equal(t, in, out)
			}
		})
	}
}

// TestExchangeBehindSends: what earlier sends have left in the queues counts, so an exchange
// of a send and a receive completes also where the queues are full.
func TestExchangeBehindSends(t *testing.T) {
	const slots = 4
	for _, transport := range []string{"inproc", "shm", "socket"} {
		t.Run(transport, func(t *testing.T) {
			comms := open(t, 2, paths.Config{Transport: transport, Slots: slots, Cores: 2})
			each(t, comms, func(rank int, h *half) error {
				message := func(kind call.Kind, x []int64) *call.Call {
					return &call.Call{Kind: kind, In: mem.Of(x), Out: mem.Of(x), Count: len(x), Type: kernels.Int64, Peer: 1 - rank}
				}
				for i := range slots {
					if err := h.Do(message(call.Send, []int64{int64(i)})); err != nil {
						return err
					}
				}
				got := make([]int64, 1)
				if err := h.Exchange([]*call.Call{message(call.Recv, got), message(call.Send, []int64{slots})}); err != nil {
					return err
				}
				for i := 1; got[0] == int64(i-1) && i <= slots; i++ {
					if err := h.Do(message(call.Recv, got)); err != nil {
						return err
					}
				}
				if got[0] != slots {
					return errors.New("messages are out of order")
				}
				return nil
			})
		})
	}
}

// TestClockEnds: the clock of an operation that had to wait ends with the operation.
func TestClockEnds(t *testing.T) {
	for name, recv := range map[string]func(h *half, c *call.Call) error{
		"Do":       (*half).Do,
		"Exchange": func(h *half, c *call.Call) error { return h.Exchange([]*call.Call{c}) },
	} {
		t.Run(name, func(t *testing.T) {
			comms := open(t, 2, paths.Config{Slots: 4, Cores: 2})
			x, y := []int64{7}, make([]int64, 1)
			each(t, comms, func(rank int, h *half) error {
				if rank == 0 {
					return recv(h, &call.Call{Kind: call.Recv, Out: mem.Of(y), Count: 1, Type: kernels.Int64, Peer: 1})
				}
				for comms[0].life.Guard.Waited() == 0 { // until rank 0's clock has started
					time.Sleep(time.Millisecond)
				}
				return h.Do(&call.Call{Kind: call.Send, In: mem.Of(x), Count: 1, Type: kernels.Int64, Peer: 0})
			})
			require.Equal(t, x, y)
			require.Zero(t, comms[0].life.Guard.Waited())
		})
	}
}

// TestFits: messages go one after the other if nothing that one rank sends has to wait for what it receives.
func TestFits(t *testing.T) {
	const slots, bytes = 4, 64
	for _, transport := range []string{"inproc", "shm"} {
		comms := open(t, 3, paths.Config{Transport: transport, Slots: slots, SlotBytes: bytes, Cores: 2})
		each(t, comms, func(rank int, h *half) error { // connects all
			x := make([]byte, 3*8)
			return h.Do(&call.Call{Kind: call.AlltoAll, In: mem.Host(x), Out: mem.Host(make([]byte, 3*8)), Count: 8,
				Type: kernels.Uint8})
		})
		send := func(slots, peer int) *call.Call {
			return &call.Call{Kind: call.Send, Count: slots * bytes, Type: kernels.Uint8, Peer: peer}
		}
		recv := func(slots, peer int) *call.Call {
			return &call.Call{Kind: call.Recv, Count: slots * bytes, Type: kernels.Uint8, Peer: peer}
		}
		type list = []*call.Call
		for _, test := range []struct {
			name  string
			calls list // sends first
			want  bool
		}{
			{"a full queue", list{send(slots, 1)}, true},
			{"too much", list{send(slots+1, 1)}, false},
			{"together too much", list{send(2, 1), send(3, 1)}, false},
			{"each its queue", list{send(slots, 1), send(slots, 2)}, true},
			{"what is empty takes a slot", list{send(slots, 1), send(0, 1)}, false},
			{"from one peer", list{recv(slots+9, 1)}, true},
			{"from one peer, in parts", list{recv(slots, 1), recv(slots, 1)}, true},
			{"from two peers", list{recv(slots, 1), recv(slots, 2)}, true},
			{"from two peers, too much", list{recv(1, 1), recv(slots+1, 2)}, false},
			{"both ways", list{send(slots, 1), recv(slots+9, 2)}, true},
			{"both ways, too much", list{send(slots+1, 1), recv(1, 2)}, false},
			{"one byte more", list{{Kind: call.Send, Count: slots*bytes + 1, Type: kernels.Uint8, Peer: 1}}, false},
		} {
			got, err := comms[0].Fits(test.calls)
			require.NoError(t, err)
			require.Equal(t, test.want, got, "%s: %s", transport, test.name)
		}
	}
}
