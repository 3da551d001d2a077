// How ranks agree on the transport of each pair, with fakes of transports and, in TestConnect, with real ones.

package paths

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

var discard = slog.New(slog.DiscardHandler)

// A fake is a transport that can be chosen and makes no connections.
type fake struct {
	transport.Transport
	name    string
	refused string // why this rank cannot listen
	reach   func(a, b transport.Info) error
	listens int
}

func (f *fake) Name() string { return f.name }
func (f *fake) Close() error { return nil }

func (f *fake) Reach(a, b transport.Info) error {
	if f.reach == nil {
		return nil
	}
	return f.reach(a, b)
}

func (f *fake) Listen() ([]byte, error) {
	f.listens++
	if f.refused != "" {
		return nil, errors.New(f.refused)
	}
	return []byte(f.name), nil
}

// oneHost lets ranks of the same host through.
func oneHost(a, b transport.Info) error {
	if a.Host != b.Host {
		return errors.New("different hosts")
	}
	return nil
}

// The path of a pair: the best that both have, with the reasons against better
// ones, the same from both ends; else an error that names what to change.
func TestChoose(t *testing.T) {
	between := func(hosts [2]string, wish []string, refused ...string) *Agreement {
		a := &Agreement{transports: &Transports{made: map[string]transport.Transport{
			"shm": &fake{name: "shm", reach: oneHost}, "ib": &fake{name: "ib"}, "socket": &fake{name: "socket"},
		}}}
		for r, h := range hosts {
			a.profiles = append(a.profiles, Profile{Info: transport.Info{Rank: r, Host: h}, Hostname: h, Wish: wish})
			a.offers = append(a.offers, map[string]offer{"shm": {Refused: refused[r]}, "ib": {Refused: "no card"}, "socket": {}})
		}
		return a
	}
	all := []string{"shm", "ib", "socket"}
	for name, test := range map[string]struct {
		hosts   [2]string
		refused [2]string
		want    string
		against []string
	}{
		"best": {[2]string{"x", "x"}, [2]string{"", ""}, "shm", nil},
		"apart": {[2]string{"x", "y"}, [2]string{"", ""}, "socket",
			[]string{"not shm (different hosts)", "not ib (rank 0 on x: no card)"}},
		"refused": {[2]string{"x", "x"}, [2]string{"", "no room"}, "socket",
			[]string{"not shm (rank 1 on x: no room)", "not ib (rank 0 on x: no card)"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := between(test.hosts, all, test.refused[:]...)
			for _, ends := range [][2]int{{0, 1}, {1, 0}} {
				name, against, err := a.Choose(ends[0], ends[1])
				require.NoError(t, err)
				require.Equal(t, test.want, name)
				require.Equal(t, test.against, against)
			}
		})
	}
	_, _, err := between([2]string{"x", "x"}, []string{"shm"}, "no room", "").Choose(0, 1)
	require.ErrorContains(t, err, "no transport connects rank 0 on x and rank 1 on x: not shm (rank 0 on x: no room)")
	require.ErrorContains(t, err, "RINGO_TRANSPORT")
}

// A cast is what each rank of a test has: where it is, and fakes of transports.
type cast struct {
	groups   []bootstrap.Group
	profiles []Profile
	fakes    []map[string]*fake
}

// newCast puts a rank on each host; ranks named "x" and "x'" are processes of host x.
func newCast(wish []string, hosts ...string) *cast {
	c := &cast{groups: bootstrap.Local(len(hosts))}
	for r, h := range hosts {
		info := transport.Info{Rank: r, Host: strings.TrimRight(h, "'"), Process: h}
		c.profiles = append(c.profiles, Profile{Info: info, Hostname: info.Host, Wish: wish})
		c.fakes = append(c.fakes, map[string]*fake{
			"inproc": {name: "inproc", reach: func(a, b transport.Info) error {
				if a.Process != b.Process {
					return errors.New("different processes")
				}
				return nil
			}},
			"shm": {name: "shm", reach: oneHost}, "socket": {name: "socket"},
		})
	}
	return c
}

func all(int, int) bool { return true }

var hostAndSocket = []string{"inproc", "shm", "socket"}

