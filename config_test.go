package ringo

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestConfigFill(t *testing.T) {
	c, err := Config{}.fill(environment())
	require.NoError(t, err)
	require.Equal(t, DefaultTimeout, c.Timeout)
	require.Equal(t, DefaultJoinTimeout, c.JoinTimeout)
	require.Equal(t, DefaultSlots, c.Slots)
	require.Zero(t, c.SlotBytes) // chosen when the ranks know where they are
	require.NotEmpty(t, c.HostID)

	c, err = Config{Slots: 4}.fill(environment("RINGO_SLOTS=16", "RINGO_SLOT_BYTES=64K", "RINGO_TIMEOUT=90s",
		"NCCL_ALGO=Tree",
		"NCCL_SOCKET_IFNAME=eth", "RINGO_SOCKET_IFNAME=^lo", "NCCL_SOCKET_FAMILY=AF_INET6", "NCCL_HOSTID=here",
		"NCCL_SHM_DISABLE=1", "NCCL_CHECK_POINTERS=1", "NCCL_MAX_CTAS=16", "RINGO_MIN_CTAS=4", "NCCL_CTA_POLICY=1",
		"NCCL_LAUNCH_ORDER_IMPLICIT=1", "RINGO_LINES=0"))
	require.NoError(t, err)
	require.Equal(t, 4, c.Slots) // what the program says comes first
	require.Equal(t, 64<<10, c.SlotBytes)
	require.Equal(t, 90*time.Second, c.Timeout)
	require.Equal(t, call.Tree, c.algo)
	require.Equal(t, "^lo", c.Interface) // our name comes before NCCL's
	require.Equal(t, 6, c.Family)
	require.Equal(t, "here", c.HostID)
	require.Empty(t, c.Transport)
	require.Equal(t, "NCCL_SHM_DISABLE is set", c.paths().NoSHM)
	require.True(t, c.CheckPointers)
	require.Equal(t, choice.Budget{Least: 4, Most: 16, Policy: choice.PolicyEfficiency}, c.choice().Budget)
	require.True(t, c.LaunchOrder)
	require.Equal(t, "0", c.lines)
	require.Equal(t, DefaultWorkFIFOBytes, c.WorkFIFOBytes)

	c, err = Config{}.fill(environment("NCCL_NET=IB,Socket", "NCCL_NET_PLUGIN=fast", "RINGO_IB_HCA==mlx5_0",
		"NCCL_IB_DISABLE=1",
		"NCCL_IB_GID_INDEX=3", "NCCL_IB_TIMEOUT=18", "NCCL_IB_RETRY_CNT=5", "NCCL_IB_TC=106", "RINGO_IB_SL=2",
		"NCCL_IB_PKEY=7"))
	require.NoError(t, err)
	pc := c.paths()
	require.Equal(t, []int{3, 18, 5, 106, 2, 7},
		[]int{*pc.Networking.IB.GIDIndex, pc.Networking.IB.Timeout, pc.Networking.IB.Retries, pc.Networking.IB.TrafficClass,
			pc.Networking.IB.ServiceLevel, pc.Networking.IB.PKeyIndex})
	require.Equal(t, []string{"IB,Socket", "NCCL_NET", "fast", "=mlx5_0", "NCCL_IB_DISABLE is set"},
		[]string{pc.Net, pc.NetFrom, pc.Plugins, pc.Networking.IB.HCA, pc.Networking.IB.Disabled})

	c, err = Config{}.fill(environment("NCCL_SOCKET_NTHREADS=2", "NCCL_NSOCKS_PERTHREAD=4"))
	require.NoError(t, err)
	require.Equal(t, 8, c.Streams)
	for vars, want := range map[string]string{"": "off", "RINGO_TLS=0": "off", "RINGO_TLS=1": "by the job's key"} {
		c, err = Config{}.fill(environment(vars))
		require.NoError(t, err)
		require.Equal(t, want, c.Encryption())
	}
	_, err = Config{}.fill(environment("RINGO_TLS_CERT=cert.pem"))
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "RINGO_TLS_KEY is missing")

	c, err = Config{}.fill(environment("NCCL_WORK_FIFO_BYTES=65536", "RINGO_WORK_ARGS_BYTES=1"))
	require.NoError(t, err)
	require.Equal(t, 64<<10, c.WorkFIFOBytes)
	require.Equal(t, 1, c.WorkArgsBytes)
	c, err = Config{}.fill(environment("RINGO_WORK_FIFO_BYTES=1", "NCCL_WORK_FIFO_BYTES=64K"))
	require.NoError(t, err)
	require.Equal(t, 1, c.WorkFIFOBytes)

	for _, bad := range []string{"RINGO_SLOTS=x", "RINGO_SLOTS=1", "RINGO_SLOT_BYTES=65", "RINGO_TIMEOUT=soon",
		"RINGO_TIMEOUT=-1s",
		"RINGO_ALGO=quantum", "RINGO_SOCKET_FAMILY=5", "RINGO_DEBUG=LOUD", "RINGO_WORK_FIFO_BYTES=2G",
		"RINGO_WORK_FIFO_BYTES=many", "RINGO_SLOT_BYTES=9999999999G", "RINGO_LINES=2", "RINGO_MAX_CTAS=few",
		"RINGO_MIN_CTAS=-2", "RINGO_CTA_POLICY=none",
		"RINGO_IB_TIMEOUT=32", "RINGO_IB_RETRY_CNT=8", "RINGO_IB_GID_INDEX=x", "RINGO_SOCKET_STREAMS=65",
		"RINGO_SOCKET_NETWORK=x", "RINGO_CORES=x", "RINGO_DEBUG_SUBSYS=NET,COSTS"} {
		_, err := Config{}.fill(environment(bad))
		require.ErrorIs(t, err, ErrInvalid, bad)
		if name, _, _ := strings.Cut(bad, "="); strings.Contains(name, "_CTA") {
			require.ErrorContains(t, err, name)
		}
	}
}

