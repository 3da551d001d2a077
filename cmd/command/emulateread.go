package command

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An emulateLine is a line of RINGO_EMULATE_REPORT: see cmd/libcuda/report.go and cmd/libcudart/count.
type emulateLine struct {
	Process int              `json:"process"`
	Image   int64            `json:"image"`
	Counts  string           `json:"counts"`
	Kernel  string           `json:"kernel"`
	At      int              `json:"at"`
	Approx  []string         `json:"approx"`
	Fault   *weakmem.Fault   `json:"fault"`
	Failed  *failedCall      `json:"failed"`
	Times   int              `json:"times"`
	Comm    *failedComm      `json:"comm"`
	Ended   bool             `json:"ended"`
	Faults  []*weakmem.Fault `json:"faults"`
	Leaks   []string         `json:"leaks"`
	Threads int              `json:"threads"`
	Opened  int              `json:"opened"`
	Step    *emulateStep     `json:"step"`
	NCCL    map[string]int   `json:"nccl"`
	Note    string           `json:"note"`
}

// A failedCall is a call of the driver, the runtime or NCCL that has failed: see cmd/libcuda/failure.go.
type failedCall struct {
	Call    string `json:"call"`
	Error   string `json:"error"`
	Result  int    `json:"result"`
	Text    string `json:"text"`
	At      string `json:"at"`
	Follows bool   `json:"follows"`
}

// A failedComm is a communicator that has failed, as one of its ranks says.
type failedComm struct {
	ID   string `json:"id"`
	Call string `json:"call"`
	At   string `json:"at"`
	Text string `json:"text"`
}

// Kinds of findings beside those of weakmem.
const (
	kindLeak    = "leak"
	kindFailed  = "failed call"
	kindRefused = "refused"
	kindComm    = "failed communicator"
)

// An image is a program that a process runs: all of its life, unless it is replaced by exec.
type image struct {
	counts  string
	kernels map[int]string
	faults  []*weakmem.Fault
	failed  []failedCall
	times   map[failedCall]int
	leaks   []string
	ended   bool
}

// A reading is the reading of what the processes of one run have written.
type reading struct {
	*emulateReport
	seed   uint64
	images []*image
	comms  map[string]*emulateFound // by ID
}

// reportLines scans the lines of a RINGO_EMULATE_REPORT file. Each line is one JSON value, of up to 64 MiB.
func reportLines(text []byte) *bufio.Scanner {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	return lines
}

// read adds the lines that the processes of one run have written. Leaks count only if the run ended right.
func (r *emulateReport) read(file string, seed uint64, right bool) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the program has not used a GPU
	}
	if err != nil {
		return err
	}
	x := &reading{emulateReport: r, seed: seed, comms: map[string]*emulateFound{}}
	type key struct {
		process int
		image   int64
	}
	images := map[key]*image{}
	lines := reportLines(text)
	for lines.Scan() {
		var l emulateLine
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // of a process that was killed while it wrote
		}
		if l.Note != "" { // of libnccl.so.2
			if !slices.Contains(r.Notes, l.Note) {
				r.Notes = append(r.Notes, l.Note)
			}
			continue
		}
		if l.NCCL != nil { // of libringo-count.so
			for name, n := range l.NCCL {
				r.NCCL[name] += n
			}
			continue
		}
		i := images[key{l.Process, l.Image}]
		if i == nil {
			i = &image{kernels: map[int]string{}, times: map[failedCall]int{}}
			images[key{l.Process, l.Image}] = i
			x.images = append(x.images, i)
			r.processes[l.Process] = true
		}
		if !right {
			l.Leaks = nil
		}
		x.line(i, &l)
	}
	for _, i := range x.images {
		x.end(i)
	}
	return lines.Err()
}

// line adds a line of an image.
func (x *reading) line(i *image, l *emulateLine) {
	i.counts = cmp.Or(i.counts, l.Counts)
	if l.Kernel != "" {
		i.kernels[l.At] = l.Kernel
		x.approximated(l.Approx)
	}
	if l.Fault != nil {
		i.faults = append(i.faults, l.Fault)
	}
	if l.Failed != nil {
		if i.times[*l.Failed] == 0 {
			i.failed = append(i.failed, *l.Failed)
		}
		i.times[*l.Failed] = l.Times
	}
	if l.Comm != nil {
		x.comm(l.Comm)
	}
	if l.Step != nil {
		x.steps = append(x.steps, l.Step)
	}
	if l.Ended {
		i.ended, i.faults, i.leaks = true, l.Faults, l.Leaks
	}
	x.Opened += l.Opened
	x.threads = max(x.threads, l.Threads)
}

// end adds all of an image, which need not have come to its end.
func (x *reading) end(i *image) {
	x.Unfinished = x.Unfinished || !i.ended
	x.count(i)
	var last *emulateFound
	for _, f := range i.faults {
		last = x.fault(f, x.seed)
	}
	for _, f := range i.failed {
		n := i.times[f]
		switch cause := x.causeOf(&f, last); {
		case x.allow.has(&f):
			x.Allowed += n
		case cause != nil:
			cause.Followed += n
		default:
			found := x.add(f.found(n), x.seed)
			if f.Follows {
				found.Times, found.Followed = 1, found.Followed+n-1
			}
		}
	}
	for _, leak := range i.leaks {
		x.add(emulateFound{Kind: kindLeak, Text: leak, Times: 1}, x.seed)
	}
}