// agree has all ranks agree: what they came to, and their notes or errors.
func (c *cast) agree(t *testing.T, wanted func(a, b int) bool, refused ...string) (list []*Agreement, notes [][]string,
	errs []error) {
	n := len(c.groups)
	list, notes, errs = make([]*Agreement, n), make([][]string, n), make([]error, n)
	var ranks sync.WaitGroup
	for r := range n {
		ranks.Go(func() {
			made := map[string]transport.Transport{}
			for name, f := range c.fakes[r] {
				made[name] = f
			}
			why := ""
			if r < len(refused) {
				why = refused[r]
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			list[r], errs[r] = Agree(ctx, c.groups[r], c.profiles, &Transports{made: made, net: &Net{}}, wanted, why)
			if errs[r] == nil {
				_, notes[r], errs[r] = list[r].Links()
			}
		})
	}
	ranks.Wait()
	t.Cleanup(func() {
		for _, g := range c.groups {
			g.Close()
		}
	})
	return list, notes, errs
}

// pairs is what each pair of ranks has come to; both ends say the same.
func pairs(t *testing.T, list []*Agreement) map[string]string {
	found := map[string]string{}
	for a := range list {
		for b := range a {
			name, against, err := list[a].Choose(a, b)
			require.NoError(t, err)
			for _, other := range list { // every rank knows the choice of every pair
				again, reasons, err := other.Choose(b, a)
				require.NoError(t, err)
				require.Equal(t, name, again)
				require.Equal(t, against, reasons)
			}
			found[fmt.Sprint(b, a)] = strings.Join(append([]string{name}, against...), "; ")
		}
	}
	return found
}

// listens is how often each rank has listened on each transport.
func (c *cast) listens() []string {
	var list []string
	for _, fakes := range c.fakes {
		var words []string
		for _, name := range hostAndSocket {
			if n := fakes[name].listens; n > 0 {
				words = append(words, fmt.Sprintf("%s %d", name, n))
			}
		}
		list = append(list, strings.Join(words, ", "))
	}
	return list
}

// TestAgreement: each pair gets the best that both ends have, and nobody listens on what no
// pair of its own wants.
func TestAgreement(t *testing.T) {
	notInproc := "; not inproc (different processes)"
	notShm := notInproc + "; not shm (different hosts)"
	for _, test := range []struct {
		name    string
		hosts   []string
		prepare func(c *cast)
		wanted  func(a, b int) bool
		refused []string
		pairs   map[string]string
		listens []string
	}{
		{name: "one process", hosts: []string{"x", "x", "x"},
			pairs:   map[string]string{"0 1": "inproc", "0 2": "inproc", "1 2": "inproc"},
			listens: []string{"inproc 1", "inproc 1", "inproc 1"}},
		{name: "one host", hosts: []string{"x", "x'"},
			pairs:   map[string]string{"0 1": "shm" + notInproc},
			listens: []string{"inproc 1, shm 1", "inproc 1, shm 1"}},
		{name: "two hosts", hosts: []string{"x", "y"},
			pairs:   map[string]string{"0 1": "socket" + notShm},
			listens: []string{"inproc 1, socket 1", "inproc 1, socket 1"}},
		{name: "cyclic placement", hosts: []string{"x", "y", "x'", "y'"},
			pairs: map[string]string{"0 1": "socket" + notShm, "0 2": "shm" + notInproc, "0 3": "socket" + notShm,
				"1 2": "socket" + notShm, "1 3": "shm" + notInproc, "2 3": "socket" + notShm},
			listens: []string{"inproc 1, shm 1, socket 1", "inproc 1, shm 1, socket 1", "inproc 1, shm 1, socket 1",
				"inproc 1, shm 1, socket 1"}},
		{name: "one rank refuses", hosts: []string{"x", "x'", "x''"},
			prepare: func(c *cast) { c.fakes[1]["shm"].refused = "shm: no room in /dev/shm" },
			pairs: map[string]string{"0 1": "socket" + notInproc + "; not shm (rank 1 on x: shm: no room in /dev/shm)",
				"0 2": "shm" + notInproc, "1 2": "socket" + notInproc + "; not shm (rank 1 on x: shm: no room in /dev/shm)"},
			listens: []string{"inproc 1, shm 1, socket 1", "inproc 1, shm 1, socket 1", "inproc 1, shm 1, socket 1"}},
		{name: "two refuse", hosts: []string{"x", "x'"},
			prepare: func(c *cast) { c.fakes[0]["shm"].refused, c.fakes[1]["shm"].refused = "no room", "no memfd" },
			pairs:   map[string]string{"0 1": "socket" + notInproc + "; not shm (rank 0 on x: no room)"},
			listens: []string{"inproc 1, shm 1, socket 1", "inproc 1, shm 1, socket 1"}},
		{name: "not all pairs are wanted", hosts: []string{"x", "y", "x'"},
			wanted:  func(a, b int) bool { return a == 0 && b == 2 },
			listens: []string{"inproc 1, shm 1", "inproc 1", "inproc 1, shm 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCast(hostAndSocket, test.hosts...)
			if test.prepare != nil {
				test.prepare(c)
			}
			wanted := test.wanted
			if wanted == nil {
				wanted = all
			}
			list, notes, errs := c.agree(t, wanted, test.refused...)
			for _, err := range errs {
				require.NoError(t, err)
			}
			require.Equal(t, test.listens, c.listens())
			if test.pairs == nil {
				return
			}
			require.Equal(t, test.pairs, pairs(t, list))
			for r := range notes {
				for p := range notes {
					if p != r {
						require.Contains(t, notes[r], test.pairs[fmt.Sprint(min(r, p), max(r, p))])
					}
				}
			}
		})
	}
}

// TestNoAgreement: where nothing is left for a pair, all say which, why, and what to change.
func TestNoAgreement(t *testing.T) {
	for _, test := range []struct {
		name    string
		wish    []string
		hosts   []string
		prepare func(c *cast)
		refused []string
		want    string
	}{
		{"alone", []string{"shm"}, []string{"x", "y"}, nil, nil,
			"no transport connects rank 0 on x and rank 1 on y: not shm (different hosts); RINGO_TRANSPORT and RINGO_NET say " +
				"what may be used (now shm)"},
		{"refused", []string{"shm"}, []string{"x", "x'"}, func(c *cast) { c.fakes[1]["shm"].refused = "no room" }, nil,
			"no transport connects rank 0 on x and rank 1 on x: not shm (rank 1 on x: no room); RINGO_TRANSPORT and RINGO_NET " +
				"say what may be used (now shm)"},
		{"ib", []string{"ib"}, []string{"x", "y"}, nil, nil,
			"no transport connects rank 0 on x and rank 1 on y: not ib (unknown here; transports are inproc, shm, plugin, ib, " +
				"socket); RINGO_TRANSPORT and RINGO_NET say what may be used (now ib)"},
		{"unknown", []string{"pigeon"}, []string{"x", "y"}, nil, nil,
			"no transport connects rank 0 on x and rank 1 on y: not pigeon (unknown here; transports are inproc, shm, plugin, " +
				"ib, socket); RINGO_TRANSPORT and RINGO_NET say what may be used (now pigeon)"},
		{"a rank that offers nothing", []string{"shm", "socket"}, []string{"x", "x'"}, nil, []string{"", "its GPU is busy"},
			"no transport connects rank 0 on x and rank 1 on x: not shm (rank 1 on x: its GPU is busy); not socket (rank 1 on " +
				"x: its GPU is busy); RINGO_TRANSPORT and RINGO_NET say what may be used (now shm,socket)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCast(test.wish, test.hosts...)
			if test.prepare != nil {
				test.prepare(c)
			}
			_, _, errs := c.agree(t, all, test.refused...)
			for _, err := range errs {
				require.EqualError(t, err, test.want)
			}
		})
	}
	// What has no transport here does not keep a pair from the next one.
	c := newCast([]string{"ib", "socket"}, "x", "y")
	_, notes, errs := c.agree(t, all)
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, [][]string{{"socket; not ib (unknown here; transports are inproc, shm, plugin, ib, socket)"},
		{"socket; not ib (unknown here; transports are inproc, shm, plugin, ib, socket)"}}, notes)
}

