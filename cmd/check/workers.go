package check

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
)

// workerReady is the line that a worker prints when it has started.
const workerReady = "ringo check worker 1"

// greetingBytes is the most bytes that a login may print before the worker.
const greetingBytes = 1 << 20

// workerJoin is how long workers wait for each other.
const workerJoin = 15 * time.Second

// An order is the task of a worker, as a line of its standard input and not in its command line, since
// the ID is secret.
type order struct {
	ID         bootstrap.ID
	Rank, Size int
	Hosts      []string // by rank
	Absent     []loss
	Full       bool
	ExpectGPUs int
	Device     string
	GPUs       int
	NCCL       string
	Spent      time.Duration // since the launcher's start
	Baseline   *report       `json:",omitempty"` // for the first rank alone, which leads if it comes
}

// A worker is a process on another host, as its launcher sees it.
type worker struct {
	host   string
	cmd    *exec.Cmd
	wait   func() error // cmd.Wait, which may be called once
	in     io.WriteCloser
	out    *bufio.Reader
	errors *last
	failed error // why it did not start
}

// last keeps the end of what is written to it.
type last struct {
	mu sync.Mutex
	b  []byte
}

func (l *last) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	l.b = l.b[max(0, len(l.b)-2048):]
	return len(p), nil
}

// line is the last line.
func (l *last) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.b)), "\n")
	return lines[len(lines)-1]
}

// readHosts reads a file of hosts: the first word of each line, but for comments.
func readHosts(name string) ([]string, error) {
	b, err := given.Read(name)
	if err != nil {
		return nil, cli.Usagef("-hostfile: %v", err)
	}
	var hosts []string
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.HasPrefix(words[0], "-") { // ssh would take it for a flag, such as one that runs a command here
			return nil, cli.Usagef("-hostfile %s: %q is no name of a host", name, words[0])
		}
		hosts = append(hosts, words[0])
	}
	if len(hosts) == 0 {
		return nil, cli.Usagef("-hostfile %s: it names no host", name)
	}
	return hosts, nil
}

// overHosts carries out a check on hosts that ssh reaches. The report is written here.
func (f *commandFlags) overHosts(ctx context.Context, stdout, stderr io.Writer) error {
	started := time.Now()
	hosts, err := readHosts(f.hosts)
	if err != nil {
		return err
	}
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: f.address})
	if err != nil {
		return err
	}
	defer bootstrap.Stop(id)
	ctx, cancel := context.WithCancel(ctx)
	workers := f.startAll(ctx, hosts)
	defer func() {
		cancel()
		for _, w := range workers {
			if w.wait != nil {
				w.in.Close()
				_ = w.wait()
			}
		}
	}()
	here, absent := present(workers)
	limit := cmp.Or(f.patience, f.cfg.Longest(workerJoin))
	defer time.AfterFunc(limit, cancel).Stop()
	if err := f.orders(id, here, absent, started, stderr); err != nil {
		return err
	}
	var report *report
	if len(here) == 0 {
		report = f.unreported(started, noAnswer(absent, false)...)
		for _, l := range absent {
			fmt.Fprintf(stderr, "host %s: %s\n", given.Printable(l.Host), given.Printable(l.Why))
		}
	} else if report, err = firstReport(id, here, absent); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("nothing within %v, or interrupted: is the host up, and does ssh still reach it?", limit)
		}
		fmt.Fprintf(stderr, "ringo check: could not be judged: host %s, which leads, gave no report: %v: %s\n",
			given.Printable(here[0].host), err, given.Printable(here[0].errors.line()))
		report = f.noLeader(started, here, absent, err)
	}
	err = f.write(report, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "ringo check: %v\n", err)
	}
	return verdictOf(report, err != nil)
}

// startAll starts a worker on each host at once. Each ends with ctx.
func (f *commandFlags) startAll(ctx context.Context, hosts []string) []*worker {
	workers := make([]*worker, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		workers[i] = &worker{host: h}
		wg.Go(func() { workers[i].failed = workers[i].start(ctx, f) })
	}
	wg.Wait()
	return workers
}

// present are the workers that have started; the hosts of the others are absent.
func present(workers []*worker) (here []*worker, absent []loss) {
	for _, w := range workers {
		if w.failed != nil {
			absent = append(absent,
				loss{Host: w.name(), Why: fmt.Sprintf("it does not answer: %v; is it up, does ssh reach it without a password, "+
					"and is ringo installed there (-remote)?", w.failed)})
			continue
		}
		here = append(here, w)
	}
	return here, absent
}

// lastWords is how long the output of a command that has ended is read, where processes that it started hold it.
const lastWords = 2 * time.Second

// orders gives each worker its order. A worker that cannot be told is named on stderr.
func (f *commandFlags) orders(id bootstrap.ID, here []*worker, absent []loss, started time.Time,
	stderr io.Writer) error {
	var names []string
	for _, w := range here {
		names = append(names, w.name())
	}
	for i, w := range here {
		o := order{ID: id, Rank: i, Size: len(here), Hosts: names, Absent: absent, Full: f.cfg.Full,
			ExpectGPUs: f.cfg.ExpectGPUs, Device: f.device, GPUs: f.gpus, NCCL: f.cfg.NCCL,
			Spent: time.Since(started)}
		if i == 0 {
			o.Baseline = f.cfg.Baseline
		}
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := w.in.Write(append(line, '\n')); err != nil {
			fmt.Fprintf(stderr, "ringo check: host %s: %v: %s\n", given.Printable(w.host), err,
				given.Printable(w.errors.line()))
		}
	}
	return nil
}

