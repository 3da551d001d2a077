package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Time limits of the network stage. A part is for the rounds, the rest for measuring suspects again.
const (
	networkQuick = 12 * time.Second
	networkFull  = 9 * time.Minute
	maxRails     = 8
)

// networkShare is the part of a limit that all rounds may take.
func networkShare(limit time.Duration) time.Duration { return limit * 3 / 4 }

// networkStage measures every pair of hosts over every interface that joins them.
func networkStage() stage {
	return stage{
		Name: "network", Asks: "Is every link between hosts as quick as the others, and does it keep what is sent?",
		Quick: networkQuick, Full: networkFull,
		Measure: measureNetwork, Judge: judgeNetwork,
	}
}

// A port is where a host is reached on one of its interfaces.
type port struct {
	Interface string
	IP        net.IP
	Mask      int // bits
	Port      int
	Speed     float64 // of its hardware, in GB/s; 0 if it has none or that is not known
	MAC       string
}

func (p port) addr() string { return (&net.TCPAddr{IP: p.IP, Port: p.Port}).String() }

// reaches reports whether another port's address is in this port's subnet.
func (p port) reaches(q port) bool {
	bits := 128
	if p.IP.To4() != nil { // an IPv4 address may have 16 bytes
		bits = 32
	}
	mask := net.CIDRMask(p.Mask, bits)
	return (p.IP.To4() == nil) == (q.IP.To4() == nil) && p.IP.Mask(mask).Equal(q.IP.Mask(mask))
}

// A rail is a pair of interfaces that join two hosts.
type rail struct{ from, to port }

// railsOf are the rails between two hosts: pairs of interfaces in one subnet, or else of one name, or
// else the first interface of each.
func railsOf(from, to []port) []rail {
	var rails []rail
	used := make([]bool, len(to))
	match := func(fits func(a, b port) bool) {
		for _, a := range from {
			for i, b := range to {
				if !used[i] && len(rails) < maxRails && fits(a, b) {
					used[i] = true
					rails = append(rails, rail{a, b})
					break
				}
			}
		}
	}
	match(port.reaches)
	if len(rails) == 0 {
		match(func(a, b port) bool { return a.Interface == b.Interface && (a.IP.To4() == nil) == (b.IP.To4() == nil) })
	}
	if len(rails) == 0 && len(from) > 0 && len(to) > 0 {
		rails = append(rails, rail{from[0], to[0]})
	}
	return rails
}

// Quantities of interfaces that are left out: an address that several hosts have, and an interface that nobody reaches.
const (
	sharedAddress = "address of several hosts"
	idleInterface = "idle interface"
)

// lostSegments is the quantity of segments of small messages that were sent again.
const lostSegments = "sent again"

// ownPorts leaves out ports whose address other hosts have too, such as that of a bridge to a host's containers: such
// an address leads each host to itself. A host without other ports keeps them, since hosts may be one machine that
// pretends to be several.
func ownPorts(hosts [][]port) (own, left [][]port) {
	owners := map[string]int{}
	for _, ports := range hosts {
		for _, p := range ports {
			owners[p.IP.String()]++
		}
	}
	own, left = make([][]port, len(hosts)), make([][]port, len(hosts))
	for h, ports := range hosts {
		for _, p := range ports {
			if owners[p.IP.String()] > 1 {
				left[h] = append(left[h], p)
			} else {
				own[h] = append(own[h], p)
			}
		}
		if len(own[h]) == 0 {
			own[h], left[h] = ports, nil
		}
	}
	return own, left
}

// A crew is the state of a host's leader in the network stage.
type crew struct {
	j     *job
	hosts [][]port // by host, in the order of leaders
	ranks []int    // of leaders
	me    int

	mu   sync.Mutex
	list []measurement
	came map[[3]int]chan caller // by rank, round and rail
}

