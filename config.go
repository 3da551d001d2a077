package ringo

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/transport"
)

// A Config says how a communicator is opened. The zero Config is right for
// most; a field left zero is taken from the environment variable that its
// comment names (RINGO_X before NCCL_X), and from the default after that.
type Config struct {
	// ID is the meeting point; NewID makes one. All ranks must have the same.
	ID *bootstrap.ID
	// Rank and Size are this rank and the number of ranks.
	Rank, Size int

	// Device is this rank's GPU, for operations on its memory; every rank needs
	// one then. Several ranks may share a GPU. Without it, and with the rest as it
	// is, nothing of CUDA is loaded. Devices are the same for OpenLocal, by rank.
	Device  *gpu.Device
	Devices []*gpu.Device

	// Transport says how slots may move: "" or "auto" for the best that works
	// (inproc, shm, socket), a list for a preference with fallback
	// ("shm,socket"), one name for that or an error. For GPU memory p2p is the
	// best, shm and inproc stand for queues in host memory, and inproc and socket
	// for a bridge over them. RINGO_TRANSPORT.
	Transport string
	// Net is the same for the network between hosts alone: "Socket", "IB" or a
	// list. RINGO_NET, NCCL_NET.
	Net string
	// Algo forces an algorithm where it has the collective ("ring", "tree",
	// "oneshot", "twoshot", "doubling", "halving", "direct", "logstep",
	// "hier"; on GPUs also "steps" for the schedule of a collective whose kernel
	// has its name, and "window" and "copies" for registered memory); ranks must
	// agree. RINGO_ALGO, NCCL_ALGO.
	Algo string

	// Deterministic is "rank order" for reductions that combine what the ranks
	// contribute in order of rank, 16- and 8-bit floats in float32 and rounded once:
	// their bits do not depend on size, algorithm, transport, path, host or GPU. It
	// goes before Algo where the order matters; see Explain for what it costs. Ranks
	// must agree. RINGO_DETERMINISTIC.
	Deterministic string

	// Plan is a file of "ringo tune" that says which algorithms carry out
	// collectives on GPU memory; see type Plan. Rank 0's counts for all. RINGO_PLAN.
	Plan string

	// Timeout bounds the waits of one operation (default 30 minutes) and
	// JoinTimeout the meeting of the ranks (default 60 s). RINGO_TIMEOUT,
	// RINGO_JOIN_TIMEOUT, as 90s or 5m.
	Timeout, JoinTimeout time.Duration

	// SlotBytes × Slots is the queue of one connection, and half of it the piece
	// that a ring forwards at once: bandwidth × delay must fit. Connections are
	// made when an algorithm first needs them, so a ring has one queue a rank.
	// RINGO_SLOT_BYTES (default 128 KiB, so that a queue stays in a core's cache;
	// 512 KiB where all ranks are connected by sockets, whose cost is by the
	// call), RINGO_SLOTS (default 8, at least 2).
	SlotBytes, Slots int

	// Interface chooses network interfaces: prefixes, "^" excludes, "=" exact.
	// RINGO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME.
	Interface string
	// Family is 4 or 6 to insist on it. RINGO_SOCKET_FAMILY, NCCL_SOCKET_FAMILY
	// (AF_INET, AF_INET6).
	Family int
	// Streams is the number of TCP streams of a connection. RINGO_SOCKET_STREAMS.
	Streams int
	// SocketNetwork is "tcp" or "unix" to insist; by default ranks of one host
	// use unix sockets. RINGO_SOCKET_NETWORK.
	SocketNetwork string
	// ShmDir holds shared memory in files of this directory instead of memory
	// that belongs to no file system. RINGO_SHM_DIR.
	ShmDir string
	// HostID replaces the identity of the host: ranks with different ones do not
	// share memory. RINGO_HOSTID, NCCL_HOSTID.
	HostID string
	// CUDALibrary is the file of the CUDA driver, "libcuda.so.1" if empty. It is
	// opened when a GPU is first asked for. RINGO_CUDA_LIBRARY.
	CUDALibrary string
	// CheckPointers has the driver look at the memory of every call on a GPU, which
	// takes about a µs, not only at what is new to the communicator: memory that
	// was freed meanwhile is found. RINGO_CHECK_POINTERS, NCCL_CHECK_POINTERS.
	CheckPointers bool
	// Cores is how many cores the ranks of this host may use; fewer than ranks
	// makes waits yield instead of spin. Default: the cores there are. RINGO_CORES.
	Cores int

	// Log receives what RINGO_DEBUG (VERSION, WARN, INFO, TRACE), filtered by
	// RINGO_DEBUG_SUBSYS, asks for; by default it goes to standard error or to
	// RINGO_DEBUG_FILE (%h host, %p process).
	Log *slog.Logger

	trace bool
	noP2P string // why GPUs may not reach each other's memory
	noSHM string // why processes may not share host memory
	algo  algo
	plan  *planSource // rank 0's, instead of Plan: of the communicator that is split
}

// Defaults of Config.
const (
	DefaultTimeout         = 30 * time.Minute
	DefaultJoinTimeout     = 60 * time.Second
	DefaultSlotBytes       = 128 << 10
	DefaultSocketSlotBytes = 512 << 10
	DefaultSlots           = 8
)

// FromEnv completes a Config as opening a communicator does: from the
// environment, then from the defaults. The error says which variable is wrong.
func (c Config) FromEnv() (Config, error) { return c.fill(os.Getenv) }

