package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/transport"
)

func TestHCAs(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"", "mlx5_0:1 mlx5_0:2 mlx5_10:1 rxe0:1"},
		{"mlx5_0", "mlx5_0:1 mlx5_0:2"},
		{"mlx5", "mlx5_0:1 mlx5_0:2 mlx5_10:1"},
		{"mlx5_1", "mlx5_10:1"},
		{"=mlx5_1", ""},
		{"=mlx5_0:2, rxe0", "mlx5_0:2 rxe0:1"},
		{"mlx5_0:2,mlx5_1:2", "mlx5_0:2"},
		{"^mlx5", "rxe0:1"},
		{"^=mlx5_1,rxe0", "mlx5_0:1 mlx5_0:2 mlx5_10:1"},
		{"^mlx5_0:1", "mlx5_0:2 mlx5_10:1 rxe0:1"},
	} {
		h, err := parseHCAs(test.list)
		require.NoError(t, err)
		var got []string
		for _, p := range []struct {
			name, text string
			n          int
		}{{"mlx5_0", "mlx5_0:1", 1}, {"mlx5_0", "mlx5_0:2", 2}, {"mlx5_10", "mlx5_10:1", 1}, {"rxe0", "rxe0:1", 1}} {
			if h.device(p.name) && h.port(p.name, p.n) {
				got = append(got, p.text)
			}
		}
		require.Equal(t, test.want, strings.Join(got, " "), test.list)
	}
	for _, bad := range []string{"mlx5_0:x", "mlx5_0:0"} {
		_, err := parseHCAs(bad)
		require.ErrorContains(t, err, "want NAME or NAME:PORT")
	}
}

// The GID is the best of the table, or the one that is asked for.
func TestGID(t *testing.T) {
	local, global := ibverbs.GID{0: 0xfe, 1: 0x80, 15: 9}, ibverbs.GID{0: 0x20, 1: 0x01, 15: 9}
	table := []rdma.GID{
		{GID: local, Kind: ibverbs.GIDRoCE1}, {GID: local, Kind: ibverbs.GIDRoCE2}, {GID: global, Kind: ibverbs.GIDRoCE2},
		{GID: rdma.IPv4GID(3), Kind: ibverbs.GIDRoCE1}, {GID: ibverbs.GID{}, Kind: ibverbs.GIDRoCE2},
		{GID: rdma.IPv4GID(3), Kind: ibverbs.GIDRoCE2},
	}
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 5: 2, 6: 5} {
		f := rdma.NewFabric(t, "fx0")
		f.GIDs = table[:n]
		ports, devices, err := find(&Options{Verbs: f})
		require.NoError(t, err)
		require.Equal(t, want, ports[0].gidIndex, "of %d entries", n)
		release(devices)
	}
	f := rdma.NewFabric(t, "fx0")
	f.GIDs = table
	three, four := 3, 4
	ports, devices, err := find(&Options{Verbs: f, GIDIndex: &three})
	require.NoError(t, err)
	require.Equal(t, "RoCE v1 over IPv4", ports[0].kind())
	release(devices)
	for _, index := range []*int{&four, new(6), new(-1)} {
		_, _, err = find(&Options{Verbs: f, GIDIndex: index})
		require.ErrorContains(t, err, "fx0:1: its GID table of 6 has no entry")
	}
	f.GIDs = table[4:5]
	_, _, err = find(&Options{Verbs: f})
	require.ErrorContains(t, err, "no usable port: fx0:1: no GID: give its network interface an address")
}

