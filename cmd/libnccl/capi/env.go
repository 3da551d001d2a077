package capi

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/setting"
)

// env are the environment variables of the library itself. Those of communicators are read by
// ringo.Config. This is the only file of the package that names variables.
type env struct{ get func(string) string }

// Settings of the process: a change has no effect once they have been read.
const (
	driver, files      = "RINGO_CUDA_LIBRARY", "NCCL_CONF_FILE"
	rasAddr, rasFactor = "NCCL_RAS_ADDR", "NCCL_RAS_TIMEOUT_FACTOR"
)

// systemConf is the file of settings of a machine.
const systemConf = "/etc/nccl.conf"

// ReadFiles puts the settings of NCCL's files into the environment where they are not set: those of NCCL_CONF_FILE, or
// else of .nccl.conf in the user's home, then those of /etc/nccl.conf. Plugins see them too, as with NCCL. Call it
// once, before a setting is read; only ncclGetVersion, which does not start Go's runtime, reads settings without it.
// The trap: C's getenv must not run in another thread meanwhile.
func ReadFiles(lookup func(name string) (string, bool), set func(name, value string) error) {
	for _, file := range confFiles(lookup, user.Current) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the file need not exist
		}
		for name, value := range setting.Conf(string(text)) {
			if _, is := lookup(name); !is {
				_ = set(name, value) // fails for a name or value that no environment can hold
			}
		}
	}
}

// confFiles are the files of settings, the one that counts most first.
func confFiles(lookup func(string) (string, bool), who func() (*user.User, error)) []string {
	if file, _ := lookup(files); file != "" {
		return []string{file, systemConf}
	}
	home, _ := lookup("HOME")
	if u, err := who(); err == nil && u.HomeDir != "" {
		home = u.HomeDir
	}
	if home == "" {
		return []string{systemConf}
	}
	return []string{filepath.Join(home, ".nccl.conf"), systemConf}
}

// defaultVersion is NCCL 2.28.9, which PyTorch 2.11 brings.
const defaultVersion = 22809

// version is RINGO_NCCL_VERSION, as 2.30.7 or 23007.
func (e env) version() (int, error) {
	text := e.get("RINGO_NCCL_VERSION")
	if text == "" {
		return defaultVersion, nil
	}
	bad := fmt.Errorf("%w: RINGO_NCCL_VERSION=%q: want a version such as 2.30.7 or 23007", ringo.ErrInvalid, text)
	parts := strings.Split(text, ".")
	if len(parts) == 1 {
		v, err := strconv.Atoi(text)
		if err != nil || v < 20000 || v > 99999 {
			return 0, bad
		}
		return v, nil
	}
	if len(parts) != 3 {
		return 0, bad
	}
	v := 0
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 99 {
			return 0, bad
		}
		v = 100*v + n
	}
	return v, nil
}

// check refuses wrong values of the library's own variables.
func (e env) check() error {
	if v := e.get("RINGO_HOST"); v != "" {
		if _, ok := setting.On(v); !ok {
			return fmt.Errorf("%w: RINGO_HOST=%q: want %s", ringo.ErrInvalid, v, setting.OnWords)
		}
	}
	_, err := e.version()
	return err
}

// host is RINGO_HOST: buffers are host memory.
func (e env) host() bool {
	yes, _ := setting.On(e.get("RINGO_HOST"))
	return yes
}

// gpus are the options of package gpu: the driver of RINGO_CUDA_LIBRARY, or the usual one. RINGO_EMULATE has no effect
// here; it is for the driver of cmd/libcuda, which the program under test uses too.
func (e env) gpus() gpu.Options { return gpu.Options{Library: e.get(driver)} }

// hint tells the user how to go on without a GPU.
func (e env) hint() string {
	v := e.get("RINGO_EMULATE")
	if yes, ok := setting.On(v); v != "" && (yes || !ok) { // not ok: a number of GPUs
		return "RINGO_EMULATE is for the libcuda.so.1 that scripts/libcuda builds: put its folder into LD_LIBRARY_PATH, or " +
			"its name into RINGO_CUDA_LIBRARY"
	}
	return "for collectives on host memory set RINGO_HOST=1"
}

