package ringo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// levelTrace is RINGO_DEBUG=TRACE: every call is logged.
const levelTrace = slog.LevelDebug

// debugLog makes the logger that RINGO_DEBUG, RINGO_DEBUG_SUBSYS and
// RINGO_DEBUG_FILE (or their NCCL_ names) ask for.
func debugLog(env func(...string) (string, string)) (log *slog.Logger, trace bool, err error) {
	name, level := env("RINGO_DEBUG", "NCCL_DEBUG")
	h := &subsysHandler{}
	switch strings.ToUpper(level) {
	case "", "VERSION", "WARN":
		h.level = slog.LevelWarn
	case "INFO":
		h.level = slog.LevelInfo
	case "TRACE", "ABORT":
		h.level = levelTrace
	default:
		return nil, false, fmt.Errorf("%w: %s=%q: want VERSION, WARN, INFO or TRACE", ErrInvalid, name, level)
	}
	_, subsys := env("RINGO_DEBUG_SUBSYS", "NCCL_DEBUG_SUBSYS")
	h.parse(subsys)
	var out io.Writer = os.Stderr
	if _, file := env("RINGO_DEBUG_FILE", "NCCL_DEBUG_FILE"); file != "" {
		f, err := os.OpenFile(debugFile(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, false, fmt.Errorf("debug file: %w", err)
		}
		out = f
	}
	h.Handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: h.level})
	if strings.EqualFold(level, "VERSION") {
		fmt.Fprintf(out, "Ringo version %s\n", Version)
	}
	return slog.New(h), h.level <= levelTrace, nil
}

// A subsysHandler drops records below WARN whose attribute "subsys" is not
// wanted. The names are NCCL's: INIT, COLL, NET, SHM, BOOTSTRAP, ENV, CALL, ALL.
type subsysHandler struct {
	slog.Handler
	level  slog.Level
	names  map[string]bool
	negate bool
	subsys string // set by WithAttrs
}

// parse reads a comma list; a leading ^ makes it a list of what is not wanted.
func (h *subsysHandler) parse(list string) {
	if list == "" {
		list = "INIT,BOOTSTRAP,ENV"
		if h.level <= levelTrace {
			list = "ALL"
		}
	}
	list, h.negate = strings.CutPrefix(list, "^")
	h.names = map[string]bool{}
	for _, n := range strings.Split(list, ",") {
		h.names[strings.ToUpper(strings.TrimSpace(n))] = true
	}
}

func (h *subsysHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		if a.Key == "subsys" {
			c.subsys = a.Value.String()
		}
	}
	c.Handler = h.Handler.WithAttrs(attrs)
	return &c
}

func (h *subsysHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}

func (h *subsysHandler) Handle(ctx context.Context, r slog.Record) error {
	subsys := h.subsys
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "subsys" {
			subsys = a.Value.String()
		}
		return true
	})
	if r.Level < slog.LevelWarn && (h.names["ALL"] || h.names[subsys]) == h.negate {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
