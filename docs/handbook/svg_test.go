package handbook_test

import (
	"fmt"
	"math"
	"strings"
)

// A drawing is an SVG under way. It has its own ground, so it can be read on pages of any
// colour, and follows the reader's choice of light or dark. Colours are those of Okabe and Ito,
// which colour-blind readers tell apart, and never stand alone: what they mean is also written.
type drawing struct {
	strings.Builder
	width, height float64
}

const hues = 8 // classes c0 … c7

const style = `<style>
.ground{fill:#fff}.line{stroke:#888;fill:none}.faint{stroke:#ddd;fill:none}.box{fill:none;stroke:#888}
text{font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:12px;fill:#222}
.small{font-size:10px}.on{fill:#000}.title{font-weight:600}.mute{fill:#666}
.c0{--c:#0072b2}.c1{--c:#e69f00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#56b4e9}.c5{--c:#d55e00}.c6{--c:#a89f00}.c7{--c:#7f7f7f}
.s{stroke:var(--c);fill:none;stroke-width:2}.f{fill:var(--c)}.t{fill:var(--c);fill-opacity:.4}
@media(prefers-color-scheme:dark){.ground{fill:#16191d}text{fill:#e6e6e6}.on{fill:#fff}.mute{fill:#aaa}.faint{stroke:#333}.c0{--c:#4a9be8}.c4{--c:#a5e1fa}}
</style>
`

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n", class, num(x), num(y), num(w), num(h))
}

// text is anchored at start, middle or end of its line.
func (d *drawing) text(class, anchor string, x, y float64, format string, a ...any) {
	s := strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(fmt.Sprintf(format, a...))
	fmt.Fprintf(d, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`+"\n", class, anchor, num(x), num(y), s)
}

// arrow ends in a head.
func (d *drawing) arrow(class string, x1, y1, x2, y2 float64) {
	const head, half = 9, 3.5
	l := math.Hypot(x2-x1, y2-y1)
	dx, dy := (x2-x1)/l, (y2-y1)/l
	bx, by := x2-head*dx, y2-head*dy
	d.line(class+" s", x1, y1, bx, by)
	fmt.Fprintf(d, `<path class="%s f" d="M%s %sL%s %sL%s %sz"/>`+"\n", class,
		num(x2), num(y2), num(bx-half*dy), num(by+half*dx), num(bx+half*dy), num(by-half*dx))
}

// mark is a disc with a number in it.
func (d *drawing) mark(class string, x, y, r float64, label string) {
	fmt.Fprintf(d, `<circle class="ground" cx="%s" cy="%s" r="%s"/><circle class="%s s" style="fill:var(--c);fill-opacity:.25" cx="%s" cy="%s" r="%s"/>`+"\n",
		num(x), num(y), num(r), class, num(x), num(y), num(r))
	d.text("small on", "middle", x, y+3.5, "%s", label)
}

func (d *drawing) svg() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s">`+"\n", num(d.width),
		num(d.height), num(d.width)) +
		style + fmt.Sprintf(`<rect class="ground" width="%s" height="%s" rx="8"/>`+"\n", num(d.width), num(d.height)) +
		d.String() + "</svg>\n"
}

func num(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", x), "0"), ".")
}

func hue(i int) string { return fmt.Sprintf("c%d", i%hues) }
