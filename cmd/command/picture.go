package command

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
)

// Limits of pictures: lines of a text picture that was not asked for, ranks of a text picture, ranks
// and messages of an SVG picture.
const (
	pictureLines = 60
	textRanks    = 16
	svgRanks     = 64
	svgMessages  = 20_000
)

// A picture shows the messages of a schedule: ranks side by side, time downwards, an arrow a
// message. Messages of a hop may be on their way at once.
type picture struct {
	ranks, chunks, hops int
	messages            []sched.Message // by hop
}

func newPicture(s sched.Schedule) (*picture, error) {
	shape := s.Shape()
	if shape.Ranks > svgRanks {
		return nil, fmt.Errorf("a picture is of at most %d ranks", svgRanks)
	}
	list, err := sched.Messages(s, 8)
	if err != nil {
		return nil, err
	}
	p := &picture{ranks: shape.Ranks, chunks: max(shape.In, shape.Out)}
	for _, m := range list {
		if m.From == m.To {
			continue
		}
		p.messages = append(p.messages, m)
		p.hops = max(p.hops, m.Hop)
	}
	slices.SortStableFunc(p.messages, func(a, b sched.Message) int {
		return cmp.Or(cmp.Compare(a.Hop, b.Hop), cmp.Compare(a.FromStep, b.FromStep), cmp.Compare(a.From, b.From))
	})
	return p, nil
}

// label is the number of a message's chunk, "" where the schedule has one chunk.
func (p *picture) label(m sched.Message) string {
	if p.chunks == 1 {
		return ""
	}
	return fmt.Sprint(m.Sent.Chunk)
}

const column = 8 // width of a rank's column, in characters

// text draws arrows of characters. Arrows of one hop share a line unless they would cross.
func (p *picture) text() []string {
	var lines []string
	head := "hop  "
	for r := range p.ranks {
		head += fmt.Sprintf("%-*d", column, r)
	}
	lines = append(lines, strings.TrimRight(head, " "))
	hop := 0
	for rest := p.messages; len(rest) > 0; {
		line := p.lifelines()
		var later []sched.Message
		taken := make([]bool, p.ranks)
		for _, m := range rest {
			a, b := min(m.From, m.To), max(m.From, m.To)
			if m.Hop != rest[0].Hop || slices.Contains(taken[a:b+1], true) {
				later = append(later, m)
				continue
			}
			for r := a; r <= b; r++ {
				taken[r] = true
			}
			p.arrow(line, m)
		}
		prefix := "     "
		if rest[0].Hop != hop {
			hop = rest[0].Hop
			prefix = fmt.Sprintf("%3d  ", hop)
		}
		lines = append(lines, strings.TrimRight(prefix+string(line), " "))
		rest = later
	}
	return lines
}

func (p *picture) lifelines() []rune {
	line := []rune(strings.Repeat(" ", column*(p.ranks-1)+1))
	for r := range p.ranks {
		line[r*column] = '│'
	}
	return line
}

// arrow draws a message into line, with its chunk near the sender.
func (p *picture) arrow(line []rune, m sched.Message) {
	from, to := int(m.From)*column, int(m.To)*column
	for x := min(from, to) + 1; x < max(from, to); x++ {
		line[x] = '─'
	}
	line[from] = '●'
	label := []rune(p.label(m))
	if from < to {
		line[to-1] = '▶'
		copy(line[from+2:], label)
		return
	}
	line[to+1] = '◀'
	copy(line[from-1-len(label):], label)
}

// colors are the colors of chunks: Okabe and Ito's palette, and darker ones.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07d00", "#3a8fc4", "#5a5a5a", "#7a3b8f"}

// An arrow is the messages of one hop from one rank to another.
type arrow []sched.Message

// arrows are the messages; messages of one hop between the same two ranks share an arrow.
func (p *picture) arrows() (list []arrow) {
	type way struct {
		hop      int
		from, to sched.Rank
	}
	at := map[way]int{}
	for _, m := range p.messages {
		w := way{m.Hop, m.From, m.To}
		i, ok := at[w]
		if !ok {
			i = len(list)
			at[w] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], m)
	}
	return list
}

// labels are the chunks of an arrow's messages; of more than three the first two and "…".
func (p *picture) labels(a arrow) string {
	var words []string
	for _, m := range a {
		words = append(words, p.label(m))
	}
	if len(words) > 3 {
		words = append(words[:2], "…")
	}
	return strings.Join(words, ",")
}

