package ringo

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/internal/goroutine"
	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/internal/setting"
)

// variables are environment variables while a Config is completed from them. This file and bootstrap.FromEnv are the
// only places of the library that read them.
type variables struct {
	setting.Environment
	level, subsys, file, tls setting.Variable // each is read together with others
	threads, each            int              // NCCL's numbers of socket threads, and of sockets for each
}

// shared is what all communicators of a process share, whatever their Config.
type shared struct {
	told     sync.Map // the oddities of the environment that were logged: each is logged once
	writable sync.Map // folders that were written to: one that fills up later keeps no communicator from opening

	mu   sync.Mutex
	logs map[string]*os.File // guarded by mu; open files of logs by name: a log outlives its communicator
}

var sharedBy = process.NewRegistry(func() *shared { return &shared{logs: map[string]*os.File{}} })

// FromEnv completes a Config as opening a communicator does: from the
// environment, then from the defaults. The error says which variable is wrong.
func (c Config) FromEnv() (Config, error) { return c.fill(os.Getenv) }

// From is FromEnv with another environment, which getenv gives as os.Getenv does: that of a
// program in C, for example, which has changed it since it loaded a library in Go.
func (c Config) From(getenv func(string) string) (Config, error) { return c.fill(getenv) }

// fill completes a Config from the environment and the defaults, and refuses what cannot
// be. getenv is os.Getenv but in tests.
func (c Config) fill(getenv func(string) string) (Config, error) {
	e := &variables{Environment: setting.Environment{Get: getenv}}
	c.read(e)
	if e.Err != nil {
		return c, fmt.Errorf("%w: %w", ErrInvalid, e.Err)
	}
	for _, text := range e.Odd {
		if _, said := sharedBy.In(c.in).told.LoadOrStore(text, true); !said {
			c.Log.Warn(text, "subsys", "ENV")
		}
	}
	return c, c.validate()
}

// mostStreams keeps a wrong number from eating all descriptors. It is NCCL's bound too.
const mostStreams = 64

