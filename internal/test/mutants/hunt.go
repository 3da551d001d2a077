package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A verdict is how a mutant ended.
type verdict int

const (
	lives verdict = iota
	killed
	hung     // killed by the limit
	unbuilt  // does not count
	same     // does not count: the compiler makes the same code of it
	unjudged // does not count: tests fail without it
	stopped  // does not count: the hunt was ended
)

func (v verdict) counts() bool { return v <= hung }

func (v verdict) String() string {
	return [...]string{"LIVES", "killed", "killed (limit)", "does not build", "same code", "tests fail without it",
		"stopped"}[v]
}

// A judgement is a mutant's verdict, what gave it, and how long it took.
type judgement struct {
	*mutant
	verdict
	why  string
	took time.Duration
}

// A hunt judges mutants.
type hunt struct {
	dir   string
	short bool
	log   io.Writer
	mu    sync.Mutex
	bases map[string]*base // by folder
}

// A base is what a folder has without a mutant: its code, and how long its tests take.
type base struct {
	compiled, tested sync.Once
	code             [sha256.Size]byte
	took             time.Duration
	err              error
}

// judge judges mutants in order until n of them count, j at once. Which are judged does not depend on j.
func (h *hunt) judge(ctx context.Context, mutants []*mutant, n, j int) []judgement {
	var (
		mu           sync.Mutex
		changed      = sync.NewCond(&mu)
		next         int
		busy, counts int
		list         = make([]judgement, len(mutants))
		wg           sync.WaitGroup
	)
	for range j {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				for counts+busy >= n && counts < n && ctx.Err() == nil {
					changed.Wait()
				}
				if counts >= n || next == len(mutants) || ctx.Err() != nil {
					return
				}
				i := next
				next++
				busy++
				mu.Unlock()
				x := h.one(ctx, i, mutants[i])
				mu.Lock()
				list[i] = x
				busy--
				if x.counts() {
					counts++
				}
				fmt.Fprintf(h.log, "%d of %d: %s %v (%.1f s) %s\n", counts, n, x.verdict, x.mutant, x.took.Seconds(), x.why)
				changed.Broadcast()
			}
		})
	}
	wg.Wait()
	return list[:next]
}

// one judges one mutant.
func (h *hunt) one(ctx context.Context, number int, m *mutant) (x judgement) {
	start := time.Now()
	x = judgement{mutant: m, verdict: lives}
	defer func() {
		if ctx.Err() != nil {
			x.verdict = stopped
		}
		x.took = time.Since(start)
	}()
	dir := filepath.Join(h.dir, fmt.Sprint(number))
	overlay, err := m.overlay(dir)
	defer os.RemoveAll(dir)
	if err != nil {
		x.verdict, x.why = unjudged, err.Error()
		return x
	}
	code, out, err := codeOf(ctx, m.pkg, overlay)
	switch {
	case err != nil:
		x.verdict, x.why = unbuilt, firstLine(out)
		return x
	case !m.generic && code == h.code(ctx, m.pkg):
		x.verdict = same
		return x
	}
	folders := elsewhere[m.pkg.folder()]
	if len(m.pkg.TestGoFiles)+len(m.pkg.XTestGoFiles) > 0 {
		folders = append([]string{m.pkg.folder()}, folders...)
	}
	if len(folders) == 0 {
		x.why = "it has no tests"
	}
	for i, folder := range folders {
		b := h.base(ctx, m.pkg, folder)
		if b.err != nil {
			if x.why = b.err.Error(); i == 0 {
				x.verdict = unjudged
			}
			return x
		}
		if x.verdict, x.why = h.try(ctx, m.pkg, folder, overlay, filepath.Join(dir, "tests"), b); x.verdict != lives {
			return x
		}
	}
	return x
}

// overlay writes the file and an overlay that has it, into a folder that it makes.
func (m *mutant) overlay(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: file}})
	if err == nil {
		err = os.WriteFile(file, m.whole(), 0o644)
	}
	if err == nil {
		err = os.WriteFile(overlay, text, 0o644)
	}
	return overlay, err
}

func (h *hunt) of(folder string) *base {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bases[folder] == nil {
		h.bases[folder] = new(base)
	}
	return h.bases[folder]
}

// code is a hash of a package's code without a mutant.
func (h *hunt) code(ctx context.Context, p *pkg) [sha256.Size]byte {
	b := h.of(p.folder())
	b.compiled.Do(func() { b.code, _, _ = codeOf(ctx, p, "") })
	return b.code
}

