package handbook_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// figures are all pictures of the handbook.
var figures = map[string]func() string{
	"message":         message2,
	"relay":           func() string { return arrows("relay", 4) },
	"radix":           func() string { return traffic(16, "direct.RecursiveDoubling", "radix") },
	"space":           space,
	"waits":           waits,
	"ring-arrows":     func() string { return arrows("ring.AllReduce", 4) },
	"ring-states":     func() string { return states("ring.AllReduce", 4) },
	"binomial":        func() string { return trees("tree.BinomialBroadcast", 8) },
	"double":          func() string { return trees("tree.Broadcast", 7) },
	"doubling-arrows": func() string { return arrows("direct.RecursiveDoubling", 8) },
	"halving-states":  func() string { return states("direct.HalvingDoubling", 4) },
	"log-arrows":      func() string { return arrows("direct.LogAllGather", 5) },
	"log-states":      func() string { return states("direct.LogAllGather", 5) },
	"oneshot-arrows":  func() string { return arrows("direct.OneShot", 4) },
	"twoshot-arrows":  func() string { return arrows("direct.TwoShot", 4) },
	"traffic":         func() string { return traffic(8, "ring.AllReduce", "direct.HalvingDoubling", "hier.AllReduce") },
	"pipeline":        pipeline,
	"slot":            slot,
	"shm-times": func() string {
		return curves("shm", 8, "direct.RecursiveDoubling", "direct.TwoShot",
			"ring.AllReduce")
	},
	"ndr-times": func() string {
		return curves("ndr/1", 64, "direct.RecursiveDoubling", "tree.AllReduce", "ring.AllReduce")
	},
}

// colour of a value: its chunk where sums travel, and who gave it where they do not.
func colour(h walked, v value) int {
	if h.chunks == 1 && v.sole() >= 0 {
		return v.sole()
	}
	if sums(h) {
		return v.chunk
	}
	if v.chunk == 0 && v.sole() >= 0 {
		return v.sole()
	}
	return v.chunk
}

// sums reports whether sums travel.
func sums(h walked) bool {
	return slices.ContainsFunc(h.messages, func(m message) bool { return m.value.sole() < 0 })
}

// arrows draws every message of a schedule from its sender to its receiver. A column is a hop.
func arrows(name string, n int) string {
	h := walkOf(name, n)
	const left, top, lane = 70, 44, 44
	hop := 112.0
	if h.hops < 3 {
		hop = 230 // many arrows begin at one point
	}
	d := &drawing{width: left + float64(h.hops)*hop + 30, height: top + float64(n-1)*lane + 30}
	y := func(r sched.Rank) float64 { return top + float64(r)*lane }
	for t := 0; t <= h.hops; t++ {
		d.line("faint", left+float64(t)*hop, 26, left+float64(t)*hop, d.height-12)
		if t < h.hops {
			d.text("small mute", "middle", left+(float64(t)+.5)*hop, 20, "hop %d", t+1)
		}
	}
	for r := range sched.Rank(n) {
		d.text("", "end", left-14, y(r)+4, "rank %d", r)
		d.line("line", left, y(r), left+float64(h.hops)*hop, y(r))
	}
	type label struct {
		x, y, r float64
		class   string
		text    string
	}
	var labels []label
	beside := map[message]bool{}
	for _, m := range h.messages {
		x1, x2 := left+float64(m.left)*hop, left+float64(m.left+1)*hop
		class, name := hue(colour(h, m.value)), fmt.Sprint(colour(h, m.value))
		if h.chunks == 1 && len(h.messages) > 0 && sums(h) { // no chunk to tell: who is in the sum
			class, name = hue(int(m.from)), members(m.value.ranks)
		}
		key := message{from: m.from, to: m.to, left: m.left} // messages of one hop on one way are one arrow
		k := beside[key]
		beside[key] = true
		if !k {
			d.arrow(class, x1+3, y(m.from)+(y(m.to)-y(m.from))*3/hop, x2-4, y(m.to)-(y(m.to)-y(m.from))*4/hop)
		}
		l := label{r: 5 + 2.5*float64(len(name)), class: class, text: name}
		for at := .2; at < .9; at += .04 { // the first place where it covers no other
			l.x, l.y = x1+at*hop, y(m.from)+at*(y(m.to)-y(m.from))
			if !slices.ContainsFunc(labels, func(o label) bool { return math.Hypot(o.x-l.x, o.y-l.y) < o.r+l.r+2 }) {
				break
			}
		}
		labels = append(labels, l)
	}
	for _, l := range labels {
		d.mark(l.class, l.x, l.y, l.r, l.text)
	}
	return d.svg()
}

