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
	"github.com/ringo-go/ringo/cmd/why/inspector"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
	"github.com/ringo-go/ringo/cmd/why/printed"
	"github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/cmd/why/stacks"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// whyHelp is what "ringo help why all" prints.
const whyHelp = `usage: ringo why [FILE...] [-ras HOST[:PORT]] [-for DURATION]
                 [-json] [-html FILE]
       ringo why -watch [FOLDER...] [-ras HOST[:PORT]] [-for DURATION]
                 [-every DURATION] [-pipes PREFIX]

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them, also in .gz, tar and tar.gz, or - for standard input:
  - dumps of PyTorch's flight recorder, pickles or JSON, whichever library
    carries the collectives. A dump's rank is the last number of its name;
  - answers of NCCL's RAS: what ncclras prints, as text or as JSON;
  - logs of NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL), one a rank or
    all in one;
  - what PyTorch's watchdog, Gloo, torchrun, srun and the kernel print;
  - what NCCL's Inspector writes: who each rank is, and who comes late;
  - stacks of py-spy dump, gdb and faulthandler: where absent ranks stand;
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
  ringo why -watch -ras node17 /shared/run7
  RINGO_HISTORY=/tmp/hist RINGO_TIMEOUT=60s ringo run -np 4 -- ./train
  ringo why /tmp/hist
  RINGO_HISTORY=/tmp/hist RINGO_HISTORY_SIGNAL=USR2 ./train & kill -USR2 $!

` + whyFlags

// whyFlags explains the flags, at the end of both helps.
const whyFlags = `  -ras HOST[:PORT]  ask NCCL's RAS of a living job twice, at any of its nodes
                    (port 28028): a job that moves in between is not accused
  -for DURATION     how long to wait between the two (default 5s)
  -json             print the answers as JSON
  -html FILE        write a page too, with a picture of who waits for whom
  -watch            look at a living job until interrupted, by -ras and by new
                    files in FOLDERs: silent while all is well; it says who
                    holds up whom when ranks stand still for -for (default 3s)
  -every DURATION   between two looks (default 1s)
  -pipes PREFIX     ask the ranks for dumps when they stand still, by the pipes
                    of TORCH_NCCL_DEBUG_INFO_PIPE_FILE=PREFIX

Exit status: 0 no rank waits, 3 ranks are to blame, 4 all are in one call and
nothing moves, or the time-out is too short; 5 it cannot be said; 1 nothing
could be read, 2 a wrong flag.
`

// whyBrief is what "ringo why -h" prints.
const whyBrief = `usage: ringo why [FILE...] [flags]
       ringo why -watch [FOLDER...] [flags]

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them, packed or not, or - for standard input: dumps of PyTorch's
flight recorder, answers of NCCL's RAS, logs, stacks, this library's histories.

Examples
  ringo why /tmp/nccl_trace_rank_*
  ringo why dumps.tar.gz
  ssh node17 ncclras -v | ringo why -
  ringo why -ras node17
  ringo why -watch -ras node17 /shared/run7

` + whyFlags + `"ringo help why all" says what each kind of file is.
`

func runWhy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("why")
	address := fs.String("ras", "", "")
	pause := durationFlag(fs, 5*time.Second, 0, "for")
	watching := fs.Bool("watch", false, "")
	every := durationFlag(fs, time.Second, cli.Moment, "every")
	pipes := fs.String("pipes", "", "")
	asJSON := fs.Bool("json", false, "")
	page := fs.String("html", "", "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if len(names) == 0 && *address == "" {
		return cli.Usagef("which files? write: ringo why FOLDER")
	}
	if err := pageAndJSON(*page, *asJSON); err != nil {
		return err
	}
	if *watching {
		stall := *pause
		if !cli.Given(fs, "for") {
			stall = 3 * time.Second
		}
		return whyWatch(ctx, names, *address, *pipes, *every, stall, stdout)
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
	if *address != "" {
		all, err := askTwice(ctx, *address, *pause)
		if err != nil {
			return err
		}
		files.asked = []whyJob{{all[1].Job("RAS at " + *address), "NCCL's RAS", all}}
	}
	found, err := files.judge(stderr)
	if err != nil {
		return err
	}
	all, err := found.all()
	if err != nil {
		return err
	}
	return printAnswers(stdout, all, *asJSON, *page)
}

