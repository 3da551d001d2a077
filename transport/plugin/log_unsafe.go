package plugin

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/dl"
)

// A voice is the function that a plugin logs with, and what it has said.
type voice struct {
	function uintptr // ncclDebugLogger_t
	// of the communicator that was opened last, since plugins get one function for all
	log  atomic.Pointer[slog.Logger]
	last atomic.Pointer[string] // warning

	mu    sync.Mutex
	early []func(*slog.Logger) // lines from before there was a log
}

// maxEarly is how many lines wait for a log.
const maxEarly = 100

// Levels of a plugin's lines: ncclDebugLogLevel.
const (
	levelWarn  = 2
	levelInfo  = 3
	levelAbort = 4
)

// newVoice makes a voice. The arguments of its function's format are those that the platform
// passes as integers and as floats, as far as they were given.
func newVoice() *voice {
	v := new(voice)
	v.function = dl.Function(func(level int32, _ uint64, file uintptr, line int32, format uintptr,
		i0, i1, i2, i3, i4, i5, i6, i7, i8, i9 uintptr, f0, f1, f2, f3 float64,
	) {
		s := expand(text(format, maxText), []uintptr{i0, i1, i2, i3, i4, i5, i6, i7, i8, i9}, []float64{f0, f1, f2, f3}, text)
		v.speak(level, s, label(file), line)
	})
	return v
}

func (v *voice) speak(level int32, s, file string, line int32) {
	to := slog.LevelDebug
	switch level {
	case levelWarn, levelAbort:
		to = slog.LevelWarn
		v.last.Store(&s)
	case levelInfo:
		to = slog.LevelInfo
	}
	write := func(log *slog.Logger) {
		log.Log(context.Background(), to, "plugin: "+s, "file", file, "line", line)
	}
	if log := v.log.Load(); log != nil {
		write(log)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.early) < maxEarly {
		v.early = append(v.early, write)
	}
}

// use has lines written to a log, unless it is nil.
func (v *voice) use(log *slog.Logger) {
	if log == nil {
		return
	}
	v.log.Store(log)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, write := range v.early {
		write(log)
	}
	v.early = nil
}

// said is the last warning since the last call.
func (v *voice) said() string {
	if p := v.last.Swap(nil); p != nil {
		return *p
	}
	return ""
}

// profiler is ncclProfilerCallback_t. Nothing is profiled.
var profiler = sync.OnceValue(func() uintptr {
	return dl.Function(func(handle uintptr, kind int32, parent uintptr, id int64, data uintptr) int { return 0 })
})