// What cannot be is refused before the ranks meet, and not where it is used.
func TestConfigFields(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for words, cfg := range map[string]Config{
		"Family (RINGO_SOCKET_FAMILY) is 5, want 4, 6 or 0":            {Family: 5},
		"Streams (RINGO_SOCKET_STREAMS) is -1, want 1…64":              {Streams: -1},
		"Streams (RINGO_SOCKET_STREAMS) is 1000, want 1…64":            {Streams: 1000},
		`SocketNetwork (RINGO_SOCKET_NETWORK) is "x", want tcp, unix`:  {SocketNetwork: "x"},
		"Cores (RINGO_CORES) is -3, want 1 or more":                    {Cores: -3},
		"HostMbps (RINGO_HOST_MBPS) is -1, want 1 or more":             {HostMbps: -1},
		"MaxBlocks (RINGO_MAX_CTAS) is -1, want 1 or more":             {MaxBlocks: -1},
		"SlotBytes (RINGO_SLOT_BYTES) is 100, want a multiple of 64":   {SlotBytes: 100},
		"Slots (RINGO_SLOTS) is 1, want 2…65536":                       {Slots: 1},
		"Timeout (RINGO_TIMEOUT) is -1ns, want more than 0":            {Timeout: -1},
		"JoinTimeout (RINGO_JOIN_TIMEOUT) is -1ns":                     {JoinTimeout: -1},
		`HistorySignal (RINGO_HISTORY_SIGNAL) is "FOO", want a signal`: {HistorySignal: "FOO"},
		`HistorySignal (RINGO_HISTORY_SIGNAL) is "KILL", want a signal`: {HistorySignal: "KILL",
			History: t.TempDir()},
		"History (RINGO_HISTORY): want a folder that can be written: mkdir " + file: {History: filepath.Join(file, "folder")},
	} {
		_, err := OpenLocal(2, cfg)
		require.ErrorIs(t, err, ErrInvalid, words)
		require.ErrorContains(t, err, words)
	}
}

