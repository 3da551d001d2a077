package check

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Sizes of a drawn map in pixels.
const (
	cellWide, cellHigh = 46, 24
	nameWide, titleGap = 110, 46
	mapGap             = 30
)

// WriteSVG draws the heat maps, one below the other. Dark is bad, and a pair with a finding has a
// red border.
func (r *report) WriteSVG(w io.Writer) error {
	var b bytes.Buffer
	maps := r.Maps()
	for i := range maps {
		maps[i] = *maps[i].some(maxDrawn)
	}
	wide, high := 300, mapGap
	for i := range maps {
		n := len(maps[i].Places)
		wide, high = max(wide, nameWide+n*cellWide+20), high+titleGap+n*cellHigh+mapGap
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="Arial,Helvetica,sans-serif" font-size="11">`+"\n", wide, high)
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	y := mapGap
	if len(maps) == 0 {
		fmt.Fprintf(&b, `<text x="10" y="%d">no pairs were measured</text>`+"\n", y)
	}
	for i := range maps {
		maps[i].draw(&b, y)
		y += titleGap + len(maps[i].Places)*cellHigh + mapGap
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func (m *heatMap) draw(b *bytes.Buffer, y int) {
	fmt.Fprintf(b, `<text x="10" y="%d" font-size="14">%s, %s</text>`+"\n", y, escape(m.Title), escape(m.Unit))
	y += titleGap - 12
	best := m.best()
	for i, p := range m.Places {
		name := escape(tail(p, 7))
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", nameWide+i*cellWide+cellWide/2, y, name)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWide-6, y+i*cellHigh+cellHigh-3, escape(tail(p, 16)))
	}
	for i, from := range m.Places {
		for k, to := range m.Places {
			v, ok := m.Values[[2]int{i, k}]
			bad := m.Bad[[2]int{i, k}]
			if !ok && !bad {
				continue
			}
			text, fill, ink, edge := digits(v), colour(shade(v, best)), "#000", "#fff"
			if !ok {
				text, fill = "none", "#000"
			}
			if shade(v, best) > 0.55 || !ok {
				ink = "#fff"
			}
			if bad {
				edge = "#e00000"
			}
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="%s" stroke-width="2"><title>%s to %s: %s %s</title></rect>`,
				nameWide+k*cellWide+1, y+6+i*cellHigh, cellWide-3, cellHigh-3, fill, edge, escape(from), escape(to), text, escape(m.Unit))
			fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n", nameWide+k*cellWide+cellWide/2, y+i*cellHigh+cellHigh-3, ink, text)
		}
	}
}

// best is the best value of the map, 0 if there is none.
func (m *heatMap) best() (best float64) {
	for _, x := range m.Values {
		if m.Low && x > best || !m.Low && x > 0 && (best == 0 || x < best) {
			best = x
		}
	}
	return best
}

// shade is how bad a value is, from 0, the best of the map or as good, to 1, a tenth of it.
func shade(v, best float64) float64 {
	if best == 0 || v <= 0 {
		return 1
	}
	return min(1, math.Abs(math.Log10(v/best)))
}

func colour(shade float64) string {
	mix := func(from, to float64) int { return int(from + (to-from)*shade) }
	return fmt.Sprintf("#%02x%02x%02x", mix(226, 40), mix(240, 20), mix(217, 60))
}

// escape writes text for XML and HTML. What XML does not allow becomes U+FFFD.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == '\uFFFE' || r == '\uFFFF' {
			return '\uFFFD'
		}
		return r
	}, s)
	return strings.NewReplacer("\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;").Replace(html.EscapeString(s))
}

// WriteHTML writes the report as a page of its own: findings, stages, heat maps.
func (r *report) WriteHTML(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>ringo check</title>\n" +
		"<style>body{font-family:Arial,Helvetica,sans-serif;max-width:80em;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}" +
		".broken{color:#a00}.degraded{color:#a60}.well{color:#070}</style>\n")
	class := r.Verdict.String()
	if r.Verdict == unjudged {
		class = "unjudged"
	}
	fmt.Fprintf(&b, "<h1 class=\"%s\">%s</h1>\n<p>ringo %s, %s, %s, %.1f s</p>\n<table>\n", class, escape(r.Verdict.String()),
		escape(r.Version), r.Started.Format("2006-01-02 15:04:05 MST"), count(len(r.Hosts), "host"), r.Took)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "<tr><td class=\"%s\">%s<td>%s\n", label(f.Severity), label(f.Severity), escape(f.String()))
	}
	b.WriteString("</table>\n<table>\n<tr><th>stage<th>time<th>result<th>question\n")
	for i := range r.Stages {
		s := &r.Stages[i]
		fmt.Fprintf(&b, "<tr><td>%s<td>%.1f s<td>%s<td>%s\n", escape(s.Name), s.Took, escape(s.result(r)), escape(s.Asks))
	}
	b.WriteString("</table>\n")
	if err := r.WriteSVG(&b); err != nil {
		return err
	}
	b.WriteString("</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}
