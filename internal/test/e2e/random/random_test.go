package random

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// bound is the most time of a program. It takes less than a second on a machine that has nothing else to do.
const bound = 4 * tier.Patience

func TestMain(m *testing.M) {
	if os.Getenv("RINGO_TEST_RANK") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := process(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Random programs end in time, whatever one of their ranks does: with the right data or an error that names what has
// happened, and the ranks that are left go on together. RINGO_RANDOM is a number of programs, RINGO_RANDOM_SEED the
// first one's seed.
func TestRandomPrograms(t *testing.T) {
	first, n := uint64(5), tier.Count(12, 40)
	if testing.Short() {
		n = 6
	}
	if x, err := strconv.Atoi(os.Getenv("RINGO_RANDOM")); err == nil {
		n = x
	}
	if x, err := strconv.ParseUint(os.Getenv("RINGO_RANDOM_SEED"), 10, 64); err == nil {
		first = x
	}
	for seed := first; seed < first+uint64(n); seed++ {
		p := newProgram(seed)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runProgram(t, p) })
	}
}

// Programs that once ended badly, each for a reason of its own.
func TestKnownPrograms(t *testing.T) {
	for name, seed := range map[string]uint64{
		"a process closes its GPUs while kernels of others write to its queues": 20225,
	} {
		t.Run(name, func(t *testing.T) { runProgram(t, newProgram(seed)) })
	}
}

// meeting is commtest's, without a log: it is no news that ranks end.
func meeting(t *testing.T) bootstrap.ID {
	id, err := ringo.Config{Log: slog.New(slog.DiscardHandler)}.NewID("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { bootstrap.Stop(id) })
	return id
}

func runProgram(t *testing.T, p *program) {
	defer func(began time.Time) {
		if d := time.Since(began); d > tier.Patience {
			t.Logf("%v took %v", p, d)
		}
	}(time.Now())
	id, next := meeting(t), meeting(t)
	n := p.ranks
	if p.growth() >= 0 {
		n++
	}
	errs := make([]error, n)
	if p.gpus && !p.processes {
		require.NoError(t, p.openGPUs())
		defer func() { require.NoError(t, p.machine.Close(), "%v", p) }()
	}
	var begun, late sync.WaitGroup // the ranks that begin; the rank that comes in
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for r := range n {
		group, be := &begun, p.be
		if r == p.ranks {
			group = &late
		}
		if p.processes {
			be = p.start
		}
		group.Go(func() { errs[r] = be(ctx, r, id, next) })
	}
	over := make(chan struct{})
	go func() {
		begun.Wait()
		if !p.grows() { // nobody takes it in
			cancel()
		}
		late.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(bound):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%v: not over after %v\n%s", p, bound, stacks[:runtime.Stack(stacks, true)])
	}
	for r, err := range errs { // of all: the first may come of another one's
		assert.NoError(t, err, "%v: rank %d", p, r)
	}
}

// be carries out a rank's part. A rank that nobody has taken in ends with its context.
func (p *program) be(ctx context.Context, me int, id, next bootstrap.ID) (err error) {
	r := &rank{p: p, me: me, grow: &next}
	cfg := p.config()
	cfg.ID, cfg.Rank, cfg.Size = &id, me, p.ranks
	from := 0
	if me == p.ranks {
		cfg.ID, cfg.Size, from = &next, p.ranks+1, p.growth()+1
	}
	if p.gpus {
		if r.d, err = p.machine.Device(me); err != nil {
			return err
		}
		cfg.Device = r.d
	}
	r.c, err = ringo.Open(ctx, cfg)
	if me == p.ranks && !p.grows() {
		if err == nil {
			return errors.Join(errors.New("it has come in"), r.c.Close())
		}
		return nil
	}
	if err != nil {
		return err
	}
	if from > 0 {
		if err := ringo.Barrier(r.c); err != nil { // the barrier of take, for the rank that comes in
			if !p.excuses(err) {
				return errors.Join(err, r.c.Close())
			}
			return r.recover()
		}
	}
	return r.run(from)
}

// openGPUs makes the emulated GPUs of this process.
func (p *program) openGPUs() (err error) {
	cfg := cudaemu.Config{Devices: p.ranks + 1, Seed: p.seed}
	if tier.Race { // kernels that poll leave the other processes little of a core, and their news comes late
		cfg.Stall = time.Minute
	}
	d, err := cudaemu.New(cfg)
	if err != nil {
		return err
	}
	p.machine, err = gpu.Of(d)
	return err
}

// process is the main of a process that is a rank.
func process() error {
	me, err := strconv.Atoi(os.Getenv("RINGO_TEST_RANK"))
	seed, bad := strconv.ParseUint(os.Getenv("RINGO_TEST_SEED"), 10, 64)
	id, bad1 := bootstrap.ParseID(os.Getenv("RINGO_TEST_ID"))
	next, bad2 := bootstrap.ParseID(os.Getenv("RINGO_TEST_NEXT"))
	if err := errors.Join(err, bad, bad1, bad2); err != nil {
		return err
	}
	p := newProgram(seed)
	if p.gpus {
		if err := p.openGPUs(); err != nil {
			return err
		}
	}
	err = p.be(context.Background(), me, id, next)
	if p.machine != nil {
		err = errors.Join(err, p.machine.Close())
	}
	if err != nil {
		return err
	}
	fmt.Println("well")
	return nil
}

// start has a process be a rank.
func (p *program) start(ctx context.Context, me int, id, next bootstrap.ID) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", fmt.Sprint("RINGO_TEST_RANK=", me),
		fmt.Sprint("RINGO_TEST_SEED=", p.seed),
		"RINGO_TEST_ID="+id.String(), "RINGO_TEST_NEXT="+next.String())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-ctx.Done(): // nobody has taken it in
			_ = cmd.Process.Kill()
		case <-time.After(bound * 9 / 10):
			_ = cmd.Process.Signal(syscall.SIGQUIT) // it prints its stacks
		}
	}()
	err := cmd.Wait()
	close(ended)
	if me == p.ranks && !p.grows() || strings.HasPrefix(out.String(), "well") {
		return nil
	}
	return fmt.Errorf("%w: %s", err, &out)
}
