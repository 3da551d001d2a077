package host

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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mails are those of n ranks, with lines between all.
func mails(t *testing.T, n int) ([]*ringo.Comm, []*Mail) {
	t.Helper()
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	require.NoError(t, err)
	all := make([]*Mail, n)
	for r, c := range comms {
		all[r] = NewMail(c)
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
	var sent []*Message
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
	x, err := m[0].Recv(Any, 5, address(got), 3)
	require.NoError(t, err)
	require.ErrorIs(t, WaitFor(x, 0), ErrInProgress)
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
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	require.NoError(t, err)
	id, err := ringo.NewID("127.0.0.1:0")
	require.NoError(t, err)
	m := NewMail(comms[0])
	require.NoError(t, m.To(1, id))
	m.Close()
	_, err = net.Dial("tcp", id.Addr())
	require.Error(t, err)
	require.NoError(t, errors.Join(comms[0].Close(), comms[1].Close()))
}

func TestCallOf(t *testing.T) {
	comms, err := ringo.OpenLocal(1, ringo.Config{})
	require.NoError(t, err)
	defer comms[0].Close()
	for _, bad := range []Call{
		{}, {Kind: 99, Type: 1}, {Kind: int(ringo.KindAllReduce)}, {Kind: int(ringo.KindAllReduce), Type: 1, Op: len(ops)},
		{Kind: int(ringo.KindAllReduce), Type: 1, Op: -1}, {Kind: int(ringo.KindAllReduce), Type: 99},
		{Kind: int(ringo.KindAllReduce), Type: 1, Count: -1},
		{Kind: int(ringo.KindAlltoAllv), Type: 1, OutCounts: []int{1}}, {Kind: int(ringo.KindAllGatherv), Type: 1},
	} {
		_, err := bad.Of(comms[0])
		assert.ErrorIs(t, err, ringo.ErrInvalid, "%+v", bad)
		assert.Equal(t, Invalid, ResultOf(err))
	}
	data := []int32{1, 2}
	x, err := (&Call{Kind: int(ringo.KindAllReduce), Type: int(ringo.Int32), In: uintptr(unsafe.Pointer(&data[0])),
		Out: uintptr(unsafe.Pointer(&data[0])), Count: 2}).Of(comms[0])
	require.NoError(t, err)
	require.Equal(t, 8, x.In.Len())
	require.NoError(t, comms[0].Do(x))
}

func TestResults(t *testing.T) {
	assert.Equal(t, OK, ResultOf(nil))
	assert.Equal(t, InProgress, ResultOf(ErrInProgress))
	assert.Equal(t, Timeout, ResultOf(fmt.Errorf("x: %w", ringo.ErrTimeout)))
	assert.Equal(t, Invalid, ResultOf(ringo.ErrUnsupported))
	assert.Equal(t, Failed, ResultOf(ringo.ErrPeer))
}

func TestTable(t *testing.T) {
	var table Table[string]
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
	m := &Message{done: make(chan struct{})}
	require.ErrorIs(t, WaitFor(m, time.Millisecond), ErrInProgress)
	m.end(nil)
	require.NoError(t, WaitFor(m, 0))
	require.NoError(t, WaitFor(m, time.Hour))
	require.NoError(t, WaitFor(m, -1))
}
