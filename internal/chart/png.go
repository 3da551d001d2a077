package chart

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// dots are pixels a point.
const dots = 2

type raster struct {
	img   *image.RGBA
	font  *opentype.Font
	faces map[float64]font.Face
}

func newPNG(width, height float64) (*raster, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	img := image.NewRGBA(image.Rect(0, 0, int(math.Ceil(width*dots)), int(math.Ceil(height*dots))))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	return &raster{img: img, font: f, faces: map[float64]font.Face{}}, nil
}

// fill fills a polygon.
func (c *raster) fill(at []point, col ink) {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range at {
		x0, y0, x1, y1 = min(x0, p.x), min(y0, p.y), max(x1, p.x), max(y1, p.y)
	}
	box := image.Rect(int(x0*dots)-1, int(y0*dots)-1, int(x1*dots)+2, int(y1*dots)+2)
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	for i, p := range at {
		x, y := float32(p.x*dots-float64(box.Min.X)), float32(p.y*dots-float64(box.Min.Y))
		if i == 0 {
			z.MoveTo(x, y)
		} else {
			z.LineTo(x, y)
		}
	}
	z.ClosePath()
	z.Draw(c.img, box, image.NewUniform(color.RGBA(col)), image.Point{})
}

func (c *raster) line(at []point, width float64, col ink) {
	h := width / 2
	for i := 1; i < len(at); i++ {
		a, b := at[i-1], at[i]
		n := math.Hypot(b.x-a.x, b.y-a.y)
		if n == 0 {
			continue
		}
		dx, dy := (b.y-a.y)/n*h, (a.x-b.x)/n*h
		c.fill([]point{{a.x + dx, a.y + dy}, {b.x + dx, b.y + dy}, {b.x - dx, b.y - dy}, {a.x - dx, a.y - dy}}, col)
		if i > 1 && width > 1 {
			c.dot(a, circle, h, col) // a round joint
		}
	}
}

func (c *raster) dot(at point, s shape, r float64, col ink) {
	outline := s.outline(at, r)
	for k := 0; outline == nil || s == circle && k < 24; k++ {
		sin, cos := math.Sincos(float64(k) * math.Pi / 12)
		outline = append(outline, point{at.x + r*cos, at.y + r*sin})
	}
	c.fill(outline, col)
}

func (c *raster) text(at point, l label, s string) {
	face := c.faces[l.size]
	if face == nil {
		var err error
		if face, err = opentype.NewFace(c.font, &opentype.FaceOptions{Size: l.size * dots, DPI: 72}); err != nil {
			return // of a font that is part of the program
		}
		c.faces[l.size] = face
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(color.RGBA(l.ink)), Face: face}
	x := at.x * dots
	if l.anchor != start {
		x -= float64(d.MeasureString(s)) / 64 * [...]float64{0, 0.5, 1}[l.anchor]
	}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(at.y * dots * 64)}
	d.DrawString(s)
}

func (c *raster) write(w io.Writer) error { return png.Encode(w, c.img) }
