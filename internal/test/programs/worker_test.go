package programs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Programs are carried out by processes of their own: one that hangs is killed, one that
// panics is named, and memory that a fault has left behind is nobody's.
const workerVariable = "RINGO_PROGRAMS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		work(os.Stdin, os.Stdout)
		return
	}
	code := m.Run()
	servants.end()
	// The hub of a group whose members were killed before they came ends by itself, after their JoinTimeout.
	for end := time.Now().Add(2 * patience); code == 0; time.Sleep(100 * time.Millisecond) {
		err := goleak.Find()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// work carries out programs that are read from in, and writes a line for each. A program ends with a line that begins
// with a dot. What follows there makes this process one of the program's ranks: its number, the size of its group, and
// where ranks meet. The words written are "done", "left", "lost" and "failed", and before them "grow" and "stop".
func work(in io.Reader, out io.Writer) {
	if r, w, err := os.Pipe(); err == nil { // the runtime opens its poller, which stays
		r.Close()
		w.Close()
	}
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	var text strings.Builder
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if seat, ok := strings.CutPrefix(lines.Text(), "rank "); ok {
			if !serve(strings.Fields(seat), lines, say) {
				return
			}
			continue
		}
		if !strings.HasPrefix(lines.Text(), ".") {
			text.WriteString(lines.Text() + "\n")
			continue
		}
		r, err := tryText(text.String(), strings.Fields(lines.Text())[1:], say)
		text.Reset()
		switch {
		case err != nil:
			say("failed %q", err.Error())
			return
		case r.left:
			say("left")
			return
		case r.lost != nil:
			say("lost %q", r.lost.Error())
		default:
			say("done %d %v %s", r.calls, r.took, r.who)
		}
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

// tryText carries out a program, or with at the part of one of its ranks.
func tryText(text string, at []string, say func(string, ...any)) (r report, err error) {
	p, err := Parse(text)
	if err != nil {
		return r, err
	}
	p.setenv()
	switch {
	case len(at) > 0:
		return p.sit(at, say)
	case p.Kills:
		return r, leftovers(func() error { r, err = p.inProcess(); return err })
	case gputest.OnGPU():
		d, err := driver()
		if err != nil {
			return r, err
		}
		r.calls, err = try(d, p)
		return r, err
	}
	cfg := cudaemu.Config{Devices: p.Ranks, Seed: p.Seed, Plain: p.Seed%4 != 0, LoadsWait: true,
		FreshAddresses: p.Seed%8 == 0, Stall: 5 * time.Second}
	if need.Required("pcie") {
		cfg.Link = gputest.PCIe
	}
	emu, err := cudaemu.New(cfg)
	if err != nil {
		return r, err
	}
	r.calls, err = try(emu, p)
	for _, f := range emu.Reports() {
		err = errors.Join(err, f)
	}
	if err == nil {
		err = unheld(emu, p.Ranks)
	}
	if err == nil {
		err = emu.Close()
	}
	return r, err
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
	if err = leftovers(func() (err error) { calls, err = Run(devices, p, deadline()); return err }); err != nil {
		return calls, err
	}
	if !gputest.OnGPU() {
		for _, dev := range devices {
			err = errors.Join(err, dev.Release())
		}
	}
	return calls, err
}

// leftovers looks for what f leaves behind when it succeeds.
func leftovers(f func() error) error {
	goroutines, files := runtime.NumGoroutine(), descriptors()
	if err := f(); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines ||
		descriptors() > files; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("left behind: %d goroutines, %d descriptors\n%s",
				runtime.NumGoroutine()-goroutines, descriptors()-files, stacks(true))
		}
	}
	return nil
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
	lines chan line
	said  *tail // on standard error
	free  bool  // for another program
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
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"=1", "GORACE=atexit_sleep_ms=0")
	return started(cmd)
}