// TestConnect: ranks of one process listen in it alone, and their links carry bytes both ways.
func TestConnect(t *testing.T) {
	for _, test := range []struct {
		transport string
		made      []string
	}{{"", []string{"inproc"}}, {"socket", []string{"inproc", "socket"}}} {
		t.Run(test.transport, func(t *testing.T) {
			groups := bootstrap.Local(2)
			nets, errs := make([]*Net, 2), make([]error, 2)
			var ranks sync.WaitGroup
			for r, g := range groups {
				ranks.Go(func() {
					me := Profile{Info: transport.Info{Rank: r, Host: "x"}, Hostname: "x"}
					nets[r], errs[r] = Connect(context.Background(), g, me, Config{Transport: test.transport, Slots: 2, Cores: 2},
						new(fifo.Guard), discard)
				})
			}
			ranks.Wait()
			for r, n := range nets {
				require.NoError(t, errs[r])
				defer n.Close()
				require.ElementsMatch(t, test.made, slices.Collect(maps.Keys(n.transports.made)))
				require.True(t, n.transports.networks[0].options.Local)
				require.Equal(t, []string{"x", "x"}, n.Hosts())
				require.Equal(t, test.made[len(test.made)-1], n.Links.Via(1-r))
				if runtime.GOOS == "linux" {
					require.NotContains(t, string(n.Links.paths[1-r].addr), "tcp=", "a port is open to other hosts")
				}
			}
			ranks.Go(func() {
				conn, err := nets[1].Links.Recv(0)
				if err == nil {
					var got mem.Region
					if got, _, err = conn.Next(); err == nil && string(got.Bytes()) != "hello" {
						err = fmt.Errorf("received %q", got.Bytes())
					}
				}
				errs[1] = err
			})
			conn, err := nets[0].Links.Send(1)
			require.NoError(t, err)
			slot, err := conn.Reserve(5)
			require.NoError(t, err)
			copy(slot.Bytes(), "hello")
			require.NoError(t, conn.Publish(transport.Stamp{1}))
			ranks.Wait()
			require.NoError(t, errs[1])
			again, err := nets[0].Links.Send(1)
			require.NoError(t, err)
			require.Same(t, conn, again)
		})
	}
}
