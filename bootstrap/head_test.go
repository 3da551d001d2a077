package bootstrap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
)

// TestPlaces has 72 ranks at 9 places (machines) gather long parts. One head has gone, so its place asks
// the hub; the other places get one copy each.
func TestPlaces(t *testing.T) {
	const n, each = 72, 8
	id, _ := hubAt(t)
	groups := make([]Group, n)
	all := func(f func(r int)) {
		var wg sync.WaitGroup
		for r := range n {
			wg.Go(func() { f(r) })
		}
		wg.Wait()
	}
	all(func(r int) {
		g, err := Join(within(t, 20*time.Second), id, r, n, JoinOptions{machine: fmt.Sprint(r % (n / each)), apart: true})
		if err != nil {
			t.Error(err)
		}
		groups[r] = g
	})
	if t.Failed() {
		return
	}
	groups[3].(*member).gathers.giving.end(3)
	part := func(r int) []byte { return bytes.Repeat([]byte{byte(r)}, 2*rendezvous.HeadedBytes/n) }
	first := make([]*byte, n)
	for range 2 {
		all(func(r int) {
			got, err := groups[r].AllGather(within(t, 20*time.Second), part(r))
			if err != nil {
				t.Error(err)
				return
			}
			for q := range got {
				if !bytes.Equal(got[q], part(q)) {
					t.Errorf("rank %d got something else from rank %d", r, q)
				}
			}
			first[r] = &got[0][0]
		})
	}
	for r := range n {
		m := groups[r].(*member)
		require.Equal(t, r < n/each, m.gathers.giving != nil)
		if here := r % (n / each); here != 3 {
			require.Same(t, first[here], first[r], "rank %d has the copy of its place", r)
		} else if r != here {
			require.NotSame(t, first[here], first[r])
		}
		if m.gathers.giving != nil && r != 3 {
			require.NotSame(t, first[3], first[r])
			require.Empty(t, m.gathers.giving.kept, "what all have taken is forgotten")
		}
	}
	closeAll(t, groups)
	require.Empty(t, localHeads.In(nil).m)
}

// TestHead is a head whose takers are in other processes.
func TestHead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no abstract sockets")
	}
	key := bytes.Repeat([]byte{7}, keyLen)
	h := newHead(key, 4, 2, true)
	localHeads.In(nil).m[headName(key, 4)] = nil // as in another process
	want := &rendezvous.Gathered{Seq: 9, Data: [][]byte{[]byte("a part"), []byte("a part too")}}
	got := make(chan *rendezvous.Gathered)
	go func() {
		g, _ := fetch(t.Context(), key, 4, 9)
		got <- g
	}()
	h.keep(want)
	require.Equal(t, want, <-got)
	_, err := fetch(t.Context(), bytes.Repeat([]byte{8}, keyLen), 4, 9)
	require.Error(t, err, "another group")
	go func() {
		g, _ := fetch(t.Context(), key, 4, 10) // never comes
		got <- g
	}()
	h.end(4)
	require.Nil(t, <-got)
	_, err = fetch(t.Context(), key, 4, 9)
	require.Error(t, err)
}

func TestTooManyRanks(t *testing.T) {
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", files: 100})
	require.NoError(t, err)
	t.Cleanup(func() { Stop(id) })
	_, err = Join(within(t, 10*time.Second), id, 5, 90, JoinOptions{})
	require.ErrorContains(t, err,
		"90 ranks need as many connections to the rendezvous, whose process may have 100 files open: raise its limit "+
			"(ulimit -n)")
}

// A head ends at once, although a caller says nothing, or takes nothing.
func TestHeadEndsAtOnce(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no abstract sockets")
	}
	key := bytes.Repeat([]byte{9}, keyLen)
	h := newHead(key, 4, 2, true)
	dial := func() net.Conn {
		c, err := net.Dial("unix", headName(key, 4))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	h.keep(&rendezvous.Gathered{Seq: 9, Data: [][]byte{make([]byte, rendezvous.MaxBlob/2)}})
	taker := dial()
	_, err := auth.Call(taker, key, headProtocol, binary.BigEndian.AppendUint64(nil, 9))
	require.NoError(t, err)
	_, err = taker.Read(make([]byte, 1)) // the head writes
	require.NoError(t, err)
	began := time.Now()
	h.end(4)
	require.Less(t, time.Since(began), handshakeTime*9/10)
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool { // a goroutine that has announced its end is still seen for a moment
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*head).serve"))
	}, 10*time.Second, time.Millisecond, "nothing of it goes on")
}

// Ranks in containers that share a network are on one machine. Their processes may have the same number there.
func TestContainersAtOnePlace(t *testing.T) {
	l := &joinSet{size: headedRanks, slots: map[int]*slot{}}
	for r := range l.size {
		l.slots[r] = &slot{Claim: rendezvous.Claim{Rank: r, Pid: 1, Machine: fmt.Sprintf("host%s%d", containers, r)}}
	}
	starts := l.starts([32]byte{}, nil)
	require.Equal(t, l.size-1, starts[0].Takers)
	require.True(t, starts[0].Apart)
	for _, s := range l.slots {
		s.Machine = "host" + containers
	}
	require.False(t, l.starts([32]byte{}, nil)[0].Apart, "one process")
}
