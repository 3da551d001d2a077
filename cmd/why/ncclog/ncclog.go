// Package ncclog reads logs of NCCL 2.10 to 2.30 with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL. Ranks write them
// into files of their own, or through a launcher into one. A log shows which calls a rank has made, not which of them
// have ended. It is part of the command ringo, and nothing here is promised to other modules.
package ncclog

import (
	"bytes"
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

// Is reports whether a file that begins with head is a log of NCCL.
func Is(head []byte) bool {
	return bytes.IndexByte(head, 0) < 0 &&
		(bytes.Contains(head, []byte(" NCCL INFO ")) || bytes.Contains(head, []byte(" NCCL WARN ")))
}

// Read makes a job of logs. Files that are no logs are left out and named in skipped; it is an error if no file is
// left. With ErrMute the job has the ranks and their processes, but no calls.
func Read(files ...string) (j *hang.Job, skipped []error, err error) {
	l := newLog()
	read := 0
	for _, file := range files {
		b, err := given.Read(file)
		if err == nil {
			err = l.add(file, b)
		}
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		read++
	}
	if read == 0 {
		return nil, nil, errors.Join(skipped...)
	}
	j = l.job()
	for i := range j.Ranks {
		if len(j.Ranks[i].Calls) > 0 {
			return j, skipped, nil
		}
	}
	said := strings.Join(j.Notes, "; ")
	if l.warned {
		return j, skipped, hang.Told{Text: said, Mute: ErrMute}
	}
	return j, skipped, errors.Join(ErrMute, errors.New(said))
}

var (
	errNone = errors.New("not a log of NCCL")
	// ErrMute is the error of logs that do not show all calls.
	ErrMute = errors.New("the logs do not show all calls of all ranks, so nobody can be named: set NCCL_DEBUG=INFO, " +
		"NCCL_DEBUG_SUBSYS=INIT,COLL and NCCL_DEBUG_FILE=/tmp/nccl.%h.%p")
)

const (
	maxLine   = 16 << 10
	maxComms  = 1 << 20 // of all processes together
	maxCalls  = 1 << 12 // newest calls of a communicator of a process
	maxFaults = 8
)

// A process is one GPU of a process of the operating system.
type process struct {
	host string
	pid  int
	gpu  int
}

func (p process) String() string {
	return fmt.Sprintf("process %d on node %s, GPU %d", p.pid, given.Printable(p.host), p.gpu)
}

// A handle identifies a communicator within its process: at is its address.
type handle struct {
	host, at string
	pid      int
}

// A comm is one rank's end of a communicator.
type comm struct {
	process
	file      string
	id        string // the same for all its ranks, and for no other communicator
	rank      int
	size      int
	parent    *comm // of a split
	made      bool
	ended     bool
	calls     []hang.Call // Peer is the rank in the communicator
	times     []time.Time // of calls, zero if not known
	number    int64       // of the newest collective, from 1 on
	last      int64       // opCount of the newest call
	torn      bool        // calls may be missing
	message   bool        // the newest call is a message
	ambiguous bool        // its parent is not known, so neither is its id
}

// A log is the content of all files.
type log struct {
	comms  []*comm
	at     map[handle]*comm
	sizes  map[process]map[int]int // how many communicators without an id in the log a process has, by size
	splits map[*comm]int           // how often a communicator was split
	torn   map[process]bool        // processes, gpu being -1, whose calls may be missing
	notes  []string
	warned bool // notes have a warning of NCCL
	faults []string
	line   int64
	time   time.Time                // of the line, zero if it has none
	first  time.Time                // of the first line that has one
	last   map[string]time.Time     // of the newest line, by file
	ran    map[string]time.Duration // the longest wait that PyTorch's watchdog prints, by file
}

func newLog() *log {
	return &log{at: map[handle]*comm{}, sizes: map[process]map[int]int{}, splits: map[*comm]int{},
		torn: map[process]bool{}, last: map[string]time.Time{}, ran: map[string]time.Duration{}}
}

var (
	color   = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	prefix  = regexp.MustCompile(`([A-Za-z0-9_.-]+):(\d{1,9}):(\d{1,9}) \[(\d{1,3})\] (?:[^ ]+:\d+ (?:\([^)]*\) )?)?NCCL (INFO|WARN) (.*)`)
	made    = regexp.MustCompile(`(?:^| )comm (0x[0-9a-f]+) rank (\d+) n[rR]anks (\d+) cudaDev (\d+) .*?- ?(Init|Destroy|Abort|Finalize) (START|COMPLETE)`)
	ident   = regexp.MustCompile(` commId (0x[0-9a-f]+)`)
	parents = regexp.MustCompile(` parent (0x[0-9a-f]+) (?:(?:splitCount|childCount) (\d+) )?color (-?\d+) key `)
	called  = regexp.MustCompile(`^(\w+): opCount ([0-9a-f]+) sendbuff \S+ recvbuff \S+ count (\d+) datatype (\d+) op (\d+) root (-?\d+) comm (0x[0-9a-f]+) \[nranks=(\d+)\] stream \S+`)
	network = regexp.MustCompile(`^(?:\S+:\d+ )?(?:NET/|Call to (?:connect|recv|send|bind|ibv_)|ncclIbTest|socket|Socket|Net : |Connection (?:closed|reset)|IB : |.*Got (?:completion|async event|error)|.*Connect(?:ion)? to )`)
)

// add reads a file.
func (l *log) add(file string, b []byte) error {
	any := false
	here := map[process]bool{}
	whole := len(b) == 0 || b[len(b)-1] == '\n'
	for raw := range bytes.Lines(b) {
		l.line++
		line := strings.TrimRight(string(raw[:min(len(raw), maxLine)]), "\r\n")
		line = strings.ToValidUTF8(plain(line), "?")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		l.clock(file, line)
		m := words(line)
		if m == nil {
			if strings.Contains(line, "opCount ") || strings.Contains(line, " stream 0x") { // a call of an unknown process
				whole = false
			}
			continue
		}
		any = true
		p := process{host: m[1], pid: given.Number(m[2]), gpu: given.Number(m[4])}
		here[process{host: p.host, pid: p.pid, gpu: -1}] = true
		switch {
		case strings.Count(line, " NCCL ") > 1: // lines of two processes are mixed
			whole = false
		case m[5] == "WARN":
			l.warned = true
			l.note("%s: %s", p, cut(m[6]))
			if len(l.faults) < maxFaults && network.MatchString(m[6]) {
				l.faults = append(l.faults, given.Printable(fmt.Sprintf("NCCL's log of %s says: %s", p, cut(m[6]))))
			}
		default:
			l.info(file, p, m[6])
		}
	}
	if !whole {
		for p := range here {
			l.torn[p] = true
		}
	}
	if !any {
		return fmt.Errorf("%s: %w", file, errNone)
	}
	return nil
}

// plain is a line without escape sequences for colors.
func plain(line string) string {
	if strings.IndexByte(line, 0x1b) < 0 {
		return line
	}
	return color.ReplaceAllString(line, "")
}

// words are the parts of a line of NCCL, nil for any other line.
func words(line string) []string {
	const before = 1 << 10 // bytes of a launcher's prefix, and of NCCL's own
	i := strings.Index(line, "NCCL INFO ")
	if i < 0 {
		i = strings.Index(line, "NCCL WARN ")
	}
	if i < 0 {
		return nil
	}
	return prefix.FindStringSubmatch(line[max(0, i-before):])
}

func cut(text string) string {
	const most = 160
	if len(text) > most {
		return text[:most] + " ..."
	}
	return text
}

func (l *log) note(format string, args ...any) {
	const most = 8
	text := given.Printable(fmt.Sprintf(format, args...))
	if len(l.notes) < most && !slices.Contains(l.notes, text) {
		l.notes = append(l.notes, text)
	}
}

// info reads a line about a communicator: that it was made or has ended, or a call.
func (l *log) info(file string, p process, text string) {
	if m := made.FindStringSubmatch(text); m != nil {
		l.state(file, p, text, m)
		return
	}
	m := called.FindStringSubmatch(text)
	if m == nil {
		if strings.Contains(text, ": opCount ") {
			l.torn[process{host: p.host, pid: p.pid, gpu: -1}] = true
		}
		return
	}
	if c := l.at[handle{p.host, m[7], p.pid}]; c != nil && c.size == given.Number(m[8]) {
		c.call(m, l.line, l.time)
	}
}

// state reads that a communicator is made or ends.
func (l *log) state(file string, p process, text string, m []string) {
	rank, size := given.Number(m[2]), given.Number(m[3])
	p.gpu = given.Number(m[4])
	key := handle{p.host, m[1], p.pid}
	c := l.at[key]
	switch {
	case size < 1 || size > hang.MaxRanks || rank >= size:
		return
	case m[5] == "Init" && (c == nil || c.made || c.ended || c.rank != rank || c.size != size):
		if len(l.comms) == maxComms {
			return
		}
		c = &comm{process: p, file: file, rank: rank, size: size, last: -1}
		l.name(c, text)
		l.at[key] = c
		l.comms = append(l.comms, c)
	case c == nil:
		return
	}
	switch {
	case m[5] == "Init":
		c.made = m[6] == "COMPLETE"
	case m[5] == "Destroy" || m[5] == "Abort":
		c.ended = true
		if m[5] == "Abort" {
			l.note("%s has aborted a communicator of %d ranks", p, size)
		}
	}
}

// name gives a communicator its id. Old versions of NCCL log none: then the id is made of the order of splits, or of
// the size and how many of that size the process has made.
func (l *log) name(c *comm, text string) {
	if m := ident.FindStringSubmatch(text); m != nil {
		c.id = m[1]
		return
	}
	if m := parents.FindStringSubmatch(text); m != nil {
		c.parent = l.at[handle{c.host, m[1], c.pid}]
		if c.parent == nil {
			c.ambiguous = true
			return
		}
		count := m[2]
		if count == "" {
			l.splits[c.parent]++
			count = fmt.Sprint(l.splits[c.parent])
		}
		c.id = fmt.Sprintf("split %s by color %s of %.100s", count, m[3], c.parent.id)
		return
	}
	if l.sizes[c.process] == nil {
		l.sizes[c.process] = map[int]int{}
	}
	l.sizes[c.process][c.size]++
	c.id = fmt.Sprintf("%d of %d ranks", l.sizes[c.process][c.size], c.size)
}

// types are the names of NCCL's types, by number.
var types = [...]string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
	"bfloat16", "float8e4m3", "float8e5m2"}

