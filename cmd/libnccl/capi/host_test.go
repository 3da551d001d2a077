package capi_test

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/cmd/libnccl/host"
)

// leavesNothing has a test leave no goroutine behind.
func leavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// mails are those of n ranks, with lines between all.
func mails(t *testing.T, n int) ([]*ringo.Comm, []*host.Mail) {
	leavesNothing(t)
	comms, all := bareMails(t, n, ringo.Config{})
	for from := range all {
		for to := range all {
			if from != to {
				join(t, all, from, to)
			}
		}
	}
	return comms, all
}

// bareMails are those of n ranks, without lines.
func bareMails(t *testing.T, n int, cfg ringo.Config) ([]*ringo.Comm, []*host.Mail) {
	t.Helper()
	comms, err := ringo.OpenLocal(n, cfg)
	require.NoError(t, err)
	all := make([]*host.Mail, n)
	for r, c := range comms {
		all[r] = host.NewMail(c)
	}
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for r, c := range comms {
			wg.Go(func() { all[r].Close(); c.Close() })
		}
		wg.Wait()
	})
	return comms, all
}

// join opens the line between two ranks, and half opens the sender's end alone.
func join(t *testing.T, all []*host.Mail, from, to int) {
	t.Helper()
	require.NoError(t, all[to].From(from, half(t, all, from, to)))
}

func half(t *testing.T, all []*host.Mail, from, to int) bootstrap.ID {
	t.Helper()
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, all[from].To(to, id))
	return id
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestMail(t *testing.T) {
	_, m := mails(t, 3)
	text := [][]byte{[]byte("one"), []byte("second"), make([]byte, 1<<20)}
	text[2][1<<20-1] = 7
	var sent []*host.Message
	for i, b := range text {
		x, err := m[0].Send(1, int64(i), address(b), len(b))
		require.NoError(t, err)
		sent = append(sent, x)
	}
	for _, i := range []int{2, 0, 1} { // not in the order of sending
		got := make([]byte, len(text[i]))
		x, err := m[1].Recv(0, int64(i), address(got), len(got))
		require.NoError(t, err)
		require.NoError(t, x.Wait())
		require.Equal(t, text[i], got)
		require.NoError(t, sent[i].Wait())
	}

	got := make([]byte, 3)
	x, err := m[0].Recv(host.Any, 5, address(got), 3)
	require.NoError(t, err)
	require.ErrorIs(t, host.WaitFor(x, 0), host.ErrInProgress)
	_, err = m[2].Send(0, 5, address(text[0]), 3)
	require.NoError(t, err)
	require.NoError(t, x.Wait())
	require.Equal(t, 2, x.Source)
	require.Equal(t, "one", string(got))

	x, err = m[0].Recv(2, 6, address(got), 3)
	require.NoError(t, err)
	_, err = m[2].Send(0, 6, address(text[1]), 6)
	require.NoError(t, err)
	require.ErrorIs(t, x.Wait(), ringo.ErrInvalid)
	_, err = m[0].Send(0, 6, address(text[1]), 6)
	require.ErrorIs(t, err, ringo.ErrInvalid)
}

// TestMailEnds wants a receive to end with its communicator.
func TestMailEnds(t *testing.T) {
	comms, m := mails(t, 2)
	got := make([]byte, 3)
	x, err := m[0].Recv(1, 0, address(got), 3)
	require.NoError(t, err)
	comms[1].Abort(errors.New("enough"))
	require.ErrorContains(t, x.Wait(), "enough")
	_, err = m[0].Recv(1, 0, address(got), 3)
	require.Error(t, err)
}

// TestMailAlone wants what rank 1 sends to rank 2, or receives, to end though rank 2 does not take part, with an error
// that has these numbers.
func TestMailAlone(t *testing.T) {
	leavesNothing(t)
	large := make([]byte, 1<<25) // more than a line holds; what the other end takes has been sent, whoever receives it
	for _, x := range []struct {
		name        string
		peer        int
		data        []byte
		lines, ends bool // the lines are open at both ends; rank 2 has left
	}{
		{"recv", 2, large[:3], false, false},
		{"recv, left", 2, large[:3], false, true},
		{"recv over a line", 2, large[:3], true, false},
		{"recv over a line, left", 2, large[:3], true, true},
		{"recv any", host.Any, large[:3], true, false},
		{"send", 2, large[:3], false, false},
		{"send, left", 2, large[:3], false, true},
		{"send over a line, left", 2, large, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			cfg, want := ringo.Config{Timeout: time.Second}, ringo.ErrTimeout
			if x.ends {
				cfg, want = ringo.Config{Timeout: time.Hour}, ringo.ErrLeft
			}
			comms, m := bareMails(t, 3, cfg)
			sends := strings.HasPrefix(x.name, "send")
			switch {
			case x.lines:
				join(t, m, 1, 2)
				join(t, m, 2, 1)
			case sends:
				half(t, m, 1, 2)
			}
			if x.ends {
				m[2].Close()
				require.NoError(t, comms[2].Close())
			}
			move := m[1].Recv
			if sends {
				move = m[1].Send
			}
			msg, err := move(x.peer, 0, address(x.data), len(x.data))
			if err == nil {
				err = msg.Wait()
			}
			require.ErrorIs(t, err, want)
			var e *ringo.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []int{1, x.peer}, []int{e.Rank, e.Peer}, "%v", err)
			if x.peer != host.Any {
				require.Equal(t, []int{2}, e.Culprits)
			}
		})
	}
}

