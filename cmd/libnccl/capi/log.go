package capi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/ringo-go/ringo"
)

// lines is a log in NCCL's form, which people's tools look for:
//
//	host:process:thread [device] NCCL INFO text key=value
//
// ringo.Config filters it by NCCL_DEBUG and NCCL_DEBUG_SUBSYS.
type lines struct {
	to     *output
	host   string
	device int
	attrs  string
	quiet  bool // NCCL_DEBUG is not set: only errors are said, on standard error
}

// An output is where lines go.
type output struct {
	mu     sync.Mutex
	out    io.Writer       // guarded by mu
	failed map[string]bool // guarded by mu; communicators whose failure has been said
}

// isNew reports whether nothing has been said of the failure of a communicator yet. Each rank of it has an error.
func (o *output) isNew(comm string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.failed[comm]
	if o.failed == nil {
		o.failed = map[string]bool{}
	}
	o.failed[comm] = true
	return !before
}

// log opens the log that the environment asks for.
func (e env) log(library func() string) (*slog.Logger, error) {
	level, file := e.debug()
	host, _ := os.Hostname()
	h := &lines{to: &output{out: descriptor(1)}, host: host, quiet: level == ""}
	if h.quiet {
		h.to.out = descriptor(2)
	}
	if level != "" && file != "" {
		name := strings.NewReplacer("%h", host, "%p", fmt.Sprint(os.Getpid())).Replace(file)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil && e.get("RINGO_DEBUG_FILE") != "" {
			return nil, fmt.Errorf("RINGO_DEBUG_FILE: %w", err)
		}
		if err == nil { // else the log stays on stdout, as with NCCL
			h.to.out = f
		}
	}
	if level != "" && !strings.EqualFold(level, "NONE") {
		v, _ := e.version() // check has refused a wrong one
		// The version is within the literal, where ringo swap finds it in the library's file.
		h.write("", fmt.Sprintf("NCCL version %d.%d.%d, which is Ringo "+ringo.Version+" in %s", v/10000, v/100%100, v%100,
			library()))
	}
	return slog.New(h), nil
}

// A descriptor is standard output, 1, or standard error. A closed pipe would have an os.File end the process with
// SIGPIPE; only the program may decide that.
type descriptor int

func (d descriptor) Write(b []byte) (n int, err error) {
	to := syscall.Stdout
	if d != 1 {
		to = syscall.Stderr
	}
	for n < len(b) {
		m, err := syscall.Write(to, b[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

// write writes one line.
func (h *lines) write(word, text string) {
	line := fmt.Sprintf("%s:%d:%d [%d] %s%s\n", h.host, os.Getpid(), threadID(), h.device, word, text)
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	_, _ = io.WriteString(h.to.out, line)
}

func (h *lines) Enabled(_ context.Context, level slog.Level) bool {
	return !h.quiet || level >= slog.LevelError
}

func (h *lines) Handle(_ context.Context, r slog.Record) error {
	word := "NCCL TRACE "
	switch {
	case r.Level >= slog.LevelWarn:
		word = "NCCL WARN "
	case r.Level >= slog.LevelInfo:
		word = "NCCL INFO "
	}
	text, again := r.Message+h.attrs, false
	r.Attrs(func(a slog.Attr) bool {
		again = again || a.Key == commKey && r.Level >= slog.LevelError && !h.to.isNew(a.Value.String())
		text += pair(a)
		return true
	})
	if !again {
		h.write(word, text)
	}
	return nil
}

// deviceKey is the attribute for the device in a line, and commKey that for the communicator that an error has ended.
const deviceKey, commKey = "device", "comm"

func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		if a.Key == deviceKey {
			c.device = int(a.Value.Int64())
			continue
		}
		c.attrs += pair(a)
	}
	return &c
}

// WithGroup is not used by package ringo.
func (h *lines) WithGroup(string) slog.Handler { return h }

// pair is an attribute at the end of a line. NCCL's lines do not name their subsystem.
func pair(a slog.Attr) string {
	if a.Key == "subsys" {
		return ""
	}
	return " " + a.String()
}
