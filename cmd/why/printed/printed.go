// Package printed reads the output of a job's processes, of their launchers and of the kernel: how processes have
// ended, exceptions of Python, and messages of PyTorch's watchdog and of Gloo about calls that waited too long. A text
// seldom tells how many ranks there are, so groups made of it are open. It is part of the command ringo, and nothing
// here is promised to other modules.
package printed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// marks are parts of the lines that this package reads. A file without any of them is not for this package.
var marks = []string{
	"Traceback (most recent call last)", "Watchdog caught collective", "last enqueued work: ", "received by PID ",
	"exitcode", "ut of memory: Killed process", "ut Of Memory",
	"failed to pass monitoredBarrier", "srun: error: ", unbatched, "ringo run: rank ", "run noticed that process rank ",
}

// notable are parts of lines that say what went wrong, but not of which rank.
var notable = []string{
	"NVRM: Xid", "Detected mismatch between collectives", "watchdog got stuck for ", "oom_kill event", "oom-kill event",
}

// prefixed is a line that ringo run prints of a rank.
var prefixed = regexp.MustCompile(`^\[\d{1,6}\] \S`)

// unbatched is PyTorch's warning of the first send or recv of a rank that makes a communicator with its peer.
const unbatched = "An unbatched P2P op (send/recv) was called"

// Is reports whether a part of a file has lines that this package reads.
func Is(part []byte) bool {
	has := func(m string) bool { return bytes.Contains(part, []byte(m)) }
	return bytes.IndexByte(part, 0) < 0 &&
		(prefixed.Match(part) || slices.ContainsFunc(marks, has) || slices.ContainsFunc(notable, has))
}

const (
	maxLine  = 16 << 10
	maxHints = 1 << 12
	maxCalls = 1 << 18
)

// Said is the content of texts.
type Said struct {
	Hints  []hang.Hint
	Notes  []string
	calls  map[string]map[int]*status // by group and global rank
	absent map[int]bool               // ranks that did not come to Gloo's monitored barrier
	second map[int]bool               // processes that a launcher ended itself
	traces map[int]*trace             // by rank
	torn   bool                       // srun has ended the rest
	own    []echo                     // errors of this library
	now    time.Duration              // of the line, as clock has it
	ranked int                        // the rank of the entry in torchrun's list of failures, -1 if none
	n      int                        // number of statuses in calls
}

// A status is how far a rank has come in a group, by its watchdog. Numbers are -1 if not known.
type status struct {
	file                string
	enqueued, completed int64
	call                *hang.Call    // the call that has waited too long, nil if none has
	at                  time.Duration // of its newest line, as clock has it
}

// An echo is an error of this library that a rank has raised: it says how another one died.
type echo struct {
	rank, self int // of the program, and of the error's communicator
	died       int // of the communicator, -1 if none has
	how        string
}

// A trace is an exception under way.
type trace struct{ at string }

// Read reads files. Files that cannot be read are left out and named in skipped.
func Read(files ...string) (s *Said, skipped []error) {
	s = newSaid()
	for _, file := range files {
		b, err := given.Read(file)
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		s.add(file, b)
	}
	s.finish()
	return s, skipped
}

func newSaid() *Said {
	return &Said{calls: map[string]map[int]*status{}, absent: map[int]bool{}, second: map[int]bool{},
		traces: map[int]*trace{}, ranked: -1}
}

// finish leaves out the deaths that a launcher has caused itself, and puts first the hints that tell most, on memory.
func (s *Said) finish() {
	s.heard()
	s.newest()
	s.Hints = slices.DeleteFunc(s.Hints, func(h hang.Hint) bool { return h.Death != "" && s.second[h.Pid] })
	slices.SortStableFunc(s.Hints, func(a, b hang.Hint) int {
		memory := func(h hang.Hint) int {
			if strings.Contains(h.Death, "memory") {
				return 0
			}
			return 1
		}
		return memory(a) - memory(b)
	})
}

