package ringo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpucomm"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/hostcomm"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/internal/built"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/transport"
)

// NewID makes a meeting point for a new communicator and serves it from this
// process, which should be rank 0's. Give the ID to all ranks (it prints and
// parses as text) and have each Open with it. addr is the "host:port" where
// ranks come; "" is a free port on the interface that RINGO_SOCKET_IFNAME and
// RINGO_SOCKET_FAMILY choose, or of the default route without them, and
// "127.0.0.1:0" keeps to this host. Two jobs of one user may be given one port: each turns the
// other's ranks away with a warning, and both form.
func NewID(addr string) (ID, error) { return Config{}.NewID(addr) }

// NewID is the function NewID by the Config's Interface, Family and Log.
func (c Config) NewID(addr string) (ID, error) {
	cfg, err := c.fill(os.Getenv)
	if err == nil && addr == "" && (cfg.Interface != "" || cfg.Family != 0) {
		var ip netip.Addr
		ip, err = paths.Address(cfg.paths())
		addr = netip.AddrPortFrom(ip, 0).String()
	}
	if err != nil {
		return bootstrap.ID{}, openError(cfg, err)
	}
	return bootstrap.NewID(bootstrap.ListenOptions{Addr: addr, TLS: cfg.tls, Log: cfg.Log.With("subsys", "BOOTSTRAP")})
}