// firstReport is the report of the leading worker: the lowest that gives one, after those below it have ended or had
// their time. A report of another version, or about hosts that were not asked for, does not count. Without any report
// the error is the first worker's.
func firstReport(id bootstrap.ID, workers []*worker, absent []loss) (*report, error) {
	type result struct {
		report *report
		err    error
	}
	results := make([]chan result, len(workers))
	for i, w := range workers {
		results[i] = make(chan result, 1)
		go func() {
			report, err := readReport(w.out)
			if err == nil {
				err = report.isOf(i, workers, absent)
			}
			results[i] <- result{report, err}
			_ = w.wait() // so that all of its standard error has come
			bootstrap.Gone(id, i, cmp.Or(w.errors.line(), "it said nothing"))
		}()
	}
	var first error
	for i := range workers {
		r := <-results[i]
		if r.err == nil {
			return r.report, nil
		}
		first = cmp.Or(first, r.err)
	}
	_ = workers[0].wait()
	return nil, first
}

// isOf is nil if a report has this version and is about the hosts that were asked for, else the reason why not.
func (r *report) isOf(rank int, workers []*worker, absent []loss) error {
	if r.Version != ringo.Version {
		return fmt.Errorf("its report is of ringo %s, and this is %s", r.Version, ringo.Version)
	}
	spoken := map[string]bool{} // of
	for _, l := range absent {
		spoken[l.Host] = false
	}
	for _, w := range workers {
		spoken[w.name()] = false
	}
	reporter := false
	for _, h := range r.Hosts {
		name, _, _ := strings.Cut(h.Name, "#")
		if _, asked := spoken[name]; !asked {
			return fmt.Errorf("its report is about host %q, which was not asked", h.Name)
		}
		spoken[name] = true
		reporter = reporter || name == workers[rank].name() && slices.Contains(h.Ranks, rank)
	}
	if !reporter {
		return errors.New("its report is not about its own host")
	}
	for _, f := range r.Findings {
		spoken[f.Subject.Host] = true
	}
	for host, yes := range spoken {
		if !yes {
			return fmt.Errorf("its report says nothing of host %s", host)
		}
	}
	return nil
}

// name is the host without its user.
func (w *worker) name() string {
	_, after, found := strings.Cut(w.host, "@")
	if found {
		return after
	}
	return w.host
}

// start starts the worker and waits until it has printed workerReady.
func (w *worker) start(ctx context.Context, f *commandFlags) error {
	args := append(strings.Fields(f.ssh), w.host, f.remote, "check", "-worker")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = min(cmp.Or(f.patience, lastWords), lastWords)
	w.errors = new(last)
	cmd.Stderr = w.errors
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.cmd, w.in, w.out, w.wait = cmd, in, bufio.NewReader(out), sync.OnceValue(cmd.Wait)
	context.AfterFunc(ctx, func() { // processes that the command has started may hold the other ends
		in.Close()
		out.Close()
	})
	ready := make(chan error, 1)
	go func() {
		line, err := w.greeted()
		if err != nil {
			if failed := w.wait(); failed != nil { // so that all of its standard error has come
				err = failed
			}
		}
		switch {
		case err != nil && w.errors.line() != "":
			err = errors.New(w.errors.line())
		case err == nil && line != workerReady:
			err = fmt.Errorf("it says %q, and nothing of a worker: is its ringo another version?", line)
		}
		ready <- err
	}()
	select {
	case err = <-ready:
	case <-time.After(f.join):
		err = fmt.Errorf("nothing within %v", f.join)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return err
}

// greeted reads until the worker has printed workerReady, since a login may print lines before, and returns the last
// line.
func (w *worker) greeted() (last string, err error) {
	for n := 0; n < greetingBytes && last != workerReady; {
		var line []byte
		line, err = w.out.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return last, err
		}
		n += len(line)
		last = strings.TrimSpace(string(line))
	}
	return last, nil
}

// work is the worker's side: it carries out an order, and ends when the launcher ends.
func work(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Fprintln(stdout, workerReady)
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no order: %w", err)
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	f := commandFlags{join: workerJoin, device: o.Device, gpus: o.GPUs, json: "-",
		cfg: config{Full: o.Full, ExpectGPUs: o.ExpectGPUs, NCCL: o.NCCL, Baseline: o.Baseline}}
	if err := f.complete(); err != nil {
		return err
	}
	job, err := join(ctx, joinOptions{Timeout: f.join, Host: o.Hosts[o.Rank], Hosts: o.Hosts, Absent: o.Absent,
		Spent: o.Spent,
		Spec:  &bootstrap.Spec{Rank: o.Rank, Size: o.Size, Addr: o.ID.String(), Source: "ssh"}})
	if err != nil {
		return err
	}
	defer job.Close()
	var report bytes.Buffer // as a whole or not at all
	err = f.carryOut(ctx, job, &report, stderr)
	if _, failed := stdout.Write(report.Bytes()); failed != nil {
		return failed
	}
	return err
}