// fill completes a Config from the environment and the defaults, and refuses
// what cannot be. It is the only place of the library that reads environment
// variables; getenv is os.Getenv but in tests.
func (c Config) fill(getenv func(string) string) (Config, error) {
	env := func(names ...string) (name, value string) {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return n, v
			}
		}
		return "", ""
	}
	var first error
	fail := func(name, value, want string) {
		if first == nil {
			first = fmt.Errorf("%w: %s=%q: want %s", ErrInvalid, name, value, want)
		}
	}
	text := func(field *string, names ...string) {
		if *field == "" {
			_, *field = env(names...)
		}
	}
	number := func(field *int, dflt int, names ...string) {
		if *field != 0 {
			return
		}
		*field = dflt
		if name, v := env(names...); name != "" {
			n, err := parseSize(v)
			if err != nil {
				fail(name, v, "a number")
				return
			}
			*field = n
		}
	}
	duration := func(field *time.Duration, dflt time.Duration, names ...string) {
		if *field != 0 {
			return
		}
		*field = dflt
		if name, v := env(names...); name != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				fail(name, v, "a duration such as 90s or 5m")
				return
			}
			*field = d
		}
	}

	text(&c.Transport, "RINGO_TRANSPORT")
	text(&c.Net, "RINGO_NET", "NCCL_NET")
	text(&c.Algo, "RINGO_ALGO", "NCCL_ALGO")
	text(&c.Deterministic, "RINGO_DETERMINISTIC")
	text(&c.Plan, "RINGO_PLAN")
	text(&c.Interface, "RINGO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
	text(&c.SocketNetwork, "RINGO_SOCKET_NETWORK")
	text(&c.ShmDir, "RINGO_SHM_DIR")
	text(&c.HostID, "RINGO_HOSTID", "NCCL_HOSTID")
	text(&c.CUDALibrary, "RINGO_CUDA_LIBRARY")
	duration(&c.Timeout, DefaultTimeout, "RINGO_TIMEOUT")
	duration(&c.JoinTimeout, DefaultJoinTimeout, "RINGO_JOIN_TIMEOUT")
	number(&c.SlotBytes, 0, "RINGO_SLOT_BYTES")
	number(&c.Slots, DefaultSlots, "RINGO_SLOTS")
	number(&c.Streams, 0, "RINGO_SOCKET_STREAMS")
	number(&c.Cores, runtime.NumCPU(), "RINGO_CORES")
	if c.Family == 0 {
		switch name, v := env("RINGO_SOCKET_FAMILY", "NCCL_SOCKET_FAMILY"); strings.ToUpper(v) {
		case "":
		case "4", "AF_INET":
			c.Family = 4
		case "6", "AF_INET6":
			c.Family = 6
		default:
			fail(name, v, "AF_INET or AF_INET6")
		}
	}
	if _, v := env("RINGO_CHECK_POINTERS", "NCCL_CHECK_POINTERS"); v != "" && v != "0" {
		c.CheckPointers = true
	}
	if name, v := env("RINGO_P2P_DISABLE", "NCCL_P2P_DISABLE"); v != "" && v != "0" {
		c.noP2P = name + " is set"
	}
	if name, v := env("RINGO_SHM_DISABLE", "NCCL_SHM_DISABLE"); v != "" && v != "0" && c.Transport == "" {
		c.Transport, c.noSHM = "p2p,inproc,socket", name+" is set"
	}
	if c.Log == nil {
		var err error
		if c.Log, c.trace, err = debugLog(env); err != nil {
			return c, err
		}
	}
	if first != nil {
		return c, first
	}

	switch {
	case c.Slots < 2 || c.Slots > 1<<16:
		return c, fmt.Errorf("%w: Slots is %d, want 2…65536", ErrInvalid, c.Slots)
	case c.SlotBytes != 0 && (c.SlotBytes < 64 || c.SlotBytes > 1<<30 || c.SlotBytes%64 != 0):
		return c, fmt.Errorf("%w: SlotBytes is %d, want a multiple of 64 in 64…1 GiB", ErrInvalid, c.SlotBytes)
	case c.Timeout < 0 || c.JoinTimeout < 0:
		return c, fmt.Errorf("%w: negative timeout", ErrInvalid)
	}
	var err error
	if err = c.checkOrder(); err != nil {
		return c, err
	}
	if c.algo, err = parseAlgo(c.Algo); err != nil {
		return c, err
	}
	if c.HostID == "" {
		c.HostID = hostID()
	}
	return c, nil
}

// hostname is the readable part of the host's identity.
func (c *Config) hostname() string {
	name, _, _ := strings.Cut(c.HostID, "/")
	return name
}

func (c *Config) limits() transport.Limits {
	return transport.Limits{SlotBytes: c.SlotBytes, Slots: c.Slots}
}

// hostID tells apart nodes whose processes cannot share memory: another kernel,
// or, for containers, another network namespace, where the sockets that hand
// over shared memory are not seen.
func hostID() string {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	netns, _ := os.Readlink("/proc/self/ns/net")
	return strings.Join([]string{name, strings.TrimSpace(string(boot)), netns}, "/")
}

// debugFile expands %h and %p.
func debugFile(pattern string) string {
	host, _ := os.Hostname()
	return filepath.Clean(strings.NewReplacer("%h", host, "%p", strconv.Itoa(os.Getpid())).Replace(pattern))
}
