package check

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
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

// labGroups carries out collectives of simulated hosts: the ranks of a group meet at rank 0's host, and each two
// exchange labPart bytes.
type labGroups struct {
	fake      *fakeNet
	listeners []net.Listener // by rank

	mu   sync.Mutex
	came map[[3]int]chan net.Conn // by rank, caller and step
}

// labPart is how much two ranks exchange.
const labPart = 64 << 10

func newLabGroups(fake *fakeNet, hosts []*fakeHost) *labGroups {
	g := &labGroups{fake: fake, came: map[[3]int]chan net.Conn{}}
	for rank, h := range hosts {
		ln := fake.listen(byte(rank+1), h.addresses[0].Net.IP)
		g.listeners = append(g.listeners, ln)
		go g.serve(rank, ln)
	}
	return g
}

// callers is where a rank finds the connection of a caller in a step.
func (g *labGroups) callers(rank, from, step int) chan net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := [3]int{rank, from, step}
	if g.came[at] == nil {
		g.came[at] = make(chan net.Conn, 1)
	}
	return g.came[at]
}

func (g *labGroups) serve(rank int, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			head := make([]byte, 8)
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			from, step := int(binary.BigEndian.Uint32(head)), int(binary.BigEndian.Uint32(head[4:]))
			if step == 0 { // it only asks where the others are
				_, _ = c.Write(head)
				return
			}
			g.callers(rank, from, step) <- c
		}()
	}
}

// call connects two ranks in a step, numbered from 1; 0 is for the rendezvous.
func (g *labGroups) call(ctx context.Context, me, peer, step int) (net.Conn, error) {
	for {
		c, err := g.fake.dial(ctx, byte(me+1), "", g.listeners[peer].Addr().String(), 0)
		if err == nil {
			_, err = c.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(me)), uint32(step)))
		}
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// collect is a rank's part of a group's collective.
func (g *labGroups) collect(ctx context.Context, me int, group []int, step int) error {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, trialTime(time.Until(end)))
	defer cancel()
	meeting, err := g.call(ctx, me, 0, 0)
	if err == nil {
		defer bounded(ctx, meeting)()
		_, err = io.ReadFull(meeting, make([]byte, 8))
		meeting.Close()
	}
	if err != nil {
		return fmt.Errorf("rank %d did not reach the rendezvous: %w", me, err)
	}
	errs := make(chan error, len(group))
	for _, peer := range group {
		go func() { errs <- g.exchange(ctx, me, peer, step+1) }()
	}
	for range group {
		if failed := <-errs; failed != nil && err == nil {
			err = failed
			cancel()
		}
	}
	return err
}

func (g *labGroups) exchange(ctx context.Context, me, peer, step int) (err error) {
	if peer == me {
		return nil
	}
	var c net.Conn
	if me < peer {
		c, err = g.call(ctx, me, peer, step)
	} else {
		select {
		case c = <-g.callers(me, peer, step):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		defer c.Close()
		defer bounded(ctx, c)()
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, labPart))
			sent <- err
		}()
		if _, err = io.ReadFull(c, make([]byte, labPart)); err == nil {
			err = <-sent
		}
	}
	if err != nil {
		return fmt.Errorf("rank %d waits for rank %d: %w", me, peer, err)
	}
	return nil
}