// The folder of histories is tried and left as it was. It is made if it is not there; a mistyped path is not.
func TestConfigHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	_, err := Config{}.fill(environment("RINGO_HISTORY=" + dir))
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "History (RINGO_HISTORY): there is no folder "+filepath.Dir(dir)+
		" to make folder in: make it, or correct the path")
	require.NoDirExists(t, filepath.Dir(dir))
	require.NoError(t, os.Mkdir(filepath.Dir(dir), 0o700))
	for range 2 { // whether it is there or not
		_, err = Config{}.fill(environment("RINGO_HISTORY=" + dir))
		require.NoError(t, err)
		sharedBy.In(nil).writable.Delete(dir)
	}
	_, err = Config{}.fill(environment("RINGO_HISTORY=" + dir))
	require.NoError(t, err)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	_, err = Config{}.fill(environment("RINGO_HISTORY=" + dir))
	require.NoError(t, err, "a folder that has failed later keeps nobody from going on")
}

// What kernels may have of the GPU: the program's word comes before the environment's.
func TestConfigBudget(t *testing.T) {
	c, err := Config{BlockPolicy: "zero", MinBlocks: 2}.fill(environment("NCCL_CTA_POLICY=EFFICIENCY", "NCCL_MIN_CTAS=8",
		"NCCL_MAX_CTAS=32"))
	require.NoError(t, err)
	require.Equal(t, choice.Budget{Least: 2, Most: 32, Policy: choice.PolicyZero}, c.choice().Budget)
	_, err = Config{}.fill(environment("RINGO_MIN_CTAS=33", "RINGO_MAX_CTAS=32"))
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "MinBlocks (RINGO_MIN_CTAS) is 33 and MaxBlocks (RINGO_MAX_CTAS) 32")
	_, err = Config{BlockPolicy: "thrift"}.fill(environment())
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "RINGO_CTA_POLICY")
}

// A network that is insisted on and is not here is an error, also where no rank needs one.
func TestConfigNoNetwork(t *testing.T) {
	_, err := OpenLocal(2, Config{Net: "pigeon"})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "no network: Config.Net asks for pigeon alone: not pigeon (ranks 0 to 1 on ")
	require.ErrorContains(t, err, "Config.Net=pigeon,socket")
	comms, err := OpenLocal(2, Config{Net: "pigeon,Socket"})
	require.NoError(t, err)
	require.Contains(t, comms[1].Paths()[0], "network socket (this host); not pigeon (ranks 0 to 1 on ")
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
}

func TestDebugLog(t *testing.T) {
	lines := func(env ...string) string {
		file := filepath.Join(t.TempDir(), "log.%p")
		c, err := Config{}.fill(environment(append(env, "RINGO_DEBUG_FILE="+file)...))
		require.NoError(t, err)
		log := c.Log.With("rank", 3)
		log.Info("one", "subsys", "INIT")
		log.With("subsys", "NET").Info("two")
		log.Debug("three", "subsys", "CALL")
		log.Warn("four", "subsys", "SHM")
		b, err := os.ReadFile(debugFile(file))
		require.NoError(t, err)
		var seen []string
		for _, word := range []string{"one", "two", "three", "four"} {
			if bytes.Contains(b, []byte("msg="+word)) {
				seen = append(seen, word)
			}
		}
		return strings.Join(seen, " ")
	}
	require.Equal(t, "four", lines())
	require.Equal(t, "four", lines("NCCL_DEBUG=WARN"))
	require.Equal(t, "one four", lines("RINGO_DEBUG=INFO"))
	require.Equal(t, "two four", lines("RINGO_DEBUG=info", "RINGO_DEBUG_SUBSYS=NET,COLL"))
	require.Equal(t, "two four", lines("RINGO_DEBUG=INFO", "RINGO_DEBUG_SUBSYS=^INIT"))
	require.Equal(t, "one two three four", lines("NCCL_DEBUG=TRACE"))
}

