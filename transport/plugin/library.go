package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/dl"
)

// DefaultFile is what is loaded if NCCL_NET_PLUGIN is not set.
const DefaultFile = "libnccl-net.so"

// File is the file that an entry of NCCL_NET_PLUGIN names: a path, a file name, or a suffix
// ("aws" is libnccl-net-aws.so). "" is DefaultFile.
func File(entry string) string {
	switch {
	case entry == "":
		return DefaultFile
	case strings.Contains(entry, "/"), strings.HasPrefix(entry, "lib"), strings.HasSuffix(entry, ".so"):
		return entry
	}
	return "libnccl-net-" + entry + ".so"
}

// A Device is a network card as a plugin describes it.
type Device struct {
	Index    int
	Name     string
	PCIPath  string
	Speed    int // Mbit/s; 0 if the plugin does not say
	MaxConns int // comms, at most; 0 if the plugin does not say
	MaxRecvs int // of a grouped receive
	MaxBytes int // of a message

	memory  int           // the set of memory kinds that the plugin takes
	offload int           // 0 if the host moves the data
	flush   bool          // received data need a flush on any GPU
	conns   *atomic.Int32 // comms that are open now
}

func (d *Device) String() string { return fmt.Sprintf("%d %s", d.Index, d.Name) }

// A Library is a plugin that was loaded and has started. It stays until the process ends.
type Library struct {
	File    string
	Version int    // of its table
	Name    string // of the network: "Libfabric"
	Devices []Device

	table table
	actor actor // of init, of the devices and of finalize

	trialTime time.Duration

	trials chan struct{}   // holds a token while a trial goes on
	tried  map[trial]error // see Transport.try; owned by the holder of trials' token

	keeping sync.Mutex
	told    bool  // the log has said that memory is kept; under keeping
	kept    []any // under keeping
}

var libraries = struct {
	sync.Mutex
	byFile map[string]func() (*Library, error)
}{byFile: map[string]func() (*Library, error){}}

// startTime is how long a plugin may take for init and for listing its devices.
const startTime = 20 * time.Second

// Load loads a plugin, starts it and lists its devices, once in a process for each file: later
// calls return the same Library or the same error. Errors are of type *Error, except for a
// file that is not there.
func Load(file string, log *slog.Logger) (*Library, error) {
	libraries.Lock()
	load := libraries.byFile[file]
	if load == nil {
		load = sync.OnceValues(func() (*Library, error) { return loadFirst(file, log, startTime) })
		libraries.byFile[file] = load
	}
	libraries.Unlock()
	l, err := load()
	if err == nil {
		l.table.voice.use(log)
	}
	return l, err
}

func loadFirst(file string, log *slog.Logger, limit time.Duration) (*Library, error) {
	handle, err := dl.Open(file)
	if err != nil && strings.Contains(err.Error(), file+": cannot open shared object file: No such file") {
		return nil, fmt.Errorf("%s is not there", file)
	}
	if err != nil {
		return nil, &Error{File: file, Peer: -1, Err: err}
	}
	l := &Library{File: file, trialTime: trialTime, trials: make(chan struct{}, 1), tried: make(map[trial]error)}
	if l.table, err = findTable(handle); err != nil {
		return nil, &Error{File: file, Version: l.table.version, Peer: -1, Err: err}
	}
	l.Version, l.Name, l.table.voice = l.table.version, l.table.name, newVoice()
	l.table.voice.use(log)
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not done in %v", limit))
	defer cancel()
	devices := make(chan []Device, 1)
	err = l.actor.do(ctx, func() error {
		d, err := l.start()
		devices <- d
		return err
	})
	if err == nil {
		l.Devices = <-devices
		return l, nil
	}
	return nil, l.known(fnInit, err)
}

// maxDevices is how many devices a plugin may have, since each takes memory here.
const maxDevices = 1024

