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
	"github.com/ringo-go/ringo/internal/goroutine"
)

// debugLog returns the given log if there is one, else a log to standard error or a file. Its level and filter are
// those of RINGO_DEBUG, RINGO_DEBUG_SUBSYS and RINGO_DEBUG_FILE, or of their NCCL_ names. Who is in the given log's
// handler is one of the aides.
func (p *shared) debugLog(given *slog.Logger, e *variables, aides *goroutine.Set) *slog.Logger {
	if given != nil {
		switch h := given.Handler().(type) {
		case *subsysHandler, *aideHandler: // this Config was filled before
			return given
		default:
			given = slog.New(&aideHandler{h, aides})
		}
	}
	level := e.level.Value
	h := &subsysHandler{level: slog.LevelWarn}
	switch strings.ToUpper(level) {
	case "", "VERSION", "WARN":
	case "NONE":
		h.level = slog.LevelError + 1
	case "INFO":
		h.level = slog.LevelInfo
	case "TRACE", "ABORT":
		h.level = request.LevelTrace
	default:
		e.Wrong(e.level.Name, level, "NONE, VERSION, WARN, INFO or TRACE")
	}
	h.parse(e)
	if given != nil && level == "" {
		return given
	}
	if given != nil {
		h.Handler = given.Handler()
		return slog.New(h)
	}
	var out io.Writer = os.Stderr
	if file := e.file.Value; file != "" {
		if f, err := p.openDebug(debugFile(file)); err == nil {
			out = f
		} else {
			e.Wrong(e.file.Name, file, fmt.Sprintf("a file that can be written (%v)", err))
		}
	}
	h.Handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: h.level})
	if strings.EqualFold(level, "VERSION") {
		fmt.Fprintf(out, "Ringo version %s\n", Version)
	}
	return slog.New(h)
}

// An aideHandler has the goroutine that is in a program's handler be an aide: it may be one that Close waits for.
type aideHandler struct {
	slog.Handler
	aides *goroutine.Set
}

func (h *aideHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	h.aides.Run(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

func (h *aideHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &aideHandler{h.Handler.WithAttrs(attrs), h.aides}
}

func (h *aideHandler) WithGroup(name string) slog.Handler {
	return &aideHandler{h.Handler.WithGroup(name), h.aides}
}

// openDebug opens a file once for all communicators of the process.
func (p *shared) openDebug(name string) (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.logs[name]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		p.logs[name] = f
	}
	return f, err
}

// debugFile expands %h and %p.
func debugFile(pattern string) string {
	host, _ := os.Hostname()
	return filepath.Clean(strings.NewReplacer("%h", host, "%p", strconv.Itoa(os.Getpid())).Replace(pattern))
}

// subsystems are the words of RINGO_DEBUG_SUBSYS: ours, then NCCL's others.
var subsystems = []string{"INIT", "BOOTSTRAP", "ENV", "NET", "SHM", "REG", "CALL", "ALL",
	"COLL", "P2P", "GRAPH", "TUNING", "ALLOC", "ALLOC_HOST", "PROXY", "NVLS", "PROFILE", "RAS", "DESTROY"}

// A subsysHandler drops records below WARN whose attribute "subsys" is not
// wanted.
type subsysHandler struct {
	slog.Handler
	level  slog.Level
	names  map[string]bool
	negate bool
	subsys string // set by WithAttrs
}

// parse reads which subsystems are wanted, a comma list; a leading ^ makes it a list of what is not wanted.
func (h *subsysHandler) parse(e *variables) {
	list, negate := strings.CutPrefix(strings.ToUpper(e.subsys.Value), "^")
	h.negate = negate
	names := e.Words(e.subsys.Name, list, ",", "a list of "+strings.Join(subsystems, ", "),
		func(word string) bool { return slices.Contains(subsystems, word) })
	switch {
	case len(names) > 0 || h.negate:
	case h.level <= request.LevelTrace:
		names = []string{"ALL"}
	default:
		names = []string{"INIT", "BOOTSTRAP", "ENV"}
	}
	h.names = map[string]bool{}
	for _, n := range names {
		h.names[n] = true
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
