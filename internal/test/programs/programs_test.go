package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// off are the features that the library does not carry out rightly yet, and why; each has a
// program that shows it.
var off = map[Feature]string{}

// Programs are carried out by processes of their own: one that hangs is killed, one that
// panics is named, and memory that a fault has left behind is nobody's.
const workerVariable = "RINGO_PROGRAMS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		work(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// work carries out programs that are read from in, each ended by a line with a dot, and writes a
// line for each.
func work(in io.Reader, out io.Writer) {
	if r, w, err := os.Pipe(); err == nil { // the runtime opens its poller, which stays
		r.Close()
		w.Close()
	}
	var text strings.Builder
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if lines.Text() != "." {
			text.WriteString(lines.Text() + "\n")
			continue
		}
		calls, err := tryText(text.String())
		text.Reset()
		if err != nil {
			fmt.Fprintf(out, "failed %q\n", err.Error())
			return
		}
		fmt.Fprintf(out, "done %d\n", calls)
	}
}

// deadline bounds a program.
func deadline() time.Duration {
	if s, err := time.ParseDuration(os.Getenv("RINGO_PROGRAMS_DEADLINE")); err == nil {
		return s
	}
	return tier.Soon(time.Minute) // a second on a machine with nothing else to do
}

// driver is the real one under REQUIRE=cuda, and is kept.
var driver = sync.OnceValues(func() (cuda.Driver, error) { return cuda.Open(os.Getenv("RINGO_CUDA_LIBRARY")) })

func tryText(text string) (calls int, err error) {
	p, err := Parse(text)
	if err != nil {
		return 0, err
	}
	if gputest.OnGPU() {
		d, err := driver()
		if err != nil {
			return 0, err
		}
		return try(d, p)
	}
	emu, err := cudaemu.New(cudaemu.Config{Devices: p.Ranks, Seed: p.Seed, Plain: p.Seed%4 != 0, LoadsWait: true,
		Stall: 5 * time.Second})
	if err != nil {
		return 0, err
	}
	calls, err = try(emu, p)
	for _, f := range emu.Reports() {
		err = errors.Join(err, f)
	}
	if err == nil {
		err = unheld(emu, p.Ranks)
	}
	if err == nil {
		err = emu.Close()
	}
	return calls, err
}

// unheld waits until nobody holds a device's context: what graphs have held is given back
// after the last of them has ended, by another goroutine.
func unheld(d cuda.Driver, n int) error {
	end := time.Now().Add(tier.Soon(5 * time.Second))
	for i := range n {
		for {
			_, active, err := d.DevicePrimaryCtxGetState(cuda.Device(i))
			if err != nil {
				return err
			}
			if !active || time.Now().After(end) { // then Close says what is left
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// try carries out a program and looks for what it leaves behind.
func try(d cuda.Driver, p *Program) (calls int, err error) {
	m, err := gpu.Of(d)
	if err != nil {
		return 0, err
	}
	var devices []*gpu.Device
	for i := range min(p.Ranks, m.Count()) {
		dev, err := m.Device(i)
		if err != nil {
			return 0, err
		}
		if _, err := dev.Context(); err != nil {
			return 0, err
		}
		devices = append(devices, dev)
	}
	goroutines, files := runtime.NumGoroutine(), descriptors()
	if calls, err = Run(devices, p, deadline()); err != nil {
		return calls, err
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines ||
		descriptors() > files; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b := make([]byte, 64<<10)
			return calls, fmt.Errorf("left behind: %d goroutines, %d descriptors\n%s",
				runtime.NumGoroutine()-goroutines, descriptors()-files, b[:runtime.Stack(b, true)])
		}
	}
	if !gputest.OnGPU() {
		for _, dev := range devices {
			err = errors.Join(err, dev.Release())
		}
	}
	return calls, err
}

// descriptors is how many files the process has open, 0 where that is not told.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// A worker is a process that carries out programs.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	said  *tail // on standard error
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-32<<10):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

func start() (*worker, error) {
	w := &worker{cmd: exec.Command(os.Args[0]), said: new(tail), lines: make(chan string)}
	w.cmd.Env = append(os.Environ(), workerVariable+"=1")
	w.cmd.Stderr = w.said
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			w.lines <- lines.Text()
		}
	}()
	return w, nil
}

// try has the worker carry out a program. After an error it has ended.
func (w *worker) try(p *Program) (calls int, err error) {
	if _, err := io.WriteString(w.in, p.String()+".\n"); err != nil {
		return 0, fmt.Errorf("the worker is gone: %w\n%s", w.end(), w.said)
	}
	select {
	case line, ok := <-w.lines:
		if !ok {
			return 0, fmt.Errorf("the worker died: %w\n%s", w.end(), w.said)
		}
		if n, ok := strings.CutPrefix(line, "done "); ok {
			return strconv.Atoi(n)
		}
		text, _ := strconv.Unquote(strings.TrimPrefix(line, "failed "))
		w.end()
		return 0, errors.New(short(text) + "\n" + short(w.said.String()))
	case <-time.After(deadline() + 20*time.Second):
		w.end()
		return 0, fmt.Errorf("the worker hangs\n%s", w.said)
	}
}

// short is the beginning of a long text.
func short(text string) string {
	if len(text) > 1500 {
		return text[:1500] + " …"
	}
	return text
}

// end kills the worker.
func (w *worker) end() error {
	w.in.Close()
	w.cmd.Process.Kill()
	go func() {
		for range w.lines {
		}
	}()
	return w.cmd.Wait()
}

// A crew is workers that carry out programs one after the other.
type crew struct{ w *worker }

