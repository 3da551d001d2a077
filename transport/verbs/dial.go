package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Dial connects to peer: a queue pair on each port that the connection uses, and on one
// that stands by.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	c, err := t.dial(peer, string(addr), payloadArea{})
	if err != nil {
		return nil, fmt.Errorf("ib: dial rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

func (t *Transport) dial(peer transport.Info, addr string, p payloadArea) (*sendConn, error) {
	if strings.TrimSpace(addr) == "" {
		return nil, errors.New("no address")
	}
	ports, err := t.open()
	if err != nil {
		return nil, err
	}
	defer t.ends.Leave()
	words := strings.Fields(addr)
	c, mine, err := t.sender(peer.Rank, ports, partners(ports, words[1:]), p)
	if err != nil {
		return nil, err
	}
	answer, err := c.greet(peer.Rank, words[0], mine)
	if err == nil {
		err = c.join(answer)
	}
	if err != nil {
		c.abandon()
		return nil, err
	}
	c.begin(c.said)
	c.limp()
	if !t.ends.Keep(c.conn) {
		c.Close()
		<-c.done
		return nil, fifo.ErrClosed
	}
	return c, nil
}

// sender makes a sending end that is connected to nothing yet, with rails on ports that have
// partners. mine are the indices of these ports.
func (t *Transport) sender(peer int, ports []*port, partners []string, p payloadArea) (c *sendConn, mine []int,
	err error) {
	mine, active := t.opt.rails(ports, func(i int) bool { return partners[i] != "" && ports[i].active() })
	if len(mine) == 0 { // any port is better than none
		clear(partners)
		mine, active = t.opt.rails(ports, func(i int) bool { return ports[i].active() })
	}
	if len(mine) == 0 {
		return nil, nil, fmt.Errorf("%v and all other ports are down", ports[0])
	}
	base, err := t.newConn(peer, mine, t.form(p.in != nil))
	if err != nil {
		return nil, nil, err
	}
	for i, r := range base.rails {
		r.to = partners[mine[i]]
	}
	c = &sendConn{conn: base, slots: make([]sending, base.shape.ring), reserved: -1}
	c.side, c.dials, c.active = c, true, active
	p.put(base)
	return c, mine, nil
}

// greet dials the line to a peer, over which the two ends tell each other their rails.
func (c *sendConn) greet(peer int, addr string, mine []int) (answer *hello, err error) {
	t := c.t
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), t.log)
	defer cancel()
	r := &listen.Request{From: t.cfg.Self.Rank, To: peer, Limits: t.cfg.Limits}
	err = listen.Retry(ctx, func() error {
		socket, err := listen.Dial(ctx, listen.Target{Network: "tcp", Addr: addr}, t.cfg.Key, protocol, r,
			func(s net.Conn) (err error) {
				if err = writeHello(s, c.hello(mine)); err == nil {
					answer, err = readHello(s)
				}
				return err
			})
		if err == nil {
			c.control.conn = socket
		}
		return err
	})
	return answer, err
}

// join connects the rails to those of the peer's answer.
func (c *sendConn) join(answer *hello) error {
	if answer.Refused != "" {
		return &listen.Refusal{Reason: answer.Refused}
	}
	c.to = answer.Addr
	peers := c.paired(answer.Rails)
	if len(peers) == 0 {
		return errors.New("the peer has no port for any of this rank's")
	}
	return c.connect(peers)
}

// partners are the peer's port for each port of this rank, "" for none: the port of the same name,
// since ports of one name are on one network where networks are separate, and one host may have
// ports that another lacks. If no name is the same, the partner is the port of the same index.
func partners(mine []*port, theirs []string) []string {
	to, named := make([]string, len(mine)), false
	for i, p := range mine {
		if slices.Contains(theirs, p.String()) {
			to[i], named = p.String(), true
		}
	}
	if !named {
		copy(to, theirs)
	}
	return to
}

// rails are the ports for a connection, all of them up; slots take the first active ones by turns.
func (o *Options) rails(ports []*port, up func(i int) bool) (mine []int, active int) {
	order, active := o.prefers(ports)
	for _, p := range order {
		if len(mine) <= active && up(p) {
			mine = append(mine, p)
		}
	}
	return mine, active
}

// prefers are all ports in this rank's order, the nearest first, and how many of them slots take by turns.
// Among equally near ports the order begins at the rank's place (LocalRank).
func (o *Options) prefers(ports []*port) (order []int, active int) {
	if active = o.Rails; active == 0 {
		active = len(ports) / o.Sharers
	}
	active = max(1, min(active, len(ports), maxRails))
	away := make([]int, len(ports))
	for i, p := range ports {
		if order = append(order, i); o.Near != nil {
			away[i] = o.Near(p.dev.name)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(away[a], away[b]) })
	for rest := order; len(rest) > 0; {
		same := 1
		for same < len(rest) && away[rest[same]] == away[rest[0]] {
			same++
		}
		first := o.LocalRank * active % same
		copy(rest, slices.Concat(rest[first:same], rest[:first]))
		rest = rest[same:]
	}
	return order, active
}

// newConn makes an end with a rail on the port of each index; -1 is for no rail.
func (t *Transport) newConn(peer int, ports []int, s shape) (*conn, error) {
	c := &conn{t: t, active: 1, peer: peer, shape: s, done: make(chan struct{}),
		control: &control{done: make(chan struct{})}}
	var err error
	if c.area, err = areas.take(s.size(), t.devices); err != nil {
		return nil, err
	}
	c.users.Store(1)
	for _, p := range ports {
		if p < 0 {
			continue
		}
		r, err := newRail(t.ports[p], s, &t.opt)
		if err != nil {
			c.abandon()
			return nil, err
		}
		c.rails = append(c.rails, r)
	}
	return c, nil
}

// abandon gives back an end that did not begin.
func (c *conn) abandon() {
	for _, r := range c.rails {
		r.destroy()
	}
	if c.control.conn != nil {
		c.control.conn.Close()
	}
	areas.give(c.area)
}

func (c *conn) hello(ports []int) *hello {
	h := &hello{Addr: c.area.addr(), Placed: c.shape.apart}
	rails := c.rails
	for _, p := range ports {
		if p < 0 {
			h.Rails = append(h.Rails, railHello{})
			continue
		}
		h.Rails = append(h.Rails, rails[0].hello(c.area.mrs[rails[0].port.dev].RKey))
		rails = rails[1:]
	}
	return h
}

// connect connects rails to the peer's, one for one, and notes as lame those that fail.
// If none is left, it returns the last rail's error.
func (c *conn) connect(peers []railHello) error {
	var failed error
	up := 0
	for i, r := range c.rails {
		r.index = i
		if err := r.connect(peers[i], &c.t.opt); err != nil {
			failed = err
			c.lame = append(c.lame, lame{r, err})
		} else {
			up++
		}
	}
	if up > 0 {
		return nil
	}
	return failed
}

// limp tells the peer of rails that could not be connected.
func (c *conn) limp() {
	for _, l := range c.lame {
		c.fail(l.rail, l.why.Error(), false)
	}
	c.lame = nil
}

// paired keeps the rails that have a partner in the answer, destroys the others, and returns
// the partners.
func (c *conn) paired(answer []railHello) (peers []railHello) {
	rails := c.rails
	c.rails = nil
	for i, r := range rails {
		if i < len(answer) && answer[i].QPN != 0 {
			c.rails, peers = append(c.rails, r), append(peers, answer[i])
		} else {
			r.destroy()
		}
	}
	return peers
}