// states draws after each hop what each rank (a row) has in hand of each chunk (a column):
// the ranks whose contributions are in it.
func states(name string, n int) string {
	h := walkOf(name, n)
	gather := schedules[name].goal.String() == sched.AllGather.String()
	columns := h.chunks
	const cell, gap, left, top = 28, 14, 52, 40
	wide := float64(columns)*cell + gap
	perRow := min(h.hops+1, int((950-left)/wide))
	rows := (h.hops + perRow) / perRow
	tall := float64(n)*cell + 40
	d := &drawing{width: left + float64(perRow)*wide, height: top - 16 + float64(rows)*tall}
	for t := 0; t <= h.hops; t++ {
		x0, y0 := left+float64(t%perRow)*wide, top+float64(t/perRow)*tall
		title := fmt.Sprintf("after hop %d", t)
		if t == 0 {
			title = "start"
		}
		d.text("small title", "middle", x0+float64(columns)*cell/2, y0-20, "%s", title)
		for c := range columns {
			d.text("small mute", "middle", x0+(float64(c)+.5)*cell, y0-6, "%d", c)
		}
		now := make([]value, n*columns)
		for r := range n {
			for c := range columns {
				if !gather {
					now[r*columns+c] = value{c, 1 << r}
				} else if c == r {
					now[r*columns+c] = value{0, 1 << r}
				}
			}
		}
		for _, hand := range h.handled {
			if hand.time <= t {
				c := hand.value.chunk
				if gather {
					c = hand.value.sole()
				}
				now[int(hand.rank)*columns+c] = hand.value
			}
		}
		for r := range n {
			if t%perRow == 0 {
				d.text("small", "end", x0-6, y0+(float64(r)+.6)*cell, "rank %d", r)
			}
			for c := range columns {
				v := now[r*columns+c]
				x, y := x0+float64(c)*cell, y0+float64(r)*cell
				if v.ranks != 0 {
					share := float64(bits.OnesCount64(v.ranks)) / float64(n)
					if gather {
						share = 1
					}
					d.rect(hue(c)+" t", x+1, y+1+(cell-2)*(1-share), cell-2, (cell-2)*share)
					d.text("small on", "middle", x+cell/2, y+cell/2+3.5, "%s", members(v.ranks))
				}
				d.rect("box", x+1, y+1, cell-2, cell-2)
			}
		}
	}
	return d.svg()
}

// members are the ranks of a set, 013, less than ten.
func members(set uint64) string {
	var b strings.Builder
	for ; set != 0; set &= set - 1 {
		fmt.Fprintf(&b, "%d", bits.TrailingZeros64(set))
	}
	return b.String()
}

// trees draws who sends which chunk to whom. Where a rank stands from left to right is its
// number, from top to bottom how many hops it is from the first sender.
func trees(name string, n int) string {
	h := walkOf(name, n)
	const cell, level, top = 44, 56, 50
	wide := float64(n) * cell
	d := &drawing{width: 30 + float64(h.chunks)*(wide+24)}
	deepest := 0
	for c := range h.chunks {
		depth := map[sched.Rank]int{}
		for _, m := range h.messages {
			if m.value.chunk == c {
				depth[m.to] = depth[m.from] + 1
				deepest = max(deepest, depth[m.to])
			}
		}
		x := func(r sched.Rank) float64 { return 27 + float64(c)*(wide+24) + (float64(r)+.5)*cell }
		y := func(r sched.Rank) float64 { return top + float64(depth[r])*level }
		what := "all of the data"
		if h.chunks > 1 {
			what = fmt.Sprintf("chunk %d", c)
		}
		d.text("title", "middle", x(0)+wide/2-cell/2, 22, "%s", what)
		for _, m := range h.messages {
			if m.value.chunk == c {
				dx, dy := x(m.to)-x(m.from), y(m.to)-y(m.from)
				if dy < 0 { // a rank that has it already, as the root has
					continue
				}
				l := 14 / max(1, math.Hypot(dx, dy))
				d.arrow(hue(c), x(m.from)+dx*l, y(m.from)+dy*l, x(m.to)-dx*l, y(m.to)-dy*l)
			}
		}
		for r := range sched.Rank(n) {
			d.mark(hue(c), x(r), y(r), 13, fmt.Sprint(r))
		}
	}
	d.height = top + float64(deepest)*level + 28
	return d.svg()
}

