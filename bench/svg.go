package bench

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// typeface is the font that plots are laid out with; it has the widths of Arial.
var typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}

// setTypeface has a plot use it.
func setTypeface(p *plot.Plot) {
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
	} {
		style.Font.Typeface, style.Font.Variant = typeface.Typeface, typeface.Variant
	}
}

// An svgCanvas makes text as wide as the layout has it, whichever font a viewer
// has in place of ours: without that, labels run into ticks.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length // of the texts so far
}

func newSVG(width, height vg.Length) *svgCanvas { return &svgCanvas{Canvas: vgsvg.New(width, height)} }

// FillString notes how wide the text is.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, s string) {
	c.widths = append(c.widths, f.Width(s))
	c.Canvas.FillString(f, at, s)
}

// WriteTo writes the picture.
func (c *svgCanvas) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if _, err := c.Canvas.WriteTo(&b); err != nil {
		return 0, err
	}
	const tag = "<text "
	parts := strings.Split(b.String(), tag)
	for i, width := range c.widths {
		parts[i+1] = fmt.Sprintf("%stextLength=\"%.2f\" lengthAdjust=\"spacingAndGlyphs\" %s", tag, width.Points(), parts[i+1])
	}
	svg := strings.ReplaceAll(strings.Join(parts, ""), "font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif")
	n, err := io.WriteString(w, svg)
	return int64(n), err
}
