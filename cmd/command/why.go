package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ringo-go/ringo/cmd/why/flight"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
	"github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// whyHelp is what "ringo why -h" prints.
const whyHelp = `usage: ringo why [FILE...] [-ras HOST[:PORT]] [-for DURATION]
                 [-json] [-html FILE]

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them, also in .gz, tar and tar.gz, or - for standard input:
  - dumps of PyTorch's flight recorder, pickles or JSON, whichever library
    carries the collectives. A dump's rank is the last number of its name;
  - answers of NCCL's RAS: what ncclras prints, as text or as JSON;
  - logs of NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL), one a rank or
    all in one, also with what torchrun and the kernel say of processes' ends;
  - histories of this library: a rank writes its last calls into the folder
    RINGO_HISTORY when its communicator fails, and when its process gets
    RINGO_HISTORY_SIGNAL.
Give it the files of all ranks: one without is taken for dead or stopped. Where
several kinds tell of one job the surest is the answer, the others are notes.

Examples
  ringo why /tmp/nccl_trace_rank_*
  ringo why dumps.tar.gz
  ssh node17 ncclras -v | ringo why -
  ringo why -ras node17
  RINGO_HISTORY=/tmp/hist RINGO_TIMEOUT=60s ringo run -np 4 -- ./train
  ringo why /tmp/hist
  RINGO_HISTORY=/tmp/hist RINGO_HISTORY_SIGNAL=USR2 ./train & kill -USR2 $!

  -ras HOST[:PORT]  ask NCCL's RAS of a living job twice, at any of its nodes
                    (port 28028): a job that moves in between is not accused
  -for DURATION     how long to wait between the two (default 5s)
  -json             print the answers as JSON
  -html FILE        write a page too, with a picture of who waits for whom

Exit status: 0 no rank waits, 3 ranks are to blame, 4 all are in one call and
nothing moves, 5 it cannot be said; 1 nothing could be read, 2 a wrong flag.
`

func runWhy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("why")
	address := fs.String("ras", "", "")
	pause := fs.Duration("for", 5*time.Second, "")
	asJSON := fs.Bool("json", false, "")
	page := fs.String("html", "", "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if len(names) == 0 && *address == "" {
		return cli.Usagef("which files? write: ringo why FOLDER")
	}
	if err := cli.Writable("-html", *page); err != nil {
		return err
	}
	u, err := newUnpacker()
	if err != nil {
		return err
	}
	defer u.close()
	files, wrong, err := sortFiles(u, names)
	if err != nil {
		return err
	}
	leftOut(stderr, wrong)
	found, err := files.judge(stderr)
	if err != nil {
		return err
	}
	if *address != "" {
		a, err := askTwice(ctx, *address, *pause)
		if err != nil {
			return err
		}
		found.answers = append(found.answers, *a)
	}
	all, err := found.all()
	if err != nil {
		return err
	}
	return printAnswers(stdout, all, *asJSON, *page)
}

// askTwice asks RAS of a living job.
func askTwice(ctx context.Context, address string, pause time.Duration) (*hang.Answer, error) {
	var all []ras.Report
	for range 2 {
		if len(all) > 0 {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(pause):
			}
		}
		r, err := ras.Ask(ctx, address)
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
	a := ras.Judge("RAS at "+address, all)
	return &a, nil
}

func leftOut(w io.Writer, skipped []error) {
	for _, s := range skipped {
		fmt.Fprintf(w, "left out: %v\n", s)
	}
}

// A whyFound is what files say.
type whyFound struct {
	own     []history.Finding // of each communicator of this library
	answers []hang.Answer     // of each reader
}

// A whyFiles is files by who has written them.
type whyFiles struct {
	own     []string // histories of this library, or folders of them
	dumps   []string // of PyTorch's flight recorder
	answers []string // of NCCL's RAS
	logs    []string // of NCCL
}

// judge finds out of each kind of files why the ranks hang. It is an error if no kind says anything.
func (g *whyFiles) judge(stderr io.Writer) (*whyFound, error) {
	found := new(whyFound)
	var wrong []error
	if len(g.own) > 0 {
		records, skipped, err := history.Read(g.own...)
		if err != nil {
			return nil, err
		}
		leftOut(stderr, skipped)
		found.own = history.Why(records)
	}
	for _, kind := range []struct {
		files []string
		read  func(...string) (*hang.Job, []error, error)
		says  string
	}{{g.dumps, flight.Read, "the flight recorder"}, {g.logs, ncclog.Read, "NCCL's log"}} {
		if len(kind.files) == 0 {
			continue
		}
		job, skipped, err := kind.read(kind.files...)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		leftOut(stderr, skipped)
		a := hang.Judge(job)
		a.Source = kind.says
		found.answers = append(found.answers, a)
	}
	for _, name := range g.answers {
		all, err := ras.Read(name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		found.answers = append(found.answers, ras.Judge(name, all))
	}
	if len(found.own)+len(found.answers) == 0 && len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	leftOut(stderr, wrong)
	return found, nil
}

// add puts a file to those of its kind, by how it begins. It reports whether it has one.
func (g *whyFiles) add(name string) bool {
	switch head := headOf(name); {
	case flight.Is(head):
		g.dumps = append(g.dumps, name)
	case ras.Is(head):
		g.answers = append(g.answers, name)
	case ncclog.Is(head):
		g.logs = append(g.logs, name)
	default:
		return false
	}
	return true
}

// headOf is how a file begins; of one that cannot be read, nothing.
func headOf(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, 64<<10) // a launcher may have said much before NCCL says anything
	n, _ := io.ReadFull(f, head)
	return head[:n]
}

// sortFiles finds out what each file is. Of a folder and of an archive the files that it knows count, and histories if there are any.
func sortFiles(u *unpacker, words []string) (*whyFiles, []error, error) {
	g := new(whyFiles)
	paths, wrong := u.find(words, os.Stdin)
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			more, err := g.folder(u, path)
			wrong = append(wrong, more...)
			if err != nil {
				return nil, nil, err
			}
		case err == nil && g.add(path):
		case u.has(path) && !isHistory(path):
			wrong = append(wrong, fmt.Errorf("%s: neither a dump, nor an answer of RAS, nor a log", filepath.Base(path)))
		default:
			g.own = append(g.own, path) // it says what is wrong
		}
	}
	if len(g.own)+len(g.dumps)+len(g.answers)+len(g.logs) == 0 && len(wrong) > 0 {
		return nil, nil, errors.Join(wrong...)
	}
	return g, wrong, nil
}

// folder adds the files of a folder that it knows.
func (g *whyFiles) folder(u *unpacker, dir string) (wrong []error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	histories, known := false, false
	for _, e := range list {
		switch {
		case isHistory(e.Name()):
			histories = true
			continue
		case e.IsDir():
			continue
		}
		more, err := u.open(filepath.Join(dir, e.Name()), 0)
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, file := range more {
			if u.has(file) && isHistory(file) {
				g.own, known = append(g.own, file), true
			} else {
				known = g.add(file) || known
			}
		}
	}
	if histories || !known && len(wrong) == 0 {
		g.own = append(g.own, dir)
	}
	return wrong, nil
}

func isHistory(name string) bool {
	is, _ := filepath.Match(history.Files, filepath.Base(name))
	return is
}