// started starts a process that is told what to do, a line at a time.
func started(cmd *exec.Cmd) (*worker, error) {
	w := &worker{cmd: cmd, said: new(tail), lines: make(chan line, 100)}
	cmd.Stderr = w.said
	var err error
	if w.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			w.lines <- line{lines.Text(), time.Now()}
		}
	}()
	return w, nil
}

// try has the worker carry out a program, or the part of one rank at a seat. After an error, or if it is to leave, it
// has ended.
func (w *worker) try(p *Program, seat string, grow func(number, size int)) (r report, err error) {
	if _, err := io.WriteString(w.in, p.String()+"."+seat+"\n"); err != nil {
		return r, fmt.Errorf("the worker is gone: %w\n%s", w.end(), w.said)
	}
	for end := time.After(deadline() + 20*time.Second); ; {
		select {
		case said, ok := <-w.lines:
			if !ok {
				return r, fmt.Errorf("the worker died: %w\n%s", w.end(), w.said)
			}
			word, rest, _ := strings.Cut(said.text, " ")
			text, _ := strconv.Unquote(rest)
			switch word {
			case "done":
				calls, took, _ := strings.Cut(rest, " ")
				took, r.who, _ = strings.Cut(took, " ")
				r.calls, err = strconv.Atoi(calls)
				r.took, _ = time.ParseDuration(took)
				return r, err
			case "left":
				r.left = true
				w.wait()
				return r, nil
			case "lost":
				r.lost = errors.New(text)
				return r, nil
			case "grow":
				var number, size int
				_, _ = fmt.Sscan(rest, &number, &size)
				grow(number, size)
			case "stop":
				us, _ := strconv.Atoi(rest)
				_ = stop(w.cmd.Process)
				time.AfterFunc(time.Duration(us)*time.Microsecond, func() { resume(w.cmd.Process) })
			default:
				w.end()
				return r, errors.New(short(text) + "\n" + short(w.said.String()))
			}
		case <-end:
			_ = w.cmd.Process.Signal(syscall.SIGQUIT) // it prints its stacks
			time.AfterFunc(5*time.Second, func() { _ = w.cmd.Process.Kill() })
			w.wait()
			return r, fmt.Errorf("the worker hangs\n%s", w.said)
		}
	}
}

// short is the beginning of a long text.
func short(text string) string {
	if len(text) > 8<<10 {
		return text[:8<<10] + " …"
	}
	return text
}

// end kills the worker.
func (w *worker) end() error {
	w.cmd.Process.Kill()
	return w.wait()
}

// wait waits for a worker that ends.
func (w *worker) wait() error {
	go func() {
		for range w.lines {
		}
	}()
	defer w.in.Close()
	return w.cmd.Wait()
}

// A crew is workers that carry out programs one after the other.
type crew struct {
	mu   sync.Mutex
	idle []*worker
}

// try has a worker carry out a program, or one for each rank.
func (c *crew) try(p *Program) (r report, err error) {
	if !p.Apart {
		return c.one(p, "", nil)
	}
	return p.together(func(number, size int, meets []bootstrap.ID, grow func(number, size int)) (report, error) {
		seat := fmt.Sprintf(" %d %d", number, size)
		for _, id := range meets {
			seat += " " + id.String()
		}
		return c.one(p, seat, grow)
	})
}

// one has a worker carry out a program, or a rank's part of one.
func (c *crew) one(p *Program, seat string, grow func(number, size int)) (r report, err error) {
	w, err := c.take()
	if err != nil {
		return r, err
	}
	if r, err = w.try(p, seat, grow); err == nil && !r.left {
		c.give(w)
	}
	return r, err
}

// take takes a worker that has nothing to do.
func (c *crew) take() (w *worker, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		w, c.idle = c.idle[n-1], c.idle[:n-1]
		w.free = false
		return w, nil
	}
	return start()
}

func (c *crew) give(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}

func (c *crew) end() {
	for _, w := range c.idle {
		w.end()
	}
	c.idle = nil
}
