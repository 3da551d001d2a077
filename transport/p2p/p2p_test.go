package p2p_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

func TestSameProcess(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	first, second := newUser(t, d, 0, 0, "p"), newUser(t, d, 1, 1, "p")
	a, ao := first.memory()
	b, bo := second.memory()
	c, co := newUser(t, d, 2, 1, "p").memory() // two ranks on one device
	for _, pair := range [][2]*p2p.Offer{{ao, bo}, {bo, ao}, {bo, co}, {ao, ao}} {
		require.NoError(t, p2p.Reach(pair[0], pair[1]))
	}
	own, err := a.Open(ao)
	require.NoError(t, err)
	peer, err := b.Open(ao)
	require.NoError(t, err)
	require.Equal(t, own, peer, "addresses are unified in a process")
	again, err := b.Open(ao)
	require.NoError(t, err)
	require.Equal(t, peer, again)
	_, err = c.Open(bo)
	require.NoError(t, err)

	first.write(own, "from rank 0")
	require.Equal(t, "from rank 0", second.read(peer, 11))
}

func TestReach(t *testing.T) {
	offer := func(rank int) *p2p.Offer {
		return &p2p.Offer{Info: transport.Info{Rank: rank, Host: "h", Process: "p"}, UUID: fmt.Sprint(rank),
			Links: map[string]cuda.Link{"0": cuda.NVLink, "1": cuda.NVLink}, Bytes: 8}
	}
	bothReach(t, offer, p2p.Reach, []reachTest[p2p.Offer]{
		{"well", nil, ""},
		{"other host", func(o *p2p.Offer) { o.Host = "g" }, "different hosts"},
		{"refused", func(o *p2p.Offer) { o.Refused = "RINGO_P2P_DISABLE is set" }, "rank 1: RINGO_P2P_DISABLE is set"},
		{"no link", func(o *p2p.Offer) { o.Links["0"] = cuda.NoLink }, "the GPU of rank 1 does not reach that of rank 0"},
		{"hidden", func(o *p2p.Offer) { o.Process, o.Handle = "q", []byte{1}; delete(o.Links, "0") },
			"cannot hand its memory"},
		{"other process without handle", func(o *p2p.Offer) { o.Process = "q"; o.NoIPC = "no IPC here" },
			"cannot hand its memory to another process"},
		{"other driver without handle", func(o *p2p.Offer) { o.Driver = "emu" }, "cannot hand its memory to another process"},
		{"other size", func(o *p2p.Offer) { o.Bytes = 9 }, "share 8 and 9 bytes"},
	})
}

// Both ranks of a pair find the same link, the worse one of their offers.
func TestLinkOf(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU's links are what they are")
	}
	d := gputest.Driver(t, gputest.Emu(cudaemu.Config{Devices: 4, Link: func(a, b int) cuda.Link {
		return map[int]cuda.Link{1: cuda.NVLink, 2: cuda.PCIe, 3: cuda.UnknownLink}[a^b]
	}}))
	var offers []*p2p.Offer
	for rank := range 5 {
		_, o := newUser(t, d, rank, rank%4, "p").memory()
		offers = append(offers, o)
	}
	for b, want := range map[int]cuda.Link{1: cuda.NVLink, 2: cuda.PCIe, 3: cuda.UnknownLink, 4: cuda.SameGPU} {
		require.Equal(t, want, p2p.LinkOf(offers[0], offers[b]))
		require.Equal(t, want, p2p.LinkOf(offers[b], offers[0]))
	}
	offers[0].Links[offers[1].UUID] = cuda.PCIe
	require.Equal(t, cuda.PCIe, p2p.LinkOf(offers[0], offers[1]))
	require.Equal(t, cuda.PCIe, p2p.LinkOf(offers[1], offers[0]))
}

func TestRefused(t *testing.T) {
	d := gputest.Driver(t)
	dev, ctx := gputest.Context(t, d, 0)
	m, err := p2p.New(p2p.Config{Driver: d, Context: ctx, Device: dev, Bytes: 64, Refused: "not wanted"})
	require.NoError(t, err)
	o, err := p2p.ParseOffer(m.Offer())
	require.NoError(t, err)
	require.Equal(t, "not wanted", o.Refused)
	require.Nil(t, o.Handle)
	require.NotZero(t, m.Address(), "the rank has memory for itself")
	require.NoError(t, m.Close(true))
	_, err = p2p.ParseOffer([]byte("{"))
	require.Error(t, err)
	_, err = p2p.ParseOffer([]byte(`{"Handle":"AAAA"}`))
	require.ErrorContains(t, err, "a handle of 3 bytes")
}

func FuzzParseOffer(f *testing.F) {
	f.Add([]byte(`{"Rank":1,"UUID":"00","Handle":""}`))
	f.Fuzz(func(t *testing.T, b []byte) { p2p.ParseOffer(b) })
}

// TestTwoProcesses has a child on the last device write into this process's
// segment, and this process read the child's.
func TestTwoProcesses(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	if isChild() {
		writeBoth(t, newUser(t, d, 1, 1, "child"))
		return
	}
	u := newUser(t, d, 0, 0, "parent")
	m, own := u.memory()
	c := newChild(t)
	c.say(m.Offer())
	peer, err := p2p.ParseOffer(c.hear())
	require.NoError(t, err)
	addr, err := m.Open(&peer)
	require.NoError(t, err)
	require.Equal(t, "to you..", u.read(own.Addr, 8))
	require.Equal(t, "of mine.", u.read(addr, 8))
	require.NoError(t, m.Close(true))
	c.end()
}

func writeBoth(t *testing.T, u *user) {
	m, own := u.memory()
	p := newParent(t)
	peer, err := p2p.ParseOffer(p.hear())
	require.NoError(t, err)
	require.NoError(t, p2p.Reach(own, &peer))
	addr, err := m.Open(&peer)
	require.NoError(t, err)
	u.write(addr, "to you..")
	u.write(own.Addr, "of mine.")
	p.say(m.Offer())
	p.hear() // until the parent is done
}
