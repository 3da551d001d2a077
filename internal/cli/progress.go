package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// A Progress tells on a terminal how far work is that takes longer than two
// seconds, once a second. A nil Progress tells nothing.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	what  string
	began time.Time
	said  time.Time // zero while no line stands
}

// NewProgress writes to w if that is a terminal.
func NewProgress(w io.Writer) *Progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &Progress{w: w, now: time.Now}
	}
	return nil
}

// Show is called often, with the share of the work that is done.
func (p *Progress) Show(what string, share float64) {
	if p == nil {
		return
	}
	now := p.now()
	if p.what != what {
		p.Clear()
		p.what, p.began = what, now
	}
	if now.Sub(p.began) < 2*time.Second || now.Sub(p.said) < time.Second {
		return
	}
	p.said = now
	fmt.Fprintf(p.w, "\r\033[K%s: %.0f %% after %v", what, 100*share, now.Sub(p.began).Round(time.Second))
}

// Hide takes the line away for a moment, for other output.
func (p *Progress) Hide() {
	if p != nil && !p.said.IsZero() {
		fmt.Fprint(p.w, "\r\033[K")
	}
}

// Clear takes the line away; the next work begins anew.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.Hide()
	p.what, p.said = "", time.Time{}
}