// call reads a call. NCCL's opCount does not number collectives alike on all ranks, as messages count too but not on
// ranks without a part in them; so c.number counts collectives.
func (c *comm) call(m []string, line int64, at time.Time) {
	op, err := strconv.ParseInt(m[2], 16, 64)
	if err != nil || op < c.last || op > c.last+1 {
		c.torn = true
	}
	c.last = op
	kind := "type " + m[4]
	if t := given.Number(m[4]); t < len(types) {
		kind = types[t]
	}
	count, _ := strconv.ParseInt(m[3], 10, 64)
	call := hang.Call{Number: c.number, Kind: m[1], Peer: -1, Type: kind, State: hang.Seen, At: timeOf(line)}
	if root := given.Number(m[6]); root >= 0 && root < c.size {
		call.Root = root + 1
	}
	call.In, call.Sizes.In = hang.Shape([]string{kind}, [][]int64{{count}})
	call.Out, call.Sizes.Out = call.In, call.Sizes.In
	if c.message = m[1] == "Send" || m[1] == "Recv"; c.message { // nothing shows which messages have ended
		return
	}
	c.number++
	call.Number = c.number
	c.times = append(c.times, at)
	if c.calls = append(c.calls, call); len(c.calls) >= 2*maxCalls {
		c.calls = append(c.calls[:0], c.calls[len(c.calls)-maxCalls:]...)
		c.times = append(c.times[:0], c.times[len(c.times)-maxCalls:]...)
	}
}