// start calls init and describes the devices.
func (l *Library) start() ([]Device, error) {
	c := newCaller(&l.table, 0, 0)
	l.table.voice.said()
	if r := c.init(0); r != 0 {
		return nil, l.error(fnInit, nil, -1, r)
	}
	n, r := c.devices()
	switch {
	case r != 0:
		return nil, l.error(fnDevices, nil, -1, r)
	case n <= 0:
		return nil, l.failed("devices", errors.New("it has no device"))
	case n > maxDevices:
		return nil, l.failed("devices", fmt.Errorf("it says that it has %d devices; at most %d are believed", n, maxDevices))
	}
	devices := make([]Device, n)
	for i := range devices {
		d, r := c.properties(i)
		if r != 0 {
			return nil, l.error(fnGetProperties, &d, -1, r)
		}
		d.conns = new(atomic.Int32)
		devices[i] = d
	}
	return devices, nil
}

// usable are the devices that can carry messages of n bytes of host memory. If there is none, the
// error says what each lacks.
func (l *Library) usable(n int) (usable []*Device, err error) {
	var reasons []string
	for i := range l.Devices {
		d := &l.Devices[i]
		switch {
		case d.memory&hostMemory == 0:
			reasons = append(reasons, fmt.Sprintf("device %v takes no host memory", d))
		case d.offload != 0:
			reasons = append(reasons, fmt.Sprintf("device %v needs a part of its own on the GPU (type %d)", d, d.offload))
		case d.MaxRecvs < 1:
			reasons = append(reasons, fmt.Sprintf("device %v receives %d messages at a time", d, d.MaxRecvs))
		case d.MaxBytes < n:
			reasons = append(reasons,
				fmt.Sprintf("device %v carries messages of %d bytes, slots need %d (RINGO_SLOT_BYTES makes them smaller)", d,
					d.MaxBytes, n))
		default:
			usable = append(usable, d)
		}
	}
	if len(usable) == 0 {
		return nil, l.failed("getProperties", errors.New(strings.Join(reasons, ", ")))
	}
	return usable, nil
}

// open starts the plugin for a communicator, since version 11; earlier ones start once.
func (l *Library) open(ctx context.Context, id uint64) (communicator uintptr, err error) {
	if l.Version < 11 {
		return 0, nil
	}
	c := newCaller(&l.table, 0, 0)
	var opened bool
	err = l.actor.do(ctx, func() error {
		l.table.voice.said()
		if r := c.init(id); r != 0 {
			return l.error(fnInit, nil, -1, r)
		}
		opened = true
		return nil
	})
	if err == nil {
		return c.ctx, nil
	}
	l.actor.post(func() {
		if opened { // too late
			c.finalize()
		}
	})
	return 0, l.known(fnInit, err)
}

// close ends the context that open returned. The channel gets the result.
func (l *Library) close(communicator uintptr) <-chan error {
	closed := make(chan error, 1)
	l.actor.post(func() {
		if r := newCaller(&l.table, communicator, 0).finalize(); r != 0 {
			closed <- l.error(fnFinalize, nil, -1, r)
			return
		}
		closed <- nil
	})
	return closed
}

// known is err as an *Error of function f, nil if err is nil.
func (l *Library) known(f int, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return l.failed(functionNames[f], err)
}

// keep keeps memory that the plugin may still touch until the process ends: nobody knows when the plugin no longer
// does. A call that never returns keeps its own memory. The log says so once.
func (l *Library) keep(log *slog.Logger, memory ...any) {
	l.keeping.Lock()
	defer l.keeping.Unlock()
	if !l.told {
		l.told = true
		log.Warn("plugin: memory of connections that it has not closed is kept, as it may still use that", "plugin", l.File)
	}
	l.kept = append(l.kept, memory...)
}

// error is the error of a failed call, with the last warning that the plugin logged.
func (l *Library) error(f int, d *Device, peer int, r Result) *Error {
	e := &Error{File: l.File, Version: l.Version, Call: functionNames[f], Peer: peer, Result: r,
		Said: l.table.voice.said()}
	if d != nil {
		e.Device = d.String()
	}
	return e
}

// failed is an error that Ringo, not the plugin, has found in a call.
func (l *Library) failed(call string, err error) *Error {
	return &Error{File: l.File, Version: l.Version, Call: call, Peer: -1, Err: err}
}
