package p2p_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport/p2p"
)

// Another process needs a piece while this one does something else. Here the parent only
// waits for the child's word.
func TestRangeTwoProcesses(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	if isChild() {
		u := newUser(t, d, 1, 1, "child")
		r, _ := u.addresses(true, page, page)
		p := newParent(t)
		peer, err := p2p.ParseRangeOffer(p.hear())
		require.NoError(t, err)
		at, err := r.Open(&peer)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, r.Bring(&peer, 1))
		}
		require.Equal(t, string(make([]byte, 64)), u.read(at+page, 64))
		u.write(at+page, "of the child")
		p.say([]byte("done"))
		p.hear() // the parent has closed, and knows that this process may write on
		u.write(at+page, "still here")
		require.Equal(t, "still here", u.read(at+page, 10))
		require.ErrorContains(t, r.Bring(&peer, 0), "rank 1 needs memory of rank 0")
		p.say([]byte("done"))
		p.hear()
		return
	}
	u := newUser(t, d, 0, 0, "parent")
	before := u.used()
	r, o := u.addresses(true, page, page)
	other, _ := u.addresses(true, page) // the door stays open
	c := newChild(t)
	c.say(r.Offer())
	c.hear()
	u.holds(t, before, page)
	require.NoError(t, r.Bring(o, 1))
	require.Equal(t, "of the child", u.read(o.Addr+page, 12))
	require.NoError(t, r.Close(false))
	c.say(nil)
	c.hear()
	require.NoError(t, other.Close(true))
	c.say(nil)
	c.end()
}

// Waiting for a process that does not answer ends with Stop.
func TestRangeStop(t *testing.T) {
	l, err := net.Listen("unix", fmt.Sprintf("@ringo-test-%s-%d", t.Name(), os.Getpid())) // nobody accepts
	require.NoError(t, err)
	defer l.Close()
	u := newUser(t, gputest.Driver(t), 0, 0, "p")
	r, _ := u.addresses(true, page)
	peer := p2p.RangeOffer{ID: "x", Pieces: []int{page},
		Export: &p2p.Export{Socket: l.Addr().String(), Secret: []byte("s"), ID: "x"}}
	peer.Rank, peer.Process = 1, "q"
	cause, start := errors.New("it is over"), time.Now()
	time.AfterFunc(20*time.Millisecond, func() { r.Stop(cause) })
	_, err = r.Open(&peer)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "p2p: rank 0 opens addresses of rank 1")
	require.Less(t, time.Since(start), 5*time.Second)
}
