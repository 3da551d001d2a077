package ringo

import (
	"cmp"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/internal/setting"
)

// variables give the values of environment variables. This file and bootstrap.FromEnv are the only
// places of the library that read them.
type variables struct{ get func(string) string }

// first is the first of the names that is set, with its value; both are empty if none is.
func (e variables) first(names ...string) (name, value string) {
	for _, n := range names {
		if v := e.get(n); v != "" {
			return n, v
		}
	}
	return "", ""
}

// on is the first of the names that is set, if it says yes.
func (e variables) on(names ...string) (string, error) {
	name, v := e.first(names...)
	switch {
	case v == "":
		return "", nil
	case ofNCCL(name):
		if setting.NumberOfNCCL(v) == 0 {
			return "", nil
		}
		return name, nil
	}
	switch yes, ok := setting.On(v); {
	case !ok:
		return "", unreadable(name, v, setting.OnWords)
	case yes:
		return name, nil
	}
	return "", nil
}

// integer reads a value: of a variable of our own as it must be, of NCCL's as NCCL does, where a number below 0 leaves
// the choice.
func integer(name, v string) (int, error) {
	if ofNCCL(name) {
		return max(setting.NumberOfNCCL(v), 0), nil
	}
	n, err := choice.ParseSize(v)
	if err != nil {
		return 0, unreadable(name, v, "a number")
	}
	return n, nil
}

// ofNCCL reports whether a variable is NCCL's. Programs and clusters set those without us in mind, so they are read
// as there, and what cannot be read is no error.
func ofNCCL(name string) bool { return strings.HasPrefix(name, "NCCL_") }

// FromEnv completes a Config as opening a communicator does: from the
// environment, then from the defaults. The error says which variable is wrong.
func (c Config) FromEnv() (Config, error) { return c.fill(os.Getenv) }

// From is FromEnv with another environment, which getenv gives as os.Getenv does: that of a
// program in C, for example, which has changed it since it loaded a library in Go.
func (c Config) From(getenv func(string) string) (Config, error) { return c.fill(getenv) }

// fill completes a Config from the environment and the defaults, and refuses what cannot
// be. getenv is os.Getenv but in tests.
func (c Config) fill(getenv func(string) string) (Config, error) {
	if err := c.read(variables{getenv}); err != nil {
		return c, err
	}
	return c, c.validate()
}

// read takes fields that are zero from the environment, then from the defaults.
func (c *Config) read(e variables) error {
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
	for _, number := range []struct {
		field *int
		dflt  int
		names []string
	}{
		{&c.SlotBytes, 0, []string{"RINGO_SLOT_BYTES"}},
		{&c.Slots, DefaultSlots, []string{"RINGO_SLOTS"}},
		{&c.Streams, 0, []string{"RINGO_SOCKET_STREAMS"}},
		{&c.Cores, runtime.NumCPU(), []string{"RINGO_CORES"}},
		{&c.MaxBlocks, 0, []string{"RINGO_MAX_CTAS", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"}},
		{&c.MinBlocks, 0, []string{"RINGO_MIN_CTAS", "NCCL_MIN_CTAS"}},
		{&c.WorkFIFOBytes, DefaultWorkFIFOBytes, []string{"RINGO_WORK_FIFO_BYTES", "NCCL_WORK_FIFO_BYTES"}},
		{&c.WorkArgsBytes, 0, []string{"RINGO_WORK_ARGS_BYTES"}},
		{&c.ib.Timeout, 0, []string{"RINGO_IB_TIMEOUT", "NCCL_IB_TIMEOUT"}},
		{&c.ib.Retries, 0, []string{"RINGO_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT"}},
		{&c.ib.TrafficClass, 0, []string{"RINGO_IB_TC", "NCCL_IB_TC"}},
		{&c.ib.ServiceLevel, 0, []string{"RINGO_IB_SL", "NCCL_IB_SL"}},
	} {
		if name, v := e.first(number.names...); *number.field == 0 && v != "" {
			n, err := integer(name, v)
			if err != nil {
				return err
			}
			*number.field = n
		}
		*number.field = cmp.Or(*number.field, number.dflt)
	}
	if name, v := e.first("RINGO_MIN_CTAS", "NCCL_MIN_CTAS"); ofNCCL(name) && c.MaxBlocks > 0 && c.MinBlocks == setting.NumberOfNCCL(v) {
		c.MinBlocks = min(c.MinBlocks, c.MaxBlocks)
	}
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
				return unreadable(duration.name, v, "a duration such as 90s or 5m")
			}
			*duration.field = d
		}
		*duration.field = cmp.Or(*duration.field, duration.dflt)
	}
	return c.readOthers(e)
}