// settings is the table of settings.
func (c *Config) settings(e *variables) []setting.Row {
	const many = math.MaxInt
	return []setting.Row{
		setting.Text("Transport", &c.Transport, "RINGO_TRANSPORT"),
		setting.Own("Net", c.Net != "", func(_ *setting.Environment, name, value string) { c.from, c.Net = name, value },
			"RINGO_NET", "NCCL_NET"),
		setting.Text("NetPlugin", &c.NetPlugin, "RINGO_NET_PLUGIN", "NCCL_NET_PLUGIN"),
		setting.Text("IBDevices", &c.IBDevices, "RINGO_IB_HCA", "NCCL_IB_HCA"),
		setting.Own("Algo", c.Algo != "", func(_ *setting.Environment, name, value string) {
			if c.Algo = value; setting.OfNCCL(name) {
				c.Algo = algoOfNCCL(value)
			}
		}, "RINGO_ALGO", "NCCL_ALGO"),
		setting.Word("Deterministic", &c.Deterministic, strconv.Quote(call.RankOrder)+" or nothing",
			setting.OneOf(call.RankOrder), "RINGO_DETERMINISTIC"),
		setting.Text("Plan", &c.Plan, "RINGO_PLAN"),
		setting.Text("Interface", &c.Interface, "RINGO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
		setting.Own("Family", c.Family != 0, func(e *setting.Environment, name, value string) {
			if c.Family = map[string]int{"4": 4, "AF_INET": 4, "6": 6, "AF_INET6": 6}[strings.ToUpper(value)]; c.Family == 0 {
				e.Wrong(name, value, "AF_INET or AF_INET6")
			}
		}, "RINGO_SOCKET_FAMILY", "NCCL_SOCKET_FAMILY"),
		setting.Word("SocketNetwork", &c.SocketNetwork, "tcp, unix or nothing", setting.OneOf("tcp", "unix"),
			"RINGO_SOCKET_NETWORK"),
		setting.Text("ShmDir", &c.ShmDir, "RINGO_SHM_DIR"),
		setting.Kept("TLS", &e.tls, "RINGO_TLS"),
		setting.Text("TLSCert", &c.TLSCert, "RINGO_TLS_CERT"),
		setting.Text("TLSKey", &c.TLSKey, "RINGO_TLS_KEY"),
		setting.Text("TLSCA", &c.TLSCA, "RINGO_TLS_CA"),
		setting.Text("History", &c.History, "RINGO_HISTORY"),
		setting.Word("HistorySignal", &c.HistorySignal, "a signal that can be caught, such as USR2",
			func(s string) bool { return setting.Signal(s) != nil }, "RINGO_HISTORY_SIGNAL"),
		setting.Text("HostID", &c.HostID, "RINGO_HOSTID", "NCCL_HOSTID"),
		setting.Text("CUDALibrary", &c.CUDALibrary, "RINGO_CUDA_LIBRARY"),

		setting.Duration("Timeout", &c.Timeout, "RINGO_TIMEOUT"),
		setting.Duration("JoinTimeout", &c.JoinTimeout, "RINGO_JOIN_TIMEOUT"),

		setting.Number("SlotBytes", &c.SlotBytes, 64, 1<<30, 64, "RINGO_SLOT_BYTES"),
		setting.Number("Slots", &c.Slots, 2, 1<<16, 1, "RINGO_SLOTS"),
		setting.Number("Streams", &c.Streams, 1, mostStreams, 1, "RINGO_SOCKET_STREAMS"),
		setting.Number("NCCL's socket threads", &e.threads, 1, 16, 1, "NCCL_SOCKET_NTHREADS"),
		setting.Number("NCCL's sockets of a thread", &e.each, 1, mostStreams, 1, "NCCL_NSOCKS_PERTHREAD"),
		setting.Number("Cores", &c.Cores, 1, many, 1, "RINGO_CORES"),
		setting.Number("HostMbps", &c.HostMbps, 1, many, 1, "RINGO_HOST_MBPS"),
		setting.Number("MaxBlocks", &c.MaxBlocks, 1, many, 1, "RINGO_MAX_CTAS", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"),
		setting.Number("MinBlocks", &c.MinBlocks, 1, many, 1, "RINGO_MIN_CTAS", "NCCL_MIN_CTAS"),
		setting.Number("WorkFIFOBytes", &c.WorkFIFOBytes, 1, 1<<30, 1, "RINGO_WORK_FIFO_BYTES", "NCCL_WORK_FIFO_BYTES"),
		setting.Number("WorkArgsBytes", &c.WorkArgsBytes, 1, many, 1, "RINGO_WORK_ARGS_BYTES"),
		setting.Number("InfiniBand's timeout", &c.ib.Timeout, 1, 31, 1, "RINGO_IB_TIMEOUT", "NCCL_IB_TIMEOUT"),
		setting.Number("InfiniBand's number of retries", &c.ib.Retries, 1, 7, 1, "RINGO_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT"),
		setting.Number("InfiniBand's traffic class", &c.ib.TrafficClass, 1, 255, 1, "RINGO_IB_TC", "NCCL_IB_TC"),
		setting.Number("InfiniBand's service level", &c.ib.ServiceLevel, 1, 15, 1, "RINGO_IB_SL", "NCCL_IB_SL"),
		setting.Number("the index of InfiniBand's partition key", &c.ib.PKeyIndex, 1, math.MaxUint16, 1, "RINGO_IB_PKEY",
			"NCCL_IB_PKEY"),
		setting.Own("the index of InfiniBand's GID", false, func(e *setting.Environment, name, value string) {
			if value == "-1" { // NCCL's automatic
				return
			}
			if n := e.Number(name, value, many); n >= 0 {
				c.ib.GIDIndex = &n
			}
		}, "RINGO_IB_GID_INDEX", "NCCL_IB_GID_INDEX"),

		setting.Switch("CheckPointers", func(string) { c.CheckPointers = true }, "RINGO_CHECK_POINTERS",
			"NCCL_CHECK_POINTERS"),
		setting.Own("CheckPointers", false, func(e *setting.Environment, name, value string) {
			if strings.HasPrefix(value, "DEBUG_") {
				c.CheckPointers = true
			} else if value != "DEFAULT" {
				e.Wrong(name, value, "DEFAULT, DEBUG_LOCAL or DEBUG_GLOBAL")
			}
		}, "NCCL_CHECK_MODE"),
		setting.Switch("LaunchOrder", func(string) { c.LaunchOrder = true }, "RINGO_LAUNCH_ORDER_IMPLICIT",
			"NCCL_LAUNCH_ORDER_IMPLICIT"),
		setting.Switch("no P2P", func(name string) { c.noP2P = name + " is set" }, "RINGO_P2P_DISABLE", "NCCL_P2P_DISABLE"),
		setting.Level("no P2P", false, func(name, level string) {
			if level == "LOC" {
				c.noP2P = name + " is " + level
			}
		}, "NCCL_P2P_LEVEL"),
		setting.Switch("no InfiniBand", func(name string) { c.ib.Disabled = name + " is set" }, "RINGO_IB_DISABLE",
			"NCCL_IB_DISABLE"),
		setting.Switch("no shared memory", func(name string) {
			if c.Transport == "" {
				c.noSHM = name + " is set"
			}
		}, "RINGO_SHM_DISABLE", "NCCL_SHM_DISABLE"),
		setting.Own("BlockPolicy", c.BlockPolicy != "", func(e *setting.Environment, name, value string) {
			c.BlockPolicy = strings.Join(e.Words(name, value, "|", "default, latency, efficiency, zero, or 0 to 3",
				func(word string) bool {
					_, err := choice.ParsePolicy(word)
					return err == nil
				}), "|")
		}, "RINGO_CTA_POLICY", "NCCL_CTA_POLICY"),
		setting.Word("lines", &c.lines, "0 or 1", setting.OneOf("0", "1"), "RINGO_LINES"),
		setting.Own("dma-buf", c.gdr.DMABuf != "", func(e *setting.Environment, name, value string) {
			n, ok := setting.NumberOfNCCL(value)
			if n == 0 {
				c.gdr.DMABuf = "0"
			}
			if !ok {
				e.Odd = append(e.Odd, fmt.Sprintf("%s=%q is read as 0, as NCCL reads words", name, value))
			}
		}, "NCCL_DMABUF_ENABLE"),
		setting.Level("GPUDirect", c.gdr.Level != "", func(_, level string) { c.gdr.Level = level }, "NCCL_NET_GDR_LEVEL"),
		setting.Kept("Log", &e.level, "RINGO_DEBUG", "NCCL_DEBUG"),
		setting.Kept("Log", &e.subsys, "RINGO_DEBUG_SUBSYS", "NCCL_DEBUG_SUBSYS"),
		setting.Kept("Log", &e.file, "RINGO_DEBUG_FILE", "NCCL_DEBUG_FILE"),
	}
}

// read completes the fields that the program left zero from the environment, then from the defaults.
func (c *Config) read(e *variables) {
	table := c.settings(e)
	from := e.Read(table)
	known := []string{"RINGO_RANK", "RINGO_SIZE", "RINGO_LOCAL_RANK", "RINGO_LOCAL_SIZE", "RINGO_COMM_ID",
		"RINGO_COMM_SECRET", "RINGO_HOST", "RINGO_NCCL_VERSION"} // of launchers and of libnccl.so.2
	for _, r := range table {
		known = append(known, r.Names...)
	}
	e.Misspelt(known, os.Environ())
	c.Slots, c.WorkFIFOBytes, c.Cores = cmp.Or(c.Slots, DefaultSlots), cmp.Or(c.WorkFIFOBytes, DefaultWorkFIFOBytes),
		cmp.Or(c.Cores, runtime.NumCPU())
	c.Timeout, c.JoinTimeout = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.JoinTimeout, DefaultJoinTimeout)
	if c.HostID == "" {
		c.HostID = paths.HostID()
	}
	if c.MaxBlocks > 0 && c.MinBlocks > c.MaxBlocks &&
		(setting.OfNCCL(from["MinBlocks"]) || setting.OfNCCL(from["MaxBlocks"])) {
		e.Odd = append(e.Odd,
			fmt.Sprintf("NCCL_MIN_CTAS, NCCL_MAX_CTAS: at least %d blocks and at most %d are taken as %[2]d",
				c.MinBlocks, c.MaxBlocks))
		c.MinBlocks = c.MaxBlocks
	}
	c.Streams = cmp.Or(c.Streams, e.streams())
	tls, err := setting.TLS(e.tls.Value, c.TLSCert, c.TLSKey, c.TLSCA)
	if err != nil {
		e.Err = cmp.Or(e.Err, err)
	}
	c.TLS = c.TLS || tls
	if c.aides == nil {
		c.aides = new(goroutine.Set)
	}
	c.Log = sharedBy.In(c.in).debugLog(c.Log, e, c.aides)
}

// streams is how many sockets NCCL's threads would have together; 0 if NCCL's variables are not set.
func (e *variables) streams() int {
	if e.threads == 0 && e.each == 0 {
		return 0
	}
	threads, each := max(e.threads, 1), max(e.each, 1)
	if threads*each > mostStreams {
		each = mostStreams / threads
		e.Odd = append(e.Odd, fmt.Sprintf("NCCL_NSOCKS_PERTHREAD is taken as %d: %d threads have at most %d sockets together",
			each, threads, mostStreams))
	}
	return threads * each
}

// ncclAlgorithms maps the words of NCCL_ALGO to algorithms of this library, "" where it has none like it.
var ncclAlgorithms = map[string]string{
	"ring": "ring", "tree": "tree",
	"collnet": "", "collnetdirect": "", "collnetchain": "", "nvls": "", "nvlstree": "", "pat": "",
}

// algoOfNCCL is Config.Algo for a value of NCCL_ALGO. That is a list, or what is not wanted after
// ^, for all collectives or for one ("tree;allreduce:ring"). If it names one algorithm for all,
// and we have it, that is meant; any other list leaves the choice, which is ours then. What is
// no word of NCCL's is taken as one of ours.
func algoOfNCCL(value string) string {
	chosen := ""
	for _, part := range strings.Split(strings.ToLower(value), ";") {
		_, list, one := strings.Cut(part, ":")
		if !one {
			list = part
		}
		list, not := strings.CutPrefix(list, "^")
		for _, name := range strings.Split(list, ",") {
			if _, ok := ncclAlgorithms[strings.TrimSpace(name)]; !ok && strings.TrimSpace(name) != "" {
				return value
			}
		}
		if !one && !not {
			chosen = ncclAlgorithms[strings.TrimSpace(list)]
		}
	}
	return chosen
}