// askTwice asks RAS of a living job twice, pause apart.
func askTwice(ctx context.Context, address string, pause time.Duration) (all []ras.Report, err error) {
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
	return all, nil
}

func leftOut(w io.Writer, skipped []error) {
	for _, s := range skipped {
		fmt.Fprintf(w, "left out: %v\n", s)
	}
}

// A whyFound is the verdicts on all files.
type whyFound struct {
	own     []history.Finding // of each communicator of this library
	answers []hang.Answer     // of each kind of files
	late    []hang.Lateness   // of ranks, by the dumps
}

// A whyFiles is the files by kind.
type whyFiles struct {
	own     []string // histories of this library, or folders of them
	dumps   []string // of PyTorch's flight recorder
	answers []string // of NCCL's RAS
	logs    []string // of NCCL
	texts   []string // of PyTorch, of launchers and of the kernel
	perf    []string // of NCCL's Inspector
	stacks  []string // of py-spy, gdb and Python
	asked   []whyJob // of living jobs
}

// Sources of answers, as printed.
const (
	flightSays    = "the flight recorder"
	inspectorSays = "NCCL's Inspector"
)

// A whyJob is the job as one kind of files shows it.
type whyJob struct {
	*hang.Job
	says    string       // the kind of files
	reports []ras.Report // of RAS; the last one made the job
}