// The file of the log is opened once, however many communicators there are.
func TestDebugFileOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts descriptors in /proc")
	}
	file := filepath.Join(t.TempDir(), "log")
	const n = 20
	logs := make([]*slog.Logger, n) // kept, so that no collector closes their files
	for i := range logs {
		c, err := Config{}.fill(environment("RINGO_DEBUG_FILE=" + file))
		require.NoError(t, err)
		logs[i] = c.Log
		logs[i].Warn("here")
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	ours, err := os.Stat(file)
	require.NoError(t, err)
	open := 0
	for _, d := range descriptors {
		if f, err := os.Stat("/proc/self/fd/" + d.Name()); err == nil && os.SameFile(f, ours) {
			open++
		}
	}
	require.Equal(t, 1, open)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, n, strings.Count(string(text), "msg=here"))
	runtime.KeepAlive(logs)
}

// A program's own log receives what RINGO_DEBUG asks for, calls included, by part.
func TestDebugOwnLog(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want bool
	}{
		{[]string{"RINGO_DEBUG=TRACE"}, true},
		{[]string{"RINGO_DEBUG=TRACE", "RINGO_DEBUG_SUBSYS=CALL"}, true},
		{[]string{"RINGO_DEBUG=TRACE", "RINGO_DEBUG_SUBSYS=^CALL"}, false},
		{[]string{"RINGO_DEBUG=INFO"}, false},
		{nil, false},
	} {
		var text bytes.Buffer
		cfg, err := Config{Log: slog.New(slog.NewTextHandler(&text, nil))}.fill(environment(tc.env...))
		require.NoError(t, err)
		c, err := open(t.Context(), cfg, bootstrap.Local(1)[0])
		require.NoError(t, err)
		require.NoError(t, Barrier(c))
		require.NoError(t, c.Close())
		require.Equal(t, tc.want, strings.Contains(text.String(), "Barrier()"), "%v: %s", tc.env, &text)
	}
	_, err := Config{}.fill(environment("RINGO_DEBUG=TRACE", "RINGO_DEBUG_SUBSYS=CALLS"))
	require.ErrorContains(t, err, "RINGO_DEBUG_SUBSYS")
}

func TestAlgoOfNCCL(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "Ring": "ring", "tree": "tree", "ring,tree": "", "^tree": "", "NVLS": "", " ring ": "ring",
		"ring;allreduce:tree": "ring", "allreduce:tree": "", "allreduce:^ring,nvls;tree": "tree", "oneshot": "oneshot",
		"tree;allreduce:fast": "tree;allreduce:fast",
	} {
		require.Equal(t, want, algoOfNCCL(value), "%q", value)
	}
	c, err := Config{}.From(func(name string) string {
		return map[string]string{"NCCL_ALGO": "^NVLS,Tree", "NCCL_PROTO": "LL,LL128"}[name]
	})
	require.NoError(t, err)
	require.Empty(t, c.Algo)
	_, err = Config{}.From(func(name string) string { return map[string]string{"NCCL_ALGO": "fast"}[name] })
	require.ErrorContains(t, err, "fast")
}

func TestNCCLLevels(t *testing.T) {
	from := func(variables ...string) Config {
		c, err := Config{}.fill(environment(variables...))
		require.NoError(t, err)
		return c
	}
	require.Equal(t, "NCCL_P2P_LEVEL is LOC", from("NCCL_P2P_LEVEL=LOC").noP2P)
	require.Empty(t, from("NCCL_P2P_LEVEL=NVL").noP2P)
	direct := from("NCCL_NET_GDR_LEVEL=PIX", "NCCL_DMABUF_ENABLE=0")
	require.Equal(t, paths.GDR{DMABuf: "0", Level: "PIX"}, direct.paths().GDR)
	require.Equal(t, 16, from("NCCL_MAX_NCHANNELS=16").MaxBlocks)
	require.True(t, from("NCCL_CHECK_MODE=DEBUG_LOCAL").CheckPointers)
	require.False(t, from("NCCL_CHECK_MODE=DEFAULT").CheckPointers)
}