// causeOf is the finding because of which a call has failed, nil if there is none. last is the process's last fault.
func (x *reading) causeOf(f *failedCall, last *emulateFound) *emulateFound {
	if !f.Follows {
		return nil
	}
	if strings.HasPrefix(f.Call, "nccl") {
		for _, cause := range x.comms {
			last = cause
		}
	}
	for _, cause := range x.Findings {
		if cause.Text == f.Text || cause.Kind == kindFailed && strings.HasSuffix(cause.Text, f.Text) {
			return cause
		}
	}
	return last
}

// comm adds a communicator that has failed. The ranks after the first say what follows.
func (x *reading) comm(c *failedComm) {
	if x.comms[c.ID] != nil {
		return
	}
	x.comms[c.ID] = x.add(emulateFound{Kind: kindComm, At: cmp.Or(c.At, c.Call), Text: c.Text, Times: 1}, x.seed)
}

// count adds how often the kernels of an image have begun.
func (x *reading) count(i *image) {
	defer os.Remove(i.counts)
	numbers, err := os.ReadFile(i.counts)
	number := func(at int) uint64 {
		if err != nil || 8*at+8 > len(numbers) {
			return 0
		}
		return binary.NativeEndian.Uint64(numbers[8*at:])
	}
	x.Instructions += number(0)
	for at, name := range i.kernels {
		x.Kernels[kernelName(name)] += int(number(at))
	}
}

// found is a failed call as a finding.
func (f *failedCall) found(n int) emulateFound {
	x := emulateFound{Kind: kindFailed, At: f.Call, Text: f.Error, Times: n}
	if f.refused() {
		x.Kind = kindRefused
	}
	if f.At != "" {
		x.At += " at " + f.At
	}
	if f.Text != "" {
		x.Text += ": " + mangled.ReplaceAllStringFunc(f.Text, kernelName)
	}
	return x
}

// mangled is a function's name as the linker knows it.
var mangled = regexp.MustCompile(`\b_Z\w+`)

// refused reports whether the emulator does not carry out what the program wants.
func (f *failedCall) refused() bool {
	switch f.Result {
	case 200, 209, 218, 222, 801: // of modules, and what is not supported
		return !strings.HasPrefix(f.Call, "nccl")
	}
	return false
}

func (r *emulateReport) fault(f *weakmem.Fault, seed uint64) *emulateFound {
	text := *f
	text.Count = 1 // Times has the count of all that are joined
	found := emulateFound{Kind: f.Kind.String(), At: place(f.Device, f.Kernel, f.Source, f.For, f.Line),
		Text: text.Error(), Times: f.Count}
	if o := f.Other; o != nil {
		found.Other = place(o.Device, o.Kernel, o.Source, o.For, o.Line)
		if found.Other < found.At { // the emulator may find either access first
			found.At, found.Other = found.Other, found.At
		}
	}
	return r.add(found, seed)
}

// place is where an access was made, in words.
func place(device int, kernel, source, call string, line int) string {
	switch {
	case call != "":
		return call
	case device < 0:
		return kernel + " of the host"
	case source != "":
		return source + " in " + kernelName(kernel)
	}
	return fmt.Sprintf("line %d of the PTX of %s", line, kernelName(kernel))
}

// kernelName is the C++ name of a mangled function without its types, such as "ns::add". A name that is not easily
// read stays as it is.
func kernelName(linked string) string {
	rest, ok := strings.CutPrefix(linked, "_Z")
	if !ok {
		return linked
	}
	rest = strings.TrimPrefix(rest, "N")
	var parts []string
	for {
		rest = strings.TrimPrefix(rest, "L") // of a static function
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			break
		}
		if part := rest[digits : digits+n]; part != "_GLOBAL__N_1" {
			parts = append(parts, part)
		}
		rest = rest[digits+n:]
	}
	if len(parts) == 0 {
		return linked
	}
	return strings.Join(parts, "::")
}

// allowed are the failed calls that a program's test is about: CALL=ERROR, of which either may be *.
type allowed []string

func (a *allowed) String() string { return strings.Join(*a, " ") }

func (a *allowed) Set(text string) error {
	if call, name, ok := strings.Cut(text, "="); !ok || call == "" || name == "" {
		return cli.Usagef("want CALL=ERROR, such as cudaMalloc=cudaErrorMemoryAllocation; * stands for any")
	}
	*a = append(*a, text)
	return nil
}

// has reports whether a failed call is allowed.
func (a allowed) has(f *failedCall) bool {
	for _, text := range a {
		call, name, _ := strings.Cut(text, "=")
		if (call == "*" || call == f.Call) && (name == "*" || name == f.Error || name == strconv.Itoa(f.Result)) {
			return true
		}
	}
	return false
}