// read makes a job of each kind of files, and shares their knowledge of processes among the jobs.
func (g *whyFiles) read(stderr io.Writer) (jobs []whyJob, wrong []error) {
	jobs = g.asked
	add := func(j *hang.Job, skipped []error, err error, says string) {
		leftOut(stderr, skipped)
		if mute := errors.Is(err, ncclog.ErrMute) || errors.Is(err, printed.ErrMute); err != nil && !(mute && len(jobs) > 0) {
			// a log without calls is an error only alone
			wrong = append(wrong, err)
		}
		if j != nil {
			jobs = append(jobs, whyJob{j, says, nil})
		}
	}
	if len(g.dumps) > 0 {
		j, skipped, err := flight.Read(g.dumps...)
		add(j, skipped, err, flightSays)
	}
	if len(g.logs) > 0 {
		j, skipped, err := ncclog.Read(g.logs...)
		add(j, skipped, err, "NCCL's log")
	}
	for _, name := range g.answers {
		all, err := ras.Read(name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		jobs = append(jobs, whyJob{all[len(all)-1].Job(name), "NCCL's RAS", all})
	}
	if len(g.perf) > 0 { // the Inspector has no call that hangs: other jobs learn from it, else it is a job itself
		others := len(jobs)
		j, skipped, err := inspector.Read(g.perf...)
		add(j, skipped, err, inspectorSays)
		if j != nil && others > 0 {
			jobs = jobs[:others]
			jobs[0].Notes = append(jobs[0].Notes, j.Notes...)
			for i := range jobs {
				jobs[i].Learn(j)
			}
		}
	}
	hints, skipped := stacks.Read(g.stacks...)
	said, more := printed.Read(g.texts...)
	leftOut(stderr, append(skipped, more...))
	share(jobs, append(hints, said.Hints...))
	if len(g.texts) > 0 {
		j, err := said.Job()
		add(j, nil, err, "PyTorch's log")
	}
	return jobs, wrong
}

// share tells each job what the other jobs know of processes, and the hints.
func share(jobs []whyJob, hints []hang.Hint) {
	for i := range jobs {
		for k := range jobs {
			if i != k {
				jobs[i].Learn(jobs[k].Job)
			}
		}
	}
	heard := make([]bool, len(hints))
	for i := range jobs {
		if len(jobs[i].Ranks) == 0 { // RAS names no rank where all have called as much
			jobs[i].Notes = append(jobs[i].Notes, hang.Standing(hints)...)
		}
		for k, is := range jobs[i].Hear(hints) {
			heard[k] = heard[k] || is
		}
	}
	for k, h := range hints {
		if !heard[k] && h.Death != "" && h.Pid > 0 && len(jobs) > 0 { // a dead process of no known rank may be the cause
			jobs[0].Notes = append(jobs[0].Notes, fmt.Sprintf("process %d %s", h.Pid, h.Death))
		}
	}
}

// judge finds by each kind of files why the ranks hang. It is an error if no kind has an answer.
func (g *whyFiles) judge(stderr io.Writer) (*whyFound, error) {
	found := new(whyFound)
	if len(g.own) > 0 {
		records, skipped, err := history.Read(g.own...)
		if err != nil {
			return nil, err
		}
		leftOut(stderr, skipped)
		found.own = history.Why(records)
	}
	jobs, wrong := g.read(stderr)
	for _, j := range jobs {
		var a hang.Answer
		switch {
		case j.reports != nil:
			a = ras.Judge(j.Job, j.reports)
		case j.says == inspectorSays:
			a = inspector.Judge(j.Job)
		case j.Mute():
			continue
		default:
			a = hang.Judge(j.Job)
		}
		a.Source = j.says
		found.answers = append(found.answers, a)
		if j.says == flightSays {
			found.late = hang.Laggards(j.Job)
		}
	}
	if len(found.own)+len(found.answers) == 0 {
		if len(wrong) == 0 {
			wrong = []error{errors.New("the stacks say where processes stand, and not of which ranks: give dumps, logs or an " +
				"answer of RAS too")}
		}
		return nil, errors.Join(wrong...)
	}
	leftOut(stderr, wrong)
	return found, nil
}

// add puts a file with the others of its kind, by its beginning and its end. It reports whether the kind is known.
func (g *whyFiles) add(name string) bool {
	head, tail := endsOf(name)
	switch {
	case flight.Is(head):
		g.dumps = append(g.dumps, name)
	case ras.Is(head):
		g.answers = append(g.answers, name)
	case inspector.Is(head):
		g.perf = append(g.perf, name)
	case stacks.Is(head):
		g.stacks = append(g.stacks, name)
	default:
		log, text := ncclog.Is(head), printed.Is(head) || printed.Is(tail)
		if log {
			g.logs = append(g.logs, name)
		}
		if log || text {
			g.texts = append(g.texts, name)
		}
		return log || text
	}
	return true
}

// headOf is the beginning of a file; nil if the file cannot be read.
func headOf(name string) []byte {
	head, _ := endsOf(name)
	return head
}

// endsOf is the first 64 KiB of a file, and the last if the file is longer; nil if the file cannot be read.
func endsOf(name string) (head, tail []byte) {
	const part = 64 << 10 // a launcher may print much before NCCL's first line
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	head = make([]byte, min(part, info.Size()))
	n, _ := io.ReadFull(f, head)
	if info.Size() > part {
		tail = make([]byte, part)
		m, _ := f.ReadAt(tail, max(part, info.Size()-part))
		tail = tail[:m]
	}
	return head[:n], tail
}

// sortFiles sorts files by kind. Files of unknown kind in folders and archives are left out; a file of unknown kind
// that words name is taken for a history.
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
			wrong = append(wrong, fmt.Errorf("%s: neither a dump, nor an answer of RAS, nor a log, nor stacks",
				filepath.Base(path)))
		default:
			g.own = append(g.own, path) // the reader of histories says what is wrong
		}
	}
	if g.empty() && len(wrong) > 0 {
		return nil, nil, errors.Join(wrong...)
	}
	return g, wrong, nil
}

// folder adds the files of a folder whose kind is known. A folder without any counts as one of histories, whose reader
// says what is wrong, unless old files are left out.
func (g *whyFiles) folder(u *unpacker, dir string) (wrong []error, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	known := false
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || u.isOld(path) {
			continue
		}
		more, err := u.open(path, 0)
		if err != nil {
			wrong = append(wrong, err)
		}
		for _, file := range more {
			if isHistory(file) {
				g.own, known = append(g.own, file), true
			} else {
				known = g.add(file) || known
			}
		}
	}
	if !known && len(wrong) == 0 && u.old == nil {
		g.own = append(g.own, dir)
	}
	return wrong, nil
}

func (g *whyFiles) empty() bool {
	return len(g.own)+len(g.dumps)+len(g.answers)+len(g.logs)+len(g.texts)+len(g.stacks)+len(g.perf) == 0
}

func isHistory(name string) bool {
	is, _ := filepath.Match(history.Files, filepath.Base(name))
	return is
}