// blocking is NCCL_COMM_BLOCKING, which overrides the program's choice, said.
func (e env) blocking(said bool, log *slog.Logger) bool {
	v := e.get("NCCL_COMM_BLOCKING")
	if v == "" {
		return said
	}
	n, ok := setting.NumberOfNCCL(v)
	if !ok || n != 0 && n != 1 {
		log.Warn(fmt.Sprintf("NCCL_COMM_BLOCKING=%q is neither 0 nor 1: it has no effect", v))
		return said
	}
	return n == 1
}

// saysTimeout and saysJoinTimeout report whether the environment bounds operations and meetings.
func (e env) saysTimeout() bool     { return e.get("RINGO_TIMEOUT") != "" }
func (e env) saysJoinTimeout() bool { return e.get("RINGO_JOIN_TIMEOUT") != "" }

// meeting is NCCL_COMM_ID: host:port of rank 0, whose process serves the meeting there in place of
// the process that makes the unique ID. secret is RINGO_COMM_SECRET; without a secret anyone who
// reaches the port and knows this rule can join.
func (e env) meeting() (addr, secret string) {
	if addr = e.get("NCCL_COMM_ID"); addr == "" {
		return "", ""
	}
	if secret = e.get("RINGO_COMM_SECRET"); secret == "" {
		secret = "NCCL_COMM_ID " + addr
	}
	return addr, secret
}

// debug is RINGO_DEBUG and RINGO_DEBUG_FILE, or NCCL's variables. ringo.Config checks the level.
func (e env) debug() (level, file string) {
	return cmp.Or(e.get("RINGO_DEBUG"), e.get("NCCL_DEBUG")), cmp.Or(e.get("RINGO_DEBUG_FILE"), e.get("NCCL_DEBUG_FILE"))
}

// ras is NCCL_RAS_ENABLE: whether questions of NCCL's RAS are answered. As with NCCL, 1 and nothing say yes.
func (e env) ras() bool {
	v := e.get("NCCL_RAS_ENABLE")
	n, ok := setting.NumberOfNCCL(v)
	return v == "" || ok && n == 1
}

// rasOptions are NCCL_RAS_ADDR, where clients ask, and NCCL_RAS_TIMEOUT_FACTOR, by which the processes wait longer for
// each other.
func (e env) rasOptions() (addr string, factor int) {
	n, _ := setting.NumberOfNCCL(e.get(rasFactor))
	return e.get(rasAddr), min(max(n, 1), 1000)
}

// nvml is a GPU's number in the driver's tools, which CUDA_VISIBLE_DEVICES does not renumber.
func (e env) nvml(device int) int {
	visible := strings.Split(e.get("CUDA_VISIBLE_DEVICES"), ",")
	if device < len(visible) {
		if n, err := strconv.Atoi(strings.TrimSpace(visible[device])); err == nil && n >= 0 && n < 1<<10 {
			return n
		}
	}
	return device
}

// emulateNote adds a sentence to the report of ringo emulate, if the program runs under it.
func emulateNote(text string) {
	f, err := os.OpenFile(os.Getenv("RINGO_EMULATE_REPORT"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // it does not
	}
	defer f.Close()
	_, _ = fmt.Fprintf(f, "{\"note\":%q}\n", text) // of one line, in ASCII, which Go quotes as JSON does
}

// parameterNames are the variables of NCCL that the library and ringo.Config read.
var parameterNames = []string{
	"NCCL_ALGO", "NCCL_CHECK_MODE", "NCCL_CHECK_POINTERS", "NCCL_COMM_BLOCKING", "NCCL_COMM_ID", "NCCL_CONF_FILE",
	"NCCL_CTA_POLICY", "NCCL_DEBUG",
	"NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_DMABUF_ENABLE", "NCCL_HOSTID", "NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX",
	"NCCL_IB_HCA", "NCCL_IB_PKEY", "NCCL_IB_RETRY_CNT", "NCCL_IB_SL",
	"NCCL_IB_TC", "NCCL_IB_TIMEOUT", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS",
	"NCCL_MIN_CTAS", "NCCL_NET", "NCCL_NET_GDR_LEVEL", "NCCL_NET_PLUGIN", "NCCL_NSOCKS_PERTHREAD", "NCCL_P2P_DISABLE",
	"NCCL_P2P_LEVEL", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE",
	"NCCL_RAS_TIMEOUT_FACTOR", "NCCL_SHM_DISABLE",
	"NCCL_SOCKET_FAMILY", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_NTHREADS",
	"NCCL_WORK_FIFO_BYTES",
}