// readOthers takes what is neither text nor a number nor a time.
func (c *Config) readOthers(e variables) (err error) {
	if c.Algo == "" {
		c.Algo = algoOfNCCL(e.get("NCCL_ALGO"))
	}
	if c.Family == 0 {
		switch name, v := e.first("RINGO_SOCKET_FAMILY", "NCCL_SOCKET_FAMILY"); strings.ToUpper(v) {
		case "":
		case "4", "AF_INET":
			c.Family = 4
		case "6", "AF_INET6":
			c.Family = 6
		default:
			return unreadable(name, v, "AF_INET or AF_INET6")
		}
	}
	if c.Streams == 0 {
		if c.Streams, err = e.product("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"); err != nil {
			return err
		}
	}
	if name, v := e.first("RINGO_CTA_POLICY", "NCCL_CTA_POLICY"); c.BlockPolicy == "" {
		if _, err := choice.ParsePolicy(v); err != nil {
			return unreadable(name, v, "default, efficiency, zero, or 0 to 3")
		}
		c.BlockPolicy = v
	}
	for _, toggle := range []struct {
		names []string
		yes   func(name string)
	}{
		{[]string{"RINGO_CHECK_POINTERS", "NCCL_CHECK_POINTERS"}, func(string) { c.CheckPointers = true }},
		{[]string{"RINGO_LAUNCH_ORDER_IMPLICIT", "NCCL_LAUNCH_ORDER_IMPLICIT"}, func(string) { c.LaunchOrder = true }},
		{[]string{"RINGO_TLS"}, func(string) { c.TLS = true }},
		{[]string{"RINGO_P2P_DISABLE", "NCCL_P2P_DISABLE"}, func(name string) { c.noP2P = name + " is set" }},
		{[]string{"RINGO_IB_DISABLE", "NCCL_IB_DISABLE"}, func(name string) { c.ib.Disabled = name + " is set" }},
		{[]string{"RINGO_SHM_DISABLE", "NCCL_SHM_DISABLE"}, func(name string) {
			if c.Transport == "" {
				c.noSHM = name + " is set"
			}
		}},
	} {
		if name, err := e.on(toggle.names...); err != nil {
			return err
		} else if name != "" {
			toggle.yes(name)
		}
	}
	if mode := e.get("NCCL_CHECK_MODE"); strings.HasPrefix(mode, "DEBUG_") {
		c.CheckPointers = true
	}
	if c.TLSCert+c.TLSKey+c.TLSCA != "" && e.get("RINGO_TLS") == "" {
		c.TLS = true
	}
	if err := c.readPaths(e); err != nil {
		return err
	}
	if c.HostID == "" {
		c.HostID = paths.HostID()
	}
	c.Log, err = debugLog(c.Log, e.first)
	return err
}

// readPaths takes what says which paths there are between ranks, and how they are used.
func (c *Config) readPaths(e variables) error {
	c.gdr = paths.GDR{DMABuf: cmp.Or(c.gdr.DMABuf, e.get("NCCL_DMABUF_ENABLE")), Level: cmp.Or(c.gdr.Level, e.get("NCCL_NET_GDR_LEVEL"))}
	switch v := e.get("RINGO_LINES"); v {
	case "":
	case "0", "1":
		c.lines = v
	default:
		return unreadable("RINGO_LINES", v, "0 or 1")
	}
	if level := e.get("NCCL_P2P_LEVEL"); level == "0" || strings.EqualFold(level, "LOC") {
		c.noP2P = "NCCL_P2P_LEVEL is " + level
	}
	if name, v := e.first("RINGO_IB_GID_INDEX", "NCCL_IB_GID_INDEX"); v != "" && v != "-1" && (!ofNCCL(name) || setting.NumberOfNCCL(v) >= 0) { // below 0 it is NCCL's automatic
		n, err := integer(name, v)
		if err != nil {
			return err
		}
		c.ib.GIDIndex = &n
	}
	return nil
}

// product is that of the numbers that are set, and 0 if none is.
func (e variables) product(names ...string) (p int, err error) {
	for _, name := range names {
		v := e.get(name)
		if v == "" {
			continue
		}
		n, err := integer(name, v)
		if err != nil {
			return 0, err
		}
		if n > 0 { // 0 and -1 are NCCL's automatic
			p = max(p, 1) * n
		}
	}
	return p, nil
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
