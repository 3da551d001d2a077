package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// A progress tells on a terminal how far work is that takes longer than two
// seconds, once a second. A nil progress tells nothing.
type progress struct {
	w     io.Writer
	now   func() time.Time
	what  string
	began time.Time
	said  time.Time // zero while no line stands
}

// newProgress writes to w if that is a terminal.
func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{w: w, now: time.Now}
	}
	return nil
}

// show is called often, with the share of the work that is done.
func (p *progress) show(what string, share float64) {
	if p == nil {
		return
	}
	now := p.now()
	if p.what != what {
		p.clear()
		p.what, p.began = what, now
	}
	if now.Sub(p.began) < 2*time.Second || now.Sub(p.said) < time.Second {
		return
	}
	p.said = now
	fmt.Fprintf(p.w, "\r\033[K%s: %.0f %% after %v", what, 100*share, now.Sub(p.began).Round(time.Second))
}

// clear takes the line away; the next work begins anew.
func (p *progress) clear() {
	if p == nil {
		return
	}
	if !p.said.IsZero() {
		fmt.Fprint(p.w, "\r\033[K")
	}
	p.what, p.said = "", time.Time{}
}
