package check

import (
	"context"
	"time"
)

// A rematch is pairs of hosts that are measured again, in rounds of disjoint pairs.
type rematch struct{ Rounds [][][2]int }

// rematches are the numbers of rounds in which pairs are measured again.
const rematches = 1 << 20

// again measures pairs that rank 0 finds unlike the others once more, three times at most (quick: two): on a machine
// that does other work too a link may look slow once. The best measurement counts.
func (c *crew) again(ctx context.Context, list []measurement) error {
	turns := 2
	if c.j.cfg.Full {
		turns = 3
	}
	for turn := 1; turn <= turns; turn++ {
		all, err := parts(ctx, c.j.Collect, list)
		if err != nil && all == nil {
			return err
		}
		var m rematch
		if c.j.First() {
			m = c.suspects(judgeWays(c.together(all), c.j.cfg).again())
		}
		if m, err = told(ctx, c.j, m); err != nil || len(m.Rounds) == 0 {
			return err
		}
		if c.j.Leader() && len(c.hosts) > 1 {
			c.rematch(ctx, m, turn)
			list = c.list
		}
	}
	return nil
}

// together is a report of the measurements of all ranks.
func (c *crew) together(lists []*[]measurement) *report {
	all := &report{}
	for _, h := range c.j.Hosts() {
		all.Hosts = append(all.Hosts, hostReport{Name: c.j.members[h[0]].Host})
	}
	for r, list := range lists {
		if list == nil {
			continue
		}
		for _, m := range *list {
			m.Stage, m.Rank = "network", r
			all.Measurements = append(all.Measurements, m)
		}
	}
	return all
}

// rematch measures this host's pairs of a turn, each round in a slot of the time that is left.
func (c *crew) rematch(ctx context.Context, m rematch, turn int) {
	limit, _ := ctx.Deadline()
	slot := min(mostSlot, time.Until(limit)/time.Duration((5-turn)*len(m.Rounds)))
	begin := time.Now()
	for i, pairs := range m.Rounds {
		for _, p := range pairs {
			if peer := p[0] + p[1] - c.me; p[0] == c.me || p[1] == c.me {
				c.pair(ctx, peer, turn*rematches+i, begin.Add(time.Duration(i+1)*slot), slot)
			}
		}
	}
}

// suspects are the pairs of hosts that ways join.
func (c *crew) suspects(list []subject) rematch {
	at := map[string]int{}
	for i, r := range c.ranks {
		at[c.j.members[r].Host] = i
	}
	wanted := map[[2]int]bool{}
	var order [][2]int
	add := func(a, b int) {
		if p := [2]int{min(a, b), max(a, b)}; a != b && !wanted[p] && len(order) < 64 {
			wanted[p] = true
			order = append(order, p)
		}
	}
	for _, w := range list {
		a, ok := at[w.Host]
		if b, too := at[w.To.Host]; ok && too {
			add(a, b)
		}
	}
	var m rematch
	for _, p := range order {
		placed := false
		for i := range m.Rounds {
			free := true
			for _, q := range m.Rounds[i] {
				free = free && p[0] != q[0] && p[0] != q[1] && p[1] != q[0] && p[1] != q[1]
			}
			if free {
				m.Rounds[i], placed = append(m.Rounds[i], p), true
				break
			}
		}
		if !placed {
			m.Rounds = append(m.Rounds, [][2]int{p})
		}
	}
	return m
}