func TestNewIDByInterface(t *testing.T) {
	t.Setenv("NCCL_SOCKET_IFNAME", "lo")
	id, err := NewID("")
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	host, _, err := net.SplitHostPort(id.Addr())
	require.NoError(t, err)
	require.True(t, net.ParseIP(host).IsLoopback(), host)
	t.Setenv("NCCL_SOCKET_IFNAME", "=nosuchinterface")
	_, err = NewID("")
	require.ErrorContains(t, err, `no interface named "=nosuchinterface"`)
}

// Our own switches say yes or no, and nothing else.
func TestSwitches(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "true": true, "Yes": true, "on": true, "0": false, "false": false,
		"NO": false, "off": false} {
		c, err := Config{}.fill(environment("RINGO_TLS="+value, "RINGO_CHECK_POINTERS="+value, "RINGO_SHM_DISABLE="+value,
			"RINGO_IB_DISABLE="+value))
		require.NoError(t, err, value)
		require.Equal(t, []bool{want, want, want, want}, []bool{c.TLS, c.CheckPointers, c.noSHM != "", c.ib.Disabled != ""},
			value)
	}
	for _, name := range []string{"RINGO_TLS", "RINGO_P2P_DISABLE", "RINGO_LAUNCH_ORDER_IMPLICIT"} {
		_, err := Config{}.fill(environment(name + "=perhaps"))
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, name+`="perhaps"`)
	}
	c, err := Config{}.fill(environment("RINGO_TLS=off", "RINGO_TLS_CA=ca.pem"))
	require.NoError(t, err)
	require.False(t, c.TLS)
}

