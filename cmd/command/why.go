package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/flight"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/histories"
	"github.com/ringo-go/ringo/cmd/why/inspector"
	"github.com/ringo-go/ringo/cmd/why/ncclog"
	"github.com/ringo-go/ringo/cmd/why/printed"
	"github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/cmd/why/stacks"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// whyHelp is what "ringo help why all" prints.
const whyHelp = `usage: ringo why [FILE...] [flags]
       ringo why -watch [FOLDER...] [flags]

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them, also in .gz, tar and tar.gz, or - for standard input: dumps of
PyTorch's flight recorder, answers of NCCL's RAS, logs, stacks, this library's
histories.
|  - dumps of PyTorch's flight recorder, pickles or JSON, whichever library
|    carries the collectives. A dump's rank is the last number of its name;
|  - answers of NCCL's RAS: what ncclras prints, as text or as JSON;
|  - logs of NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL), one a rank or
|    all in one;
|  - what PyTorch's watchdog, Gloo, torchrun, srun and the kernel print;
|  - what NCCL's Inspector writes: who each rank is, and who comes late;
|  - stacks of py-spy dump, gdb and faulthandler: where absent ranks stand;
|  - histories of this library: a rank writes its last calls into the folder
|    RINGO_HISTORY when its communicator fails, and when its process gets
|    RINGO_HISTORY_SIGNAL.
|Give it the files of all ranks: of one without nothing is known, and it is not
|accused for that. Communicators of the same processes are one job. Where several
|kinds tell of one job the surest is the answer, the others are notes.

Examples
  ringo why /tmp/nccl_trace_rank_*
  ringo why dumps.tar.gz
  ssh node17 ncclras -v | ringo why -
  ringo why -ras node17
  ringo why -watch -ras node17 /shared/run7
|  RINGO_HISTORY=/tmp/hist RINGO_TIMEOUT=60s ringo run -np 4 -- ./train
|  ringo why /tmp/hist
|  RINGO_HISTORY=/tmp/hist RINGO_HISTORY_SIGNAL=USR2 ./train & kill -USR2 $!

{ras for json html watch every pipes}

Exit status: 0 no rank waits, 3 ranks are to blame, 4 all are in one call and
nothing moves, or the time-out is too short; 5 it cannot be said; 1 nothing
could be read, 2 a wrong flag.
`