var (
	color    = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	ranked   = regexp.MustCompile(`\[rank(\d{1,6})\]: ?`)
	watchdog = regexp.MustCompile(`\[(?:PG (?:ID )?(\w+)(?: PG GUID (\w+))?[^\]]*? )?Rank (\d{1,6})\] (?:Process group watchdog thread terminated with exception: \[Rank \d+\] )?Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+),(?: NumelIn=(\d+),)?(?: NumelOut=(\d+),)? Timeout\(ms\)=(\d+)\)`)
	progress = regexp.MustCompile(`\[PG (?:ID )?(\w+)(?: PG GUID (\w+)(?:\(([^)]*)\))?)? Rank (\d{1,6})\].*last enqueued work: (-?\d+), (?:last started work: -?\d+, )?last completed work: (-?\d+)`)
	frame    = regexp.MustCompile(`^ *File "([^"]+)", line (\d+), in (.+)$`)
	raised   = regexp.MustCompile(`^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Failure))(?:: (.*))?$`)
	glog     = regexp.MustCompile(`\b[IWEF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\b`)
	self     = regexp.MustCompile(`: rank (\d{1,6}) on [^ :]+: (?:.*\brank (\d{1,6}) died: (.*))?`)
	died     = regexp.MustCompile(`Signal \d+ \((SIG(?:KILL|SEGV|BUS|ILL|FPE))\) received by PID (\d+)`)
	failed   = regexp.MustCompile(`exitcode *: -(4|7|8|9|11)\)?(?: local_rank: \d+)? \(pid: (\d+)\)`)
	memory   = regexp.MustCompile(`[Oo]ut of memory: Killed process (\d+)`)
	closing  = regexp.MustCompile(`(?:Unable to shutdown process|Sending process) (\d+) `)
	ended    = regexp.MustCompile(`ringo run: rank (\d{1,6}): killed by signal (4|7|8|9|11)\b`)
	noticed  = regexp.MustCompile(`run noticed that process rank (\d{1,6}) .*exited on signal (4|7|8|9|11)\b`)
	summary  = regexp.MustCompile(`^ *rank *: (\d+) \(local_rank: \d+\)`)
	task     = regexp.MustCompile(`srun: error: \S+: task (\d+): (Out Of Memory|Killed|Segmentation fault|Bus error|Illegal instruction)`)
	barrier  = regexp.MustCompile(`Ranks? ([0-9, ]+) failed to pass monitoredBarrier in (\d+) ms`)
)

// signals are the names of signals by number, which launchers print as negative exit codes.
var signals = map[string]string{"4": "SIGILL", "7": "SIGBUS", "8": "SIGFPE", "9": "SIGKILL", "11": "SIGSEGV"}

// echoes are parts of exceptions that only tell that another rank has gone or has not come.
var echoes = []string{
	"DistBackendError", "DistNetworkError", "DistStoreError", "Watchdog", "gloo", "NCCL", "onnection closed",
	"onnection reset", "roken pipe", "imed out", "imeout", "KeyboardInterrupt", "SystemExit",
	"SignalException", "ChildFailedError", "monitoredBarrier", "ActorDiedError", "ProcessExitedException",
	"ProcessRaisedException",
}

// clock is the time of a line of PyTorch in the year, 0 if it has none. Months count as 31 days.
func clock(line string) time.Duration {
	m := glog.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	days := 31*given.Number(m[1]) + given.Number(m[2])
	return time.Duration(days*24+given.Number(m[3]))*time.Hour + time.Duration(given.Number(m[4]))*time.Minute +
		time.Duration(given.Number(m[5]))*time.Second
}

// apart is how far apart in time lines of PyTorch's watchdogs are if they are of two attempts of a job: the first one
// has hung for its time-out.
func (st *status) apart() time.Duration {
	if st.call != nil && st.call.Limit > 0 {
		return st.call.Limit
	}
	return 10 * time.Minute
}

// newest leaves out the watchdogs' lines of earlier attempts.
func (s *Said) newest() {
	var last *status
	for _, ranks := range s.calls {
		for _, st := range ranks {
			if last == nil || st.at > last.at || st.at == last.at && st.apart() > last.apart() {
				last = st
			}
		}
	}
	left := 0
	for _, ranks := range s.calls {
		for r, st := range ranks {
			if st.at > 0 && last.at-st.at > last.apart() {
				delete(ranks, r)
				left++
			}
		}
	}
	if left > 0 {
		s.note(fmt.Sprintf("PyTorch's watchdogs tell of an earlier attempt too, which is left out: %d ranks", left))
	}
}

// counts reports whether a line counts, being of no earlier attempt than the rank's lines so far. If it is of a later
// one those count no more.
func (s *Said) counts(st *status) bool {
	if st.at > 0 && s.now-st.at > st.apart() {
		*st = status{file: st.file, enqueued: -1, completed: -1}
	}
	if s.now > 0 && st.at-s.now > st.apart() {
		return false
	}
	st.at = max(st.at, s.now)
	return true
}

