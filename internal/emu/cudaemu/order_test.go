package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A task is a piece of work on a stream: words[to] = words[from], by a copy or a
// kernel, or words[to] = value.
type task struct {
	stream, to, from int
	kernel           bool
	value            uint32 // if not 0
}

func (a task) touches(b task) bool { // and one of them writes
	return a.to == b.to || a.value == 0 && a.from == b.to || b.value == 0 && b.from == a.to
}

// TestOrderedTasks queues tasks at random on random streams, with an event wait
// wherever two touch the same word, and compares with doing them in a row. Then
// it leaves one needed wait out, which must be found.
func TestOrderedTasks(t *testing.T) {
	const words, streams = 4, 3
	rapid.Check(t, func(rt *rapid.T) {
		tasks := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) task {
			return task{
				stream: rapid.IntRange(0, streams-1).Draw(rt, "stream"),
				to:     rapid.IntRange(0, words-1).Draw(rt, "to"), from: rapid.IntRange(0, words-1).Draw(rt, "from"),
				kernel: rapid.Bool().Draw(rt, "kernel"), value: rapid.Uint32Range(0, 3).Draw(rt, "value"),
			}
		}), 1, 12).Draw(rt, "tasks")
		for i := range tasks {
			if tasks[i].value == 0 && tasks[i].from == tasks[i].to { // copies do not overlap
				tasks[i].from = (tasks[i].to + 1) % words
			}
		}
		cfg := cudaemu.Config{Seed: rapid.Uint64().Draw(rt, "seed"), Lazy: true,
			CopyDelay: rapid.IntRange(0, 5).Draw(rt, "delay")}
		graph := rapid.Bool().Draw(rt, "graph")

		var want [words]uint32
		for _, a := range tasks {
			if a.value != 0 {
				want[a.to] = a.value
			} else {
				want[a.to] = want[a.from]
			}
		}
		got, faults := runTasks(t, cfg, tasks, -1, graph)
		require.Empty(rt, faults)
		require.Equal(rt, want[:], got)

		if i := lonelyWait(tasks); i >= 0 && !graph {
			_, faults := runTasks(t, cfg, tasks, i, false)
			require.NotEmpty(rt, faults, "the wait of task %d is missing", i)
			require.Equal(rt, weakmem.Race, faults[0].Kind)
		}
	})
}

// lonelyWait is a task before which all of the waits are needed: the first that
// conflicts with another stream's. Nothing else can have ordered them.
func lonelyWait(tasks []task) int {
	for i, a := range tasks {
		for _, b := range tasks[:i] {
			if b.stream != a.stream && a.touches(b) {
				return i
			}
		}
	}
	return -1
}

// runTasks leaves out the waits before one task.
func runTasks(t *testing.T, cfg cudaemu.Config, tasks []task, without int, graph bool) (words []uint32,
	faults []*weakmem.Fault) {
	t.Run("run", func(t *testing.T) { // a subtest, for its cleanups
		e := start(t, cfg)
		p := e.alloc(256, true)
		e.kernel("move")
		word := func(i int) uintptr { return p + uintptr(64*i) }
		var s [3]cuda.Stream
		for i := range s {
			s[i] = e.stream(cuda.StreamNonBlocking)
		}
		var done []cuda.Event
		queue := func() {
			for i, a := range tasks {
				for j, b := range tasks[:i] {
					if b.stream != a.stream && a.touches(b) && i != without {
						e.ok(e.StreamWaitEvent(s[a.stream], done[j], 0))
					}
				}
				switch {
				case a.value != 0 && a.kernel:
					launch(e, "store", s[a.stream], &storeArgs{word(a.to), a.value})
				case a.value != 0:
					e.ok(e.MemsetD32Async(word(a.to), a.value, 1, s[a.stream]))
				case a.kernel:
					launch(e, "move", s[a.stream], &moveArgs{word(a.to), word(a.from)})
				default:
					e.ok(e.MemcpyAsync(word(a.to), word(a.from), 4, s[a.stream]))
				}
				ev := e.event(cuda.EventDisableTiming)
				e.ok(e.EventRecord(ev, s[a.stream]))
				done = append(done, ev)
			}
		}
		if graph {
			fork := e.event(cuda.EventDisableTiming)
			x := e.graph(s[0], func() {
				e.ok(e.EventRecord(fork, s[0]))
				e.ok(e.StreamWaitEvent(s[1], fork, 0))
				e.ok(e.StreamWaitEvent(s[2], fork, 0))
				queue()
				for i := range tasks {
					e.ok(e.StreamWaitEvent(s[0], done[i], 0))
				}
			})
			e.ok(e.GraphLaunch(x, s[2]))
			e.ok(e.GraphExecDestroy(x))
		} else {
			queue()
		}
		e.ok(e.CtxSynchronize())
		for i := range 4 {
			words = append(words, e.word(word(i)))
		}
		faults = e.Reports()
	})
	return words, faults
}
