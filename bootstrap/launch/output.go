package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxLine is the longest line that is written whole.
const maxLine = 16 << 20

// keptLine is how much room a writer of lines keeps between two lines.
const keptLine = 64 << 10

// A sink is where several processes write in turn.
type sink struct {
	mu *sync.Mutex // of all sinks that end in one place
	w  io.Writer   // nil is nowhere
}

// sinks returns those of standard output and error. They wait for each other only where they end in one place.
func sinks(out, err io.Writer) (*sink, *sink) {
	o, e := &sink{new(sync.Mutex), out}, &sink{new(sync.Mutex), err}
	if f, g := fileOf(out), fileOf(err); f == nil || g == nil || sameFile(f, g) {
		e.mu = o.mu
	}
	return o, e
}

// fileOf is w if it is a file, else nil.
func fileOf(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}

func sameFile(f, g *os.File) bool {
	a, err1 := f.Stat()
	b, err2 := g.Stat()
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func (s *sink) Write(p []byte) (int, error) {
	if s.w == nil {
		return len(p), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// of is the sink for a rank, nil for nowhere. Without a prefix a file is left as it is: a rank that gets it can see a
// terminal.
func (s *sink) of(prefix string) io.Writer {
	switch f := fileOf(s.w); {
	case s.w == nil:
		return nil
	case prefix != "":
		return prefixed(s, prefix)
	case f != nil:
		return f
	}
	return s
}

// lines writes whole lines, each with a prefix and in one call. A longer one than maxLine is cut: the parts after the
// first have a + behind the prefix.
type lines struct {
	w      io.Writer
	prefix string
	buf    []byte // the prefix, and a line that has not ended
	begin  int    // the length of that prefix
}

func prefixed(w io.Writer, prefix string) *lines {
	l := &lines{w: w, prefix: prefix}
	l.start(" ")
	return l
}

// start begins a line, or the next part of one.
func (l *lines) start(mark string) {
	if cap(l.buf) > keptLine {
		l.buf = nil
	}
	l.buf = append(append(l.buf[:0], l.prefix...), mark...)
	l.begin = len(l.buf)
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ends := bytes.Cut(p, []byte("\n"))
		mark := " "
		if room := maxLine - (len(l.buf) - l.begin); len(line) > room {
			line, rest, ends, mark = line[:room], p[room:], true, "+ "
		}
		l.buf = append(l.buf, line...)
		if ends {
			if err := l.flush(mark); err != nil {
				return 0, err
			}
		}
		p = rest
	}
	return n, nil
}

// flush writes what is kept as a line. The next one begins with mark.
func (l *lines) flush(mark string) error {
	_, err := l.w.Write(append(l.buf, '\n'))
	l.start(mark)
	return err
}

// finish writes a last line that did not end.
func finish(w io.Writer) {
	if l, ok := w.(*lines); ok && len(l.buf) > l.begin {
		_ = l.flush(" ") // nobody is left to tell
	}
}

// A stream passes on the output of a process, and of all that it has started, from a pipe.
type stream struct {
	r    *os.File
	w    io.Writer
	done chan struct{}
	err  error // once done is closed: why the output could not be passed on
}

// newStream makes a stream to w, and the pipe's end for the process.
func newStream(w io.Writer) (s *stream, theirs *os.File, err error) {
	r, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &stream{r: r, w: w, done: make(chan struct{})}, theirs, nil
}

func (s *stream) pass() {
	defer close(s.done)
	defer s.r.Close()
	if _, s.err = io.Copy(s.w, s.r); errors.Is(s.err, os.ErrDeadlineExceeded) {
		s.err = s.r.SetReadDeadline(time.Time{})
		if s.err == nil {
			s.err = drain(s.r, s.w)
		}
	}
	finish(s.w)
}

// await waits for the end of outputs, until ctx ends at most.
func await(ctx context.Context, streams []*stream) {
	for _, s := range streams {
		select {
		case <-s.done:
		case <-ctx.Done():
			return
		}
	}
}

// fault is why the output could not be passed on, nil if it was or is still coming.
func (s *stream) fault() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// stop ends the stream after what has been written by now: a process that is left running may hold the pipe.
func (s *stream) stop() {
	if s.r.SetReadDeadline(time.Now()) != nil {
		s.r.Close()
	}
}

// begin starts a program with an input, empty if in is nil, and passes on its outputs. A file is given to the program
// as it is, and nil is nowhere.
func begin(by parent, p program, in *os.File, outputs ...io.Writer) (*process, []*stream, error) {
	var ours []*os.File // to be closed once the program has them
	defer func() {
		for _, f := range ours {
			f.Close()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	ours = append(ours, null)
	files := [3]*os.File{null, null, null}
	if in != nil {
		files[0] = in
	}
	var streams []*stream
	for i, w := range outputs {
		switch f := fileOf(w); {
		case w == nil:
		case f != nil:
			files[1+i] = f
		default:
			s, theirs, err := newStream(w)
			if err != nil {
				closeAll(streams)
				return nil, nil, err
			}
			files[1+i], streams, ours = theirs, append(streams, s), append(ours, theirs)
		}
	}
	started, err := by.start(p, files)
	if err != nil {
		closeAll(streams)
		return nil, nil, err
	}
	for _, s := range streams {
		go s.pass()
	}
	return started, streams, nil
}

// closeAll closes streams that pass nothing on.
func closeAll(streams []*stream) {
	for _, s := range streams {
		s.r.Close()
	}
}

// say writes a message of the launcher.
func (s *sink) say(format string, a ...any) { fmt.Fprintf(s, "launch: "+format+"\n", a...) }
