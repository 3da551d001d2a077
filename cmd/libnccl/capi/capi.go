// Package capi is libnccl.so.2 without C: NCCL's interface on top of package ringo, for
// cmd/libnccl, which only translates arguments and results. The package is part of that
// library; nothing here is promised to other modules.
//
// A program knows communicators, groups and windows by handles, which are numbers. Groups
// belong to the thread that opened them, so every function that may be called in a group takes
// the handle of the thread's group, or 0. Errors are Go's; ResultOf turns them into NCCL's
// numbers.
//
// The trap: the current GPU and a per-thread stream belong to the OS thread, so the functions
// run on the caller's thread and not on goroutines of their own.
package capi

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/libnccl/ras"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Library is one process's use of the interface. Its methods may be called from any thread.
type Library struct {
	file   func() string // path of the library, for the log
	chosen func() int    // see New
	env    env
	comms  Table[*comm]
	groups Table[*group]

	windows Table[*window]
	numbers atomic.Pointer[map[uintptr]uintptr] // of windows that are addresses of records; written with mu
	exiting atomic.Bool                         // the process ends
	closing sync.WaitGroup                      // communicators that were ended and are being closed

	mu      sync.Mutex
	base    *ringo.Config             // guarded by mu; of the communicator made last, nil before the first
	fixed   map[string]string         // guarded by mu; settings that were read for the life of the process
	ignored map[string]string         // guarded by mu; what fixed was last changed to, or is
	log     *slog.Logger              // guarded by mu; for the level and file of logged
	logged  [2]string                 // guarded by mu
	key     string                    // guarded by mu; of SetEncryption, "" without it
	agent   *ras.Agent                // guarded by mu; of RAS, nil until a communicator is made
	machine *gpu.Machine              // guarded by mu; nil until a GPU is needed
	memory  map[uintptr]allocation    // guarded by mu; of MemAlloc
	late    []allocation              // guarded by mu; freed by the program, but still in a window
	ending  []*comm                   // guarded by mu; communicators whose handles have ended, and which are being closed
	met     map[[2]int]int            // guarded by mu; communicators under NCCL_COMM_ID, by size and rank
	last    atomic.Pointer[complaint] // what went wrong most recently
}

// New is a library with the settings of getenv, which is called when a setting is first needed: programs set variables
// after they have loaded the library. file returns the library's path. chosen returns the calling thread's device in
// the program's CUDA runtime, -1 if there is no such runtime.
func New(getenv func(string) string, file func() string, chosen func() int) *Library {
	return &Library{
		file:    file,
		chosen:  chosen,
		env:     env{getenv},
		comms:   Table[*comm]{What: "communicator"},
		groups:  Table[*group]{What: "group"},
		windows: Table[*window]{What: "window"},
		memory:  map[uintptr]allocation{},
		fixed:   map[string]string{},
		ignored: map[string]string{},
		met:     map[[2]int]int{},
	}
}

// Version is the version of NCCL that the library answers as: 22809 for 2.28.9.
func (l *Library) Version() (int, error) { return l.env.version() }

// How long things may take where the environment does not say. NCCL waits for ever, and programs have
// watchdogs of their own: a rank may compute or write files for an hour while the others wait in a
// barrier, and be minutes late when a communicator is made.
const (
	operationTime = 24 * time.Hour
	meetingTime   = 10 * time.Minute
)

// config is the configuration common to all communicators, by the settings as they are now: a program may change them
// before each communicator.
func (l *Library) config() (ringo.Config, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.env.check(); err != nil {
		return ringo.Config{}, err
	}
	level, file := l.env.debug()
	if to := [...]string{level, file}; l.log == nil || l.logged != to {
		log, err := l.env.log(l.file)
		if err != nil {
			return ringo.Config{}, err
		}
		l.log, l.logged = log, to
	}
	cfg, err := ringo.Config{Log: l.log}.From(l.setting)
	if err != nil {
		return cfg, err
	}
	if !l.env.saysTimeout() {
		cfg.Timeout = operationTime
	}
	if !l.env.saysJoinTimeout() {
		cfg.JoinTimeout = meetingTime
	}
	l.base = &cfg
	l.fix(files)
	for name, was := range l.fixed {
		if now := l.env.get(name); now != was && now != l.ignored[name] {
			l.ignored[name] = now
			cfg.Log.Error(fmt.Sprintf("%s=%q has no effect: the process has read %q before, for good: set it before the "+
				"first communicator", name, now, was), "subsys", "ENV")
		}
	}
	return cfg, nil
}

// fix notes settings that are read for the life of the process. mu is held.
func (l *Library) fix(names ...string) {
	for _, name := range names {
		if _, before := l.fixed[name]; !before {
			l.fixed[name] = l.env.get(name)
			l.ignored[name] = l.fixed[name]
		}
	}
}

// device is a GPU by its number. The first call opens the driver.
func (l *Library) device(number int) (*gpu.Device, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, err := l.gpus()
	if err != nil {
		return nil, err
	}
	d, err := m.Device(number)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ringo.ErrInvalid, err)
	}
	return d, nil
}

// gpus opens the driver on first use. mu is held.
func (l *Library) gpus() (*gpu.Machine, error) {
	if l.machine != nil {
		return l.machine, nil
	}
	m, err := gpu.Open(l.env.gpus())
	if err == nil && m.Count() == 0 {
		err = errors.New("the driver has no GPU")
	}
	if err != nil {
		return nil, &cudaError{fmt.Errorf("%w; %s", err, l.env.hint())}
	}
	l.machine = m
	l.fix(driver)
	return m, nil
}

// current is the calling thread's GPU, device 0 if the thread has chosen none. The thread's context does not change. A
// CUDA runtime older than 12 makes no context when the thread chooses a device: then current asks the runtime.
func (l *Library) current() (*gpu.Device, error) {
	first, err := l.device(0)
	if err != nil {
		return nil, err
	}
	n, err := first.Driver().CtxGetDevice()
	if errors.Is(err, cuda.ErrInvalidContext) {
		return l.device(max(0, l.chosen()))
	}
	if err != nil {
		return nil, &cudaError{fmt.Errorf("the current device: %w", err)}
	}
	return l.device(int(n))
}

// cudaError marks errors of the driver, and the error of its absence.
type cudaError struct{ error }

func (e *cudaError) Unwrap() error { return e.error }