// probe returns the ports, or why there are none.
func TestProbe(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	found, err := probe(Options{Verbs: f})
	require.NoError(t, err)
	require.Equal(t, "RoCE v2 over IPv4", found.Kind)
	require.Equal(t, []transport.NetworkDevice{{Name: "fx0:1"}, {Name: "fx1:1"}}, found.Devices)

	f.Cut["fx0:1"] = true
	_, err = probe(Options{Verbs: f, HCAs: "fx0"})
	require.EqualError(t, err, "no usable port: fx0:1: port is not active; fx1: not among NCCL_IB_HCA=fx0")
	_, err = probe(Options{Verbs: rdma.NewFabric(t)})
	require.ErrorContains(t, err, "no RDMA device on this host")
	_, err = probe(Options{Verbs: f, Timeout: 99})
	require.ErrorContains(t, err, "timeout (NCCL_IB_TIMEOUT) is 99: want 1 to 31")
	_, err = Network.Probe(transport.NetworkOptions{IB: transport.IBOptions{Disabled: "NCCL_IB_DISABLE is set"}})
	require.EqualError(t, err, "NCCL_IB_DISABLE is set")

	_, err = probe(Options{Verbs: f, HCAs: "fx1", PKeyIndex: 4})
	require.EqualError(t, err,
		"no usable port: fx0: not among NCCL_IB_HCA=fx1; fx1:1: its table of partition keys of 4 has no entry 4 "+
			"(NCCL_IB_PKEY)")
}

// The speed of a link comes from either field; it is 0 if both are empty or the value is not known.
func TestSpeed(t *testing.T) {
	for want, attr := range map[int]ibverbs.PortAttr{
		100_000: {ActiveWidth: 2, ActiveSpeed: 32},
		400_000: {ActiveWidth: 2, ActiveSpeed: 128},
		800_000: {ActiveWidth: 2, ActiveSpeed: 128, ActiveSpeedEx: 256},
		0:       {ActiveWidth: 2},
	} {
		p := port{attr: attr}
		require.Equal(t, want, p.mbps())
	}
	p := port{attr: ibverbs.PortAttr{ActiveWidth: 2, ActiveSpeed: 128, ActiveSpeedEx: 1 << 20}}
	require.Zero(t, p.mbps())
}

// A table that cannot be read is not taken for an empty one.
func TestUnreadGID(t *testing.T) {
	const want = "fx0:1: its GIDs cannot be read: no such file or directory (a container needs the host's " +
		"/sys/class/infiniband)"
	f := rdma.NewFabric(t, "fx0")
	second := 1
	for i := range f.GIDs {
		f.GIDs[i].Unread = true
	}
	for _, index := range []*int{nil, &second} {
		_, err := probe(Options{Verbs: f, GIDIndex: index})
		require.EqualError(t, err, "no usable port: "+want)
	}
	f.GIDs[0].Unread = false // one readable entry is enough
	found, err := probe(Options{Verbs: f})
	require.NoError(t, err)
	require.Equal(t, "RoCE v2 over IPv6", found.Kind)
}

// InfiniBand goes by LID where both ports are on one subnet.
func TestInfiniBand(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	f.Ethernet = false
	f.GIDs = []rdma.GID{{GID: ibverbs.GID{0: 0xfe, 1: 0x80, 15: 1}, Unread: true}}
	found, err := probe(Options{Verbs: f})
	require.NoError(t, err)
	require.Equal(t, "InfiniBand", found.Kind)
	s, r := pairOn(t, f, Options{})
	sent, received := flow(s, r, 10, nil)
	require.NoError(t, errors.Join(sent, received))
}

// Queue pairs are made with the values of the Options and the smaller MTU of their two ports. The
// fabric refuses others.
func TestAttributes(t *testing.T) {
	for name, o := range map[string]Options{
		"defaults": {},
		"all set":  {Timeout: 3, Retries: 5, TrafficClass: 106, ServiceLevel: 2, PKeyIndex: 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := rdma.NewFabric(t, "fx0", "fx1")
			f.MTUs["fx0:1"] = 5
			expect(f, o)
			names := []string{"fx0", "fx1"}
			m := conntest.Ranks(t, 2, few, func(cfg transport.Config) transport.Transport {
				own := o
				own.Verbs, own.HCAs = f, names[cfg.Self.Rank]
				return New(cfg, own)
			})
			for _, ends := range [][2]*conntest.Rank[transport.Transport]{{m[0], m[1]}, {m[1], m[0]}} {
				s, r := conntest.Connect(t, ends[0], ends[1])
				sent, received := flow(s, r, 20, nil)
				require.NoError(t, errors.Join(sent, received))
			}
		})
	}
}