func measureNetwork(ctx context.Context, j *job) ([]measurement, error) {
	var mine []port
	crew := &crew{j: j, came: map[[3]int]chan caller{}}
	var trouble error
	if j.Leader() {
		calls := make(chan caller)
		done := make(chan struct{})
		defer close(done)
		go crew.take(calls, done)
		var listeners []net.Listener
		mine, listeners, trouble = j.listen()
		for _, ln := range listeners {
			defer ln.Close()
			go j.serve(ln, wantLink, calls)
		}
	}
	all, err := parts(ctx, j.Gather, mine)
	if all == nil {
		return nil, err
	}
	leaders := map[int]bool{}
	for _, h := range j.Hosts() {
		leaders[h[0]] = true
	}
	for r, ports := range all {
		if !leaders[r] || ports == nil || len(*ports) == 0 {
			continue
		}
		if r == j.rank {
			crew.me = len(crew.ranks)
		}
		crew.hosts, crew.ranks = append(crew.hosts, *ports), append(crew.ranks, r)
	}
	crew.ownPorts(trouble == nil)
	switch {
	case len(crew.hosts) < 2 && trouble == nil && len(j.members) > len(j.Live()):
		return nil, skip("no other host is left, as the findings say")
	case len(crew.hosts) < 2 && trouble == nil:
		return nil, skip("there is one host")
	case !j.Leader() || trouble != nil:
		return nil, errors.Join(trouble, crew.again(ctx, nil))
	}
	limit, _ := ctx.Deadline()
	plan := planTournament(len(crew.hosts), networkShare(time.Until(limit)))
	begin := time.Now()
	for round := range plan.Rounds {
		end := begin.Add(time.Duration(round+1) * plan.Slot)
		crew.pair(ctx, plan.Peer(crew.me, round), round, end, plan.Slot)
	}
	return crew.list, crew.again(ctx, crew.list)
}

// listen listens on the addresses of this host, one of each interface.
func (j *job) listen() (ports []port, listeners []net.Listener, err error) {
	list, err := j.machine.Addresses()
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, a := range list {
		if seen[a.Interface] || len(ports) == maxRails {
			continue
		}
		ip := a.Net.IP
		if v4 := ip.To4(); v4 != nil {
			ip = v4
		}
		listens := listenTCP
		if j.listens != nil {
			listens = j.listens
		}
		ln, err := listens(ip)
		if err != nil {
			continue // an address that is going away
		}
		seen[a.Interface] = true
		bits, _ := a.Net.Mask.Size()
		ports = append(ports, port{a.Interface, ip, bits, ln.Addr().(*net.TCPAddr).Port, j.machine.speed(a.Interface), a.MAC})
		listeners = append(listeners, ln)
	}
	if len(ports) == 0 {
		return nil, nil, errors.New("no interface that is up has an address: nothing reaches this host")
	}
	return ports, listeners, nil
}

// ownPorts leaves out ports whose address several hosts have. It notes these ports, and interfaces of this host that
// nobody reaches.
func (c *crew) ownPorts(well bool) {
	all, left := c.hosts, [][]port(nil)
	c.hosts, left = ownPorts(all)
	if !c.j.Leader() || !well {
		return
	}
	add := func(s subject, quantity, text string) {
		c.list = append(c.list, measurement{Subject: s, Quantity: quantity, Text: text})
	}
	for _, p := range left[c.me] {
		add(of(c.j.Host(), p.Interface), sharedAddress, p.IP.String())
	}
	idle := c.j.machine.Idle()
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		add(of(c.j.Host(), name), idleInterface, idle[name])
	}
}

// take hands each incoming connection to the pair that expects it.
func (c *crew) take(calls <-chan caller, done <-chan struct{}) {
	for {
		select {
		case who := <-calls:
			if who.Sizes {
				go pass(who.conn)
				continue
			}
			select {
			case c.expected(who.From, who.Pair, who.Rail) <- who:
			default:
				who.conn.Close()
			}
		case <-done:
			return
		}
	}
}

// expected is the channel that hands over the connection of a rank, round and rail.
func (c *crew) expected(rank, round, rail int) chan caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := [3]int{rank, round, rail}
	if c.came[k] == nil {
		c.came[k] = make(chan caller, 1)
	}
	return c.came[k]
}

// pair measures this host with a peer, until end at most. The first of the two calls, over each
// rail in turn, and keeps the results.
func (c *crew) pair(ctx context.Context, peer, round int, end time.Time, slot time.Duration) {
	if peer < 0 || c.j.Lost(c.ranks[peer]) {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	first := min(c.me, peer)
	rails := railsOf(c.hosts[first], c.hosts[max(c.me, peer)])
	p := phasesOf(slot, len(rails))
	if round >= rematches { // small losses need many segments
		p.burst *= 4
	}
	over := func(ctx context.Context, i int) {
		switch {
		case len(c.hosts) == 2 && round >= 2*rematches: // the first time a single stream again
			c.several(ctx, rails[i], peer, round, i, p)
		case c.me == first:
			c.call(ctx, rails[i], peer, round, i, p)
		default:
			c.wait(ctx, rails[i], peer, round, i, p)
		}
	}
	var waits sync.WaitGroup
	defer waits.Wait()
	for i := range rails {
		if c.me != first { // a rail that leads nowhere does not keep the next one waiting
			waits.Go(func() { over(ctx, i) })
			continue
		}
		part, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(len(rails)-i))
		over(part, i)
		cancel()
	}
}