// codeOf is a hash of the compiler's code for a package, or with an error its messages. Programs of tests would not do:
// the linker leaves out code that no test reaches.
func codeOf(ctx context.Context, p *pkg, overlay string) (sum [sha256.Size]byte, out []byte, err error) {
	args := []string{"build", "-trimpath", "-gcflags=-S -dwarf=false", "-o", os.DevNull}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	d := sha256.New()
	out, err = output(exec.CommandContext(ctx, "go", append(args, p.ImportPath)...), d)
	return [sha256.Size]byte(d.Sum(nil)), out, err
}

// base finds how long the tests of a folder take, once for all mutants.
func (h *hunt) base(ctx context.Context, p *pkg, folder string) *base {
	b := h.of(folder)
	b.tested.Do(func() {
		program := filepath.Join(h.dir, "base-"+strings.ReplaceAll(folder, "/", "-"))
		defer os.Remove(program)
		if out, err := link(ctx, p, folder, "", program); err != nil {
			b.err = fmt.Errorf("the tests of %s do not build: %s", folder, firstLine(out))
			return
		}
		for range 2 { // a test that fails now and then has a second chance
			start := time.Now()
			out, err := h.tests(ctx, p, folder, "", program, 20*time.Minute)
			b.took, b.err = time.Since(start), nil
			if err == nil {
				break
			}
			b.err = fmt.Errorf("the tests of %s fail without a mutant: %s", folder, reason(out, err))
		}
		fmt.Fprintf(h.log, "tests of %s: %.1f s\n", folder, b.took.Seconds())
	})
	return b
}

// try runs the tests of a folder with a mutant.
func (h *hunt) try(ctx context.Context, p *pkg, folder, overlay, program string, b *base) (verdict, string) {
	defer os.Remove(program)
	if out, err := link(ctx, p, folder, overlay, program); err != nil {
		return unbuilt, firstLine(out)
	}
	limit := 3*b.took + 20*time.Second
	start := time.Now()
	out, err := h.tests(ctx, p, folder, overlay, program, limit)
	switch {
	case err == nil:
		return lives, ""
	case time.Since(start) >= limit:
		return hung, fmt.Sprintf("%s: more than %.0f s", folder, limit.Seconds())
	}
	return killed, folder + ": " + reason(out, err)
}

// link makes the program of a folder's tests.
func link(ctx context.Context, p *pkg, folder, overlay, program string) ([]byte, error) {
	args := []string{"test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	path := p.Module.Path
	if folder != "." {
		path += "/" + folder
	}
	return output(exec.CommandContext(ctx, "go", append(args, path)...), io.Discard)
}

// tests runs a program of tests in its folder. What it builds has the mutant, too.
func (h *hunt) tests(ctx context.Context, p *pkg, folder, overlay, program string, limit time.Duration) ([]byte,
	error) {
	args := []string{"-test.failfast", fmt.Sprintf("-test.timeout=%v", limit+time.Minute),
		fmt.Sprintf("-test.short=%v", h.short)}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join(p.Module.Dir, folder)
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	}
	return output(cmd, io.Discard)
}

// output runs a command to its end, and ends the processes that it has started. It gives the beginning of the command's
// output, and writes all of it to w.
func output(cmd *exec.Cmd, w io.Writer) ([]byte, error) {
	out := &head{most: 4 << 20}
	all := io.MultiWriter(out, w)
	cmd.Stdout, cmd.Stderr = all, all
	cmd.WaitDelay = 5 * time.Second
	asGroup(cmd)
	err := cmd.Run()
	endGroup(cmd)
	return out.text.Bytes(), err
}

// A head keeps the beginning of what is written.
type head struct {
	text bytes.Buffer
	most int
}

func (h *head) Write(b []byte) (int, error) {
	h.text.Write(b[:min(len(b), h.most-h.text.Len())])
	return len(b), nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*|fatal error: .*|FAIL.*)$`)

// reason is the first test that failed, or what else the program says of its end.
func reason(out []byte, err error) string {
	if at := failed.Find(out); at != nil {
		return strings.TrimPrefix(strings.TrimSpace(string(at)), "--- FAIL: ")
	}
	return err.Error()
}

// firstLine is the first line of a compiler's output that is no heading.
func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return "it says nothing"
}
