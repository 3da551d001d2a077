package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxLine is how many bytes are kept at most of a line that does not end.
const maxLine = 64 << 10

// share makes w safe for the output of several processes, by mu. A file is safe
// already, and is returned as it is: a process that gets it can see a terminal.
func share(w io.Writer, mu *sync.Mutex) io.Writer {
	if w == nil {
		return nil
	}
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &shared{mu, w}
}

type shared struct {
	mu *sync.Mutex // shared by stdout and stderr, which may be one writer
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// lines writes whole lines, each with a prefix and in one call.
type lines struct {
	w      io.Writer
	prefix string
	buf    []byte // a line that has not ended
}

func prefixed(w io.Writer, rank int) io.Writer {
	if w == nil {
		return nil
	}
	return &lines{w: w, prefix: fmt.Sprintf("[%d] ", rank)}
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		l.buf = append(l.buf, p[:i]...)
		if err := l.flush(); err != nil {
			return 0, err
		}
		p = p[i+1:]
	}
	l.buf = append(l.buf, p...)
	if len(l.buf) > maxLine {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (l *lines) flush() error {
	line := append(append([]byte(l.prefix), l.buf...), '\n')
	l.buf = l.buf[:0]
	_, err := l.w.Write(line)
	return err
}

// finish writes a last line that did not end.
func finish(w io.Writer) {
	if l, ok := w.(*lines); ok && len(l.buf) > 0 {
		_ = l.flush() // nobody is left to tell
	}
}
