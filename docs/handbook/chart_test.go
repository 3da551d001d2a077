package handbook_test

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/fifo"
)

// A chart has sizes in bytes to the right and times in µs upwards, both by factors.
type chart struct {
	*drawing
	bytes, us [2]float64
}

const chartLeft, chartTop, chartWide, chartTall = 66, 24, 470, 290

func newChart(bytes, us [2]float64) *chart {
	c := &chart{&drawing{width: 800, height: chartTop + chartTall + 48}, bytes, us}
	for b := bytes[0]; b <= bytes[1]*1.01; b *= 8 {
		x, _ := c.at(b, us[0])
		c.line("faint", x, chartTop, x, chartTop+chartTall)
		c.text("small", "middle", x, chartTop+chartTall+16, "%s", human(int64(b)))
	}
	for t := us[0]; t <= us[1]*1.01; t *= 10 {
		_, y := c.at(bytes[0], t)
		c.line("faint", chartLeft, y, chartLeft+chartWide, y)
		c.text("small", "end", chartLeft-8, y+3.5, "%s", unit(t))
	}
	c.rect("box", chartLeft, chartTop, chartWide, chartTall)
	c.text("small mute", "middle", chartLeft+chartWide/2, chartTop+chartTall+36, "bytes of a rank")
	return c
}

func unit(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%g ms", us/1e3)
	}
	return fmt.Sprintf("%g µs", us)
}

func (c *chart) at(bytes, us float64) (x, y float64) {
	share := func(v float64, of [2]float64) float64 { return math.Log(v/of[0]) / math.Log(of[1]/of[0]) }
	return chartLeft + chartWide*share(bytes, c.bytes), chartTop + chartTall*(1-share(us, c.us))
}

// curve joins points, and writes its name in the list to the right.
func (c *chart) curve(i int, name, dash string, points []measured) {
	d := ""
	for k, p := range points {
		x, y := c.at(p.bytes, p.us)
		d += fmt.Sprintf("%c%s %s", "ML"[min(k, 1)], num(x), num(y))
		if dash == "" {
			c.symbol(i, x, y)
		}
	}
	fmt.Fprintf(c, `<path class="%s s" stroke-dasharray="%s" d="%s"/>`+"\n", hue(i), dash, d)
	if name != "" {
		y := float64(chartTop + 16 + 22*i)
		c.line(hue(i)+" s", chartLeft+chartWide+14, y, chartLeft+chartWide+38, y)
		c.symbol(i, chartLeft+chartWide+26, y)
		c.text("small", "start", chartLeft+chartWide+46, y+3.5, "%s", name)
	}
}

// symbol tells curves apart without colour.
func (c *chart) symbol(i int, x, y float64) {
	switch i % 4 {
	case 0:
		fmt.Fprintf(c, `<circle class="%s f" cx="%s" cy="%s" r="4"/>`+"\n", hue(i), num(x), num(y))
	case 1:
		c.rect(hue(i)+" f", x-3.5, y-3.5, 7, 7)
	default:
		s := 5.0
		if i%4 == 3 {
			s = -5
		}
		fmt.Fprintf(c, `<path class="%s f" d="M%s %sl5 %sh-10z"/>`+"\n", hue(i), num(x), num(y-s*.9), num(s*1.6))
	}
}

// message2 draws the measured times of two ranks, and α + βm as read off them.
func message2() string {
	c := newChart([2]float64{8, 1 << 30}, [2]float64{.1, 1e5})
	for i, w := range wires {
		points := report(w.report)
		us, gbs := alphaBeta(points)
		var line []measured
		for b := 8.0; b <= points[len(points)-1].bytes; b *= 2 {
			line = append(line, measured{b, us + b/gbs/1e3})
		}
		c.curve(i, "", "4 4", line)
		c.curve(i, w.what, "", points)
	}
	c.text("small mute", "start", chartLeft+chartWide+14, chartTop+16+22*5, "dashed: α + βm")
	return c.svg()
}

// curves draws what schedules take on paper.
func curves(net string, n int, names ...string) string {
	m, c := model(net), newChart([2]float64{64, 1 << 26}, [2]float64{.1, 1e5})
	for i, name := range names {
		var points []measured
		for b := 64.0; b <= 1<<26; b *= 4 {
			points = append(points, measured{b, timed(schedules[name].build(n), m, int64(b))})
		}
		c.curve(i, name, "", points)
	}
	return c.svg()
}

// slot draws a message of a queue in memory.
func slot() string {
	const left, top, unit, tall = 20, 50, 9.5, 40
	parts := []struct {
		bytes int
		name  string
	}{{8, "word"}, {16, "stamp"}, {fifo.InlineBytes, "payload, if it is short"}}
	total := 0
	for _, p := range parts {
		total += p.bytes
	}
	d := &drawing{width: 2*left + float64(total)*unit, height: top + tall + 44}
	d.text("title", "start", left, 22, "The header of a slot: one cache line of %d bytes", total)
	x := float64(left)
	for i, p := range parts {
		w := float64(p.bytes) * unit
		d.rect(hue(i)+" t", x+1, top, w-2, tall)
		d.rect("box", x+1, top, w-2, tall)
		d.text("small on", "middle", x+w/2, top+tall/2+4, "%s", p.name)
		d.text("small mute", "middle", x+w/2, top-6, "%d bytes", p.bytes)
		x += w
	}
	d.text("small mute", "start", left, top+tall+22,
		"word: the message's number and length. It is stored last, with release; the receiver polls it, with acquire.")
	return d.svg()
}
