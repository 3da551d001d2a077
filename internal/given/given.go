// Package given reads files that somebody else has written: another rank, another program, a stranger.
package given

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most is the largest file that is read, in bytes.
const Most = 1 << 30

var (
	errKind = errors.New("not a regular file")
	errSize = fmt.Errorf("longer than %d MiB", Most>>20)
)

// Read reads a regular file of at most Most bytes. Pipes and devices are an error: to read them might never end.
func Read(name string) ([]byte, error) {
	wrong := func(err error) error { return &os.PathError{Op: "read", Path: name, Err: err} }
	info, err := os.Stat(name)
	if missing, ok := errors.AsType[*os.PathError](err); ok {
		missing.Op = "open"
	}
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, wrong(errKind)
	case info.Size() > Most:
		return nil, wrong(errSize)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, Most+1)) // it may grow
	if err == nil && len(b) > Most {
		err = wrong(errSize)
	}
	return b, err
}

// Printable is text for one line of a terminal: characters that cannot be printed are quoted as in Go.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Number returns the number that a text is, or 0 if it is none.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
