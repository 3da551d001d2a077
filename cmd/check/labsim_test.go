package check

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// labTakes bounds a check.
const labTakes = 31 * time.Second

// labJoin is how long ranks may take to come.
const labJoin = 20 * time.Second

var labSeeds = flag.Uint64("lab.seeds", 0, "seeds of each case of TestLab, if not those of the tier")

// TestLab: in simulated networks the planted faults are named, and no innocent is accused.
func TestLab(t *testing.T) {
	for _, list := range [][]labCase{labFaults, labHealthy} {
		for _, c := range list {
			if !c.quick && (!tier.Full() || tier.Race) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				seeds := 1
				if c.faulty() {
					seeds = tier.Count(1, labRuns)
				}
				for seed := range cmp.Or(*labSeeds, uint64(seeds)) {
					r, took := c.simulate(t, seed+1)
					missing, wrong := c.judge(r)
					if len(missing)+len(wrong) > 0 || took > labTakes {
						t.Errorf("seed %d, %v: lacks %q, accuses %q of %v", seed+1, took, missing, wrong, r.Findings)
					}
				}
			})
		}
	}
}

// net is the network of a case.
func (c *labCase) net(seed uint64) *fakeNet {
	uplinks := map[bool]*fakeUplink{false: {}, true: {}} // of both directions
	begin := time.Now()
	var known [2][16][16]fakeLink // before and after the moment at which rules change
	n := newFakeNet(func(a, b byte) fakeLink {
		now := 0
		if time.Since(begin) >= labCut {
			now = 1
		}
		if known[now][a][b].rate > 0 {
			return known[now][a][b]
		}
		var r labRule
		for _, o := range c.rules {
			if o.covers(int(a), int(b)) && (!o.cut || now > 0) {
				r = r.and(o)
			}
		}
		l := healthy(a, b)
		if r.uplink > 0 {
			l.uplink = uplinks[a < b]
			l.uplink.rate = r.uplink * l.rate
		}
		l.rate *= cmp.Or(r.rate, 1)
		l.delay, l.jitter, l.busy = l.delay+r.delay, r.jitter, r.busy
		l.loss, l.twice, l.longest, l.gone, l.flip = r.loss, r.twice, r.longest, r.gone, r.flip
		known[now][a][b] = l
		return l
	})
	n.seed = seed
	n.stopped = func(host byte) bool { return int(host) == c.stopped && time.Since(begin) >= labCut }
	return n
}

// A labMeeting stands in for the group that has met.
type labMeeting struct{ bootstrap.Group }

func (labMeeting) Key() []byte  { return make([]byte, 32) }
func (labMeeting) Close() error { return nil }

// simulate carries out a check in the simulated network of a case, and gives the first rank's report and how long the
// check took.
func (c *labCase) simulate(t *testing.T, seed uint64) (r *report, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin, fake := time.Now(), c.net(seed)
		hosts := make([]*fakeHost, c.size())
		listeners := make([]net.Listener, c.size())
		cards := make([][]byte, c.size())
		var arp string // what all have seen: of two that have an address, both answer
		for i := range hosts {
			h := newFakeHost(i)
			h.files["sys/class/net/eth0/speed"], h.files["sys/class/net/eth0/mtu"] = fmt.Sprint(128*cmp.Or(c.speed, 1)),
				"1500\n"
			h.addresses[0].MTU = 1500
			if twin := (net.IPNet{IP: net.IPv4(10, 0, 0, 2), Mask: net.CIDRMask(24, 32)}); i+1 == c.twin && c.moved {
				h.addresses[0].Net = twin
			} else if i+1 == c.twin {
				h.addresses = append(h.addresses, address{"eth0", twin, 1500, h.addresses[0].MAC})
			}
			for _, a := range h.addresses {
				fake.owns(byte(i+1), a.Net.IP)
				arp += fmt.Sprintf("%s 0x1 0x2 %s * eth0\n", a.Net.IP, a.MAC)
			}
			hosts[i], listeners[i] = h, fake.listen(byte(i+1), h.addresses[0].Net.IP)
			name := string(rune('a' + i))
			cards[i], _ = json.Marshal(profile{Host: name, ID: "host " + name, Boot: "boot " + name, Version: "1",
				Where: []string{listeners[i].Addr().String(), "127.0.0.1:9"}, Addresses: h.addresses,
				MACs: []string{h.addresses[0].MAC}})
		}
		roster := &bootstrap.Roster{Away: map[int]string{}}
		start := 300 * time.Millisecond
		for i := range hosts {
			comes := i == 0
			if path := fake.path(byte(i+1), "", listeners[0].Addr().String()); !comes && i+1 != c.absent {
				comes = path.back == byte(i+1) && !fake.link(byte(i+1), 1).gone && !fake.link(1, byte(i+1)).gone
			}
			if comes {
				roster.Came, roster.Cards = append(roster.Came, i), append(roster.Cards, cards[i])
			} else {
				roster.Away[i], start = "", labJoin
			}
			if i+1 == c.late {
				start = 5 * time.Second
			}
		}
		groups := newLabGroups(fake, hosts)
		time.Sleep(start)
		var ranks sync.WaitGroup
		for _, i := range roster.Came {
			ranks.Go(func() {
				m := &meeting{began: begin, joinOptions: joinOptions{Timeout: labJoin,
					Spec: &bootstrap.Spec{Rank: i, Size: c.size(), Addr: "10.0.0.1:4711"}}}
				j, where, err := m.job(labMeeting{}, roster)
				if err != nil {
					t.Error(err)
					return
				}
				hosts[i].files["proc/net/arp"] = arp
				j.SetMachine(hosts[i].machine())
				j.neighbours = &neighbours{seen: map[string]map[string]bool{}}
				j.neighbours.look(j.machine)
				fake.join(j, byte(i+1))
				j.collects = func(ctx context.Context, group []int, step int) error {
					return groups.collect(ctx, i, group, step)
				}
				patience := min(connectTime, max(leastConnect, connectTime+leastConnect-time.Since(begin)))
				if err = j.connect(ctx, listeners[i], where, patience); err != nil {
					return
				}
				report, _ := run(ctx, j, config{NoGPUs: true})
				if i == 0 {
					r, took = report, time.Since(begin)
					j.Close()
					time.Sleep(time.Second) // for ranks that still hear
					cancel()
					fake.close()
				}
				j.Close()
			})
		}
		ranks.Wait()
		cancel()
		time.Sleep(time.Hour) // until goroutines left behind have ended
	})
	if r == nil {
		r = &report{Findings: []finding{{Severity: unjudged, Text: "no report"}}}
	}
	return r, took
}
