package ringo

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/goroutine"
	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/internal/setting"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// A Config says how a communicator is opened. The zero Config is right for
// most; a field left zero is taken from the environment variable that its
// comment names (RINGO_X before NCCL_X), and from the default after that. Open returns ErrInvalid
// for a value that cannot be; but a value of NCCL_X is read as NCCL reads it, and the log says what is odd about it.
type Config struct {
	// ID is the meeting point; NewID makes one. All ranks must have the same.
	ID *ID
	// Rank and Size are this rank and the number of ranks.
	Rank, Size int

	// Name is what errors call the communicator: "AllReduce #4 of pairs: rank 1 on vm: …" It helps where there are
	// several, as of SplitWith. One made by Split, Grow or Shrink without a name of its own has Error.Comm there.
	Name string

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
	// Net is the same for the network between hosts alone: "IB", "Socket", "Plugin", what a
	// plugin calls itself, or a list. By default it is the first of a plugin, InfiniBand and
	// sockets that all ranks have; they all use the same. RINGO_NET, NCCL_NET.
	Net string
	// NetPlugin lists network plugins, NCCL's: each a path, or x for libnccl-net-x.so;
	// "none" for none. By default it is libnccl-net.so. RINGO_NET_PLUGIN, NCCL_NET_PLUGIN.
	NetPlugin string
	// IBDevices chooses InfiniBand cards and ports as NCCL_IB_HCA does: prefixes
	// ("mlx5_0,mlx5_1:2"), after = exact names, after ^ what is not wanted. RINGO_IB_HCA,
	// NCCL_IB_HCA. RINGO_IB_DISABLE and NCCL_IB_DISABLE do without.
	IBDevices string
	// Algo forces an algorithm where it has the collective ("ring", "tree",
	// "oneshot", "twoshot", "doubling", "halving", "direct", "logstep",
	// "hier", "hiertree", "hierlog"; on GPUs also "steps" for the schedule of a collective whose kernel
	// has its name, and "window" and "copies" for registered memory); ranks must
	// agree. RINGO_ALGO, or NCCL_ALGO where it names one of these for all collectives.
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
	// JoinTimeout the meeting of the ranks (default 60 s). Whatever they are, a host whose
	// kernel is silent for 15 s is taken for dead; a process that is stopped is not dead.
	// RINGO_TIMEOUT, RINGO_JOIN_TIMEOUT, as 90s or 5m.
	Timeout, JoinTimeout time.Duration

	// SlotBytes × Slots is the queue of one connection, and half of it the piece
	// that a ring forwards at once: bandwidth × delay must fit. Connections are
	// made when an algorithm first needs them, so a ring has one queue a rank.
	// RINGO_SLOT_BYTES (default 128 KiB, so that a queue stays in a core's cache;
	// 512 KiB between hosts, where cost is by the call, of up to 64 ranks or where
	// all connections are sockets), RINGO_SLOTS (default 8, at least 2).
	SlotBytes, Slots int

	// Interface chooses network interfaces: prefixes, "^" excludes, "=" exact. Streams are spread
	// over the interfaces of a list of several words, one for each word.
	// RINGO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME.
	Interface string
	// Family is 4 or 6 to insist on it. RINGO_SOCKET_FAMILY, NCCL_SOCKET_FAMILY
	// (AF_INET, AF_INET6).
	Family int
	// Streams is the number of TCP streams of a connection; by default one to each interface that
	// the peer's Interface names. More help where one stream cannot fill the link.
	// RINGO_SOCKET_STREAMS, or NCCL_SOCKET_NTHREADS × NCCL_NSOCKS_PERTHREAD.
	Streams int
	// SocketNetwork is "tcp" or "unix" to insist; by default ranks of one host
	// use unix sockets. RINGO_SOCKET_NETWORK.
	SocketNetwork string
	// TLS has ranks meet, and TCP connections go, over TLS 1.3, by the job's key; networks that
	// cannot encrypt are not used then. What stays on a host, shared memory and unix sockets, stays
	// as it is. With TLSCert, TLSKey and TLSCA, files in PEM, ranks and what serves the ID also show
	// each other certificates that TLSCA has signed. All ranks must have it or none. It costs each
	// end about 0.5 ns a byte. RINGO_TLS=1; RINGO_TLS_CERT, RINGO_TLS_KEY, RINGO_TLS_CA.
	TLS                    bool
	TLSCert, TLSKey, TLSCA string
	// Sockets are a listener and a dialler of the program's own: for a service mesh, or its own TLS. All ranks must have
	// them or none.
	Sockets *Sockets
	// ShmDir holds shared memory in files of this directory instead of memory
	// that belongs to no file system. RINGO_SHM_DIR.
	ShmDir string
	// HostID replaces the identity of the host: ranks with different ones do not
	// share memory. RINGO_HOSTID, NCCL_HOSTID.
	HostID string
	// CUDALibrary is the file of the CUDA driver, "libcuda.so.1" if empty. It is
	// opened when a GPU is first asked for. RINGO_CUDA_LIBRARY.
	CUDALibrary string
	// MaxBlocks is the most blocks of threads, up to 128, that one kernel of the communicator
	// holds on each GPU; the least of all ranks counts. A block is a lane of a ring: more
	// lanes have more bandwidth and leave less of the GPU to other kernels. Zero shares
	// the GPU among the communicators of a process: the first has up to 128 blocks, and up to
	// 8 always run side by side. More of them than that, or more blocks than fit, may wait
	// for each other until Timeout. With at most 32, schedules go by bulk copies on
	// GPUs that have them. RINGO_MAX_CTAS, NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS.
	MaxBlocks int
	// MinBlocks is the least number of blocks that a kernel takes where there is work for them,
	// whatever the policy; the most of all ranks counts, as far as MaxBlocks allows. It may be
	// more than a share of the GPU. RINGO_MIN_CTAS, NCCL_MIN_CTAS.
	MinBlocks int
	// BlockPolicy is how many blocks of those that it may have a kernel takes. "default" is for
	// programs that compute beside collectives: schedules between two GPUs that have bulk copies have at most
	// 32 lanes, above 64 MiB 64, and kernels lose at most 3 % of the bandwidth. "latency" takes as many blocks
	// as there is work for, the quickest where nothing else runs on the GPU. "efficiency" takes the fewest that
	// keep most of the bandwidth (it loses at most 10 %), "zero" is that and has copy engines carry out all-gather,
	// all-to-all and broadcast of registered memory at every size. The numbers are those of a Plan; where a
	// plan has none, "default" takes as many as there is work for and the last two half. The
	// thriftiest policy of all ranks counts. RINGO_CTA_POLICY, NCCL_CTA_POLICY, which may also be NCCL's 0 to 3.
	BlockPolicy string
	// LaunchOrder has the operations of all communicators of this process on a GPU follow
	// each other in the order of their calls, graphs included, whatever their streams are.
	// Then communicators need not fit on the GPU together, if all ranks call them in the same
	// order; and none runs beside another. Calls of several goroutines have the order in
	// which they arrive. It has no effect where ranks share a GPU. An operation costs two
	// more calls of the driver, some µs. RINGO_LAUNCH_ORDER_IMPLICIT, NCCL_LAUNCH_ORDER_IMPLICIT.
	LaunchOrder bool
	// CheckPointers has the driver look at the memory of every call on a GPU, which
	// takes about a µs, not only at what is new to the communicator: memory that
	// was freed meanwhile is found. RINGO_CHECK_POINTERS, NCCL_CHECK_POINTERS, NCCL_CHECK_MODE=DEBUG_LOCAL.
	CheckPointers bool
	// Cores is how many cores the ranks of this host may use; fewer than ranks
	// makes waits yield instead of spin. Default: the cores there are. RINGO_CORES.
	Cores int
	// HostMbps is how much the links of a host carry together, in Mbit/s one way, where its cards do not say so:
	// an interface behind a shaper, or of a virtual machine. Algorithms across hosts are chosen by it;
	// the least that a rank of the communicator gives counts for all hosts. 0: what the cards say. RINGO_HOST_MBPS.
	HostMbps int

	// WorkFIFOBytes is the length of the ring in the GPU's memory through which eager calls
	// hand their kernels what does not fit into arguments: the counts of v-variants, the
	// messages of large groups (default 1 MiB). A call waits while it is full; the least is
	// what one launch needs. WorkArgsBytes bounds what fits into arguments (default: 3584,
	// as much as there is room for; 1: nothing does). Neither limits a group, nor has to be
	// the same on all ranks. RINGO_WORK_FIFO_BYTES, NCCL_WORK_FIFO_BYTES, RINGO_WORK_ARGS_BYTES.
	WorkFIFOBytes, WorkArgsBytes int

	// History is a folder to which each rank writes its last calls when the communicator fails,
	// and when its process gets HistorySignal, a name such as USR2, if that is set; from the first
	// Open on that signal does not end the process. "ringo why" reads these files. The folder is tried at Open, and
	// made if it is not there; the folder around it has to be there. RINGO_HISTORY, RINGO_HISTORY_SIGNAL.
	History, HistorySignal string

	// Log receives what RINGO_DEBUG asks for: WARN (the default), INFO, or TRACE, which
	// logs every call when it begins and when it has ended, with the ranks that it waited for.
	// RINGO_DEBUG_SUBSYS chooses the parts, a comma list or, after ^, a list of what is not wanted:
	// INIT, BOOTSTRAP, ENV (the default of INFO), NET, SHM, REG, CALL, ALL; NCCL's other names are
	// taken and mean nothing here. Without a Log it goes to standard error or to RINGO_DEBUG_FILE
	// (%h host, %p process). NCCL_DEBUG and its like
	// count too. A Log without RINGO_DEBUG receives what its own handler is enabled for. Its handler may be called
	// while an operation is under way: of the methods of a Comm it may call Abort, Err, Failure and History, and what
	// would wait, Close too, is an ErrInvalid there.
	Log *slog.Logger

	// Observer is told of every call: when it began and ended, how long it waited for which rank, and its steps if
	// it wants them; see trace.Observer for what it may do. A trace.Recorder keeps them, trace.Labels is for
	// profiles, and the module adapters is for Prometheus and OpenTelemetry. Without one nothing reads a clock.
	Observer trace.Observer

	// Card is what this rank tells all others of itself when the communicator is opened, 1 KiB at most: where a service
	// of the program's own listens, say. Comm.Cards gives those of all ranks. Communicators that are made of
	// this one have the Card of their Config.
	Card []byte

	noP2P string // why GPUs may not reach each other's memory
	noSHM string // why processes may not share host memory
	ib    transport.IBOptions
	tls   *bootstrap.TLS
	from  string // the variable that Net is from
	gdr   paths.GDR
	lines string // "0" or "1": whether lines of 128 bytes go between GPUs, whatever their link
	algo  call.Algo

	policy choice.Policy      // BlockPolicy
	aides  *goroutine.Set     // in the Log's handler; see life.Turn
	plan   *choice.PlanSource // rank 0's, instead of Plan: of the communicator that is split
	made   lineage            // of other communicators
	in     *process.Process   // that has what communicators share; nil: that of the context, else the default
}