func runWhy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("why")
	address := fs.String("ras", "", "`HOST[:PORT]` ask NCCL's RAS of a living job twice, at any of its nodes (port "+
		"28028): a job that moves in between is not accused")
	pause := durationFlag(fs, 5*time.Second, 0, "for `DURATION` how long to wait between the two (default 5s); ranks "+
		"are accused if others have waited for them as long (default 3s, by histories 1s)")
	watching := fs.Bool("watch", false, "look at a living job until interrupted, by -ras and by new files in FOLDERs: "+
		"silent while all is well; it says who holds up whom when ranks stand still for -for (default 3s)")
	every := durationFlag(fs, time.Second, cli.Moment, "every `DURATION` between two looks (default 1s)")
	pipes := fs.String("pipes", "", "`PREFIX` ask the ranks for dumps when they stand still, by the pipes of "+
		"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=PREFIX")
	asJSON := fs.Bool("json", false, "print the answers as JSON")
	page := fs.String("html", "", "`FILE` write a page too, with a picture of who waits for whom")
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
	wait := *pause
	if !cli.Given(fs, "for") {
		wait = hang.Patience
	}
	if err := whyMisused(fs, *watching); err != nil {
		return err
	}
	if *watching {
		return whyWatch(ctx, names, *address, *pipes, *every, wait, stdout)
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
	switch files.wait = wait; {
	case !cli.Given(fs, "for"):
		files.wait = 0 // as is usual for the kind of files
	case wait == 0:
		files.wait = -1
	}
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

// whyMisused returns an error if flags were given that mean nothing with -watch, or without.
func whyMisused(fs *flag.FlagSet, watching bool) error {
	for _, name := range []string{"every", "pipes"} {
		if cli.Given(fs, name) && !watching {
			return cli.Usagef("-%s is for -watch: add that, or leave it out", name)
		}
	}
	for _, name := range []string{"json", "html"} {
		if cli.Given(fs, name) && watching {
			return cli.Usagef("-%s is of no use with -watch, which prints lines: leave one of the two out", name)
		}
	}
	return nil
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
	answers []hang.Answer   // of each kind of files
	late    []hang.Lateness // of ranks, by the dumps
}

// A whyFiles is the files by kind.
type whyFiles struct {
	own     []string      // histories of this library, or folders of them
	dumps   []string      // of PyTorch's flight recorder
	answers []string      // of NCCL's RAS
	logs    []string      // of NCCL
	texts   []string      // of PyTorch, of launchers and of the kernel
	perf    []string      // of NCCL's Inspector
	stacks  []string      // of py-spy, gdb and Python
	asked   []whyJob      // of living jobs
	wait    time.Duration // hang.Job.Patience
	living  bool          // the files are of a job that is looked at again and again
}

// Sources of answers, as printed.
const (
	flightSays    = "the flight recorder"
	inspectorSays = "NCCL's Inspector"
	ncclSays      = "NCCL's log"
	historiesSay  = "the histories"
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
	if len(g.own) > 0 {
		all, skipped, err := histories.Read(g.own...)
		if err == nil {
			leftOut(stderr, skipped) // else err has them
		}
		add(nil, nil, err, historiesSay)
		for _, j := range all {
			add(j, nil, nil, historiesSay)
		}
	}
	if len(g.dumps) > 0 {
		j, skipped, err := flight.Read(g.dumps...)
		add(j, skipped, err, flightSays)
	}
	attempts := g.newestAttempt(jobs)
	if len(g.logs) > 0 {
		j, skipped, err := ncclog.Read(g.logs...)
		add(j, skipped, err, ncclSays)
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
		add(j, nil, err, said.Source())
	}
	for _, text := range attempts {
		if len(jobs) > 0 {
			jobs[0].Notes = append(jobs[0].Notes, text)
		} else {
			leftOut(stderr, []error{errors.New(text)})
		}
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
	jobs, wrong := g.read(stderr)
	for _, j := range jobs {
		var a hang.Answer
		if j.Patience = g.wait; g.living && j.says == ncclSays { // the watcher waits itself, as logs grow
			j.Patience = -1
		}
		switch {
		case j.reports != nil:
			a = ras.Judge(j.Job, j.reports)
		case j.says == inspectorSays:
			a = inspector.Judge(j.Job)
		case j.Mute() && !j.Own:
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
	if len(found.answers) == 0 {
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
	if isHistory(name) { // the reader of histories says what is wrong
		g.own = append(g.own, name)
		return true
	}
	head, tail := endsOf(name)
	switch {
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head, []byte(`"Comm":`)) &&
		bytes.Contains(head, []byte(`"Rank":`)) && bytes.Contains(head, []byte(`"Size":`)):
		g.own = append(g.own, name)
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

// sortFiles sorts files by kind. Files of unknown kind in folders are left out.
func sortFiles(u *unpacker, words []string) (*whyFiles, []error, error) {
	g := new(whyFiles)
	files, wrong := u.find(words, os.Stdin)
	others, empty := 0, 0
	for _, f := range files {
		info, err := os.Stat(f.path)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case g.add(f.path):
		case f.named || u.has(f.path):
			name := f.path
			if u.has(name) {
				name = filepath.Base(name)
			}
			if info.Mode().IsRegular() && info.Size() == 0 {
				wrong = append(wrong, fmt.Errorf("%s: it is empty", name))
				continue
			}
			wrong = append(wrong, fmt.Errorf("%s: none of what is read: %s", name, whyKinds))
		default:
			if others++; info.Mode().IsRegular() && info.Size() == 0 {
				empty++
			}
		}
	}
	if !g.empty() || len(words) == 0 {
		return g, wrong, nil
	}
	if len(wrong) == 0 || others > 0 {
		wrong = append(wrong, fmt.Errorf("%s: nothing here that is read: %s; %s", strings.Join(words, " "), whyKinds,
			whatElse(others, empty)))
	}
	return nil, nil, errors.Join(wrong...)
}

// whyKinds are the kinds of files.
const whyKinds = "dumps of PyTorch's flight recorder, answers of NCCL's RAS, logs of NCCL, what PyTorch, launchers " +
	"and the kernel print, files of NCCL's Inspector, stacks, and histories of this library"

// whatElse says how many files there are instead.
func whatElse(others, empty int) string {
	switch {
	case others == 0:
		return "there is no file"
	case empty == 0:
		return fmt.Sprintf("files of other kinds: %d", others)
	case empty == others:
		return fmt.Sprintf("files, all empty: %d; was the disk full?", others)
	}
	return fmt.Sprintf("files of other kinds: %d, of them empty: %d", others, empty)
}

func (g *whyFiles) empty() bool {
	return len(g.own)+len(g.dumps)+len(g.answers)+len(g.logs)+len(g.texts)+len(g.stacks)+len(g.perf) == 0
}

// isHistory reports whether a file has the name of a history.
func isHistory(name string) bool {
	is, _ := filepath.Match(history.Files, filepath.Base(name))
	return is
}
