package chart

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// fonts are asked for in this order.
const fonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

type svg struct{ b strings.Builder }

func newSVG(width, height float64) *svg {
	c := &svg{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="%s">`+"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n",
		num(width), num(height), num(width), num(height), fonts)
	return c
}

// num is a number with at most two decimals.
func num(v float64) string {
	s := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func hex(c ink) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func points(at []point) string {
	var words []string
	for _, p := range at {
		words = append(words, num(p.x)+","+num(p.y))
	}
	return strings.Join(words, " ")
}

func (c *svg) line(at []point, width float64, col ink) {
	fmt.Fprintf(&c.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"/>`+"\n",
		points(at), hex(col), num(width))
}

func (c *svg) dot(at point, s shape, r float64, col ink) {
	if outline := s.outline(at, r); outline != nil {
		fmt.Fprintf(&c.b, `<polygon points="%s" fill="%s"/>`+"\n", points(outline), hex(col))
		return
	}
	fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s" fill="%s"/>`+"\n", num(at.x), num(at.y), num(r), hex(col))
}

func (c *svg) text(at point, l label, s string) {
	anchor := [...]string{"start", "middle", "end"}[l.anchor]
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" font-size="%s" fill="%s" text-anchor="%s">%s</text>`+"\n", num(at.x), num(at.y),
		num(l.size), hex(l.ink), anchor, html.EscapeString(s))
}

func (c *svg) write(w io.Writer) error {
	_, err := io.WriteString(w, c.b.String()+"</svg>\n")
	return err
}
