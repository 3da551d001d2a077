//go:build cgo && linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A report is the file of RINGO_EMULATE_REPORT, to which all processes of a program append: a line of JSON for each
// fault when it is found, and one for each process when it ends. ringo emulate reads it (cmd/command/emulate.go).
type report struct {
	mu   sync.Mutex
	file *os.File
}

// A line is one line of a report.
type line struct {
	Process      int              `json:"process"`
	Fault        *weakmem.Fault   `json:"fault,omitempty"`
	Ended        bool             `json:"ended,omitempty"`
	Faults       []*weakmem.Fault `json:"faults,omitempty"` // of the whole run, with their counts
	Kernels      map[string]int   `json:"kernels,omitempty"`
	Leaks        []string         `json:"leaks,omitempty"`
	Instructions uint64           `json:"instructions,omitempty"`
	Threads      int              `json:"threads,omitempty"` // that have called the driver
	Opened       int              `json:"opened,omitempty"`  // how often it has opened memory of another process
	Step         *step            `json:"step,omitempty"`    // a decision of RINGO_EMULATE_FOLLOW that is followed
}

// A step is a decision that is followed, and where.
type step struct {
	decision.Decision
	decision.Scene
}

// openReport opens the report's file; nil if name is "".
func openReport(name string) (*report, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("RINGO_EMULATE_REPORT: %w", err)
	}
	return &report{file: f}, nil
}

func (r *report) write(l line) {
	l.Process = os.Getpid()
	text, err := json.Marshal(l)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.Write(append(text, '\n')) // a line in one write, as other processes append too
}

// end writes the last line of the process.
func (r *report) end(m *cudaemu.Machine) {
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
	r.write(line{Ended: true, Faults: m.Reports(), Kernels: m.Launched(), Leaks: leaks, Instructions: m.Instructions(),
		Threads: m.Threads(), Opened: m.Opened()})
}
