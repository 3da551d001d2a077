package ringotest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// seats tells the processes of a Run which Run theirs is.
type seats struct {
	Test    string
	Number  int // of the Run in the test, from 1
	Seed    uint64
	Control string // where the process that has started it listens
	Token   string
}

const seatVariable = "RINGOTEST_SEAT"

// seat is the seats of this process, nil if it is no rank.
var seat = sync.OnceValue(func() *seats {
	text := os.Getenv(seatVariable)
	if text == "" {
		return nil
	}
	s := new(seats)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		panic(fmt.Sprintf("ringotest: %s: %v", seatVariable, err))
	}
	return s
})

// runs counts the Runs of each test that has not ended.
var runs = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// runsOf is the number of this Run in its test.
func runsOf(t testing.TB) int {
	runs.Lock()
	defer runs.Unlock()
	name := t.Name()
	if runs.of[name] == 0 {
		t.Cleanup(func() {
			runs.Lock()
			defer runs.Unlock()
			delete(runs.of, name)
		})
	}
	runs.of[name]++
	return runs.of[name]
}

// launch runs a trial whose ranks are processes.
func (x *trial) launch(number int) {
	x.t.Helper()
	defer newMark().done() // so that other trials know that they are not alone
	h, err := newHome(x)
	if err != nil {
		x.t.Fatalf("ringotest: %v", err)
	}
	defer h.close()
	var dir string
	if dir, err = os.MkdirTemp("", "rt"); err != nil { // t.TempDir's name may be too long for a socket
		x.t.Fatalf("ringotest: %v", err)
	}
	defer os.RemoveAll(dir)
	text := plain.JSON(seats{x.t.Name(), number, x.seed, h.listener.Addr().String(), h.token})
	self, err := os.Executable()
	if err != nil {
		x.t.Fatalf("ringotest: %v", err)
	}
	var out said
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		over <- launch.Run(ctx, launch.Config{
			N: x.size, Args: append([]string{self}, x.flags()...),
			Env:    append(os.Environ(), seatVariable+"="+string(text), "TMPDIR="+dir),
			Stdout: &out, Stderr: &out, Prefix: true, Ended: h.left, Grace: x.timeout,
		})
	}()
	err = x.outcome(h, over, cancel)
	if first, ok := errors.AsType[*launch.Error](err); err != nil && (!ok || first.Err != nil) {
		x.t.Errorf("ringotest: %v", err) // it did not start
	}
	h.verdicts()
	x.summary()
	if x.t.Failed() || testing.Verbose() {
		if s := out.String(); s != "" {
			x.t.Logf("ringotest: the processes wrote:\n%s", s)
		}
	}
	if h.early {
		x.t.FailNow()
	}
	if h.skipped && !x.t.Failed() {
		x.t.SkipNow()
	}
}

// outcome waits for the processes to end, and ends those that take too long: by an Abort, then by kill.
// over gives their error.
func (x *trial) outcome(h *home, over <-chan error, kill func()) (err error) {
	x.t.Helper()
	ended := func(late <-chan time.Time) bool {
		select {
		case err = <-over:
			return true
		case <-late:
			return false
		}
	}
	if !h.gather(over, &err) && !ended(time.After(x.timeout)) {
		behind := h.behind()
		x.complain(behind, h.where())
		h.say(message{Kind: abort, Text: x.tooLate(behind).Error()})
		if !ended(time.After(patience)) {
			x.t.Errorf("ringotest: %s not ended %v after an Abort either: killed", have(h.behind()), patience)
			kill() // for a process that has not sent hello
			h.kill()
			err = <-over
		}
	}
	return err
}

// flags are the flags of a rank's process: the program's own unchanged, and those of package testing that make it run
// this test once.
func (x *trial) flags() (list []string) {
	for _, a := range os.Args[1:] {
		if !strings.HasPrefix(strings.TrimLeft(a, "-"), "test.") {
			list = append(list, a)
		}
	}
	own := []string{"-test.run=" + pattern(x.t.Name()), "-test.v", "-test.count=1",
		fmt.Sprint("-test.timeout=", startTime+x.timeout+2*patience)}
	if testing.Short() {
		own = append(own, "-test.short")
	}
	return append(own, list...)
}

// A said is what processes write, without package testing's lines about the test.
type said struct{ transcript.Transcript }

func (o *said) String() string {
	var kept []string
	for line := range strings.Lines(o.Transcript.String()) {
		if !strings.Contains(line, "=== RUN ") && !strings.Contains(line, "=== NAME ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// newToken lets the processes of a trial know each other.
func newToken() string { return rand.Text() }