// tip describes the messages of an arrow, a line each.
func (a arrow) tip() string {
	var lines []string
	for _, m := range a {
		lines = append(lines, fmt.Sprintf("hop %d: rank %d step %d to rank %d step %d, chunk %d", m.Hop, m.From, m.FromStep,
			m.To, m.ToStep, m.Sent.Chunk))
	}
	return strings.Join(lines, "\n")
}

// svg draws the same picture as SVG.
func (p *picture) svg(w io.Writer, title string) error {
	if len(p.messages) > svgMessages {
		return fmt.Errorf("a picture of %d messages: want at most %d", len(p.messages), svgMessages)
	}
	arrows := p.arrows()
	dense := map[int]int{} // arrows by hop
	high := min(64, max(16, 1280/float64(max(1, p.hops))))
	for _, a := range arrows {
		if dense[a[0].Hop]++; dense[a[0].Hop] > 2*p.ranks {
			high = 160
		}
	}
	const left, top, fonts = 70, 70, "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
	wide := max(24, min(96, 1500/max(1, p.ranks)))
	x := func(r sched.Rank) float64 { return float64(left + wide/2 + int(r)*wide) }
	y := func(hop float64) float64 { return top + 16 + hop*high }
	width := max(left+wide*p.ranks+20, 40+8*len([]rune(title)))
	height := int(y(float64(p.hops))) + 30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="%s" font-size="13">
<title>%s</title>
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="20" y="26" font-size="16" fill="#222">%s</text>
`, width, height, width, height, fonts, html.EscapeString(title), html.EscapeString(title))
	for i, c := range colors {
		fmt.Fprintf(&b, `<marker id="a%d" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 1L10 5L0 9z" fill="%s"/></marker>`+"\n", i, c)
	}
	for r := range p.ranks {
		at := x(sched.Rank(r))
		fmt.Fprintf(&b, `<text x="%g" y="%d" text-anchor="middle" fill="#222">%d</text><line x1="%g" y1="%d" x2="%g" y2="%g" stroke="#bbb"/>`+"\n", at, top, r, at, top+8, at, y(float64(p.hops))+8)
	}
	fmt.Fprintf(&b, `<text x="20" y="%d" fill="#666">rank</text>`+"\n", top)
	for h := range p.hops {
		fmt.Fprintf(&b, `<text x="20" y="%g" fill="#666">hop %d</text><line x1="%d" y1="%g" x2="%d" y2="%g" stroke="#eee"/>`+"\n", y(float64(h)+0.5)+4, h+1, left, y(float64(h)), width-20, y(float64(h)))
	}
	for _, a := range arrows {
		m := a[0]
		c := int(m.Sent.Chunk) % len(colors)
		x1, y1, x2, y2 := x(m.From), y(float64(m.Hop-1)), x(m.To), y(float64(m.Hop))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.6" marker-end="url(#a%d)"><title>%s</title></line>`+"\n",
			x1, y1, x2, y2, colors[c], c, a.tip())
		if label := p.labels(a); label != "" && dense[m.Hop] <= 2*p.ranks { // more labels would hide the arrows
			at := 0.3 // of the way from the sender; the other direction differs, lest labels meet
			if m.From > m.To {
				at = 0.36
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="11" fill="%s" stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
				x1+at*(x2-x1), y1+at*(y2-y1)+4, colors[c], label)
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// printPicture writes the arrows as text: always if asked, else for at most 8 ranks and pictureLines lines.
func printPicture(w io.Writer, s sched.Schedule, asked bool) error {
	if !asked && s.Shape().Ranks > 8 {
		return nil
	}
	if n := s.Shape().Ranks; n > textRanks {
		return cli.Usagef("-picture is of at most %d ranks; -o FILE.svg draws up to %d", textRanks, svgRanks)
	}
	p, err := newPicture(s)
	if err != nil {
		return err
	}
	lines := p.text()
	if p.hops == 0 || !asked && len(lines) > pictureLines {
		return nil
	}
	what := "who sends to whom"
	if p.chunks > 1 {
		what += "; numbers are chunks"
	}
	_, err = fmt.Fprintf(w, "\n%s\n%s\n", what, strings.Join(lines, "\n"))
	return err
}
