package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ringo-go/ringo/internal/given"
)

// Printable returns text in which nothing moves a terminal's cursor or changes its state but ends of lines and tabs:
// other control characters, and those that change the direction of writing, are quoted as in Go.
func Printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, harmful) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if harmful(r) || r == utf8.RuneError && n == 1 {
			b.WriteString(given.Printable(text[:n]))
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func harmful(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// Text returns a writer to w for people: what is written there is Printable. Names of files, hosts and devices are
// others' words.
func Text(w io.Writer) io.Writer { return &text{to: w} }

type text struct {
	to   io.Writer
	rest string // the beginning of a character
}

func (t *text) Write(b []byte) (int, error) {
	s := t.rest + string(b)
	end := len(s)
	for i := 1; i <= min(len(s), utf8.UTFMax-1); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				end -= i
			}
			break
		}
	}
	s, t.rest = s[:end], s[end:]
	if _, err := io.WriteString(t.to, Printable(s)); err != nil {
		return 0, err
	}
	return len(b), nil
}