// again forgets what a file has said of an attempt that its launcher begins anew.
func (s *Said) again(file string, hints int) {
	s.Hints = s.Hints[:hints]
	clear(s.traces)
	for _, ranks := range s.calls {
		for r, st := range ranks {
			if st.file == file {
				delete(ranks, r)
			}
		}
	}
	s.note("the launcher has begun the job anew: what was printed before is left out")
}

func (s *Said) add(file string, b []byte) {
	before := len(s.Hints)
	for raw := range bytes.Lines(b) {
		line := string(raw[:min(len(raw), maxLine)])
		if strings.IndexByte(line, 0x1b) >= 0 {
			line = color.ReplaceAllString(line, "")
		}
		line = strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "?")
		if strings.Contains(line, "will restart worker group") { // torchrun
			s.again(file, before)
		}
		s.line(file, line[strings.LastIndexByte(line, '\r')+1:])
	}
	s.ranked, s.torn = -1, false
}

// line reads one line.
func (s *Said) line(file, line string) {
	rank := -1
	if strings.Contains(line, "[rank") {
		if m := ranked.FindStringSubmatchIndex(line); m != nil {
			rank = given.Number(line[m[2]:m[3]])
			s.python(rank, line[m[1]:])
		}
	}
	switch {
	case strings.Contains(line, "Watchdog caught"):
		if m := watchdog.FindStringSubmatch(line); m != nil {
			s.now = clock(line)
			s.waited(file, rank, m)
		}
	case strings.Contains(line, "last enqueued work"):
		if m := progress.FindStringSubmatch(line); m != nil {
			s.now = clock(line)
			s.progress(file, rank, m)
		}
	case strings.Contains(line, "monitoredBarrier"):
		s.barrier(line)
	case strings.Contains(line, unbatched):
		if rank >= 0 {
			s.hint(hang.Hint{Rank: rank, Alone: true})
		}
	case slices.ContainsFunc(notable, func(m string) bool { return strings.Contains(line, m) }):
		s.note(line)
	default:
		s.launcher(line)
	}
}

