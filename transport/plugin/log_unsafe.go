package plugin

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/dl"
)

// A voice is the function that a plugin logs with, and the plugin's last lines.
type voice struct {
	function uintptr // ncclDebugLogger_t
	// the log of the communicator that was opened last: all share a plugin's one function
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

// newVoice makes a voice. Its function is variadic in C: it takes a fixed number of integer and
// float arguments, of which the format uses those that the plugin gave.
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

// use has lines written to log from now on, and the early lines too; nil changes nothing.
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

// said is the last warning since the last call of said, "" if there was none.
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
