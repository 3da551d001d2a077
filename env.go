package ringo

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/internal/setting"
)

// variables give the values of environment variables. This file and bootstrap.FromEnv are the only
// places of the library that read them.
type variables struct {
	get func(string) string
	err error    // the first value of a variable of our own that cannot be
	odd []string // the same of NCCL's, which the log says
}

// first is the first of the names that is set, with its value; both are empty if none is.
func (e *variables) first(names ...string) (name, value string) {
	for _, n := range names {
		if v := e.get(n); v != "" {
			return n, v
		}
	}
	return "", ""
}

// ofNCCL reports whether a variable is NCCL's.
func ofNCCL(name string) bool { return strings.HasPrefix(name, "NCCL_") }

// wrong takes note of a value that is not what is wanted: an error, but of a variable of NCCL's, which has no effect then.
// Programs and clusters set those without us in mind, so they are read as there, and are no error.
func (e *variables) wrong(name, value, want string) {
	text := fmt.Sprintf("%s=%q: want %s", name, value, want)
	if ofNCCL(name) {
		e.odd = append(e.odd, text+"; it has no effect")
	} else if e.err == nil {
		e.err = fmt.Errorf("%w: %s", ErrInvalid, text)
	}
}

// on is the first of the names that is set, if it says yes.
func (e *variables) on(names ...string) string {
	name, v := e.first(names...)
	yes, ok := setting.On(v)
	want := setting.OnWords
	if ofNCCL(name) {
		n, number := setting.NumberOfNCCL(v)
		yes, ok, want = n != 0, number, "0 or 1"
	}
	if v != "" && !ok {
		e.wrong(name, v, want)
	}
	if !yes {
		return ""
	}
	return name
}

// number reads a variable's value. One of NCCL's is at most so much, and below 0 if it says nothing.
func (e *variables) number(name, v string, most int) int {
	switch {
	case v == "":
		return -1
	case !ofNCCL(name):
		n, err := choice.ParseSize(v)
		if err != nil {
			e.wrong(name, v, "a number")
		}
		return n
	}
	n, ok := setting.NumberOfNCCL(v)
	switch {
	case !ok:
		e.wrong(name, v, "a number")
		return -1
	case n > most:
		e.odd = append(e.odd, fmt.Sprintf("%s=%q is taken as %d, the most", name, v, most))
		return most
	}
	return n
}

// level reads one of NCCL's levels of distance, "" if it says none.
func (e *variables) level(name string) string {
	v := e.get(name)
	level, ok := setting.LevelOfNCCL(v)
	if v != "" && !ok {
		e.wrong(name, v, "LOC, PIX, PXB, PHB, SYS or its number")
	}
	return level
}

// words are those of a list that are known.
func (e *variables) words(name, list, separator, want string, known func(string) bool) (words []string) {
	for word := range strings.SplitSeq(list, separator) {
		if word = strings.TrimSpace(word); known(word) {
			words = append(words, word)
		} else if word != "" {
			e.wrong(name, word, want)
		}
	}
	return words
}

// told are the oddities of this process that its log has said.
var told sync.Map

// FromEnv completes a Config as opening a communicator does: from the
// environment, then from the defaults. The error says which variable is wrong.
func (c Config) FromEnv() (Config, error) { return c.fill(os.Getenv) }

// From is FromEnv with another environment, which getenv gives as os.Getenv does: that of a
// program in C, for example, which has changed it since it loaded a library in Go.
func (c Config) From(getenv func(string) string) (Config, error) { return c.fill(getenv) }

// fill completes a Config from the environment and the defaults, and refuses what cannot
// be. getenv is os.Getenv but in tests.
func (c Config) fill(getenv func(string) string) (Config, error) {
	e := &variables{get: getenv}
	c.read(e)
	if e.err != nil {
		return c, e.err
	}
	for _, text := range e.odd {
		if _, said := told.LoadOrStore(text, true); !said {
			c.Log.Warn(text, "subsys", "ENV")
		}
	}
	return c, c.validate()
}

// A number is a field of a Config that is one, and the variables that give it.
type number struct {
	field       *int
	name        string
	dflt        int // instead of 0
	least, most int // that it may be, but 0
	variables   []string
}

// mostStreams keeps a wrong number from eating all descriptors. It is NCCL's bound too.
const mostStreams = 64