// Areas that were given back keep their registrations for the next connection.
func TestRegistrations(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1")
	open := func(cfg transport.Config) transport.Transport { return New(cfg, Options{Verbs: f}) }
	holder := conntest.Ranks(t, 1, few, open)[0] // keeps the devices open
	before := 0
	for i := range 3 {
		m := conntest.Ranks(t, 2, few, open)
		s, r := conntest.Connect(t, m[0], m[1])
		sent, received := flow(s, r, 20, nil)
		require.NoError(t, errors.Join(sent, received))
		require.NoError(t, m[0].Transport.Close())
		require.NoError(t, m[1].Transport.Close())
		if i == 0 {
			before = f.Registrations()
		}
	}
	require.Equal(t, before, f.Registrations())
	require.NoError(t, holder.Transport.Close())

	f.Refuse = &ibverbs.Error{Call: "ibv_reg_mr", Errno: syscall.ENOMEM}
	refused := open(transport.Config{Limits: few})
	_, err := refused.Listen()
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.ErrorContains(t, err, "ib: listen: fx0: register 3456 bytes")
	require.ErrorContains(t, err, "ulimit -l unlimited")
	require.NoError(t, refused.Close())
}

// Ports that are not on one network are refused with both their kinds.
func TestOtherNetwork(t *testing.T) {
	f, g := rdma.NewFabric(t, "fx0"), rdma.NewFabric(t, "fx0")
	g.GIDs = g.GIDs[:1] // no IPv4
	kinds := []*rdma.Fabric{f, g}
	m := conntest.Ranks(t, 2, few,
		func(cfg transport.Config) transport.Transport { return New(cfg, Options{Verbs: kinds[cfg.Self.Rank]}) })
	_, err := m[0].Dial(m[1])
	require.ErrorContains(t, err,
		"refused: rank 1: fx0:1 has RoCE v2 over IPv6, the peer's fx0:1 has RoCE v2 over IPv4 (NCCL_IB_HCA and "+
			"NCCL_IB_GID_INDEX choose)")
}

// Ranks whose usable ports differ are connected by those of the same name, for these are on one
// network, and where no name is the same by those of the same number.
func TestOtherPorts(t *testing.T) {
	for _, test := range []struct {
		ports [2]string
		want  []string
	}{
		{[2]string{"=fx0,fx1", "=fx1,fx2"}, []string{"fx1:1 to fx1:1"}},
		{[2]string{"=fx1,fx2", "=fx0,fx1"}, []string{"fx1:1 to fx1:1"}},
		{[2]string{"=fx0,fx1,fx2", "=fx2"}, []string{"fx2:1 to fx2:1"}},
		{[2]string{"=fx0", "=fx1,fx2"}, []string{"fx0:1 to fx1:1"}},
		{[2]string{"=fx0,fx1", "=fx2"}, []string{"fx0:1 to fx2:1"}},
		{[2]string{"", ""}, []string{"fx0:1 to fx0:1", "fx1:1 to fx1:1", "fx2:1 to fx2:1"}},
		{[2]string{"", "fx1,fx2"}, []string{"fx1:1 to fx1:1", "fx2:1 to fx2:1"}}, // one has fewer
	} {
		t.Run(strings.Join(test.ports[:], " "), func(t *testing.T) {
			f := rdma.NewFabric(t, "fx0", "fx1", "fx2")
			m := conntest.Ranks(t, 2, few, func(cfg transport.Config) transport.Transport {
				return New(cfg, Options{Verbs: f, HCAs: test.ports[cfg.Self.Rank], Rails: 3})
			})
			s, r := conntest.Connect(t, m[0], m[1])
			var got []string
			for i, x := range s.(*sendConn).rails {
				got = append(got, x.port.String()+" to "+x.peer.Port)
				require.Equal(t, r.(*recvConn).rails[i].port.String(), x.peer.Port)
			}
			require.Equal(t, test.want, got)
			sent, received := flow(s, r, 50, nil)
			require.NoError(t, errors.Join(sent, received))
		})
	}
}

