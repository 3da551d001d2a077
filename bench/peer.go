package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/trusted"
)

// The peer programs are compiled on the machine that runs them, when they are
// first asked for.
var (
	//go:embed peers/error.h
	errorSource []byte
	//go:embed peers/mpi.c
	mpiSource []byte
	//go:embed peers/gloo.cc
	glooSource []byte
)

// A peer is another library, made to measure what we measure.
type peer struct {
	name     string
	packages string   // of Debian, for the remedy
	tools    []string // compiler and launcher, by the names that Debian gives them
	compile  func(compiler, source, binary string) []string
	source   []byte
	suffix   string
	variants func(tcp bool) []variant
	only     string        // the transport of a peer that has no other
	patience time.Duration // in place of finalizing, for tests
}

// text is the whole source.
func (p *peer) text() []byte { return slices.Concat(errorSource, p.source) }

// A variant is one way to run a peer: of several the fastest counts, size by
// size.
type variant struct {
	name string
	args []string // of the launcher
	env  []string
}

var peers = map[string]*peer{
	"openmpi": {
		name: "openmpi", packages: "openmpi-bin libopenmpi-dev", source: mpiSource, suffix: ".c",
		tools:   []string{"mpicc.openmpi", "mpirun.openmpi"},
		compile: compileC,
		variants: func(tcp bool) []variant {
			common := []string{"--allow-run-as-root", "--oversubscribe"}
			if tcp {
				return []variant{{name: "tcp", args: append(common, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self")}}
			}
			return []variant{
				{name: "single copy", args: common},
				{name: "copy-in/out", args: append(common, "--mca", "btl_vader_single_copy_mechanism", "none")},
			}
		},
	},
	"mpich": {
		name: "mpich", packages: "mpich libmpich-dev", source: mpiSource, suffix: ".c",
		tools:   []string{"mpicc.mpich", "mpirun.mpich"},
		compile: compileC,
		variants: func(tcp bool) []variant {
			if tcp {
				return []variant{{name: "tcp", env: []string{"UCX_TLS=tcp,self", "MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp"}}}
			}
			return []variant{{name: "default"}}
		},
	},
	"gloo": {
		name: "gloo", packages: "g++ libgloo-dev", source: glooSource, suffix: ".cc",
		tools: []string{"g++"},
		compile: func(cc, source, binary string) []string {
			return []string{cc, "-O3", "-march=native", "-w", "-o", binary, source, "-lgloo", "-lpthread"}
		},
		variants: func(bool) []variant { return []variant{{name: "tcp"}} }, only: "tcp",
	},
}

func compileC(cc, source, binary string) []string {
	return []string{cc, "-O2", "-o", binary, source, "-lm"}
}

// build finds the peer's tools and compiles its program unless that was done
// before. The error is a line for the user, with the remedy.
func (p *peer) build(ctx context.Context) (binary string, err error) {
	for _, tool := range p.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s not found; apt-get install %s", tool, p.packages)
		}
	}
	dir, err := trusted.Cache("peers")
	if err != nil {
		return "", fmt.Errorf("a folder for the compiled program: %w", err)
	}
	// -march=native ties a program to its processor.
	args := strings.Join(p.compile(p.tools[0], "", ""), " ")
	sum := sha256.Sum256([]byte(args + CPU() + string(p.text())))
	binary = filepath.Join(dir, fmt.Sprintf("%s-%x", p.name, sum[:8]))
	if _, err := os.Stat(binary); err == nil {
		return binary, trusted.Paths(binary)
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the compiler: %w", err)
	}
	defer os.RemoveAll(work)
	source, made := filepath.Join(work, p.name+p.suffix), filepath.Join(work, p.name)
	if err := os.WriteFile(source, p.text(), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	line := p.compile(p.tools[0], source, made)
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s; apt-get install %s", p.tools[0], err, firstLine(out), p.packages)
	}
	return binary, os.Rename(made, binary)
}

// firstLine is the first line with words: Open MPI begins with a line of dashes.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(b), "- \t\r\n"), "\n")
	return strings.TrimSpace(line)
}

// errUnsupported is a peer's refusal of a type, operator or collective.
var errUnsupported = errors.New("unsupported")