// Variables of NCCL are read as there, where nothing is an error, and the log says once what is odd about them.
func TestVariablesOfNCCL(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none", "x")
	for _, test := range []struct {
		env  string
		get  func(c Config) any
		want any
		odd  string
	}{
		{"NCCL_WORK_FIFO_BYTES=0x100000", func(c Config) any { return c.WorkFIFOBytes }, 1 << 20, ""},
		{"NCCL_WORK_FIFO_BYTES=9999999999", func(c Config) any { return c.WorkFIFOBytes }, 1 << 30, "taken as 1073741824"},
		{"NCCL_MAX_CTAS=2 NCCL_MIN_CTAS=64", func(c Config) any { return []int{c.MinBlocks, c.MaxBlocks} }, []int{2, 2},
			"at least 64 blocks and at most 2 are taken as 2"},
		{"NCCL_MAX_CTAS=2 RINGO_MIN_CTAS=64", func(c Config) any { return []int{c.MinBlocks, c.MaxBlocks} }, []int{2, 2},
			"are taken as 2"},
		{"NCCL_MAX_CTAS=-5", func(c Config) any { return c.MaxBlocks }, 0, ""},
		{"NCCL_SHM_DISABLE=true", func(c Config) any { return c.noSHM }, "", "want 0 or 1"},
		{"NCCL_P2P_DISABLE=_1", func(c Config) any { return c.noP2P }, "NCCL_P2P_DISABLE is set", ""},
		{"NCCL_SOCKET_NTHREADS=word", func(c Config) any { return c.Streams }, 0, "want a number"},
		{"NCCL_SOCKET_NTHREADS=-2 NCCL_NSOCKS_PERTHREAD=3", func(c Config) any { return c.Streams }, 3, ""},
		{"NCCL_SOCKET_NTHREADS=99", func(c Config) any { return c.Streams }, 16, "taken as 16"},
		{"NCCL_SOCKET_NTHREADS=7 NCCL_NSOCKS_PERTHREAD=10", func(c Config) any { return c.Streams }, 63,
			"NCCL_NSOCKS_PERTHREAD is taken as 9"},
		{"NCCL_NSOCKS_PERTHREAD=100", func(c Config) any { return c.Streams }, 64, "taken as 64"},
		{"NCCL_IB_TC=-1", func(c Config) any { return c.ib.TrafficClass }, 0, ""},
		{"NCCL_IB_TIMEOUT=32", func(c Config) any { return c.ib.Timeout }, 31, "taken as 31"},
		{"NCCL_IB_GID_INDEX=_-2", func(c Config) any { return c.ib.GIDIndex == nil }, true, ""},
		{"NCCL_IB_GID_INDEX=best", func(c Config) any { return c.ib.GIDIndex == nil }, true, "want a number"},
		{"NCCL_DMABUF_ENABLE=0x0", func(c Config) any { return c.gdr.DMABuf }, "0", ""},
		{"NCCL_NET_GDR_LEVEL=0x4", func(c Config) any { return c.gdr.Level }, "SYS", ""},
		{"NCCL_NET_GDR_LEVEL=NEAR", func(c Config) any { return c.gdr.Level }, "",
			`NCCL_NET_GDR_LEVEL="NEAR": want LOC, PIX, PXB, PHB, SYS or its number; it has no effect`},
		{"NCCL_P2P_LEVEL=0", func(c Config) any { return c.noP2P }, "NCCL_P2P_LEVEL is LOC", ""},
		{"NCCL_P2P_LEVEL=FAR", func(c Config) any { return c.noP2P }, "", "want LOC, PIX"},
		{"NCCL_SOCKET_FAMILY=AF_UNIX", func(c Config) any { return c.Family }, 0, "want AF_INET or AF_INET6"},
		{"NCCL_CTA_POLICY=4", func(c Config) any { return c.policy }, choice.PolicyDefault,
			"want default, latency, efficiency"},
		{"NCCL_CTA_POLICY=FOO|ZERO", func(c Config) any { return c.policy }, choice.PolicyZero, `NCCL_CTA_POLICY="FOO"`},
		{"NCCL_DEBUG_FILE=" + none, func(c Config) any { return c.Log != nil }, true, "NCCL_DEBUG_FILE"},
		{"NCCL_DEBUG=LOUD", func(c Config) any { return c.Log.Enabled(t.Context(), slog.LevelInfo) }, false,
			"want NONE, VERSION, WARN"},
		{"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALLOC_HOST,DESTROY,,net,FOO",
			func(c Config) any { return c.Log.Handler().(*subsysHandler).names },
			map[string]bool{"ALLOC_HOST": true, "DESTROY": true, "NET": true}, `NCCL_DEBUG_SUBSYS="FOO": want a list of`},
		{"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=FOO", func(c Config) any { return c.Log.Handler().(*subsysHandler).names },
			map[string]bool{"INIT": true, "BOOTSTRAP": true, "ENV": true}, `NCCL_DEBUG_SUBSYS="FOO"`},
	} {
		sharedBy.In(nil).told.Clear()
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		env := strings.Fields(test.env)
		for i := range env {
			env[i] = strings.ReplaceAll(env[i], "=_", "= ")
		}
		stderr := os.Stderr
		os.Stderr = log
		var c Config
		for range 2 {
			c, err = Config{}.fill(environment(env...))
		}
		os.Stderr = stderr
		require.NoError(t, err, test.env)
		require.Equal(t, test.want, test.get(c), test.env)
		text, err := os.ReadFile(log.Name())
		require.NoError(t, errors.Join(err, log.Close()))
		if test.odd == "" {
			require.Empty(t, string(text), test.env)
			continue
		}
		require.Contains(t, strings.ReplaceAll(string(text), `\"`, `"`), test.odd, test.env)
		require.Equal(t, 1, strings.Count(string(text), "\n"), "%s: once: %s", test.env, text)
	}
	for _, own := range []string{"RINGO_MAX_CTAS=2 RINGO_MIN_CTAS=64", "RINGO_DEBUG_FILE=" + none,
		"RINGO_SOCKET_FAMILY=AF_UNIX"} {
		_, err := Config{}.fill(environment(strings.Fields(own)...))
		require.ErrorIs(t, err, ErrInvalid)
		name, _, _ := strings.Cut(own, "=")
		require.ErrorContains(t, err, name)
	}
}
