package main

import "math/rand/v2"

// The made-up pictures have 16×16 pixels: a digit of the font, moved, scaled and
// slanted at random, with noise.
const (
	glyphSide    = 16
	glyphNoise   = 0.2 // standard deviation; full ink is 1
	glyphClasses = 10
)

// font is the digits in 5×7 cells.
var font = [glyphClasses][7]string{
	{".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."},
	{"..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."},
	{".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"},
	{".###.", "#...#", "....#", "..##.", "....#", "#...#", ".###."},
	{"...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."},
	{"#####", "#....", "####.", "....#", "....#", "#...#", ".###."},
	{"..##.", ".#...", "#....", "####.", "#...#", "#...#", ".###."},
	{"#####", "....#", "...#.", "..#..", ".#...", ".#...", ".#..."},
	{".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."},
	{".###.", "#...#", "#...#", ".####", "....#", "...#.", ".##.."},
}

// makeGlyphs makes n labelled pictures, which depend only on seed and stream.
func makeGlyphs(seed, stream uint64, n int) dataset {
	rng := rand.New(rand.NewPCG(seed, stream))
	d := dataset{pixels: glyphSide * glyphSide, images: make([]byte, n*glyphSide*glyphSide), labels: make([]byte, n)}
	for i := range n {
		digit := rng.IntN(glyphClasses)
		d.labels[i] = byte(digit)
		drawGlyph(d.image(i), digit, rng)
	}
	return d
}

// drawGlyph draws a digit into dst: it looks up the ink of each pixel in the font.
func drawGlyph(dst []byte, digit int, rng *rand.Rand) {
	between := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
	const middle = (glyphSide - 1) / 2.0
	x0, y0 := middle+between(-1.5, 1.5), middle+between(-1.5, 1.5)
	sx, sy := between(0.45, 0.6), between(0.5, 0.65) // cells of the font for each pixel
	slant, ink := between(-0.2, 0.2), between(0.6, 1)
	for y := range glyphSide {
		for x := range glyphSide {
			dy := float64(y) - y0
			dx := float64(x) - x0 + slant*dy
			v := ink*inkAt(digit, 2+dx*sx, 3+dy*sy) + glyphNoise*rng.NormFloat64()
			dst[y*glyphSide+x] = byte(255 * min(max(v, 0), 1))
		}
	}
}

// inkAt is the ink at a point of the font, interpolated between the middles of cells.
func inkAt(digit int, u, v float64) float64 {
	cell := func(col, row int) float64 {
		if row < 0 || row >= len(font[digit]) || col < 0 || col >= len(font[digit][row]) || font[digit][row][col] == '.' {
			return 0
		}
		return 1
	}
	if u <= -1 || u >= 6 || v <= -1 || v >= 8 {
		return 0
	}
	col, row := int(u+1)-1, int(v+1)-1 // floor, as both are above -1
	fu, fv := u-float64(col), v-float64(row)
	top := cell(col, row)*(1-fu) + cell(col+1, row)*fu
	bottom := cell(col, row+1)*(1-fu) + cell(col+1, row+1)*fu
	return top*(1-fv) + bottom*fv
}
