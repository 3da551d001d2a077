package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Progress tells how far long work has come and how long the rest takes: on a terminal by a bar, after barAfter and
// then every barEvery, and elsewhere by a line every lineEvery. A nil Progress tells nothing.
type Progress struct {
	To       io.Writer
	Terminal bool // To is one
	what     string
	began    time.Time
	said     time.Time // when something was last written of this work; zero if never
	drawn    int       // characters of the bar that stands on the terminal
}

// A bar appears when work has taken barAfter, and is drawn anew every barEvery; elsewhere lines come every lineEvery.
const (
	barAfter, barEvery = 2 * time.Second, time.Second
	lineEvery          = 15 * time.Second
)

// NewProgress returns a Progress on w if w is a file, such as a terminal or a job's log, else nil.
func NewProgress(w io.Writer) *Progress {
	if t, ok := w.(*text); ok {
		w = t.to
	}
	if f, ok := w.(*os.File); ok {
		return &Progress{To: w, Terminal: term.IsTerminal(int(f.Fd()))}
	}
	return nil
}

// Show tells of the work named what, of which share (0 to 1) is done. It may be called as often as one likes.
func (p *Progress) Show(what string, share float64) {
	if p == nil {
		return
	}
	now := time.Now()
	if p.what != what {
		p.Clear()
		p.what, p.began, p.said = what, now, time.Time{}
	}
	took := now.Sub(p.began)
	switch {
	case !p.Terminal:
		if took >= lineEvery && now.Sub(p.said) >= lineEvery {
			p.said = now
			fmt.Fprintf(p.To, "%s: %.0f %% after %s\n", p.what, 100*share, left(share, took))
		}
	case took >= barAfter && now.Sub(p.said) >= barEvery:
		p.said = now
		p.draw(share, took)
	}
}

// left is a text: how long the work took until its share was done, and how long the rest takes at this pace.
func left(share float64, took time.Duration) string {
	s := took.Round(time.Second).String()
	if share > 0 && share < 1 {
		s += fmt.Sprintf(", about %v left", time.Duration(float64(took)*(1-share)/share).Round(time.Second))
	}
	return s
}

// draw draws the bar over the one before.
func (p *Progress) draw(share float64, took time.Duration) {
	const width = 20
	done := max(0, min(int(width*share), width-1))
	line := fmt.Sprintf("%3.0f%% [%s>%s] %s, %s", 100*share, strings.Repeat("=", done),
		strings.Repeat(".", width-1-done), p.what, left(share, took))
	p.Hide()
	p.drawn = utf8.RuneCountInString(line)
	fmt.Fprintf(p.To, "%s\r", line)
}

// Hide takes the bar away for a moment, for other output.
func (p *Progress) Hide() {
	if p != nil && p.drawn > 0 {
		fmt.Fprintf(p.To, "%s\r", strings.Repeat(" ", p.drawn))
		p.drawn = 0
	}
}

// Clear takes the bar away; the next work begins anew.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.Hide()
	p.what = ""
}