func (c *crew) try(p *Program) (calls int, err error) {
	if c.w == nil {
		if c.w, err = start(); err != nil {
			return 0, err
		}
	}
	if calls, err = c.w.try(p); err != nil {
		c.w = nil
	}
	return calls, err
}

func (c *crew) end() {
	if c.w != nil {
		c.w.end()
		c.w = nil
	}
}

// number is the number in a variable of the environment, or otherwise if that is empty.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// TestPrograms carries out random programs. A failure is made smaller and printed; it can be
// repeated from that text:
//
//	RINGO_PROGRAMS_FILE=minimal.txt go test ./internal/test/programs -run TestPrograms
//
// Other variables, with their defaults on the emulator and on GPUs: RINGO_PROGRAMS_SEED, the first seed (1);
// RINGO_PROGRAMS_OPERATIONS, communicators' operations to carry out at least (none; 100,000); RINGO_PROGRAMS_SECONDS,
// the most time (2, 10 with RINGO_TEST=full; 60); RINGO_PROGRAMS_STEPS, the most steps of a program (60; 2,000);
// RINGO_PROGRAMS_TIMES, how often the same is done again (5; 1,000); RINGO_PROGRAMS_RING=1, always the smallest FIFO
// (0); RINGO_PROGRAMS_SHRINK, how often a failing program is tried again to make it smaller (150);
// RINGO_PROGRAMS_FAILURES, how many kinds of failures to look for (1); RINGO_PROGRAMS_DEADLINE of one program (1m);
// RINGO_PROGRAMS_STACKS, the beginning of the names of files in which the stacks of all goroutines are written while no
// rank makes a step.
func TestPrograms(t *testing.T) {
	if file := os.Getenv("RINGO_PROGRAMS_FILE"); file != "" {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p, err := Parse(string(text))
		require.NoError(t, err)
		c := new(crew)
		defer c.end()
		_, err = c.try(p)
		require.NoError(t, err)
		return
	}
	tier.Long(t)
	l := Limits{Ranks: 4, Steps: 60, Bytes: 16 << 10, Comms: 3, Times: 5, Off: off}
	seconds, operations := tier.Count(2, 10), 0
	if gputest.OnGPU() {
		d, err := driver()
		require.NoError(t, err)
		n, err := d.DeviceGetCount()
		require.NoError(t, err)
		l.Ranks, l.MinRank, l.Steps, l.Bytes, l.Times, seconds, operations = n, n, 2000, 1<<20, 1000, 60, 100_000
	}
	l.Steps = number(t, "RINGO_PROGRAMS_STEPS", l.Steps)
	l.Times = number(t, "RINGO_PROGRAMS_TIMES", l.Times)
	l.Ring = number(t, "RINGO_PROGRAMS_RING", 0) > 0
	seconds = number(t, "RINGO_PROGRAMS_SECONDS", seconds)
	operations = number(t, "RINGO_PROGRAMS_OPERATIONS", operations)
	seed := uint64(number(t, "RINGO_PROGRAMS_SEED", 1))
	begun := time.Now()
	var mu sync.Mutex
	programs, calls, next, manners := 0, 0, seed, map[string]bool{}
	failures := number(t, "RINGO_PROGRAMS_FAILURES", 1)
	run := func() {
		c := new(crew)
		defer c.end()
		for {
			mu.Lock()
			p := Generate(next, l)
			next++
			over := len(manners) >= failures || operations > 0 && calls >= operations ||
				time.Since(begun) > time.Duration(seconds)*time.Second
			mu.Unlock()
			if over {
				return
			}
			n, err := c.try(p)
			mu.Lock()
			programs, calls = programs+1, calls+n
			first := err != nil && !manners[manner(err)] && len(manners) < failures
			if first {
				manners[manner(err)] = true
			}
			mu.Unlock()
			if first {
				small, last := shrink(c, p, err, number(t, "RINGO_PROGRAMS_SHRINK", 150))
				t.Errorf("seed %d: %v\nmade smaller:\n%s%v", p.Seed, err, small, last)
			}
		}
	}
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(run)
	}
	wg.Wait()
	t.Logf("%d programs from seed %d on, %d operations, in %v", programs, seed, calls,
		time.Since(begun).Round(time.Millisecond))
	require.NotZero(t, programs)
}

// workers is how many processes carry out programs: on GPUs one, for it has them all.
func workers() int {
	if gputest.OnGPU() {
		return 1
	}
	return max(1, min(4, runtime.GOMAXPROCS(0)))
}

// shrink makes a program smaller that fails in the same way.
func shrink(c *crew, p *Program, err error, most int) (*Program, error) {
	how, end := manner(err), time.Now().Add(2*time.Minute)
	return Shrink(p, most, func(q *Program) bool {
		if time.Now().After(end) {
			return false
		}
		_, failed := c.try(q)
		same := failed != nil && manner(failed) == how
		if same {
			err = failed
		}
		return same
	}), err
}

// manner is the part of an error that is the same for failures of one cause: the words, without the step and numbers.
func manner(err error) string {
	text := err.Error()
	if _, what, ok := strings.Cut(text, ": device "); ok {
		text = what
	}
	text, _, _ = strings.Cut(text, "\n")
	text = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+|\(.*`).ReplaceAllString(text, "")
	for _, word := range []string{"want x", "not done after", "left behind", "deadlock"} {
		if strings.Contains(err.Error(), word) {
			return word
		}
	}
	return text[:min(len(text), 60)]
}

// TestText reads back what programs print.
func TestText(t *testing.T) {
	for seed := range uint64(100) {
		p := Generate(seed, Limits{Ranks: 4, Steps: 60, Bytes: 16 << 10, Comms: 3})
		q, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p.String(), q.String())
		require.Equal(t, p.String(), Repair(p).String(), "nothing is to be repaired")
	}
}
