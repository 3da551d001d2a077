package cudaemu_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

var record = flag.String("record", "", "ask the real driver and write its answers to this `file`")

const recorded = "testdata/behaviour.txt"

// differs lists the answers in which the emulator differs on purpose.
var differs = []struct {
	question string
	nth      int // of the answers, counted from 1
	here     string
	why      string
}{
	{"virtual memory", 27, "INVALID_VALUE", "unmapping twice would unmap what is mapped there by then"},
	{"virtual memory, ranges", 14, "INVALID_VALUE", "what was never mapped is unmapped by mistake"},
}

func allQuestions() []question { return slices.Concat(questions, graphQuestions, waitingQuestions) }

// TestBehaviour asks the emulator the questions that a real driver has answered. To ask
// a driver: go test ./internal/emu/cudaemu -run TestBehaviour -record testdata/behaviour.txt
func TestBehaviour(t *testing.T) {
	if *record != "" {
		d := must.Get(cuda.Open(""))
		v := must.Get(d.DriverGetVersion())
		name := must.Get(d.DeviceGetName(0))
		n := must.Get(d.DeviceGetCount())
		for i := range n { // making contexts takes longer than all questions
			must.Get(d.DevicePrimaryCtxRetain(cuda.Device(i)))
			defer d.DevicePrimaryCtxRelease(cuda.Device(i))
		}
		text := fmt.Sprintf("# %s, driver of CUDA %d.%d\n", name, v/1000, v%1000/10)
		for _, q := range allQuestions() {
			text += q.name + ": " + ask(t, d, q) + "\n"
			require.NoError(t, os.WriteFile(*record, []byte(text), 0o666)) // each time: the next may crash
		}
		return
	}
	b, err := os.ReadFile(recorded)
	if err != nil {
		t.Skip("no answers were recorded")
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, answer, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			want[name] = answer
		}
	}
	here := func(q question) string {
		m := must.Get(cudaemu.New(cudaemu.Config{Devices: 2, LoadsWait: true}))
		defer m.Close()
		return ask(t, m, q)
	}
	for _, q := range allQuestions() {
		w, ok := want[q.name]
		if !ok {
			t.Logf("%s: not recorded; here %s", q.name, here(q))
			continue
		}
		answers := strings.Split(w, ", ")
		for _, d := range differs {
			if d.question == q.name {
				require.NotEqual(t, d.here, answers[d.nth-1], "%s: does not differ", q.name)
				answers[d.nth-1] = d.here
			}
		}
		got := here(q)
		for range 2 { // a busy machine may have taken so long that a call seems to wait
			if got != strings.Join(answers, ", ") {
				got = here(q)
			}
		}
		if strings.Join(answers, ", ") != got {
			t.Errorf("%s:\n\there     %s\n\thardware %s", q.name, got, w)
		}
	}
}

// An inquiry is a question being asked: a stream, another one, an event, memory.
type inquiry struct {
	cuda.Driver
	ctx      cuda.Context
	s, other cuda.Stream
	blocking cuda.Stream
	ev       cuda.Event
	p, h     uintptr
	answers  []string
}

// says notes an answer: the name of an error's result, or "ok".
func (a *inquiry) says(err error) bool {
	var e *cuda.Error
	switch {
	case err == nil:
		a.answers = append(a.answers, "ok")
	case errors.As(err, &e):
		a.answers = append(a.answers, strings.TrimPrefix(e.Result.Error(), "CUDA_ERROR_"))
	default:
		a.answers = append(a.answers, err.Error())
	}
	return err == nil
}

func (a *inquiry) is(v any) { a.answers = append(a.answers, fmt.Sprint(v)) }

// ends tells what becomes of the capture.
func (a *inquiry) ends(s cuda.Stream) {
	g, err := a.StreamEndCapture(s)
	if a.says(err) {
		a.GraphDestroy(g)
	}
}

// destroyJoined has a stream take part in the capture of a.s and destroys it.
func (a *inquiry) destroyJoined(waitedFor bool) error {
	s, err := a.StreamCreate(cuda.StreamNonBlocking, 0)
	a.says(err)
	a.says(a.EventRecord(a.ev, a.s))
	a.says(a.StreamWaitEvent(s, a.ev, 0))
	a.says(a.MemsetD8Async(a.p, 1, 4, s))
	if waitedFor {
		a.says(a.EventRecord(a.ev, s))
		a.says(a.StreamWaitEvent(a.s, a.ev, 0))
	}
	return a.StreamDestroy(s)
}

func ask(t *testing.T, d cuda.Driver, q question) string {
	answer := make(chan string)
	go func() { // on a thread of its own
		runtime.LockOSThread()
		ctx := must.Get(d.DevicePrimaryCtxRetain(0))
		require.NoError(t, d.CtxSetCurrent(ctx))
		a := &inquiry{Driver: d, ctx: ctx}
		a.s, _ = d.StreamCreate(cuda.StreamNonBlocking, 0)
		a.other, _ = d.StreamCreate(cuda.StreamNonBlocking, 0)
		a.blocking, _ = d.StreamCreate(cuda.StreamDefault, 0)
		a.ev, _ = d.EventCreate(cuda.EventDisableTiming)
		a.p, _ = d.MemAlloc(4 << 20)
		a.h, _ = d.MemHostAlloc(4096, 0)
		q.ask(a)
		for _, s := range []cuda.Stream{a.s, a.other, a.blocking} {
			if g, err := d.StreamEndCapture(s); err == nil {
				d.GraphDestroy(g)
			}
			d.StreamDestroy(s)
		}
		d.EventDestroy(a.ev)
		d.MemFree(a.p)
		d.MemFreeHost(a.h)
		d.CtxSetCurrent(0)
		d.DevicePrimaryCtxRelease(0)
		answer <- strings.Join(a.answers, ", ")
	}()
	return <-answer
}
