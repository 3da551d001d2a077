package capi_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/libnccl/host"
)

// leavesNothing has a test leave no goroutine behind.
func leavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// mails are those of n ranks, with lines between all.
func mails(t *testing.T, n int) ([]*ringo.Comm, []*host.Mail) {
	t.Helper()
	leavesNothing(t)
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	require.NoError(t, err)
	all := make([]*host.Mail, n)
	for r, c := range comms {
		all[r] = host.NewMail(c)
	}
	for from := range all {
		for to := range all {
			if from != to {
				id, err := ringo.NewID("127.0.0.1:0")
				require.NoError(t, err)
				require.NoError(t, all[from].To(to, id))
				require.NoError(t, all[to].From(from, id))
			}
		}
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

func TestTableOfHost(t *testing.T) {
	var table host.Table[string]
	h := table.Add("x")
	require.NotZero(t, h)
	v, err := table.Remove(h)
	require.NoError(t, err)
	require.Equal(t, "x", v)
	_, err = table.Get(h)
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.NotEqual(t, h, table.Add("y"))
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