// Ranks of a host share its ports, and ranks of the same place use the same ports.
func TestShares(t *testing.T) {
	for _, test := range []struct {
		ports, sharers, place, rails int
		want                         []int
		turns                        int
	}{
		{1, 1, 0, 0, []int{0}, 1},
		{1, 8, 5, 0, []int{0}, 1},
		{2, 1, 0, 0, []int{0, 1}, 2},
		{8, 1, 0, 0, []int{0, 1, 2, 3, 4}, 4},
		{8, 8, 7, 0, []int{7, 0}, 1},
		{8, 4, 3, 0, []int{6, 7, 0}, 2},
		{8, 4, 1, 1, []int{1, 2}, 1},
		{2, 8, 5, 0, []int{1, 0}, 1},
	} {
		tr := New(transport.Config{Limits: few}, Options{Sharers: test.sharers, LocalRank: test.place, Rails: test.rails})
		require.NoError(t, tr.bad)
		mine, turns := tr.opt.rails(make([]*port, test.ports), func(int) bool { return true })
		require.Equal(t, test.want, mine, "%+v", test)
		require.Equal(t, test.turns, turns, "%+v", test)
	}
}

// The nearest ports come first; a rank's place orders ports that are equally near. Found.Used names the
// ports that the rank uses.
func TestNearPorts(t *testing.T) {
	f := rdma.NewFabric(t, "fx0", "fx1", "fx2", "fx3")
	away := map[string]int{"fx0": 3, "fx1": 3, "fx2": 1, "fx3": 1}
	near := func(device string) int { return away[device] }
	for _, test := range []struct {
		sharers, place int
		want           string
	}{
		{4, 0, "fx2:1 fx3:1"}, {4, 1, "fx3:1 fx2:1"}, {4, 2, "fx2:1 fx3:1"}, {2, 0, "fx2:1 fx3:1 fx0:1"},
		{2, 1, "fx2:1 fx3:1 fx0:1"},
		{1, 0, "fx2:1 fx3:1 fx0:1 fx1:1"},
	} {
		o := Options{Verbs: f, Sharers: test.sharers, LocalRank: test.place, Near: near}
		s, _ := pairOn(t, f, o)
		var got []string
		for _, r := range s.rails {
			got = append(got, r.port.String())
		}
		require.Equal(t, test.want, strings.Join(got, " "))
		found, err := probe(o)
		require.NoError(t, err)
		require.Equal(t, got[:s.active], found.Used)
	}
}

// A connection is made without a port that is down or reaches no peer at that time.
func TestBadPort(t *testing.T) {
	tr := New(transport.Config{Limits: few}, Options{Sharers: 4, LocalRank: 1})
	mine, turns := tr.opt.rails(make([]*port, 8), func(i int) bool { return i != 3 })
	require.Equal(t, []int{2, 4, 5}, mine)
	require.Equal(t, 2, turns)
	for name, spoil := range map[string]func(f *rdma.Fabric){
		"down":          func(f *rdma.Fabric) { f.Cut["fx0:1"] = true },
		"leads nowhere": func(f *rdma.Fabric) { f.Lost["fx0:1"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := rdma.NewFabric(t, "fx0", "fx1")
			m := conntest.Ranks(t, 2, few, func(cfg transport.Config) transport.Transport { return New(cfg, Options{Verbs: f}) })
			f.Set(func() { spoil(f) })
			s, r := conntest.Connect(t, m[0], m[1])
			sent, received := flow(s, r, 100, nil)
			require.NoError(t, errors.Join(sent, received))
			require.Equal(t, 1, up(s.(*sendConn).rails))
			f.Set(func() { f.Cut["fx0:1"], f.Lost["fx1:1"], f.Cut["fx1:1"] = true, true, name == "down" })
			_, err := m[0].Dial(m[1])
			require.Error(t, err)
			t.Log(err)
		})
	}
}

func TestLimits(t *testing.T) {
	for _, l := range []transport.Limits{{SlotBytes: 1, Slots: 1}, {SlotBytes: 0, Slots: 2},
		{SlotBytes: 1, Slots: maxSlots + 1}} {
		tr := New(transport.Config{Limits: l}, Options{Verbs: rdma.NewFabric(t, "fx0")})
		_, err := tr.Listen()
		require.ErrorContains(t, err, "limits")
		require.NoError(t, tr.Close())
	}
}