func (s *Said) note(text string) {
	const most, long = 8, 200
	if text = given.Printable(text[:min(len(text), long)]); len(s.Notes) < most && !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// python reads a line of a rank's own output: the traces of exceptions.
func (s *Said) python(rank int, line string) {
	if rank >= hang.MaxRanks || len(s.traces) == maxHints && s.traces[rank] == nil {
		return
	}
	t := s.traces[rank]
	switch m := frame.FindStringSubmatch(line); {
	case strings.HasPrefix(line, "Traceback (most recent call last)"):
		s.traces[rank] = new(trace)
	case t == nil:
	case m != nil:
		if where := hang.Where(m[1], given.Number(m[2]), m[3]); where != "" {
			t.at = given.Printable(where)
		}
	default:
		m := raised.FindStringSubmatch(line)
		if m == nil {
			return
		}
		delete(s.traces, rank)
		if of := self.FindStringSubmatch(m[0]); of != nil {
			s.echo(rank, of)
			return
		}
		if slices.ContainsFunc(echoes, func(e string) bool { return strings.Contains(line, e) }) {
			return
		}
		const long = 120
		text := m[0]
		if len(text) > long {
			text = text[:long] + " ..."
		}
		text = "ended with " + given.Printable(text)
		if t.at != "" {
			text += " (" + t.at + ")"
		}
		s.hint(hang.Hint{Rank: rank, Raised: text})
	}
}

// echo reads an error of this library.
func (s *Said) echo(rank int, m []string) {
	if len(s.own) == maxHints {
		return
	}
	e := echo{rank: rank, self: given.Number(m[1]), died: -1}
	if m[2] != "" {
		e.died, e.how = given.Number(m[2]), given.Printable(m[3])
	}
	s.own = append(s.own, e)
}

// heard makes a hint of what the errors of this library say alike. Ranks of their communicator are those of the program
// up to one that is both.
func (s *Said) heard() {
	both := -1
	for _, e := range s.own {
		if e.rank != e.self || e.died >= 0 && s.own[0].died >= 0 && e.died != s.own[0].died {
			return
		}
		both = max(both, e.self)
	}
	for _, e := range s.own {
		if e.died >= 0 && e.died <= both {
			s.hint(hang.Hint{Rank: e.died, Death: fmt.Sprintf("died: %s, as rank %d says", e.how, e.rank)})
			return
		}
	}
}

func (s *Said) hint(h hang.Hint) {
	if len(s.Hints) < maxHints && h.Rank < hang.MaxRanks {
		s.Hints = append(s.Hints, h)
	}
}

// launcher reads a line of torchrun, srun, mpirun or the kernel about the end of a process.
func (s *Said) launcher(line string) {
	switch {
	case strings.Contains(line, "Killed process"):
		if m := memory.FindStringSubmatch(line); m != nil {
			s.hint(hang.Hint{Rank: -1, Pid: given.Number(m[1]),
				Death: "was killed because memory was short, as the kernel says"})
		}
	case strings.Contains(line, "ringo run: rank"):
		if m := ended.FindStringSubmatch(line); m != nil {
			s.hint(hang.Hint{Rank: given.Number(m[1]), Death: "was killed by " + signals[m[2]] + ", as ringo run says"})
		}
	case strings.Contains(line, "noticed that process rank"):
		if m := noticed.FindStringSubmatch(line); m != nil {
			s.hint(hang.Hint{Rank: given.Number(m[1]), Death: "was killed by " + signals[m[2]] + ", as mpirun says"})
		}
	case strings.Contains(line, "received by PID"):
		if m := died.FindStringSubmatch(line); m != nil {
			s.hint(hang.Hint{Rank: s.ranked, Pid: given.Number(m[2]), Death: "was killed by " + m[1] + ", as torchrun says"})
		}
	case strings.Contains(line, "exitcode"):
		if m := failed.FindStringSubmatch(line); m != nil {
			s.hint(hang.Hint{Rank: s.ranked, Pid: given.Number(m[2]),
				Death: "was killed by " + signals[m[1]] + ", as torchrun says"})
		}
	case strings.Contains(line, "closing signal"), strings.Contains(line, "Unable to shutdown"):
		if m := closing.FindStringSubmatch(line); m != nil && len(s.second) < maxHints {
			s.second[given.Number(m[1])] = true
		}
	case strings.Contains(line, "local_rank"):
		if m := summary.FindStringSubmatch(line); m != nil {
			s.ranked = given.Number(m[1])
		}
	case strings.Contains(line, "srun: error"):
		if m := task.FindStringSubmatch(line); m != nil && !s.torn { // only the first: srun may have ended the others
			how := map[string]string{"Out Of Memory": "was killed because memory was short, as srun says",
				"Killed": "was killed by SIGKILL, as srun says"}[m[2]]
			if how == "" {
				how = "was killed: " + strings.ToLower(m[2]) + ", as srun says"
			}
			s.hint(hang.Hint{Rank: given.Number(m[1]), Death: how})
		}
		s.torn = true
	case strings.Contains(line, "CANCELLED"):
		s.torn = true
	}
}

// of is a rank's status in a group, made if it is not there; nil beyond limits.
func (s *Said) of(file, group string, rank int) *status {
	if rank < 0 || rank >= hang.MaxRanks || s.n == maxCalls {
		return nil
	}
	if s.calls[group] == nil {
		s.calls[group] = map[int]*status{}
	}
	if s.calls[group][rank] == nil {
		s.n++
		s.calls[group][rank] = &status{file: file, enqueued: -1, completed: -1}
	}
	return s.calls[group][rank]
}

// global is a rank of the program: rank, from the prefix of the line, or in the default group own, from the line.
func global(rank int, group, own string) int {
	if rank < 0 && (group == "0" || group == "") {
		return given.Number(own)
	}
	return rank
}

// waited reads that a call has waited too long. Older versions of PyTorch do not name the group.
func (s *Said) waited(file string, rank int, m []string) {
	group := cmp.Or(m[2], m[1])
	st := s.of(file, cmp.Or(group, "?"), global(rank, group, m[3]))
	if st == nil || !s.counts(st) || st.call != nil {
		return
	}
	seq, _ := strconv.ParseInt(m[4], 10, 64)
	limit, _ := strconv.ParseInt(m[8], 10, 64)
	c := &hang.Call{Number: seq, Kind: m[5], Peer: -1, State: hang.Begun,
		Limit: time.Duration(min(limit, 1<<40)) * time.Millisecond}
	if m[6] != "" && m[7] != "" {
		c.Sizes.In, _ = strconv.ParseInt(m[6], 10, 64)
		c.Sizes.Out, _ = strconv.ParseInt(m[7], 10, 64)
		c.In, c.Out = fmt.Sprintf("%d elements", c.Sizes.In), fmt.Sprintf("%d elements", c.Sizes.Out)
	}
	st.call = c
}

// progress reads how far a rank has come in a group. An earlier call of the rank whose group was not known belongs to
// this group. The number of a group counts within a process: its name, the GUID, is the same on all ranks.
func (s *Said) progress(file string, rank int, m []string) {
	group := cmp.Or(m[2], m[1])
	r := global(rank, group, m[4])
	st := s.of(file, group, r)
	if st == nil || !s.counts(st) {
		return
	}
	st.enqueued, _ = strconv.ParseInt(m[5], 10, 64)
	st.completed, _ = strconv.ParseInt(m[6], 10, 64)
	if before := s.calls["?"][r]; before != nil && st.call == nil {
		st.call = before.call
		delete(s.calls["?"], r)
	}
}

// barrier reads which ranks did not come to Gloo's monitored barrier.
func (s *Said) barrier(line string) {
	m := barrier.FindStringSubmatch(line)
	if m == nil {
		return
	}
	for word := range strings.SplitSeq(m[1], ",") {
		if r, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && r < hang.MaxRanks && len(s.absent) < maxHints {
			s.absent[r] = true
		}
	}
}

// ErrMute is the error of texts that tell nothing of calls.
var ErrMute = errors.New("the texts do not say which ranks wait in what: give the dumps of PyTorch's flight " +
	"recorder, TORCH_NCCL_TRACE_BUFFER_SIZE=2000, or this library's histories, RINGO_HISTORY=FOLDER")

// Job makes a job of the calls in the watchdogs' lines, or else of ranks that have ended; ErrMute if there is neither.
func (s *Said) Job() (*hang.Job, error) {
	j := &hang.Job{Notes: s.Notes, Open: true}
	for name, ranks := range s.calls {
		s.group(j, name, ranks)
	}
	if len(s.absent) > 0 && !s.absent[0] {
		members := []int{0}
		for r := range s.absent {
			members = append(members, r)
			if to := j.Rank(r); to.Source == "" {
				to.Source = "Gloo"
			}
		}
		slices.Sort(members)
		g := j.GroupOf("gloo", "", members)
		j.Rank(0).Source = "Gloo"
		j.Rank(0).Calls = append(j.Rank(0).Calls,
			hang.Call{Group: g, Number: 1, Kind: "monitoredBarrier", Peer: -1, State: hang.Begun})
	}
	if len(j.Ranks) == 0 {
		for _, h := range s.Hints {
			if h.Rank >= 0 && h.Death+h.Raised != "" {
				j.Rank(h.Rank)
			}
		}
	}
	if len(j.Ranks) == 0 && len(s.Notes) > 0 {
		return nil, hang.Told{Text: strings.Join(s.Notes, "; "), Mute: ErrMute}
	}
	if len(j.Ranks) == 0 {
		return nil, ErrMute
	}
	j.Hear(s.Hints)
	return j, nil
}

// Source returns who says what the job has: PyTorch, or else those that the hints name.
func (s *Said) Source() string {
	if len(s.calls)+len(s.absent) > 0 {
		return "PyTorch's log"
	}
	var by []string
	for _, h := range s.Hints {
		_, after, _ := strings.Cut(h.Death, ", as ")
		if who, ok := strings.CutSuffix(after, " says"); ok && !slices.Contains(by, who) &&
			!strings.HasPrefix(who, "rank ") { // that is a line of the program's
			by = append(by, who)
		}
	}
	if len(by) == 0 {
		return "the program's log"
	}
	return by[0]
}

// group adds the calls of a group.
func (s *Said) group(j *hang.Job, name string, ranks map[int]*status) {
	var members []int
	for r := range ranks {
		members = append(members, r)
	}
	slices.Sort(members)
	if len(members) == 0 {
		return
	}
	desc := ""
	if name == "0" || name == "?" {
		desc = "default_pg"
	}
	g := j.GroupOf(given.Printable(name), desc, members)
	j.Groups[g].Open = true
	for _, r := range members {
		st, to := ranks[r], j.Rank(r)
		to.Source = st.file
		switch {
		case st.call != nil:
			st.call.Group = g
			to.Calls = append(to.Calls, *st.call)
		case st.enqueued > 0:
			c := hang.Call{Group: g, Number: st.enqueued, Peer: -1, State: hang.Ended}
			if st.completed < st.enqueued {
				c.Number = st.completed + 1
				c.State = hang.Begun
			}
			to.Calls = append(to.Calls, c)
		}
	}
}
