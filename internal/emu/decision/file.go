package decision

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// A Writer writes decisions as lines of JSON.
type Writer struct {
	mu sync.Mutex
	w  *bufio.Writer
}

// NewWriter writes to w, buffered until Flush.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriterSize(w, 1<<16)} }

// Add writes a decision. What cannot be written is missing when the file is read.
func (w *Writer) Add(d Decision) {
	text, _ := json.Marshal(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w.Write(append(text, '\n'))
}

// Flush writes what is buffered.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Flush()
}

// Read is the decisions that a Writer has written. It stops at a line that was cut off, as the process was killed.
func Read(r io.Reader) (list []Decision, err error) {
	for dec := json.NewDecoder(bufio.NewReader(r)); ; {
		var d Decision
		switch err := dec.Decode(&d); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return list, nil
		case err != nil:
			return list, err
		}
		list = append(list, d)
	}
}

// Write writes decisions that Read reads.
func Write(w io.Writer, list []Decision) error {
	out := NewWriter(w)
	for _, d := range list {
		out.Add(d)
	}
	return out.Flush()
}