func FuzzHello(f *testing.F) {
	b := new(bytes.Buffer)
	require.NoError(f, writeHello(b, &hello{Addr: 1, Rails: []railHello{{Port: "fx0:1", MTU: 3, QPN: 1}}}))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHello(bytes.NewReader(b))
		if err != nil {
			return
		}
		again := new(bytes.Buffer)
		if writeHello(again, h) != nil {
			return // the hello became too long
		}
		back, err := readHello(again)
		require.NoError(t, err)
		want, _ := json.Marshal(h)
		got, _ := json.Marshal(back)
		require.Equal(t, string(want), string(got))
	})
}

func FuzzPlace(f *testing.F) {
	f.Add(uint64(1)<<40, "\x00\x00\x00\x01\x00\x00\x00\x02", 2)
	f.Fuzz(func(t *testing.T, addr uint64, text string, rails int) {
		p, err := parseTarget(message{kind: placed, count: addr, text: text}, rails)
		if err != nil {
			return
		}
		all := make([]*rail, rails)
		for i := range all {
			all[i] = &rail{placed: &ibverbs.MR{RKey: p.keys[i]}}
		}
		require.Equal(t, message{kind: placed, count: addr, text: text}, p.message(all))
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x03\x00\x00\x00\x7f\x00\x00\x00\x00\x00\x04\x00\x00\x00\x09"))
	f.Add([]byte("\x02\x01\x00\x00\x00\x00\x00\x00\x00\x07\x03why"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pass := func(send func(c net.Conn)) (message, error) {
			a, b := net.Pipe()
			go func() {
				send(a)
				a.Close()
			}()
			defer b.Close()
			return (&control{conn: b}).hear()
		}
		m, err := pass(func(c net.Conn) { _, _ = c.Write(b) })
		if err != nil {
			return
		}
		back, err := pass(func(c net.Conn) { (&control{conn: c}).say(m) })
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}

func FuzzHeader(f *testing.F) {
	good := make([]byte, headerLen)
	header{length: 8, slot: 3, stamp: transport.Stamp{1, 2}}.put(good)
	f.Add(good, uint64(3), 40)
	long := make([]byte, headerLen)
	header{length: few.SlotBytes + 1, slot: 3}.put(long)
	f.Add(long, uint64(3), headerLen+few.SlotBytes+1)
	f.Add(good, uint64(3), 8)
	tr := New(transport.Config{Limits: few}, Options{})
	f.Fuzz(func(t *testing.T, b []byte, slot uint64, wrote int) {
		if len(b) < headerLen {
			return
		}
		for _, form := range []shape{tr.form(false), tr.form(true)} {
			h, err := form.header(b, slot, wrote)
			if err != nil {
				continue
			}
			require.LessOrEqual(t, h.length, few.SlotBytes)
			require.Equal(t, wrote, form.wrote(h.length))
			again := make([]byte, headerLen)
			h.put(again)
			require.Equal(t, b[:headerLen], again)
		}
	})
}

// Close ends a Dial that is under way.
func TestCloseEndsDial(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	m := conntest.Ranks(t, 1, few, func(cfg transport.Config) *Transport { return New(cfg, Options{Verbs: f}) })[0]
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, err := m.Transport.Dial(transport.Info{Rank: 5}, []byte("192.0.2.1:9#nobody"))
		if !errors.Is(err, fifo.ErrClosed) {
			t.Error(err)
		}
	}()
	require.NoError(t, m.Transport.Close())
	<-ctx.Done()
}

// A dialler whose hello is a refusal, which only listeners send, is dropped.
func TestRefusalOfDialler(t *testing.T) {
	f := rdma.NewFabric(t, "fx0")
	m := conntest.Ranks(t, 1, few, func(cfg transport.Config) *Transport { return New(cfg, Options{Verbs: f}) })[0]
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() {
		_ = writeHello(a, &hello{Refused: "no"})
		_, _ = io.Copy(io.Discard, a)
	}()
	err := m.Transport.adopt(5, b)
	require.ErrorContains(t, err, "no")
}
