package chart

// A point is a place on a picture, in points from its upper left corner.
type point struct{ x, y float64 }

type ink struct{ R, G, B, A uint8 }

var (
	black = ink{34, 34, 34, 255}
	gray  = ink{102, 102, 102, 255}
	pale  = ink{228, 228, 228, 255}
)

// palette is Okabe and Ito's, which colour-blind readers can tell apart, and two more.
var palette = []ink{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {90, 90, 90, 255},
	{122, 63, 139, 255}, {140, 86, 75, 255},
}

type shape uint8

const (
	circle shape = iota
	square
	triangle
	diamond
	up // beyond the edge
	down
)

// outline is the polygon of a shape, nil for a circle.
func (s shape) outline(at point, r float64) []point {
	switch s {
	case square:
		r *= 0.9
		return []point{{at.x - r, at.y - r}, {at.x + r, at.y - r}, {at.x + r, at.y + r}, {at.x - r, at.y + r}}
	case triangle:
		r *= 1.25
		return []point{{at.x, at.y - r}, {at.x + 0.87*r, at.y + r/2}, {at.x - 0.87*r, at.y + r/2}}
	case diamond:
		r *= 1.2
		return []point{{at.x, at.y - r}, {at.x + r, at.y}, {at.x, at.y + r}, {at.x - r, at.y}}
	case up:
		return []point{{at.x, at.y - 2*r}, {at.x + r, at.y}, {at.x - r, at.y}}
	case down:
		return []point{{at.x, at.y + 2*r}, {at.x + r, at.y}, {at.x - r, at.y}}
	}
	return nil
}

// A label is how text looks.
type label struct {
	size   float64
	ink    ink
	anchor anchor
}

type anchor uint8

const (
	start anchor = iota
	middle
	end
)
