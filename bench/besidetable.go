package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Columns of a table of Besides, ours and then those of each peer.
const (
	besideOurs = "  %5s %8s %8s %8s %8s %8s %6s %6s %6s %6s"
	besidePeer = "  %8s %8s %6s %6s %6s %7s"
)

func (p *printer) besideHeader() {
	ours := func(s ...any) string { return fmt.Sprintf(besideOurs, s...) }
	first := p.blank() + "  " + center("collectives and compute", 78)
	names := p.left("size", "count", "type", "redop", "root") +
		ours("coll.", "alone", "compute", "both", "ideal", "sum", "both /", "comp.", "coll.", "#wrong")
	units := p.left("(B)", "(elements)", "", "", "") +
		ours("", "(us)", "(us)", "(us)", "(us)", "(us)", "ideal", "slower", "slower", "")
	for _, peer := range p.peers {
		peers := func(s ...any) string { return fmt.Sprintf(besidePeer, s...) }
		first += "  " + center(peer, 46)
		names += peers("alone", "both", "both /", "comp.", "coll.", "ratio")
		units += peers("(us)", "(us)", "ideal", "slower", "slower", "of both")
	}
	for _, line := range []string{first, names, units} {
		fmt.Fprintln(p.w, "#"+strings.TrimRight(line[1:], " "))
	}
}

// besideColumns are the columns of one row, ours and each peer's. The ratio is the peer's time
// of both in units of ours: above 1 we are ahead.
func (p *printer) besideColumns(r *Row, peers map[string]*Row) string {
	b := r.Beside
	if b == nil { // a row of another kind of run
		return ""
	}
	wrong := "N/A"
	if m := r.OutOfPlace; m != nil {
		if m.Wrong != nil {
			wrong = strconv.FormatInt(*m.Wrong, 10)
			p.wrong += *m.Wrong
		}
		p.busbw += m.BusBW
		p.count++
	}
	line := fmt.Sprintf(besideOurs, strconv.Itoa(b.Collectives), formatTime(b.Alone.Time), formatTime(b.Compute.Time),
		formatTime(b.Both.Time),
		formatTime(b.Ideal), formatTime(b.Sum), formatRatio(b.ofIdeal()), formatRatio(b.Slower),
		formatRatio(b.CollectivesSlower), wrong)
	for _, name := range p.peers {
		peer := peers[name]
		if peer == nil || peer.Beside == nil {
			line += fmt.Sprintf(besidePeer, "-", "-", "-", "-", "-", "-")
			continue
		}
		o, ratio := peer.Beside, math.NaN()
		if b.Both.Time > 0 {
			ratio = o.Both.Time / b.Both.Time
		}
		line += fmt.Sprintf(besidePeer, formatTime(o.Alone.Time), formatTime(o.Both.Time), formatRatio(o.ofIdeal()),
			formatRatio(o.Slower), formatRatio(o.CollectivesSlower), formatRatio(ratio))
		if m := peer.OutOfPlace; m != nil && m.Wrong != nil {
			p.wrong += *m.Wrong
		}
	}
	return line
}
