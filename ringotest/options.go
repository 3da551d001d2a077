package ringotest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
)

// A Setup is what ranks are and how they are joined.
type Setup string

// How ranks are joined.
const (
	Inproc Setup = "inproc" // goroutines that hand memory to each other
	Shm    Setup = "shm"    // goroutines over shared memory, as processes have it; Linux alone
	Unix   Setup = "unix"   // goroutines over unix sockets
	TCP    Setup = "tcp"    // goroutines over TCP on loopback
	GPU    Setup = "gpu"    // goroutines with an emulated GPU each, see ringo.Comm.Device; import _ ".../ringo/gpu/emu"

	// Processes are this test binary, started again for each rank with -test.run of this test: so every rank does what
	// the test does before Run, and skips the other Runs of the test. A process ends with the function: deferred calls
	// and Cleanups of the test do not run in it. Processes are joined as processes of one host are: by shared memory on
	// Linux, and else by sockets. ProcessesTCP are joined by TCP.
	Processes    Setup = "processes"
	ProcessesTCP Setup = "processes-tcp"
)

// setups are all Setups, in the order of Everywhere.
var setups = []Setup{Inproc, Shm, Unix, TCP, GPU, Processes, ProcessesTCP}

// apart reports whether ranks are processes.
func (w Setup) apart() bool { return w == Processes || w == ProcessesTCP }

// tcp reports whether data go over TCP.
func (w Setup) tcp() bool { return w == TCP || w == ProcessesTCP }

// here reports whether this system has the Setup.
func (w Setup) here() bool {
	switch w {
	case Shm:
		return runtime.GOOS == "linux"
	case Unix:
		return runtime.GOOS != "windows"
	}
	return true
}

// config completes a rank's Config.
func (w Setup) config(c ringo.Config) ringo.Config {
	switch w {
	case Inproc, Shm:
		c.Transport = string(w)
	case Unix, TCP:
		c.Transport, c.SocketNetwork = "socket", string(w)
	case ProcessesTCP:
		c.Transport, c.SocketNetwork = "socket", string(TCP)
	}
	return c
}

// An Option changes how Run runs.
type Option func(*options)

type options struct {
	setups  []Setup
	cfg     ringo.Config
	timeout time.Duration
	seed    uint64
	leaks   bool
	faults  bool
}

// Over has Run run the function once over each Setup, in subtests of their names if there are several. Without Over
// ranks are goroutines (Inproc). A Setup that this system does not have is left out, unless it is the only one: then
// the test is skipped.
func Over(setups ...Setup) Option { return func(o *options) { o.setups = setups } }

// Everywhere is Over with all Setups.
func Everywhere() Option { return Over(setups...) }

// Config is the Config of the ranks' communicators, but for what Run decides: ranks, devices, and the transport of the
// Setup.
func Config(cfg ringo.Config) Option { return func(o *options) { o.cfg = cfg } }

// Timeout is how long the ranks may take, all together, once their communicators are open; 1 minute without it, and
// less if the test's own deadline is sooner. After that the test fails, and names the ranks that have not ended and
// where they are.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Seed is the seed of Rank.Rand, of emulated GPUs and of faults. Without it each Run has a
// random seed. RINGOTEST_SEED in the environment goes before both.
func Seed(seed uint64) Option { return func(o *options) { o.seed = seed } }

// Leaks says whether Run looks for goroutines, descriptors and memory of emulated GPUs that are left when all ranks
// have ended. It does by default, but leaves out descriptors, and the goroutines that Start uses, while another Run
// goes on in this process. A test beside others that open sockets or communicators may want Leaks(false).
func Leaks(look bool) Option { return func(o *options) { o.leaks = look } }

// seedVariable is the environment variable with the seed of a run to repeat.
const seedVariable = "RINGOTEST_SEED"

const (
	defaultTimeout = time.Minute
	spareTime      = 5 * time.Second // between our time-out and the test's own
)

func optionsOf(t testing.TB, list []Option) (options, error) {
	o := options{timeout: defaultTimeout, seed: rand.Uint64(), leaks: true}
	for _, f := range list {
		f(&o)
	}
	switch {
	case len(o.setups) > 0:
	case o.faults:
		o.setups = []Setup{TCP}
	default:
		o.setups = []Setup{Inproc}
	}
	if s := os.Getenv(seedVariable); s != "" && seat() == nil {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return o, fmt.Errorf("%s=%q: want a number", seedVariable, s)
		}
		o.seed = n
	}
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			o.timeout = min(o.timeout, max(time.Until(end)-spareTime, time.Second))
		}
	}
	return o, nil
}
