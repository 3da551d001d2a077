package ringo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/core/request"
)

// debugLog is given, or a log to standard error or a file, with the level and filter that
// RINGO_DEBUG, RINGO_DEBUG_SUBSYS and RINGO_DEBUG_FILE (or their NCCL_ names) ask for. first
// gives the first variable that is set, with its value.
func debugLog(given *slog.Logger, first func(names ...string) (name, value string)) (*slog.Logger, error) {
	if given != nil {
		if _, filtered := given.Handler().(*subsysHandler); filtered { // this Config was filled before
			return given, nil
		}
	}
	name, level := first("RINGO_DEBUG", "NCCL_DEBUG")
	h := &subsysHandler{}
	switch strings.ToUpper(level) {
	case "", "VERSION", "WARN":
		h.level = slog.LevelWarn
	case "INFO":
		h.level = slog.LevelInfo
	case "TRACE", "ABORT":
		h.level = request.LevelTrace
	default:
		return nil, unreadable(name, level, "VERSION, WARN, INFO or TRACE")
	}
	if given != nil && level == "" {
		return given, nil
	}
	name, subsys := first("RINGO_DEBUG_SUBSYS", "NCCL_DEBUG_SUBSYS")
	if err := h.parse(name, subsys); err != nil {
		return nil, err
	}
	if given != nil {
		h.Handler = given.Handler()
		return slog.New(h), nil
	}
	var out io.Writer = os.Stderr
	if name, file := first("RINGO_DEBUG_FILE", "NCCL_DEBUG_FILE"); file != "" {
		switch f, err := os.OpenFile(debugFile(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); {
		case err == nil:
			out = f
		case ofNCCL(name): // goes on there too
			fmt.Fprintf(out, "%s: %v: the log goes here\n", name, err)
		default:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	h.Handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: h.level})
	if strings.EqualFold(level, "VERSION") {
		fmt.Fprintf(out, "Ringo version %s\n", Version)
	}
	return slog.New(h), nil
}

// debugFile expands %h and %p.
func debugFile(pattern string) string {
	host, _ := os.Hostname()
	return filepath.Clean(strings.NewReplacer("%h", host, "%p", strconv.Itoa(os.Getpid())).Replace(pattern))
}

// subsystems are the words of RINGO_DEBUG_SUBSYS: ours, then NCCL's others.
var subsystems = []string{"INIT", "BOOTSTRAP", "ENV", "NET", "SHM", "REG", "CALL", "ALL",
	"COLL", "P2P", "GRAPH", "TUNING", "ALLOC", "PROXY", "NVLS", "PROFILE", "RAS"}

// A subsysHandler drops records below WARN whose attribute "subsys" is not
// wanted.
type subsysHandler struct {
	slog.Handler
	level  slog.Level
	names  map[string]bool
	negate bool
	subsys string // set by WithAttrs
}

// parse reads a comma list, the value of a variable; a leading ^ makes it a list of what is
// not wanted.
func (h *subsysHandler) parse(variable, list string) error {
	if list == "" {
		list = "INIT,BOOTSTRAP,ENV"
		if h.level <= request.LevelTrace {
			list = "ALL"
		}
	}
	names, negate := strings.CutPrefix(list, "^")
	h.names, h.negate = map[string]bool{}, negate
	for _, n := range strings.Split(names, ",") {
		n = strings.ToUpper(strings.TrimSpace(n))
		if !slices.Contains(subsystems, n) {
			return unreadable(variable, list, "a list of "+strings.Join(subsystems, ", "))
		}
		h.names[n] = true
	}
	return nil
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

func (h *subsysHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

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