// TestMailGoesOn wants a line that carried nothing of a message that ran out of time to carry the next one.
func TestMailGoesOn(t *testing.T) {
	leavesNothing(t)
	_, m := bareMails(t, 2, ringo.Config{Timeout: time.Second})
	id, got := half(t, m, 0, 1), []byte("...")
	x, err := m[0].Send(1, 0, address(got), 3)
	require.NoError(t, err)
	require.ErrorIs(t, x.Wait(), ringo.ErrTimeout)
	require.NoError(t, m[1].From(0, id))
	require.Eventually(t, func() bool {
		_, err := m[0].Send(1, 1, address([]byte("two")), 3)
		require.NoError(t, err)
		x, err := m[1].Recv(0, 1, address(got), 3)
		return err == nil && x.Wait() == nil
	}, time.Minute, time.Millisecond)
	require.Equal(t, "two", string(got))
}

// TestMailWithoutPeer: a line whose other end is never opened leaves no port open.
func TestMailWithoutPeer(t *testing.T) {
	leavesNothing(t)
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	require.NoError(t, err)
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	m := host.NewMail(comms[0])
	require.NoError(t, m.To(1, id))
	m.Close()
	_, err = net.Dial("tcp", id.Addr())
	require.Error(t, err)
	require.NoError(t, errors.Join(comms[0].Close(), comms[1].Close()))
}

// TestConfigOfHost wants RINGO_TIMEOUT to bound waits where a program gives the default, as torch does.
func TestConfigOfHost(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Hour: time.Hour,
		ringo.DefaultTimeout: 3 * time.Second} {
		cfg, err := host.Config(bootstrap.ID{}, 0, 1, given).From(func(name string) string {
			return map[string]string{"RINGO_TIMEOUT": "3s"}[name]
		})
		require.NoError(t, err)
		assert.Equal(t, want, cfg.Timeout)
		assert.Equal(t, cmp.Or(given, ringo.DefaultJoinTimeout), cfg.JoinTimeout)
	}
}

func TestCallOf(t *testing.T) {
	leavesNothing(t)
	const ops = 8 // the operators of ringo.h
	comms, err := ringo.OpenLocal(1, ringo.Config{})
	require.NoError(t, err)
	defer comms[0].Close()
	for _, bad := range []host.Call{
		{}, {Kind: 99, Type: 1}, {Kind: int(ringo.KindAllReduce)}, {Kind: int(ringo.KindAllReduce), Type: 1, Op: ops},
		{Kind: int(ringo.KindAllReduce), Type: 1, Op: -1}, {Kind: int(ringo.KindAllReduce), Type: 99},
		{Kind: int(ringo.KindAllReduce), Type: 1, Count: -1},
		{Kind: int(ringo.KindAlltoAllv), Type: 1, OutCounts: []int{1}}, {Kind: int(ringo.KindAllGatherv), Type: 1},
	} {
		_, err := bad.Of(comms[0])
		assert.ErrorIs(t, err, ringo.ErrInvalid, "%+v", bad)
		assert.Equal(t, host.Invalid, host.ResultOf(err))
	}
	_, err = (&host.Call{Kind: int(ringo.KindAllReduce), Type: int(ringo.Int32), Op: ops - 1}).Of(comms[0])
	require.NoError(t, err, "the last operator")
	data := []int32{1, 2}
	x, err := (&host.Call{Kind: int(ringo.KindAllReduce), Type: int(ringo.Int32), In: uintptr(unsafe.Pointer(&data[0])),
		Out: uintptr(unsafe.Pointer(&data[0])), Count: 2}).Of(comms[0])
	require.NoError(t, err)
	require.Equal(t, 8, x.In.Len())
	require.NoError(t, comms[0].Do(x))
}

func TestResultsOfHost(t *testing.T) {
	assert.Equal(t, host.OK, host.ResultOf(nil))
	assert.Equal(t, host.InProgress, host.ResultOf(host.ErrInProgress))
	assert.Equal(t, host.Timeout, host.ResultOf(fmt.Errorf("x: %w", ringo.ErrTimeout)))
	assert.Equal(t, host.Invalid, host.ResultOf(ringo.ErrUnsupported))
	assert.Equal(t, host.Failed, host.ResultOf(ringo.ErrPeer))
}

func TestWaitFor(t *testing.T) {
	_, m := mails(t, 2)
	got := make([]byte, 3)
	x, err := m[0].Recv(1, 0, address(got), 3)
	require.NoError(t, err)
	require.ErrorIs(t, host.WaitFor(x, time.Millisecond), host.ErrInProgress)
	_, err = m[1].Send(0, 0, address([]byte("end")), 3)
	require.NoError(t, err)
	require.NoError(t, host.WaitFor(x, -1))
	require.NoError(t, host.WaitFor(x, 0))
	require.NoError(t, host.WaitFor(x, time.Hour))
}
