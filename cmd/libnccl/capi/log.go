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
	mu     *sync.Mutex // of out
	out    io.Writer
	host   string
	device int
	attrs  string
	quiet  bool // NCCL_DEBUG is not set: NCCL says nothing then
}

// log opens the log that the environment asks for.
func (e env) log(library func() string) (*slog.Logger, error) {
	level, file := e.debug()
	host, _ := os.Hostname()
	h := &lines{mu: new(sync.Mutex), out: stdout{}, host: host, quiet: level == ""}
	if level != "" && file != "" {
		name := strings.NewReplacer("%h", host, "%p", fmt.Sprint(os.Getpid())).Replace(file)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil && e.get("RINGO_DEBUG_FILE") != "" {
			return nil, fmt.Errorf("RINGO_DEBUG_FILE: %w", err)
		}
		if err == nil { // else the log stays on stdout, as with NCCL
			h.out = f
		}
	}
	if level != "" {
		v, _ := e.version() // check has refused a wrong one
		// The version is within the literal, where ringo swap finds it in the library's file.
		h.write("", fmt.Sprintf("NCCL version %d.%d.%d, which is Ringo "+ringo.Version+" in %s", v/10000, v/100%100, v%100,
			library()))
	}
	return slog.New(h), nil
}

// stdout is file descriptor 1. A closed pipe would have an os.File end the process with SIGPIPE; only the program may
// decide that.
type stdout struct{}

func (stdout) Write(b []byte) (n int, err error) {
	for n < len(b) {
		m, err := syscall.Write(syscall.Stdout, b[n:])
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
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = io.WriteString(h.out, line)
}

func (h *lines) Enabled(context.Context, slog.Level) bool { return !h.quiet }

func (h *lines) Handle(_ context.Context, r slog.Record) error {
	word := "NCCL TRACE "
	switch {
	case r.Level >= slog.LevelWarn:
		word = "NCCL WARN "
	case r.Level >= slog.LevelInfo:
		word = "NCCL INFO "
	}
	text := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		text += pair(a)
		return true
	})
	h.write(word, text)
	return nil
}

// deviceKey is the attribute for the device in a line.
const deviceKey = "device"

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
