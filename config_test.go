package ringo

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestConfigFill(t *testing.T) {
	c, err := Config{}.fill(environment())
	require.NoError(t, err)
	require.Equal(t, DefaultTimeout, c.Timeout)
	require.Equal(t, DefaultJoinTimeout, c.JoinTimeout)
	require.Equal(t, DefaultSlots, c.Slots)
	require.Zero(t, c.SlotBytes) // chosen when the ranks know where they are
	require.NotEmpty(t, c.HostID)

	c, err = Config{Slots: 4}.fill(environment("RINGO_SLOTS=16", "RINGO_SLOT_BYTES=64K", "RINGO_TIMEOUT=90s", "NCCL_ALGO=Tree",
		"NCCL_SOCKET_IFNAME=eth", "RINGO_SOCKET_IFNAME=^lo", "NCCL_SOCKET_FAMILY=AF_INET6", "NCCL_HOSTID=here", "NCCL_SHM_DISABLE=1", "NCCL_CHECK_POINTERS=1"))
	require.NoError(t, err)
	require.Equal(t, 4, c.Slots) // what the program says comes first
	require.Equal(t, 64<<10, c.SlotBytes)
	require.Equal(t, 90*time.Second, c.Timeout)
	require.Equal(t, call.Tree, c.algo)
	require.Equal(t, "^lo", c.Interface) // our name comes before NCCL's
	require.Equal(t, 6, c.Family)
	require.Equal(t, "here", c.HostID)
	require.Equal(t, "p2p,inproc,socket", c.Transport)
	require.True(t, c.CheckPointers)

	for _, bad := range []string{"RINGO_SLOTS=x", "RINGO_SLOTS=1", "RINGO_SLOT_BYTES=65", "RINGO_TIMEOUT=soon", "RINGO_TIMEOUT=-1s",
		"RINGO_ALGO=quantum", "RINGO_SOCKET_FAMILY=5", "RINGO_DEBUG=LOUD", "RINGO_SLOT_BYTES=9999999999G"} {
		_, err := Config{}.fill(environment(bad))
		require.ErrorIs(t, err, ErrInvalid, bad)
	}
}

func TestDebugLog(t *testing.T) {
	lines := func(env ...string) string {
		file := filepath.Join(t.TempDir(), "log.%p")
		c, err := Config{}.fill(environment(append(env, "RINGO_DEBUG_FILE="+file)...))
		require.NoError(t, err)
		log := c.Log.With("rank", 3)
		log.Info("one", "subsys", "INIT")
		log.With("subsys", "NET").Info("two")
		log.Debug("three", "subsys", "CALL")
		log.Warn("four", "subsys", "SHM")
		b, err := os.ReadFile(debugFile(file))
		require.NoError(t, err)
		var seen []string
		for _, word := range []string{"one", "two", "three", "four"} {
			if bytes.Contains(b, []byte("msg="+word)) {
				seen = append(seen, word)
			}
		}
		return strings.Join(seen, " ")
	}
	require.Equal(t, "four", lines())
	require.Equal(t, "four", lines("NCCL_DEBUG=WARN"))
	require.Equal(t, "one four", lines("RINGO_DEBUG=INFO"))
	require.Equal(t, "two four", lines("RINGO_DEBUG=info", "RINGO_DEBUG_SUBSYS=NET,COLL"))
	require.Equal(t, "two four", lines("RINGO_DEBUG=INFO", "RINGO_DEBUG_SUBSYS=^INIT"))
	require.Equal(t, "one two three four", lines("NCCL_DEBUG=TRACE"))
}

func TestWish(t *testing.T) {
	for _, tc := range []struct{ transport, net, want string }{
		{"", "", "inproc shm socket"},
		{"auto", "", "inproc shm socket"},
		{"socket", "", "socket"},
		{"Socket, shm", "", "socket shm"},
		{"", "Socket", "inproc shm socket"},
		{"", "IB,Socket", "inproc shm ib socket"},
		{"", "IB", "inproc shm ib"},
	} {
		got, err := wish(&Config{Transport: tc.transport, Net: tc.net})
		require.NoError(t, err)
		require.Equal(t, tc.want, strings.Join(got, " "))
	}
	_, err := wish(&Config{Transport: "pigeon"})
	require.ErrorIs(t, err, ErrInvalid)
}

// The path of a pair: the best that both have, with the reasons against better
// ones, the same from both ends; else an error that names what to change.
func TestChoose(t *testing.T) {
	reach := func(name string, a, b transport.Info) error {
		if name == "shm" && a.Host != b.Host {
			return errors.New("different hosts")
		}
		return nil
	}
	rank := func(r int, host, shm string) *profile {
		return &profile{
			Info: transport.Info{Rank: r, Host: host}, Hostname: host, Wish: []string{"shm", "ib", "socket"},
			Candidates: []candidate{{Name: "shm", Refused: shm}, {Name: "ib", Refused: "no card"}, {Name: "socket"}},
		}
	}
	name, against, err := choose(rank(0, "x", ""), rank(1, "x", ""), reach)
	require.NoError(t, err)
	require.Equal(t, "shm", name)
	require.Empty(t, against)

	name, against, err = choose(rank(0, "x", ""), rank(1, "y", ""), reach)
	require.NoError(t, err)
	require.Equal(t, "socket", name)
	require.Equal(t, []string{"not shm (different hosts)", "not ib (rank 0 on x: no card)"}, against)

	name, _, err = choose(rank(0, "x", ""), rank(1, "x", "no room"), reach)
	require.NoError(t, err)
	require.Equal(t, "socket", name)

	a, b := rank(0, "x", "no room"), rank(1, "x", "")
	a.Wish = []string{"shm"}
	_, _, err = choose(a, b, reach)
	require.ErrorContains(t, err, "rank 0 on x: no room")
	require.ErrorContains(t, err, "RINGO_TRANSPORT")
}

func TestAgree(t *testing.T) {
	two := func(change func(p *profile)) []profile {
		all := []profile{{Version: Version, Wish: preference}, {Version: Version, Wish: preference, Info: transport.Info{Rank: 1}}}
		change(&all[1])
		return all
	}
	require.NoError(t, agree(two(func(*profile) {})))
	require.ErrorContains(t, agree(two(func(p *profile) { p.Version = "9" })), "install one version")
	require.ErrorContains(t, agree(two(func(p *profile) { p.Limits.Slots = 3 })), "RINGO_SLOTS")
	require.ErrorContains(t, agree(two(func(p *profile) { p.Wish = []string{"shm"} })), "RINGO_TRANSPORT")
	require.ErrorContains(t, agree(two(func(p *profile) { p.Rank = 5 })), "says that it is rank 5")
	_, err := decodeProfiles([][]byte{[]byte("{")})
	require.ErrorContains(t, err, "profile of rank 0")
	p := profile{Info: transport.Info{Rank: 1, Host: "h"}, Candidates: []candidate{{Name: "shm", Addr: []byte{1, 2}}}}
	back, err := decodeProfiles([][]byte{p.encode()})
	require.NoError(t, err)
	require.Equal(t, p, back[0])
}
