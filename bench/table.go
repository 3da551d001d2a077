package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A printer writes rows in the columns of nccl-tests, so that whoever reads one
// table can read the other. Peers add columns on the right: their time, and how
// many times ours it is, out of place and in place.
type printer struct {
	w      io.Writer
	peers  []string
	held   map[string]string // transports that peers are held to and ours is not
	errors bool              // columns of Deviations too
	beside bool              // columns of Besides instead
	busbw  float64           // sum over the measures printed
	count  int
	wrong  int64
}

const timeColumns = "%8s %7s %7s %6s"

// header writes the column heads.
func (p *printer) header() {
	if p.beside {
		p.besideHeader()
		return
	}
	first, names, units := p.blank(), p.left("size", "count", "type", "redop", "root"),
		p.left("(B)", "(elements)", "", "", "")
	for _, form := range []string{"out-of-place", "in-place"} {
		first += "  " + center(form, 31)
		names += "  " + fmt.Sprintf(timeColumns, "time", "algbw", "busbw", "#wrong")
		units += "  " + fmt.Sprintf(timeColumns, "(us)", "(GB/s)", "(GB/s)", "")
	}
	heads := func(of string) {
		if p.errors {
			first += "  " + center(of, 15)
			names += "  " + fmt.Sprintf(errorColumns, "max", "rms")
			units += "  " + fmt.Sprintf(errorColumns, "(ulp)", "(ulp)")
		}
	}
	heads("error")
	for _, peer := range p.peers {
		title := peer
		if held := p.held[peer]; held != "" {
			title += " (" + held + ")"
		}
		first += "  " + center(title, 23)
		names += "  " + fmt.Sprintf("%8s %7s", "time", "ratio") + " " + fmt.Sprintf("%7s", "in-pl.")
		units += "  " + fmt.Sprintf("%8s %7s %7s", "(us)", "", "ratio")
		heads(peer + "'s error")
	}
	for _, line := range []string{first, names, units} {
		fmt.Fprintln(p.w, "#"+strings.TrimRight(line[1:], " "))
	}
}

func (p *printer) blank() string { return p.left("", "", "", "", "") }

func (p *printer) left(size, count, typ, op, root string) string {
	return fmt.Sprintf("%13s %13s %10s %9s %5s", size, count, typ, op, root)
}

// row writes one row of ours and, beside it, the rows of the peers that have one.
func (p *printer) row(r *Row, peers map[string]*Row) {
	op, _, _ := strings.Cut(r.Op, "(")
	line := p.left(strconv.FormatInt(r.Size, 10), strconv.Itoa(r.Count), r.Type, op, strconv.Itoa(r.Root))
	if p.beside {
		fmt.Fprintln(p.w, line+p.besideColumns(r, peers))
		return
	}
	for _, m := range []*Measure{r.OutOfPlace, r.InPlace} {
		line += "  " + p.measure(m)
	}
	line += p.deviation(r)
	for _, name := range p.peers {
		peer := peers[name]
		if peer == nil {
			line += "  " + fmt.Sprintf("%8s %7s %7s", "-", "-", "-") + p.deviation(nil)
			continue
		}
		line += "  " + fmt.Sprintf("%8s %7s %7s", p.timeOf(peer), formatRatio(ratio(peer.OutOfPlace, r.OutOfPlace)),
			formatRatio(ratio(peer.InPlace, r.InPlace))) + p.deviation(peer)
	}
	fmt.Fprintln(p.w, strings.TrimRight(line, " "))
}

const errorColumns = "%7s %7s"

func (p *printer) deviation(r *Row) string {
	switch {
	case !p.errors:
		return ""
	case r == nil || r.Error == nil:
		return "  " + fmt.Sprintf(errorColumns, "-", "-")
	}
	return "  " + fmt.Sprintf(errorColumns, formatError(r.Error.Max), formatError(r.Error.RMS))
}

// formatError shows three digits or so.
func formatError(ulps float64) string {
	if ulps < 100 {
		return strconv.FormatFloat(ulps, 'f', 3, 64)
	}
	return strconv.FormatFloat(ulps, 'g', 3, 64)
}

func (p *printer) timeOf(r *Row) string {
	if r.OutOfPlace == nil {
		return "-"
	}
	return formatTime(r.OutOfPlace.Time)
}

func (p *printer) measure(m *Measure) string {
	if m == nil {
		return fmt.Sprintf(timeColumns, "-", "-", "-", "N/A")
	}
	wrong := "N/A"
	if m.Wrong != nil {
		wrong = strconv.FormatInt(*m.Wrong, 10)
		p.wrong += *m.Wrong
	}
	p.busbw += m.BusBW
	p.count++
	return fmt.Sprintf(timeColumns, formatTime(m.Time), formatBandwidth(m.AlgBW), formatBandwidth(m.BusBW), wrong)
}

// footer writes the two lines that scripts look for.
func (p *printer) footer(checked bool) {
	verdict := "OK"
	switch {
	case p.wrong > 0:
		verdict = "FAILED"
	case !checked:
		verdict = "NOT CHECKED"
	}
	fmt.Fprintf(p.w, "# Out of bounds values : %d %s\n", p.wrong, verdict)
	avg := 0.0
	if p.count > 0 {
		avg = p.busbw / float64(p.count)
	}
	fmt.Fprintf(p.w, "# Avg bus bandwidth    : %.4g\n", avg)
}

// formatTime shows microseconds with four digits at least and no more than two
// decimals.
func formatTime(us float64) string {
	switch {
	case us < 100:
		return strconv.FormatFloat(us, 'f', 2, 64)
	case us < 1000:
		return strconv.FormatFloat(us, 'f', 1, 64)
	}
	return strconv.FormatFloat(us, 'f', 0, 64)
}

func formatBandwidth(gbs float64) string {
	if gbs < 1000 {
		return strconv.FormatFloat(gbs, 'f', 2, 64)
	}
	return strconv.FormatFloat(gbs, 'f', 0, 64)
}

// ratio is the peer's time in units of ours, NaN where one of them is missing.
func ratio(peer, ours *Measure) float64 {
	if peer == nil || ours == nil || ours.Time <= 0 {
		return math.NaN()
	}
	return peer.Time / ours.Time
}

func formatRatio(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x < 100:
		return strconv.FormatFloat(x, 'f', 2, 64) + "x"
	}
	return strconv.FormatFloat(x, 'f', 0, 64) + "x"
}

func center(s string, width int) string {
	left := max(0, width-len(s)) / 2
	return fmt.Sprintf("%*s%-*s", left, "", width-left, s)
}