func (c *Config) numbers() []number {
	return []number{
		{&c.SlotBytes, "SlotBytes", 0, 64, 1 << 30, []string{"RINGO_SLOT_BYTES"}},
		{&c.Slots, "Slots", DefaultSlots, 2, 1 << 16, []string{"RINGO_SLOTS"}},
		{&c.Streams, "Streams", 0, 1, mostStreams, []string{"RINGO_SOCKET_STREAMS"}},
		{&c.Cores, "Cores", runtime.NumCPU(), 1, math.MaxInt, []string{"RINGO_CORES"}},
		{&c.MaxBlocks, "MaxBlocks", 0, 1, math.MaxInt, []string{"RINGO_MAX_CTAS", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"}},
		{&c.MinBlocks, "MinBlocks", 0, 1, math.MaxInt, []string{"RINGO_MIN_CTAS", "NCCL_MIN_CTAS"}},
		{&c.WorkFIFOBytes, "WorkFIFOBytes", DefaultWorkFIFOBytes, 1, 1 << 30, []string{"RINGO_WORK_FIFO_BYTES", "NCCL_WORK_FIFO_BYTES"}},
		{&c.WorkArgsBytes, "WorkArgsBytes", 0, 1, math.MaxInt, []string{"RINGO_WORK_ARGS_BYTES"}},
		{&c.ib.Timeout, "InfiniBand's timeout", 0, 1, 31, []string{"RINGO_IB_TIMEOUT", "NCCL_IB_TIMEOUT"}},
		{&c.ib.Retries, "InfiniBand's number of retries", 0, 1, 7, []string{"RINGO_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT"}},
		{&c.ib.TrafficClass, "InfiniBand's traffic class", 0, 1, 255, []string{"RINGO_IB_TC", "NCCL_IB_TC"}},
		{&c.ib.ServiceLevel, "InfiniBand's service level", 0, 1, 15, []string{"RINGO_IB_SL", "NCCL_IB_SL"}},
		{&c.ib.PKeyIndex, "the index of InfiniBand's partition key", 0, 1, math.MaxUint16, []string{"RINGO_IB_PKEY", "NCCL_IB_PKEY"}},
	}
}

// read takes fields that are zero from the environment, then from the defaults.
func (c *Config) read(e *variables) {
	for _, text := range []struct {
		field *string
		names []string
	}{
		{&c.Transport, []string{"RINGO_TRANSPORT"}},
		{&c.NetPlugin, []string{"RINGO_NET_PLUGIN", "NCCL_NET_PLUGIN"}},
		{&c.IBDevices, []string{"RINGO_IB_HCA", "NCCL_IB_HCA"}},
		{&c.Algo, []string{"RINGO_ALGO"}},
		{&c.Deterministic, []string{"RINGO_DETERMINISTIC"}},
		{&c.Plan, []string{"RINGO_PLAN"}},
		{&c.Interface, []string{"RINGO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}},
		{&c.SocketNetwork, []string{"RINGO_SOCKET_NETWORK"}},
		{&c.ShmDir, []string{"RINGO_SHM_DIR"}},
		{&c.TLSCert, []string{"RINGO_TLS_CERT"}},
		{&c.TLSKey, []string{"RINGO_TLS_KEY"}},
		{&c.TLSCA, []string{"RINGO_TLS_CA"}},
		{&c.History, []string{"RINGO_HISTORY"}},
		{&c.HistorySignal, []string{"RINGO_HISTORY_SIGNAL"}},
		{&c.HostID, []string{"RINGO_HOSTID", "NCCL_HOSTID"}},
		{&c.CUDALibrary, []string{"RINGO_CUDA_LIBRARY"}},
	} {
		if *text.field == "" {
			_, *text.field = e.first(text.names...)
		}
	}
	if c.Net == "" {
		c.from, c.Net = e.first("RINGO_NET", "NCCL_NET")
	}
	c.readNumbers(e)
	for _, duration := range []struct {
		field *time.Duration
		dflt  time.Duration
		name  string
	}{
		{&c.Timeout, DefaultTimeout, "RINGO_TIMEOUT"},
		{&c.JoinTimeout, DefaultJoinTimeout, "RINGO_JOIN_TIMEOUT"},
	} {
		if v := e.get(duration.name); *duration.field == 0 && v != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				e.wrong(duration.name, v, "a duration such as 90s or 5m")
			}
			*duration.field = d
		}
		*duration.field = cmp.Or(*duration.field, duration.dflt)
	}
	c.readSwitches(e)
	c.readOthers(e)
	if c.HostID == "" {
		c.HostID = paths.HostID()
	}
	c.Log = debugLog(c.Log, e)
}

func (c *Config) readNumbers(e *variables) {
	from := map[*int]string{} // the variable
	for _, n := range c.numbers() {
		if name, v := e.first(n.variables...); *n.field == 0 && v != "" {
			*n.field, from[n.field] = max(e.number(name, v, n.most), 0), name
		}
		*n.field = cmp.Or(*n.field, n.dflt)
	}
	if c.MaxBlocks > 0 && c.MinBlocks > c.MaxBlocks && (ofNCCL(from[&c.MinBlocks]) || ofNCCL(from[&c.MaxBlocks])) {
		e.odd = append(e.odd, fmt.Sprintf("NCCL_MIN_CTAS, NCCL_MAX_CTAS: at least %d blocks and at most %d are taken as %[2]d", c.MinBlocks, c.MaxBlocks))
		c.MinBlocks = c.MaxBlocks
	}
	if c.Streams == 0 {
		c.Streams = e.streams()
	}
}

// streams is how many sockets NCCL's threads would have together, 0 if that leaves the choice.
func (e *variables) streams() int {
	threads := e.number("NCCL_SOCKET_NTHREADS", e.get("NCCL_SOCKET_NTHREADS"), 16)
	each := e.number("NCCL_NSOCKS_PERTHREAD", e.get("NCCL_NSOCKS_PERTHREAD"), mostStreams)
	if threads < 1 && each < 1 {
		return 0
	}
	threads, each = max(threads, 1), max(each, 1)
	if threads*each > mostStreams {
		each = mostStreams / threads
		e.odd = append(e.odd, fmt.Sprintf("NCCL_NSOCKS_PERTHREAD is taken as %d: %d threads have at most %d sockets together", each, threads, mostStreams))
	}
	return threads * each
}

// readSwitches takes what is on or off.
func (c *Config) readSwitches(e *variables) {
	for _, toggle := range []struct {
		names []string
		yes   func(name string)
	}{
		{[]string{"RINGO_CHECK_POINTERS", "NCCL_CHECK_POINTERS"}, func(string) { c.CheckPointers = true }},
		{[]string{"RINGO_LAUNCH_ORDER_IMPLICIT", "NCCL_LAUNCH_ORDER_IMPLICIT"}, func(string) { c.LaunchOrder = true }},
		{[]string{"RINGO_P2P_DISABLE", "NCCL_P2P_DISABLE"}, func(name string) { c.noP2P = name + " is set" }},
		{[]string{"RINGO_IB_DISABLE", "NCCL_IB_DISABLE"}, func(name string) { c.ib.Disabled = name + " is set" }},
		{[]string{"RINGO_SHM_DISABLE", "NCCL_SHM_DISABLE"}, func(name string) {
			if c.Transport == "" {
				c.noSHM = name + " is set"
			}
		}},
	} {
		if name := e.on(toggle.names...); name != "" {
			toggle.yes(name)
		}
	}
	if mode := e.get("NCCL_CHECK_MODE"); strings.HasPrefix(mode, "DEBUG_") {
		c.CheckPointers = true
	}
	tls, err := setting.TLS(e.get("RINGO_TLS"), c.TLSCert, c.TLSKey, c.TLSCA)
	if err != nil {
		e.err = cmp.Or(e.err, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	c.TLS = c.TLS || tls
}

// readOthers takes what has words of its own.
func (c *Config) readOthers(e *variables) {
	if c.Algo == "" {
		c.Algo = algoOfNCCL(e.get("NCCL_ALGO"))
	}
	if name, v := e.first("RINGO_SOCKET_FAMILY", "NCCL_SOCKET_FAMILY"); c.Family == 0 && v != "" {
		if c.Family = map[string]int{"4": 4, "AF_INET": 4, "6": 6, "AF_INET6": 6}[strings.ToUpper(v)]; c.Family == 0 {
			e.wrong(name, v, "AF_INET or AF_INET6")
		}
	}
	if name, v := e.first("RINGO_CTA_POLICY", "NCCL_CTA_POLICY"); c.BlockPolicy == "" {
		c.BlockPolicy = strings.Join(e.words(name, v, "|", "default, efficiency, zero, or 0 to 3", func(word string) bool {
			_, err := choice.ParsePolicy(word)
			return err == nil
		}), "|")
	}
	if v := e.get("RINGO_LINES"); v != "" {
		if c.lines = v; v != "0" && v != "1" {
			e.wrong("RINGO_LINES", v, "0 or 1")
		}
	}
	if v := e.get("NCCL_DMABUF_ENABLE"); c.gdr.DMABuf == "" && v != "" {
		if n, _ := setting.NumberOfNCCL(v); n == 0 {
			c.gdr.DMABuf = "0"
		}
	}
	if c.gdr.Level == "" {
		c.gdr.Level = e.level("NCCL_NET_GDR_LEVEL")
	}
	if level := e.level("NCCL_P2P_LEVEL"); level == "LOC" {
		c.noP2P = "NCCL_P2P_LEVEL is " + level
	}
	if name, v := e.first("RINGO_IB_GID_INDEX", "NCCL_IB_GID_INDEX"); v != "" && v != "-1" {
		if n := e.number(name, v, math.MaxInt); n >= 0 { // below 0 it is NCCL's automatic
			c.ib.GIDIndex = &n
		}
	}
}

// ncclAlgorithms are the words of NCCL_ALGO, and what they are called here, if there is such a thing.
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
