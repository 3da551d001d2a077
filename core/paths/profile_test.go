// What a Config asks for, and what the profiles of all ranks must have in common.

package paths

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/transport"
)

func TestWish(t *testing.T) {
	for _, tc := range []struct{ transport, net, want string }{
		{"", "", "inproc shm plugin ib socket"},
		{"auto", "", "inproc shm plugin ib socket"},
		{"", " , ", "inproc shm plugin ib socket"},
		{"socket", "", "socket"},
		{"Socket, shm", "", "socket shm"},
		{"p2p", "", "inproc shm plugin ib socket"},
		{"p2p,socket", "", "socket"},
		{"", "Socket", "inproc shm socket"},
		{"", "IB,Socket", "inproc shm ib socket"},
		{"", "IB", "inproc shm ib"},
		{"ib", "Socket", "ib"},
		{"", "AWS Libfabric,socket", "inproc shm aws libfabric socket"},
	} {
		cfg := Config{Transport: tc.transport, Net: tc.net}
		got, _, err := cfg.wish()
		require.NoError(t, err)
		require.Equal(t, tc.want, strings.Join(got, " "))
	}
	got, _, err := (&Config{NoSHM: "it is off"}).wish()
	require.NoError(t, err)
	require.Equal(t, "inproc plugin ib socket", strings.Join(got, " "))
	for _, name := range []string{"shm", "p2p", "Socket,inproc"} {
		_, _, err = (&Config{Net: name, NetFrom: "RINGO_NET"}).wish()
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err,
			"is no network between hosts; those are plugin, ib, socket, and what a plugin calls itself; unset RINGO_NET")
	}
	_, _, err = (&Config{Transport: "pigeon"}).wish()
	require.ErrorIs(t, err, call.ErrInvalid)
	require.ErrorContains(t, err, `"pigeon" is none of auto, p2p, inproc, shm, plugin, ib, socket`)
}

// What all ranks must have in common, and that each difference names its remedy.
func TestAgree(t *testing.T) {
	two := func(change func(p *Profile)) []Profile {
		all := make([]Profile, 2)
		for r := range all {
			all[r] = Profile{
				Version: "1", Wish: preference(), Info: transport.Info{Rank: r}, Slots: 8,
				Settings: []Setting{{"algorithm", "ring", "RINGO_ALGO"}},
			}
		}
		change(&all[1])
		return all
	}
	require.NoError(t, agree(two(func(*Profile) {})))
	for want, change := range map[string]func(p *Profile){
		"install one version":    func(p *Profile) { p.Version = "9" },
		"RINGO_SLOTS":            func(p *Profile) { p.Slots = 3 },
		"of 4096 bytes":          func(p *Profile) { p.SlotBytes = 4096 },
		"RINGO_TRANSPORT":        func(p *Profile) { p.Wish = []string{"shm"} },
		"RINGO_SHM_DISABLE":      func(p *Profile) { p.Wish = []string{"inproc", "socket"} },
		"says that it is rank 5": func(p *Profile) { p.Rank = 5 },
		"rank 0 has 1 settings":  func(p *Profile) { p.Settings = nil },
		`rank 0 has algorithm "ring", rank 1 on h has "tree"; give all ranks the same RINGO_ALGO`: func(p *Profile) {
			p.Hostname, p.Settings = "h", []Setting{{"algorithm", "tree", "RINGO_ALGO"}}
		},
	} {
		err := agree(two(change))
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, call.ErrMismatch)
	}
}

// A profile survives its journey.
func TestProfileRoundTrip(t *testing.T) {
	_, err := decodeProfile([]byte("{"))
	require.Error(t, err)
	p := Profile{
		Info: transport.Info{Rank: 1, Host: "h", Process: "p"}, Hostname: "n", Version: "1", Wish: preference(),
		SlotBytes: 64, Slots: 2,
		Settings: []Setting{{"a", "b", "c"}}, FromRank0: []byte{1, 2}, GPU: "G", GPUID: "7", Processors: 8,
	}
	back, err := decodeProfile(p.encode())
	require.NoError(t, err)
	require.Equal(t, p, back)
}

// A Transport that leaves out a kind of path forbids it to GPU memory too, unless it is off already.
func TestGPURefusals(t *testing.T) {
	for _, test := range []struct {
		cfg               Config
		p2p, host, bridge string
	}{
		{Config{}, "", "", ""},
		{Config{Transport: "auto", NoP2P: "no p2p", NoSHM: "no shm"}, "no p2p", "no shm", ""},
		{Config{Transport: "socket,auto"}, "", "", ""},
		{Config{Transport: "P2P"}, "", "transport P2P", "transport P2P"},
		{Config{Transport: "shm"}, "transport shm", "", "transport shm"},
		{Config{Transport: "inproc"}, "transport inproc", "", ""},
		{Config{Transport: "socket"}, "transport socket", "transport socket", ""},
		{Config{Transport: "ib"}, "transport ib", "transport ib", ""},
		{Config{Transport: "p2p, shm, plugin"}, "", "", ""},
		{Config{Transport: "socket", NoP2P: "no p2p", NoSHM: "no shm"}, "no p2p", "no shm", ""},
	} {
		p2p, host, bridge := test.cfg.GPURefusals()
		require.Equal(t, []string{test.p2p, test.host, test.bridge}, []string{p2p, host, bridge}, "%+v", test.cfg)
	}
}

// Ranks are connected by networks alone if each has a host to itself, or wants nothing else.
func TestOnlySockets(t *testing.T) {
	ranks := func(wish string, hosts ...string) (all []Profile) {
		for _, h := range hosts {
			all = append(all, Profile{Wish: strings.Fields(wish), Info: transport.Info{Host: h}})
		}
		return all
	}
	for _, wish := range []string{"inproc socket", "shm socket", "inproc shm socket"} {
		require.True(t, onlySockets(ranks(wish, "a", "b", "c")), wish)
		require.False(t, onlySockets(ranks(wish, "a", "b", "a")), wish)
		require.False(t, onlySockets(ranks(wish, "a")), wish)
	}
	require.True(t, onlySockets(ranks("socket", "a", "a")))
	require.False(t, onlySockets(ranks("socket", "a")))
	require.False(t, onlySockets(nil))
}