// run measures one series with one variant on n ranks. The error tells why there
// are no rows.
func (p *peer) run(ctx context.Context, cfg *Config, v variant, binary string, n int, s *series,
	atLeast time.Duration) ([]Row, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.PeerTimeout,
		fmt.Errorf("took longer than %v (-peer-timeout)", cfg.PeerTimeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	params := []string{
		s.Name, s.typ.String(), s.opName(), strconv.Itoa(s.root), strconv.Itoa(cfg.Warmup),
		strconv.Itoa(cfg.Iterations), strconv.FormatInt(int64(atLeast), 10), strconv.Itoa(minIterations), "0",
	}
	if cfg.Error {
		params[len(params)-1] = "1"
	}
	for _, count := range s.counts {
		params = append(params, strconv.Itoa(count))
	}
	// A folder of its own, where ranks of Gloo meet. In /tmp an mpirun of Open MPI may remove files that other jobs of
	// this user begin to use.
	dir, err := trusted.MkdirTemp("", "ringo-peer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	job := launch.Config{N: 1, Env: append(append(os.Environ(), v.env...), "TMPDIR="+dir), Grace: 2 * time.Second}
	if p.name == "gloo" {
		job.N = n
		job.Args = append([]string{binary, dir}, params...)
	} else {
		job.Args = append([]string{p.tools[1]}, v.args...)
		job.Args = append(append(job.Args, "-np", strconv.Itoa(n), binary), params...)
	}
	var complaints bytes.Buffer
	out := rowsAndEnd{ended: func() { time.AfterFunc(cmp.Or(p.patience, finalizing), func() { stop(errLingers) }) }}
	job.Stdout, job.Stderr = &out, &complaints
	if err := launch.Run(ctx, job); err != nil && context.Cause(ctx) != errLingers {
		if why := firstLine(complaints.Bytes()); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return nil, err
	}
	return parsePeer(&out.text, p.name, s, n)
}

// finalizing is how long a peer may take to end after its last row. Then it is killed, and its rows count.
const finalizing = 3 * time.Second

var errLingers = errors.New("had measured all and did not end")

// rowsAndEnd keeps what a peer prints, and calls ended once when the line "end" has come.
type rowsAndEnd struct {
	text  bytes.Buffer
	ended func()
}

func (r *rowsAndEnd) Write(b []byte) (int, error) {
	n, err := r.text.Write(b)
	if r.ended != nil && bytes.Contains(r.text.Bytes(), []byte("\nend\n")) {
		r.ended()
		r.ended = nil
	}
	return n, err
}

// parsePeer reads the output of a peer program; see peers/mpi.c.
func parsePeer(r io.Reader, name string, s *series, n int) ([]Row, error) {
	var rows []Row
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) == 0 || f[0] != "row" && f[0] != "unsupported" {
			continue // a launcher's remark
		}
		if f[0] == "unsupported" {
			return nil, fmt.Errorf("%w: %s", errUnsupported, strings.Join(f[1:], " "))
		}
		row, err := parsePeerRow(sc.Text(), name, s, n)
		if err != nil {
			return nil, fmt.Errorf("output of %s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, sc.Err()
}

// parsePeerRow reads a line: row, count, iterations, microseconds out of place and in place (negative
// for none), and with -error the largest and the RMS error.
func parsePeerRow(line, name string, s *series, n int) (row Row, err error) {
	f := strings.Fields(line)
	if len(f) != 5 && len(f) != 7 {
		return row, fmt.Errorf("%q has %d fields, want 5 or 7", line, len(f))
	}
	count, err1 := strconv.Atoi(f[1])
	iterations, err2 := strconv.Atoi(f[2])
	outUS, err3 := strconv.ParseFloat(f[3], 64)
	inUS, err4 := strconv.ParseFloat(f[4], 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return row, err
	}
	if count < 0 || iterations < 1 || !(outUS >= 0) || math.IsInf(outUS, 0) || math.IsNaN(inUS) || math.IsInf(inUS, 0) {
		return row, fmt.Errorf("%q makes no sense", line)
	}
	row = s.row(name, count, n, outUS, iterations)
	if len(f) == 7 {
		most, err1 := strconv.ParseFloat(f[5], 64)
		rms, err2 := strconv.ParseFloat(f[6], 64)
		if err := errors.Join(err1, err2); err != nil || !(most >= rms && rms >= 0) || math.IsInf(most, 0) {
			return row, fmt.Errorf("errors %q make no sense: %w", f[5:], err)
		}
		row.Error = &Deviation{Max: most, RMS: rms}
	}
	if inUS >= 0 && s.InPlace {
		row.InPlace = measure(s.Collective, row.Size, n, inUS, iterations)
	}
	return row, nil
}
