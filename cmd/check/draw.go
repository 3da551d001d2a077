package check

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"unicode"
)

// Sizes of a drawn map in pixels.
const (
	cellWide, cellHigh = 46, 24
	nameWide, titleGap = 110, 46
	mapGap             = 30
)

// WriteSVG draws the heat maps, one below the other. Dark is bad. A pair with a finding has a red border, and a host or
// GPU that is blamed has a red name.
func (r *report) WriteSVG(w io.Writer) error {
	var b bytes.Buffer
	maps := r.drawn()
	wide, high := 300, mapGap
	for i := range maps {
		wide, high = max(wide, maps[i].wide()), high+maps[i].high()
	}
	beginSVG(&b, wide, high)
	y := mapGap
	if len(maps) == 0 {
		fmt.Fprintf(&b, `<text x="10" y="%d">no pairs were measured</text>`+"\n", y)
	}
	for i := range maps {
		maps[i].draw(&b, y)
		y += maps[i].high()
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func beginSVG(b *bytes.Buffer, wide, high int) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="Arial,Helvetica,sans-serif" font-size="11">`+"\n", wide, high)
	b.WriteString(`<rect class="ground" width="100%" height="100%" fill="#fff"/>` + "\n")
}

// drawn are the heat maps, of large ones a part.
func (r *report) drawn() []heatMap {
	maps := r.Maps()
	for i := range maps {
		maps[i] = *maps[i].some(maxDrawn)
	}
	return maps
}

func (m *heatMap) wide() int {
	return max(nameWide+len(m.Places)*cellWide, 8*len(m.Title+m.Unit)) + 20
}
func (m *heatMap) high() int { return titleGap + len(m.Places)*cellHigh + mapGap }

// blamed reports whether a place has findings in both directions, or with half of the others.
func (m *heatMap) blamed(i int) bool {
	out, in := 0, 0
	for k := range m.Places {
		if m.Bad[[2]int{i, k}] {
			out++
		}
		if m.Bad[[2]int{k, i}] {
			in++
		}
	}
	others := len(m.Places) - 1
	return others > 1 && (2*out > others || 2*in > others)
}

func (m *heatMap) draw(b *bytes.Buffer, y int) {
	fmt.Fprintf(b, `<text x="10" y="%d" font-size="14">%s, %s</text>`+"\n", y, escape(m.Title), escape(m.Unit))
	y += titleGap - 12
	best := m.best()
	for i, p := range m.Places {
		mark := ""
		if m.blamed(i) {
			mark = ` class="blamed" fill="#c00000" font-weight="bold"`
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle"%s>%s</text>`+"\n", nameWide+i*cellWide+cellWide/2, y, mark,
			escape(tail(p, 7)))
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end"%s>%s</text>`+"\n", nameWide-6, y+i*cellHigh+cellHigh-3, mark,
			escape(tail(p, 16)))
	}
	for i, from := range m.Places {
		for k, to := range m.Places {
			v, ok := m.Values[[2]int{i, k}]
			bad := m.Bad[[2]int{i, k}]
			if !ok && !bad {
				if i != k {
					fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#999">·<title>%s to %s: not measured</title></text>`+"\n",
						nameWide+k*cellWide+cellWide/2, y+i*cellHigh+cellHigh-3, escape(from), escape(to))
				}
				continue
			}
			dark := shade(v, best)
			edge := "#fff"
			if bad {
				edge = "#e00000"
			} else {
				dark *= 0.35 // slower than the best, and not to blame for it
			}
			text, fill, ink := digits(v), colour(dark), "#000"
			if !ok {
				text, fill = "none", "#000"
			}
			if dark > 0.55 || !ok {
				ink = "#fff"
			}
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="%s" stroke-width="2"><title>%s to %s: %s %s</title></rect>`,
				nameWide+k*cellWide+1, y+6+i*cellHigh, cellWide-3, cellHigh-3, fill, edge, escape(from), escape(to), text,
				escape(m.Unit))
			fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" class="value" fill="%s">%s</text>`+"\n",
				nameWide+k*cellWide+cellWide/2, y+i*cellHigh+cellHigh-3, ink, text)
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

// escape writes text for XML and HTML.
func escape(s string) string { return whiteSpace.Replace(html.EscapeString(harmless(s))) }

// harmless is text of which XML allows every character and a terminal obeys none: others become U+FFFD.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) || r == '\uFFFE' || r == '\uFFFF' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// whiteSpace escapes what XML would take for a blank.
var whiteSpace = strings.NewReplacer("\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")