// OpenEnv is Open with ID, Rank and Size from the environment that a launcher
// has made: ringo run, torchrun, mpirun, srun or a Kubernetes indexed job; see
// bootstrap.FromEnv for the variables.
func OpenEnv(ctx context.Context, cfg Config) (*Comm, error) {
	spec, ok, err := bootstrap.FromEnv(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if !ok {
		if missing := bootstrap.Incomplete(os.Getenv); missing != "" {
			return nil, openError(cfg, fmt.Errorf("%w: %s", ErrInvalid, missing))
		}
		return nil, openError(cfg,
			fmt.Errorf("%w: no launcher has set RINGO_RANK, RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK "+
				"or JOB_COMPLETION_INDEX; start with: ringo run -np 4 -- PROGRAM", ErrInvalid))
	}
	cfg.Rank, cfg.Size = spec.Rank, spec.Size
	cfg.in = cmp.Or(cfg.in, process.Of(ctx))
	if cfg, err = cfg.fill(os.Getenv); err != nil {
		return nil, openError(cfg, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	o := cfg.join()
	group, err := spec.Join(ctx, bootstrap.ListenOptions{TLS: cfg.tls, Log: o.Log}, o)
	if err != nil {
		return nil, openError(cfg, err)
	}
	return open(ctx, cfg, group)
}

// Open makes this rank a member of the communicator that cfg names, together
// with all others: it returns when all have come, or with an error that says
// who is missing when JoinTimeout has passed or ctx has ended. A communicator of
// one rank needs no ID.
//
// If a rank dies when all have come, all others are members of a communicator that has failed, as if it had died a
// moment later: their next operation says who, and Shrink goes on without it.
func Open(ctx context.Context, cfg Config) (*Comm, error) { return openIn(ctx, ctx, cfg) }

// openIn is Open, but the ranks have to meet before the context meets ends.
func openIn(ctx, meets context.Context, cfg Config) (*Comm, error) {
	cfg.in = cmp.Or(cfg.in, process.Of(ctx))
	cfg, err := cfg.fill(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size {
		return nil, openError(cfg, fmt.Errorf("%w: rank %d of %d: set Config.Rank and Config.Size, or use OpenEnv",
			ErrInvalid, cfg.Rank, cfg.Size))
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	meets, cancelMeets := context.WithTimeout(meets, cfg.JoinTimeout)
	defer cancelMeets()
	if cfg.ID == nil {
		if cfg.Size > 1 {
			return nil, openError(cfg, fmt.Errorf("%w: no ID; make one with NewID and give it to all ranks, or use OpenEnv",
				ErrInvalid))
		}
		return open(ctx, cfg, bootstrap.Local(1)[0])
	}
	group, err := bootstrap.Join(meets, *cfg.ID, cfg.Rank, cfg.Size, cfg.join())
	if err != nil {
		return nil, openError(cfg, err)
	}
	return open(ctx, cfg, group)
}

// OpenLocal makes a communicator of n ranks in this process, for goroutines: the
// i-th Comm is rank i's.
func OpenLocal(n int, cfg Config) ([]*Comm, error) {
	cfg, err := cfg.fill(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if most := 1 << 16; n < 1 || n > most {
		return nil, openError(cfg, fmt.Errorf("%w: %d ranks: want 1 to %d", ErrInvalid, n, most))
	}
	if len(cfg.Devices) > 0 && len(cfg.Devices) != n {
		return nil, openError(cfg, fmt.Errorf("%w: %d Devices for %d ranks", ErrInvalid, len(cfg.Devices), n))
	}
	ctx, cancel := context.WithTimeout(context.Background(), cfg.JoinTimeout)
	defer cancel()
	comms := make([]*Comm, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range bootstrap.Local(n) {
		wg.Go(func() {
			c := cfg
			c.Rank, c.Size = i, n
			if i < len(cfg.Devices) {
				c.Device = cfg.Devices[i]
			}
			comms[i], errs[i] = open(ctx, c, g)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range comms {
			if c != nil {
				c.Close()
			}
		}
		return nil, err
	}
	return comms, nil
}

// open builds a communicator on a group whose ranks have met.
func open(ctx context.Context, cfg Config, group bootstrap.Group) (*Comm, error) {
	c := &Comm{membership: &membership{
		cfg: cfg, group: group, log: cfg.Log.With("rank", group.Rank()),
		life: life.New(group, cfg.hostname(), cfg.calledName(life.IDOf(group)), cfg.Timeout),
	}}
	c.past = c.record
	c.unbound, c.life.Turn.Aides = c, cfg.aides
	c.queue.life, c.queue.carryOut = c.life, c.carryOut
	err := keepHistory(c)
	if err == nil {
		err = c.connect(ctx)
	}
	if err != nil && c.bereaved() {
		c.stillborn, c.noGPU = true, "a rank died as the communicator was opened"
		return c, nil
	}
	if err != nil {
		group.Fail(err.Error())
		c.life.Close()
		c.quiet()
		c.release()
		return nil, openError(cfg, err)
	}
	for _, note := range c.notes {
		c.log.Info("path chosen", "subsys", "INIT", "path", note)
	}
	return c, nil
}

// bereaved reports whether a communicator could not be opened because another rank has died while the rendezvous,
// which tells all ranks so, lives. Other ranks may have left Open before that death, with a communicator: so this rank
// gets one too, which has failed.
func (c *Comm) bereaved() bool {
	select {
	case <-c.group.Failed():
	case <-time.After(life.RootCauseWait): // the connection may have broken before the word has come
		return false
	}
	if !c.group.Failure().Died || !bootstrap.Served(c.group) {
		return false
	}
	<-c.life.Stopped()
	c.life.Learn() // Open has
	return true
}

// line is the lineage of communicators that are made of this one.
func (c *Comm) line() lineage {
	l := c.cfg.made
	if l.after, l.name = "", c.cfg.Name; l.origin == "" {
		l.origin, l.size, l.rank = c.life.ID(), c.Size(), c.Rank()
	}
	return l
}

// ownName is Name, unless that is only taken over from the communicator of which this one is made.
func (c *Config) ownName() string {
	if c.made.origin != "" && c.Name == c.made.name {
		return ""
	}
	return c.Name
}

// calledName is the name in errors: one that was made of another, and has no name of its own, has the ID that
// "ringo why" prints.
func (c *Config) calledName(id string) string {
	switch name := c.ownName(); {
	case name != "" || c.made.origin == "":
		return name
	case c.Name != "":
		return fmt.Sprintf("%s (communicator %s)", c.Name, id)
	}
	return "communicator " + id
}

// longWait is how long a call waits before other communicators' histories tell of it.
const longWait = time.Second

// record is what this rank knows of its communicator, with its place among others.
func (c *Comm) record() HistoryRecord {
	r := c.life.Record()
	l := c.cfg.made
	r.Name, r.After, r.Origin, r.OriginSize = c.cfg.ownName(), l.after, l.origin, l.size
	r.Failed = []string{}
	if met := c.met.Load(); met != nil { // it may fail while it is opened
		for _, p := range *met {
			m := history.Member{Host: p.Hostname, Pid: p.Pid, Number: -1}
			if p.Origin == r.Origin && r.Origin != "" {
				m.Number = p.Number
			}
			r.Members = append(r.Members, m)
		}
	}
	for _, other := range keeping.others(c) {
		if o, mine := other.line(), c.line(); o.origin != mine.origin || o.rank != mine.rank || other.closed.Load() {
			continue
		}
		if other.life.Guard.Waited() >= longWait {
			r.Beside = append(r.Beside, other.life.ID())
		}
		if at, failed := other.life.FailedAt(); failed && (r.Cause == "" || at.Before(r.Time)) {
			r.Failed = append(r.Failed, other.life.ID())
		}
	}
	return r
}

// keeping are the communicators of this process that write histories. One that fails has the others write theirs too:
// its program may end on the error, and where this process was in the others is part of the answer.
var keeping keepers

type keepers struct {
	mu  sync.Mutex
	all map[*Comm]*keeper
}

// A keeper writes the history of one rank.
type keeper struct {
	mu sync.Mutex // a record that was made earlier must not replace a later one
	c  *Comm
	at time.Time // guarded by mu; when it was written last
}

// others are the communicators beside c, not other ranks of the same one.
func (k *keepers) others(c *Comm) (list []*Comm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other := range k.all {
		if other == c || other.life.ID() == c.life.ID() {
			continue
		}
		// By rank. A generic function of a package would have the linker keep all methods of a Comm's parts.
		i := len(list)
		for list = append(list, other); i > 0 && list[i-1].Rank() > other.Rank(); i-- {
			list[i] = list[i-1]
		}
		list[i] = other
	}
	return list
}

func (k *keepers) add(c *Comm) *keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[*Comm]*keeper{}
	}
	k.all[c] = &keeper{c: c}
	return k.all[c]
}

func (k *keepers) drop(c *Comm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, c)
}

func (k *keepers) of(c *Comm) *keeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[c]
}

// write writes the record, unless it was written after since.
func (k *keeper) write(since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !since.IsZero() && k.at.After(since) {
		return
	}
	k.at = time.Now()
	r := k.c.record()
	if file, err := r.Write(k.c.cfg.History); err != nil {
		k.c.log.Warn("history not written", "subsys", "CALL", "err", err)
	} else {
		k.c.log.Info("history written", "subsys", "CALL", "file", file)
	}
}

// keepHistory arranges that the last calls are written to the place that the Config names.
func keepHistory(c *Comm) (err error) {
	c.quiet = func() {}
	if c.cfg.History == "" {
		return nil
	}
	own := keeping.add(c)
	c.quiet = func() { keeping.drop(c) }
	write := func() { own.write(time.Time{}) }
	c.life.OnEnd(func() {
		write()
		since := time.Now().Add(-longWait) // of many that fail at once each need not write all
		for _, other := range keeping.others(c) {
			if k := keeping.of(other); k != nil { // one that has failed too may be writing just now: this waits for it
				k.write(since)
			}
		}
	})
	if c.cfg.HistorySignal != "" {
		stop, err := history.OnSignal(c.cfg.HistorySignal, write)
		if err != nil {
			return fmt.Errorf("%w: %w (RINGO_HISTORY_SIGNAL)", ErrInvalid, err)
		}
		c.quiet = func() { stop(); keeping.drop(c) }
	}
	return nil
}

// connect exchanges profiles with all ranks, agrees on the paths of all pairs, and makes the
// two halves of the communicator.
func (c *Comm) connect(ctx context.Context) error {
	me := paths.Profile{
		Version: Version, Hostname: c.cfg.hostname(), Info: transport.Info{Rank: c.Rank(), Host: c.cfg.HostID},
		Card: c.cfg.Card, Pid: os.Getpid(), Origin: c.cfg.made.origin, Number: c.cfg.made.rank,
		Settings: []paths.Setting{
			{Name: "Deterministic", Value: c.cfg.Deterministic, Variable: "RINGO_DETERMINISTIC"},
			{Name: "TLS", Value: c.cfg.Encryption(), Variable: "RINGO_TLS, and RINGO_TLS_CERT, _KEY and _CA"},
			{Name: "lines between GPUs", Value: c.cfg.lines, Variable: "RINGO_LINES"},
			{Name: "algorithms of its own", Value: strings.Join(call.Defined(), ","),
				Variable: "calls of ringo.Define, in the same order"},
		},
	}
	if built.GPU && c.cfg.Device != nil {
		if err := gpupaths.Describe(&me, c.cfg.Device); err != nil {
			return err
		}
		var err error
		if c.quota, err = gpupaths.Take(c.cfg.in, &me, c.cfg.Device, string(c.group.Key()), c.cfg.choice().Budget); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		if c.cfg.plan == nil {
			read := choice.LoadPlan(c.cfg.Plan)
			c.cfg.plan = &read
		}
		me.FromRank0 = plain.JSON(c.cfg.plan)
	}
	pc := c.cfg.paths()
	if built.GPU {
		pc.Networking.Near = gpupaths.Near(c.cfg.Device)
	}
	var err error
	if c.net, err = paths.Connect(ctx, c.group, me, pc, &c.life.Guard, c.log); err != nil {
		return err
	}
	c.met.Store(&c.net.Profiles)
	c.cfg.plan = new(choice.PlanSource)
	if err := json.Unmarshal(c.net.Profiles[0].FromRank0, c.cfg.plan); err != nil {
		return fmt.Errorf("rank 0's plan: %w", err)
	}
	given, err := c.cfg.plan.Parse()
	if err != nil {
		return err
	}
	chooser := choice.Chooser{
		Topo:   choice.TopologyOf(c.net.Hosts()).Over(choice.Wire(c.net.Wire())),
		Forced: c.cfg.algo, InOrder: c.cfg.Deterministic != "",
	}
	numberer := &request.Numberer{Life: c.life, Observer: c.cfg.Observer}
	if c.cfg.Log.Enabled(ctx, request.LevelTrace) {
		numberer.Log, numberer.Observer = c.log, trace.Tee(c.cfg.Observer, trace.Log(c.log))
	}
	c.life.Awaits(c.net.Links.Awaited)
	c.host = hostcomm.New(c.life, &chooser, numberer, c.net)
	c.notes = c.net.Notes
	if !built.GPU {
		c.noGPU = "this program was built with the tag ringo_host"
		return nil
	}
	c.gpu, c.noGPU, err = gpucomm.Open(ctx, gpucomm.Options{
		Device: c.cfg.Device, Quota: c.quota, Life: c.life, Group: c.group, Chooser: chooser, Plan: given, Numberer: numberer,
		Host: c.net, Paths: &pc, JoinTimeout: c.cfg.JoinTimeout, CheckPointers: c.cfg.CheckPointers,
		LaunchOrder: c.cfg.LaunchOrder, FIFOBytes: c.cfg.WorkFIFOBytes, ArgsBytes: c.cfg.WorkArgsBytes,
		Lock: c.lock, InTurn: c.inTurn, Process: c.cfg.in, Log: c.log,
	})
	if !c.onGPU() {
		c.quota.GiveBack()
		c.quota = nil
	}
	if err == nil && c.gpu != nil && c.onGPU() {
		c.notes = append(c.notes, c.gpu.Notes()...)
	}
	return err
}

func openError(cfg Config, err error) error {
	e := &Error{Op: "Open", Rank: cfg.Rank, Host: cfg.hostname(), Name: cfg.Name, Peer: -1, Err: err}
	if f, ok := errors.AsType[*bootstrap.Failure](err); ok {
		e.Culprits, e.Candidates = f.Culprits, f.Candidates
	} else if j, ok := errors.AsType[*bootstrap.JoinError](err); ok {
		e.Culprits = j.Missing
	}
	return e
}