// Defaults of Config.
const (
	DefaultTimeout         = 30 * time.Minute
	DefaultJoinTimeout     = 60 * time.Second
	DefaultSlotBytes       = paths.DefaultSlotBytes
	DefaultSocketSlotBytes = paths.DefaultSocketSlotBytes
	DefaultSlots           = 8
	DefaultWorkFIFOBytes   = 1 << 20
)

// maxCard is the most bytes of a Card. Each rank hears those of all.
const maxCard = 1 << 10

// validate refuses what cannot be, and tries what is needed only when all is lost.
func (c *Config) validate() (err error) {
	if len(c.Card) > maxCard {
		return fmt.Errorf("%w: Card has %d bytes, want %d at most", ErrInvalid, len(c.Card), maxCard)
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.TLS {
		if c.tls, err = bootstrap.NewTLS(c.TLSCert, c.TLSKey, c.TLSCA); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return c.checkHistory()
}

// check refuses what cannot be.
func (c *Config) check() (err error) {
	if err := setting.Check(c.settings(new(variables))); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case c.Family != 0 && c.Family != 4 && c.Family != 6:
		return fmt.Errorf("%w: Family (RINGO_SOCKET_FAMILY) is %d, want 4, 6 or 0", ErrInvalid, c.Family)
	case c.MaxBlocks > 0 && c.MinBlocks > c.MaxBlocks:
		return fmt.Errorf("%w: MinBlocks (RINGO_MIN_CTAS) is %d and MaxBlocks (RINGO_MAX_CTAS) %d, want at most as many, "+
			"or 0",
			ErrInvalid, c.MinBlocks, c.MaxBlocks)
	}
	if c.policy, err = choice.ParsePolicy(c.BlockPolicy); err != nil {
		return fmt.Errorf("BlockPolicy (RINGO_CTA_POLICY): %w", err)
	}
	if c.algo, err = call.ParseAlgo(c.Algo); err != nil {
		return fmt.Errorf("RINGO_ALGO, NCCL_ALGO or Config.Algo: %w", err)
	}
	return nil
}

// checkHistory tries what is needed only when all is lost.
func (c *Config) checkHistory() error {
	if _, tried := sharedBy.In(c.in).writable.Load(c.History); tried || c.History == "" {
		return nil
	}
	err := os.Mkdir(c.History, 0o755) // only the folder itself: a mistyped path must not become folders
	if errors.Is(err, fs.ErrNotExist) {
		folder := filepath.Clean(c.History)
		return fmt.Errorf("%w: History (RINGO_HISTORY): there is no folder %s to make %s in: make it, or correct the path",
			ErrInvalid, filepath.Dir(folder), filepath.Base(folder))
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		var try *os.File
		if try, err = os.CreateTemp(c.History, ".ringo-*"); err == nil {
			err = errors.Join(try.Close(), os.Remove(try.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: History (RINGO_HISTORY): want a folder that can be written: %w", ErrInvalid, err)
	}
	sharedBy.In(c.in).writable.Store(c.History, true)
	return nil
}

// Encryption says whether connections go over TLS, for a Config that is complete (FromEnv): "off",
// "by the job's key" or "by certificates".
func (c Config) Encryption() string { return c.tls.String() }

// hostname is the readable part of the host's identity.
func (c *Config) hostname() string {
	name, _, _ := strings.Cut(c.HostID, "/")
	return name
}

// choice is what a Config says of the choice of algorithms; see check.
func (c *Config) choice() choice.Options {
	return choice.Options{
		Algo: c.Algo, InOrder: c.Deterministic != "", Plan: c.Plan, HostMbps: c.HostMbps,
		Budget: choice.Budget{Least: c.MinBlocks, Most: c.MaxBlocks, Policy: c.policy},
	}
}

// join is what a Config says of how ranks meet.
func (c *Config) join() bootstrap.JoinOptions {
	return bootstrap.JoinOptions{TLS: c.tls, Dial: c.Sockets.Dialer(), Log: c.Log.With("subsys", "BOOTSTRAP")}
}

// paths is what a Config says of paths.
func (c *Config) paths() paths.Config {
	ib := c.ib
	ib.HCA = c.IBDevices
	return paths.Config{
		Transport: c.Transport, Net: c.Net, NetFrom: c.from, Plugins: c.NetPlugin, NoP2P: c.noP2P, NoSHM: c.noSHM,
		SlotBytes: c.SlotBytes, Slots: c.Slots, ShmDir: c.ShmDir, Cores: c.Cores, Linger: c.Timeout, Lines: c.lines,
		GDR: c.gdr,
		Networking: transport.NetworkOptions{
			Interface: c.Interface, Family: c.Family, Streams: c.Streams, SocketNetwork: c.SocketNetwork, TLS: c.tls,
			Sockets: c.Sockets, IB: ib, HostMbps: c.HostMbps,
		},
	}
}

// A lineage is of which communicators one was made, for its history: numbers of ranks differ from one to the next.
type lineage struct {
	after  string // that had failed, and that Shrink has replaced by this one
	origin string // the first, "" of the first
	size   int    // its ranks
	rank   int    // this rank's number there
	name   string // Config.Name of the communicator of which this one was made
}
