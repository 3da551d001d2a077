//go:build cgo && linux && (amd64 || arm64)

package main

import "C"

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A report is the file of RINGO_EMULATE_REPORT, to which all processes of a program append lines of JSON when something
// happens, and one when they end, which they need not come to. What is counted is in a file of the process's own, for
// it stays whichever way the process ends. ringo emulate reads them (cmd/command/emulateread.go).
type report struct {
	mu    sync.Mutex
	file  *os.File
	began time.Time
	tally *tally
	moves *tally // one number, of all processes
}

// A line is one line of a report.
type line struct {
	Process int              `json:"process"`
	Image   int64            `json:"image"` // tells apart what one process runs after another, by exec
	Counts  string           `json:"counts,omitempty"`
	Kernel  string           `json:"kernel,omitempty"` // has number At in Counts
	At      int              `json:"at,omitempty"`
	Approx  []string         `json:"approx,omitempty"` // instructions of Kernel whose last bits may differ from a GPU's
	Fault   *weakmem.Fault   `json:"fault,omitempty"`
	Failed  *failure         `json:"failed,omitempty"`
	Times   int              `json:"times,omitempty"` // until now, of Failed
	Comm    *failedComm      `json:"comm,omitempty"`
	Ended   bool             `json:"ended,omitempty"`
	Faults  []*weakmem.Fault `json:"faults,omitempty"` // of the whole run, with their counts
	Leaks   []string         `json:"leaks,omitempty"`
	Threads int              `json:"threads,omitempty"` // that have called the driver
	Opened  int              `json:"opened,omitempty"`  // how often it has opened memory of another process
	Step    *step            `json:"step,omitempty"`    // a decision of RINGO_EMULATE_FOLLOW that is followed
}

// A step is a decision that is followed, and where.
type step struct {
	decision.Decision
	decision.Scene
}

// theReport is this process's report, nil if there is to be none.
var theReport = sync.OnceValues(func() (*report, error) {
	name := reportName()
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("RINGO_EMULATE_REPORT: %w", err)
	}
	r := &report{file: f, began: time.Now()}
	if r.tally, err = newTally(filepath.Dir(name)); err == nil {
		r.moves, err = openTally(name + ".moves")
	}
	if err != nil {
		return nil, fmt.Errorf("RINGO_EMULATE_REPORT: %w", err)
	}
	r.write(line{Counts: r.tally.name})
	opened.Store(r)
	return r, nil
})

// opened is the report, nil before anything has asked for it.
var opened atomic.Pointer[report]

func (r *report) write(l line) {
	l.Process, l.Image = os.Getpid(), r.began.UnixNano()
	text, err := json.Marshal(l)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.Write(append(text, '\n')) // a line in one write, as other processes append too
}

// launched counts a kernel that begins. One call at a time.
func (r *report) launched(kernel string, approximate []string) {
	at, isNew := r.tally.kernel(kernel)
	if isNew {
		r.write(line{Kernel: kernel, At: at, Approx: approximate})
	}
	r.tally.add(at, 1)
}

// watch keeps the number of instructions up to date, and counts the seconds in which something has moved. Kernels that
// wait for each other look now and then for whom: that they answer is no move.
func (r *report) watch(m *cudaemu.Machine) {
	var rounds, idle, moved uint64
	for range time.Tick(time.Second) {
		r.tally.set(instructions, m.Instructions())
		now, still, began := m.Activity()
		if began != moved || 2*(still-idle) < now-rounds {
			r.moves.add(0, 1)
		}
		rounds, idle, moved = now, still, began
	}
}

//export ringo_cuda_count_moves
func ringo_cuda_count_moves() C.int {
	r, _ := theReport()
	if r == nil {
		return 0
	}
	return C.int(r.moves.get(0) & math.MaxInt32)
}

// end writes the last line of the process. Without a session there is nothing but calls of NCCL.
func (r *report) end() {
	r.allFailed()
	s := begun.Load()
	if s == nil {
		r.write(line{Ended: true})
		return
	}
	m := s.machine
	r.tally.set(instructions, m.Instructions())
	var leaks []string
	for _, l := range m.Unreleased() {
		// The runtime keeps contexts, and the modules in them, until the process ends.
		if !strings.Contains(l, ": primary context: retained") && !strings.HasSuffix(l, " × module") {
			leaks = append(leaks, l)
		}
	}
	for _, s := range sitesOf(toGiveBack) {
		what := "communicator"
		if s.name == "ncclMemAlloc" {
			what = "memory"
		}
		leaks = append(leaks, what+" of "+s.String())
	}
	r.write(line{Ended: true, Faults: m.Reports(), Leaks: leaks, Threads: m.Threads(), Opened: m.Opened()})
}
