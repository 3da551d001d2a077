package p2p_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// The devices of a process, and the host, see the same memory.
func TestHostMemory(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	first, second := newUser(t, d, 0, 0, "p"), newUser(t, d, 1, 1, "p")
	a, ao := first.hostMemory()
	b, bo := second.hostMemory()
	require.NoError(t, p2p.ReachHost(ao, bo))
	addr, err := b.Open(ao)
	require.NoError(t, err)
	copy(a.Bytes(), "from the host")
	x := second.alloc(13)
	second.do(func() error { return d.MemcpyDtoD(uintptr(x), uintptr(addr), 13) })
	require.Equal(t, "from the host", second.read(x, 13))
	own, err := a.Open(ao)
	require.NoError(t, err)
	again, err := a.Address()
	require.NoError(t, err)
	require.Equal(t, own, again)
}

func TestReachHost(t *testing.T) {
	offer := func(rank int) *p2p.HostOffer {
		return &p2p.HostOffer{Info: transport.Info{Rank: rank, Host: "h", Process: "p"}, Bytes: 8}
	}
	bothReach(t, offer, p2p.ReachHost, []reachTest[p2p.HostOffer]{
		{"well", nil, ""},
		{"other host", func(o *p2p.HostOffer) { o.Host = "g" }, "different hosts"},
		{"refused", func(o *p2p.HostOffer) { o.Refused = "not wanted" }, "rank 1: not wanted"},
		{"other process without file", func(o *p2p.HostOffer) { o.Process = "q" },
			"cannot share host memory with another process"},
		{"other driver without file", func(o *p2p.HostOffer) { o.Driver = "emu" }, "cannot share host memory"},
		{"other size", func(o *p2p.HostOffer) { o.Bytes = 9 }, "share 8 and 9 bytes"},
	})
}

// A file that is not what was offered is not mapped.
func TestHostMemoryStale(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	d := gputest.Driver(t)
	a, ao := newUser(t, d, 0, 0, "p").hostMemory()
	b, _ := newUser(t, d, 1, 0, "q").hostMemory()
	for name, change := range map[string]func(*p2p.File){
		"other inode":   func(f *p2p.File) { f.Ino++ },
		"other file":    func(f *p2p.File) { f.FD = 0 },
		"no file":       func(f *p2p.File) { f.FD = 9999 },
		"no process":    func(f *p2p.File) { f.PID = 1 << 30 },
		"other process": func(f *p2p.File) { f.PID = os.Getppid() },
	} {
		o := *ao
		f := *ao.File
		change(&f)
		o.File = &f
		_, err := b.Open(&o)
		require.ErrorContains(t, err, "rank 1 opens host memory of rank 0: ", name)
	}
	o := *ao
	o.Bytes *= 2
	_, err := b.Open(&o)
	require.Error(t, err, "shorter than it says")
	_, err = b.Open(ao)
	require.NoError(t, err)
	require.NotNil(t, a.Bytes())
}

// No room and no wish are refusals, not failures.
func TestHostMemoryRefused(t *testing.T) {
	d := gputest.Driver(t)
	for _, cfg := range []p2p.Config{{Driver: d, Bytes: 64, Refused: "not wanted"}, {Driver: d, Bytes: 1 << 60},
		{Driver: d, Bytes: 64}} {
		m := p2p.NewHost(cfg)
		o, err := p2p.ParseHostOffer(m.Offer())
		require.NoError(t, err)
		require.NotEmpty(t, o.Refused)
		require.Nil(t, m.Bytes())
		_, err = m.Address()
		require.ErrorContains(t, err, o.Refused)
		require.NoError(t, m.Close())
	}
	_, err := p2p.ParseHostOffer([]byte("{"))
	require.Error(t, err)
}

func FuzzParseHostOffer(f *testing.F) {
	f.Add([]byte(`{"Rank":1,"Addr":5,"File":{"PID":3}}`))
	f.Fuzz(func(t *testing.T, b []byte) { p2p.ParseHostOffer(b) })
}

// TestHostMemoryTwoProcesses has a child write into this process's segment.
func TestHostMemoryTwoProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	d := gputest.Driver(t)
	const text = "from the child's device"
	if isChild() {
		u := newUser(t, d, 1, 0, "child")
		m, _ := u.hostMemory()
		peer, err := p2p.ParseHostOffer(newParent(t).hear())
		require.NoError(t, err)
		addr, err := m.Open(&peer)
		require.NoError(t, err)
		x := u.alloc(len(text))
		u.write(x, text)
		u.do(func() error { return d.MemcpyDtoD(uintptr(addr), uintptr(x), len(text)) })
		u.do(d.CtxSynchronize)
		return
	}
	m, _ := newUser(t, d, 0, 0, "parent").hostMemory()
	c := newChild(t)
	c.say(m.Offer())
	c.end()
	require.Equal(t, text, string(m.Bytes()[:len(text)]))
}
