package handbook_test

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/trace/judge"
)

// space draws a ring of work after each of some events.
func space() string {
	const capacity, left, top, unit, lane = 100, 190, 48, 5, 40
	var consumed atomic.Uint64
	s := fifo.NewSpace(capacity, &consumed)
	type work struct {
		name  int
		at, n int
		token uint64
	}
	var waiting []work
	d := &drawing{width: left + capacity*unit + 110, height: top + 4*lane + 14}
	row := 0
	show := func(event string) {
		y := top + float64(row)*lane
		row++
		d.text("", "end", left-12, y+18, "%s", event)
		d.rect("box", left, y, capacity*unit, lane-12)
		for _, w := range waiting {
			d.rect(hue(w.name)+" t", left+float64(w.at*unit), y+1, float64(w.n*unit), lane-14)
			d.text("small on", "middle", left+float64(w.at*unit)+float64(w.n*unit)/2, y+18, "launch %d: %d bytes", w.name, w.n)
		}
		produced, done := 0, 0
		must(fmt.Sscanf(s.String(), "produced %d, consumed %d", &produced, &done))
		d.text("small mute", "start", left+capacity*unit+10, y+12, "produced %d", produced)
		d.text("small mute", "start", left+capacity*unit+10, y+25, "consumed %d", done)
	}
	launch := func(name, n int) {
		at, token, err := s.Reserve(n, nil)
		must(0, err)
		s.Commit(token)
		waiting = append(waiting, work{name, at, n, token})
		show(fmt.Sprintf("launch %d", name))
	}
	for b := 0; b <= capacity; b += 20 {
		d.text("small mute", "middle", left+float64(b*unit), top-10, "%d", b)
	}
	launch(1, 40)
	launch(2, 40)
	consumed.Store(waiting[0].token)
	waiting = waiting[1:]
	must(0, s.Look())
	show("launch 1 is done")
	launch(3, 30)
	return d.svg()
}

// waits draws who waits for whom, and what judge.Waits says.
func waits() string {
	const wide, radius, top = 292, 62, 128
	in := func(peer int) judge.State { return judge.State{Heard: true, Last: 7, At: 7, Peer: peer} }
	cases := [][]judge.State{
		{in(3), in(0), {Heard: true, Last: 6, Peer: -1}, in(2)},
		{in(3), in(0), {Peer: -1}, in(2)},
		{in(3), in(0), in(1), in(2)},
	}
	cases[2][1].Step, cases[2][2].Step, cases[2][3].Step = 2, 3, 1 // rank 0 has come least far
	d := &drawing{width: 3*wide + 20, height: top + radius + 70}
	for i, states := range cases {
		for r := range states {
			states[r].Rank = r
		}
		verdict := judge.Waits(states)
		blamed := map[int]bool{}
		for _, r := range verdict.Culprits {
			blamed[r] = true
		}
		x0 := float64(i)*wide + wide/2 + 10
		at := func(r int) (x, y float64) {
			a := math.Pi/2*float64(r) - math.Pi/2
			return x0 + radius*math.Cos(a), top + radius*math.Sin(a)
		}
		for r, s := range states {
			if s.Peer < 0 {
				continue
			}
			x1, y1 := at(r)
			x2, y2 := at(s.Peer)
			l := math.Hypot(x2-x1, y2-y1)
			dx, dy := 19*(x2-x1)/l, 19*(y2-y1)/l
			d.arrow("c0", x1+dx, y1+dy, x2-dx, y2-dy)
		}
		for r, s := range states {
			x, y := at(r)
			if blamed[r] {
				d.mark("c5", x, y, 17, "")
			}
			d.mark(map[bool]string{true: "c5", false: "c0"}[blamed[r]], x, y, 13, fmt.Sprint(r))
			what := fmt.Sprintf("at step %d", s.Step)
			if !s.Heard {
				what = "says nothing"
			} else if s.At == 0 {
				what = "in no call"
			}
			anchor := [...]string{"middle", "start", "middle", "end"}[r]
			d.text("small mute", anchor, x+[...]float64{0, 22, 0, -22}[r], y+[...]float64{-22, 4, 32, 4}[r], "%s", what)
		}
		d.text("title", "middle", x0, 24, "%v: %v", verdict.Reason, verdict.Culprits)
	}
	return d.svg()
}
