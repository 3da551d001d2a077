// The lexer: it cuts the text of a module into words, numbers, strings and punctuation.

package ptx

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	endToken    tokenKind = iota
	wordToken             // ld.global.v4.u32, %tid.x, $L__BB0_1, .reg
	numberToken           // 12, 0x1f, 0f3F800000, 1.5e-3
	stringToken           // with its quotes
	punctToken            // one byte, or one of the operators of two
)

type token struct {
	kind tokenKind
	text string // part of the source
	off  int
	line int
	col  int // bytes from the line's start, from 1
}

// is reports whether it is the punctuation or the word.
func (t token) is(s string) bool {
	return t.text == s && (t.kind == punctToken || t.kind == wordToken)
}

func (t token) String() string {
	if t.kind == endToken {
		return "the end of the file"
	}
	return "“" + clip(t.text) + "”"
}

// clip shortens a quotation in an error.
func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// A syntaxError ends parsing; Parse recovers it.
type syntaxError struct{ err error }

// A lexer cuts a text into tokens.
type lexer struct {
	file  string
	src   string
	off   int // of the next byte
	line  int
	start int // of the line
}

func (l *lexer) fail(line, col int, format string, args ...any) {
	panic(syntaxError{fmt.Errorf("%s:%d:%d: %s", l.file, line, col, fmt.Sprintf(format, args...))})
}

// Classes of bytes.
const (
	startsWord = 1 << iota
	inWord
	digit
	space
)

var class = func() (c [256]uint8) {
	for b := byte('a'); b <= 'z'; b++ {
		c[b] = startsWord | inWord
		c[b-'a'+'A'] = startsWord | inWord
	}
	for b := byte('0'); b <= '9'; b++ {
		c[b] = inWord | digit
	}
	c['_'], c['$'] = startsWord|inWord, startsWord|inWord
	c['%'] = startsWord
	c['.'] = startsWord
	c[' '], c['\t'], c['\r'] = space, space, space
	return c
}()

// skip passes over white space and comments.
func (l *lexer) skip() {
	for l.off < len(l.src) {
		switch b := l.src[l.off]; {
		case class[b] == space:
			l.off++
		case b == '\n':
			l.newline()
		case b == '/' && strings.HasPrefix(l.src[l.off:], "//"):
			l.skipLine()
		case b == '/' && strings.HasPrefix(l.src[l.off:], "/*"):
			l.skipComment()
		default:
			return
		}
	}
}

func (l *lexer) newline() {
	l.off++
	l.line++
	l.start = l.off
}

// skipLine goes to the end of the line.
func (l *lexer) skipLine() {
	if n := strings.IndexByte(l.src[l.off:], '\n'); n >= 0 {
		l.off += n
	} else {
		l.off = len(l.src)
	}
}

func (l *lexer) skipComment() {
	line, col := l.line, l.off-l.start+1
	for l.off += 2; l.off < len(l.src); {
		switch {
		case l.src[l.off] == '\n':
			l.newline()
		case strings.HasPrefix(l.src[l.off:], "*/"):
			l.off += 2
			return
		default:
			l.off++
		}
	}
	l.fail(line, col, "a comment without its end, expected */")
}

// next is the next token.
func (l *lexer) next() token {
	l.skip()
	t := token{off: l.off, line: l.line, col: l.off - l.start + 1}
	if l.off >= len(l.src) {
		return t
	}
	b := l.src[l.off]
	after := byte(0)
	if l.off+1 < len(l.src) {
		after = l.src[l.off+1]
	}
	switch {
	case class[b]&digit != 0 || b == '.' && class[after]&digit != 0:
		t.kind = numberToken
		l.number()
	case b == '%' && class[after]&(startsWord|digit) != startsWord:
		t.kind = punctToken // the remainder of a division
		l.off++
	case class[b]&startsWord != 0:
		t.kind = wordToken
		l.word()
	case b == '"':
		t.kind = stringToken
		line, _, _ := strings.Cut(l.src[l.off:], "\n")
		end := 1
		for ; end < len(line) && line[end] != '"'; end++ {
			if line[end] == '\\' { // of a quote in the name of a folder
				end++
			}
		}
		if end >= len(line) {
			l.fail(t.line, t.col, "a string without its end, expected \" on the same line")
		}
		l.off += end + 1
	default:
		t.kind = punctToken
		l.off++
		if (b == '<' || b == '>') && after == b {
			l.off++
		}
	}
	t.text = l.src[t.off:l.off]
	return t
}

// word passes over a name with its dotted parts. A :: is inside a dotted part
// (.L1::no_allocate), but a label's colon is not part of the name.
func (l *lexer) word() {
	i := l.off
	dotted := l.src[i] == '.'
	for i++; i < len(l.src); i++ {
		b := l.src[i]
		if class[b]&inWord != 0 {
			continue
		}
		if b == '.' {
			dotted = true
			continue
		}
		if dotted && b == ':' && strings.HasPrefix(l.src[i:], "::") {
			i++
			continue
		}
		break
	}
	l.off = i
}

// number passes over digits, letters and dots, and over a sign after the e of a decimal.
func (l *lexer) number() {
	start := l.off
	for l.off++; l.off < len(l.src); l.off++ {
		b := l.src[l.off]
		if class[b]&inWord != 0 || b == '.' {
			continue
		}
		if before := l.src[l.off-1]; (b == '-' || b == '+') && (before == 'e' || before == 'E') &&
			decimal(l.src[start:l.off-1]) {
			continue
		}
		break
	}
}

// decimal reports whether s is digits and dots.
func decimal(s string) bool {
	for i := range len(s) {
		if class[s[i]]&digit == 0 && s[i] != '.' {
			return false
		}
	}
	return true
}