// traffic draws how much of the data each rank (a row) sends to each other one (a column).
func traffic(n int, names ...string) string {
	const cell, gap, left, top = 27, 70, 60, 62
	wide := float64(n)*cell + gap
	d := &drawing{width: left + float64(len(names))*wide - gap + 20, height: top + float64(n)*cell + 30}
	for i, name := range names {
		h := walkOf(name, n)
		sent := map[[2]sched.Rank]int{}
		most := 0
		for _, m := range h.messages {
			p := [2]sched.Rank{m.from, m.to}
			sent[p]++
			most = max(most, sent[p])
		}
		x0 := left + float64(i)*wide
		d.text("title", "middle", x0+float64(n)*cell/2, 22, "%s", name)
		d.text("small mute", "middle", x0+float64(n)*cell/2, 40, "%s to rank",
			map[bool]string{true: "times S", false: fmt.Sprintf("chunks of S/%d", h.chunks)}[h.chunks == 1])
		across := 0
		for a := range n {
			d.text("small mute", "middle", x0+(float64(a)+.5)*cell, top-6, "%d", a)
			d.text("small mute", "end", x0-6, top+(float64(a)+.65)*cell, "%d", a)
			for b := range n {
				x, y := x0+float64(b)*cell, float64(top)+float64(a)*cell
				k := sent[[2]sched.Rank{sched.Rank(a), sched.Rank(b)}]
				if k > 0 {
					class := "c0"
					if a/node != b/node {
						class = "c1"
						across += k
					}
					d.rect(class+" t", x+1, y+1, cell-2, cell-2)
					d.text("small on", "middle", x+cell/2, y+cell/2+3.5, "%d", k)
				}
				d.rect("faint", x, y, cell, cell)
			}
		}
		d.text("small", "middle", x0+float64(n)*cell/2, d.height-10, "between nodes: %s S",
			decimal(float64(across)/float64(h.chunks)))
	}
	return d.svg()
}

// pipeline draws a chain that passes on the data whole, and in four parts.
func pipeline() string {
	const n, parts, left, unit, lane, top = 4, 4, 70, 46, 26, 44
	d := &drawing{width: left + n*parts*unit - 3*unit + 40, height: top*2 + 2*n*lane - 8}
	for i, m := range []int{1, parts} {
		h := walk("chain", sched.Split(ring.Broadcast{N: n}, m), sched.Broadcast(0))
		y0 := top + float64(i)*(n*lane+top)
		// A part takes 1/m as long as the whole, and a rank sends one at a time.
		free := map[sched.Rank]float64{}
		has := map[[2]int]float64{}
		end := 0.0
		length := float64(parts) / float64(m)
		for _, msg := range h.messages {
			start := max(free[msg.from], has[[2]int{int(msg.from), msg.value.chunk}])
			free[msg.from] = start + length
			has[[2]int{int(msg.to), msg.value.chunk}] = start + length
			end = max(end, start+length)
			x, y := left+start*unit, y0+float64(msg.from)*lane
			d.rect(hue(msg.value.chunk)+" t", x+1, y, length*unit-2, lane-6)
			d.text("small on", "middle", x+length*unit/2, y+lane/2, "%d → %d", msg.from, msg.to)
		}
		d.text("small title", "start", left, y0-10, "%s: the last rank has all after %s units of S/%d",
			map[int]string{1: "whole", parts: "in four parts"}[m], decimal(end), parts)
		for r := range n {
			d.text("small", "end", left-10, y0+float64(r)*lane+14, "rank %d", r)
		}
		d.line("line", left, y0-4, left, y0+n*lane)
	}
	return d.svg()
}