// ends are the two ways over a rail, from the host of the caller and back.
func (c *crew) ends(rail rail, peer int) (there, back subject) {
	first, other := c.j.members[c.ranks[min(c.me, peer)]].Host, c.j.members[c.ranks[max(c.me, peer)]].Host
	there = pairOf(component{first, rail.from.Interface}, component{other, rail.to.Interface})
	return there, pairOf(there.To, there.component)
}

func (c *crew) add(s subject, quantity string, value float64, unit, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, measurement{Subject: s, Quantity: quantity, Value: value, Unit: unit, Text: text})
}

// addSmall adds how many segments of small messages were lost on a way.
func (c *crew) addSmall(s subject, small segments) {
	if small.Sent > 0 {
		c.add(s, lostSegments, float64(max(0, small.Again)), fmt.Sprintf("of %d segments", small.Sent), "")
	}
}

// call is the caller's side over one rail.
func (c *crew) call(ctx context.Context, rail rail, peer, round, number int, p phases) {
	there, back := c.ends(rail, peer)
	add := c.add
	hello := greeting{From: c.j.rank, Want: wantLink, Rail: number, Pair: round}
	conn, err := c.j.call(ctx, rail.from.IP.String(), rail.to.addr(), hello)
	if err != nil {
		add(there, "no connection", 0, "", err.Error())
		return
	}
	defer conn.Close()
	defer bounded(ctx, conn)()
	var holes [2]gap
	r, err := measureLink(conn, p, func() (err error) {
		hello.Sizes = true
		holes, err = gaps(ctx, conn, func(ctx context.Context) (net.Conn, error) {
			return c.j.call(ctx, rail.from.IP.String(), rail.to.addr(), hello)
		})
		return err
	})
	for i, s := range []subject{there, back} {
		if g := holes[i]; g != (gap{}) {
			add(s, largestPacket, float64(g.Passes), "B", fmt.Sprintf("of %d vanish", g.Vanishes))
		}
	}
	if r.Latency > 0 {
		add(there, "latency", float64(r.Latency.Nanoseconds())/1e3, "us", "")
		add(back, "latency", float64(r.Latency.Nanoseconds())/1e3, "us", "")
	}
	c.addSmall(there, r.Small)
	for _, d := range []struct {
		s      subject
		stream streamResult
		seg    segments
	}{{there, r.There, r.ThereSeg}, {back, r.Back, r.BackSeg}} {
		if d.stream.All == 0 {
			continue
		}
		add(d.s, "bandwidth", d.stream.rate(), "GB/s", "")
		if rail.from.Speed > 0 && rail.to.Speed > 0 {
			add(d.s, "interface", min(rail.from.Speed, rail.to.Speed), "GB/s", "")
		}
		if d.stream.Corrupt > 0 {
			add(d.s, "corrupt", float64(d.stream.Corrupt), "blocks",
				fmt.Sprintf("first at byte %d of %d", d.stream.First, d.stream.All))
		}
		if d.seg.Again > 0 {
			add(d.s, "retransmits", float64(d.seg.Again)/float64(max(d.seg.Sent, 1)), "of its segments", "")
		}
	}
	if err != nil && !errors.Is(err, errGap) {
		cut := there
		if r.There.All > 0 {
			cut = back
		}
		add(cut, "cut short", 0, "", err.Error())
	}
}

// wait is the other side.
func (c *crew) wait(ctx context.Context, rail rail, peer, round, number int, p phases) {
	select {
	case who := <-c.expected(c.ranks[peer], round, number):
		defer who.conn.Close()
		defer bounded(ctx, who.conn)()
		small := answerLink(who.conn, p)
		if _, back := c.ends(rail, peer); number < maxRails { // one connection at once
			c.addSmall(back, small)
		}
	case <-ctx.Done(): // reported by the caller
	}
}
