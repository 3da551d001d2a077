//go:build cgo && linux && (amd64 || arm64)

// Command libcuda is libcuda.so.1, the CUDA driver's library, for emulated GPUs. With it programs of the driver API run
// on a machine without a GPU, with libnccl.so.2 or without; programs of the CUDA runtime also need the libcudart.so of
// cmd/libcudart. RINGO_EMULATE is the number of GPUs, 1 if it is not set, RINGO_EMULATE_GPU their kind, such as "h200",
// and RINGO_EMULATE_SEED the seed of all choices. The variables of book are for ringo emulate -shrink.
// CUDA_VISIBLE_DEVICES is a list of the GPUs to show, by number. scripts/libcuda builds the library.
//
// The emulator is stricter than hardware. It writes faults such as races, reads of unwritten memory and bad addresses
// to standard error, or to the file of RINGO_EMULATE_REPORT. The trap: a program with NVIDIA's runtime linked in asks
// for the driver's private tables, and is refused.
package main

// #include <stdint.h>
// static void call(uintptr_t f, uintptr_t p) { ((void (*)(void *))f)((void *)p); }
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ringo-go/ringo/cmd/libcuda/cudac"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/decision"
	_ "github.com/ringo-go/ringo/internal/emu/fatbin/zstd" // as nvcc packs PTX
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	_ "github.com/ringo-go/ringo/internal/late"
)

func main() {} // never runs, but -buildmode=c-shared wants it

// A session is this process's emulated GPUs.
type session struct {
	library *cudac.Library
	machine *cudaemu.Machine
	report  *report
	written *decision.Writer // decisions; nil: none
}

// driver is the session, which the first call makes.
var driver = sync.OnceValues(func() (*session, error) {
	s := &session{}
	cfg, err := settings()
	if err == nil {
		err = s.book(&cfg)
	}
	if err == nil {
		s.report, err = theReport()
	}
	if err != nil {
		return nil, err
	}
	if s.report == nil {
		// A kernel may wait for a rank of another process, which reads a file or is stopped: that is no deadlock.
		cfg.Stall = 5 * time.Minute
	}
	cfg.Report = func(f *weakmem.Fault) bool {
		if s.report != nil {
			s.report.write(line{Fault: f})
		} else {
			say("emulated GPU: " + f.Error())
		}
		return true
	}
	if s.report != nil {
		cfg.Launched = s.report.launched
	}
	cfg.Caller = caller
	cfg.FreshAddresses = true // so that a use of freed memory does not fall into other memory
	cfg.Print = func(_ int, text string) { fmt.Print(text) }
	if s.machine, err = cudaemu.New(cfg); err != nil {
		return nil, err
	}
	s.library = cudac.New(s.machine, func(f, p uintptr) { C.call(C.uintptr_t(f), C.uintptr_t(p)) }, say)
	if s.report != nil {
		go s.report.watch(s.machine)
	}
	begun.Store(s)
	return s, nil
})

// begun is the session, nil before the first call.
var begun atomic.Pointer[session]

func say(text string) { fmt.Fprintln(os.Stderr, text) }

// reportName is RINGO_EMULATE_REPORT, the file of the report.
func reportName() string { return os.Getenv("RINGO_EMULATE_REPORT") }

// settings are the settings in the environment.
func settings() (cfg cudaemu.Config, err error) {
	n := 1
	if text := os.Getenv("RINGO_EMULATE"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			return cfg, fmt.Errorf("RINGO_EMULATE=%q: want a number of GPUs", text)
		}
	}
	var kind cudaemu.Device
	if name := os.Getenv("RINGO_EMULATE_GPU"); name != "" {
		if kind, err = cudaemu.Kind(name); err != nil {
			return cfg, fmt.Errorf("RINGO_EMULATE_GPU: %w", err)
		}
	}
	for range n {
		cfg.Shapes = append(cfg.Shapes, kind)
	}
	if text, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
		if cfg.Visible = cudaemu.ParseVisible(text, n); len(cfg.Visible) == 0 {
			return cfg, fmt.Errorf("CUDA_VISIBLE_DEVICES=%q hides all of %d GPUs", text, n)
		}
	}
	if text := os.Getenv("RINGO_EMULATE_SEED"); text != "" {
		if cfg.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return cfg, fmt.Errorf("RINGO_EMULATE_SEED=%q: want a number", text)
		}
	}
	return cfg, nil
}

// book is the decisions of the machine: written to the file of RINGO_EMULATE_RECORD, or read from that of
// RINGO_EMULATE_FOLLOW and told to the report. With RINGO_EMULATE_LAZY kernels run only while the program waits for
// them or asks, so that a program of one thread runs the same way again.
func (s *session) book(cfg *cudaemu.Config) error {
	cfg.Lazy = os.Getenv("RINGO_EMULATE_LAZY") != ""
	if name := os.Getenv("RINGO_EMULATE_RECORD"); name != "" {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("RINGO_EMULATE_RECORD: %w", err)
		}
		s.written = decision.NewWriter(f)
		cfg.Book = decision.Record(s.written.Add)
	}
	if name := os.Getenv("RINGO_EMULATE_FOLLOW"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("RINGO_EMULATE_FOLLOW: %w", err)
		}
		defer f.Close()
		list, err := decision.Read(f)
		if err != nil {
			return fmt.Errorf("RINGO_EMULATE_FOLLOW: %w", err)
		}
		cfg.Book = decision.Follow(list, func(d decision.Decision, at decision.Scene) {
			if s.report != nil {
				s.machine.Sources(&at)
				s.report.write(line{Step: &step{d, at}})
			}
		})
	}
	return nil
}

//export ringo_cuda
func ringo_cuda(name *C.char, args *C.uintptr_t) C.int {
	d, err := driver()
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulated GPU:", err)
		return C.int(cuda.ErrNoDevice)
	}
	if d.report != nil {
		d.report.tally.add(begunCalls, 1)
		defer d.report.tally.add(endedCalls, 1)
	}
	result, err := d.library.Do(nameOf(name), (*cudac.Args)(unsafe.Pointer(args)))
	if err != nil && result != cuda.ErrNotReady && d.report != nil {
		keep(err)
	}
	if d.written != nil {
		d.written.Flush() // the program may end in any way
	}
	return C.int(result)
}

//export ringo_cuda_end
func ringo_cuda_end() {
	if s := begun.Load(); s != nil && s.written != nil {
		s.written.Flush()
	}
	if r := opened.Load(); r != nil {
		r.end()
	}
}

// nameOf is a C string without a copy. The string must stay in memory.
func nameOf(name *C.char) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(name), n)) != 0 {
		n++
	}
	return unsafe.String((*byte)(unsafe.Pointer(name)), n)
}
