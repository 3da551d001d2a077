package ringo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/shm"
	"github.com/ringo-go/ringo/transport/socket"
)

// A Comm is one rank's membership in a communicator. Its operations happen in
// the order in which they are called; from several goroutines that order is
// theirs to arrange, for it must be the same on all ranks. Abort and the
// methods that only ask may be called at any time.
type Comm struct {
	cfg   Config
	rank  int
	size  int
	group bootstrap.Group
	guard fifo.Guard
	log   *slog.Logger

	profiles   []profile
	transports []transport.Transport
	links      *links
	topo       topology
	notes      []string // the choice of paths, in words

	run      sync.Mutex // held while an operation is carried out; guards the fields below
	seq      uint32
	engine   *engine.Engine
	job      engine.Job
	key      programKey // of the program used last
	program  *engine.Program
	programs map[programKey]*engine.Program
	spare    []byte  // copy of In for an all-to-all in place
	order    []*Call // of a group

	queue  queue
	failed atomic.Pointer[Error] // why the communicator is of no more use
	closed atomic.Bool
	gone   chan struct{} // closed by Close
	watch  sync.WaitGroup
}

// process tells apart address spaces, also across containers that number their
// processes alike.
var process = sync.OnceValue(func() string {
	var b [8]byte
	rand.Read(b[:])
	return fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(b[:]))
})

// Open makes this rank a member of the communicator that cfg names, together
// with all others: it returns when all have come, or with an error that says
// who is missing when JoinTimeout has passed or ctx has ended.
func Open(ctx context.Context, cfg Config) (*Comm, error) {
	cfg, err := cfg.fill(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if cfg.ID == nil {
		return nil, openError(cfg, fmt.Errorf("%w: no ID; make one with NewID and give it to all ranks, or use OpenEnv", ErrInvalid))
	}
	if cfg.Size < 1 || cfg.Rank < 0 || cfg.Rank >= cfg.Size {
		return nil, openError(cfg, fmt.Errorf("%w: rank %d of %d", ErrInvalid, cfg.Rank, cfg.Size))
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	group, err := bootstrap.Join(ctx, *cfg.ID, cfg.Rank, cfg.Size, bootstrap.JoinOptions{Log: cfg.Log.With("subsys", "BOOTSTRAP")})
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
	if n < 1 {
		return nil, openError(cfg, fmt.Errorf("%w: %d ranks", ErrInvalid, n))
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
	c := &Comm{
		cfg: cfg, rank: group.Rank(), size: group.Size(), group: group,
		log:      cfg.Log.With("rank", group.Rank()),
		programs: map[programKey]*engine.Program{},
		gone:     make(chan struct{}),
	}
	if err := c.connect(ctx); err != nil {
		group.Fail(err.Error())
		c.release()
		return nil, openError(cfg, err)
	}
	c.watch.Go(c.watchGroup)
	return c, nil
}

// connect exchanges profiles with all ranks and agrees on the path of each pair.
func (c *Comm) connect(ctx context.Context) error {
	order, err := wish(&c.cfg)
	if err != nil {
		return err
	}
	// What the queues and their waits are like depends on where the ranks are, so
	// they say that before any of them opens a transport.
	hosts, err := c.group.AllGather(ctx, []byte(c.cfg.HostID))
	if err != nil {
		return err
	}
	names := make([]string, len(hosts))
	local := 0
	for i, h := range hosts {
		names[i] = string(h)
		if names[i] == c.cfg.HostID {
			local++
		}
	}
	c.topo = topologyOf(names)
	if c.cfg.SlotBytes == 0 {
		c.cfg.SlotBytes = DefaultSlotBytes
		if onlySockets(order, names) {
			c.cfg.SlotBytes = DefaultSocketSlotBytes
		}
	}
	c.engine = engine.New(c.cfg.limits())

	host, _, _ := strings.Cut(c.cfg.HostID, "/")
	me := profile{
		Version: Version, Limits: c.cfg.limits(), Timeout: c.cfg.Timeout, Wish: order, Hostname: host,
		Info: transport.Info{Rank: c.rank, Host: c.cfg.HostID, Process: process()},
	}
	// Spinning needs a core for every rank of the host.
	tc := transport.Config{
		Self: me.Info, Key: c.group.Key(), Limits: c.cfg.limits(), Guard: &c.guard,
		Spin: local <= c.cfg.Cores,
		Log:  c.log.With("subsys", "NET"),
	}
	byName := map[string]transport.Transport{}
	for _, name := range preference {
		t := c.newTransport(name, tc)
		cand := candidate{Name: name}
		if cand.Addr, err = t.Listen(); err != nil {
			cand.Refused = err.Error()
		}
		c.transports = append(c.transports, t)
		byName[name] = t
		me.Candidates = append(me.Candidates, cand)
	}
	me.Candidates = append(me.Candidates, candidate{Name: "ib", Refused: "this version has no InfiniBand"})

	blobs, err := c.group.AllGather(ctx, me.encode())
	if err != nil {
		return err
	}
	if c.profiles, err = decodeProfiles(blobs); err != nil {
		return err
	}
	if err := agree(c.profiles); err != nil {
		return err
	}
	reach := func(name string, a, b transport.Info) error { return byName[name].Reach(a, b) }
	paths := make([]path, c.size)
	seen := map[string]bool{}
	for i := range paths {
		peer := &c.profiles[i]
		name, against, err := "inproc", []string(nil), error(nil)
		if i != c.rank {
			if name, against, err = choose(&c.profiles[min(i, c.rank)], &c.profiles[max(i, c.rank)], reach); err != nil {
				return err
			}
		}
		paths[i] = path{peer: peer.Info, addr: peer.candidate(name).Addr, via: byName[name]}
		note := strings.Join(append([]string{name}, against...), "; ")
		if i != c.rank && !seen[note] {
			seen[note] = true
			c.notes = append(c.notes, note)
		}
	}
	c.links = newLinks(paths)
	for _, note := range c.notes {
		c.log.Info("path chosen", "subsys", "INIT", "path", note)
	}
	return nil
}

func (c *Comm) newTransport(name string, tc transport.Config) transport.Transport {
	switch name {
	case "inproc":
		return inproc.New(tc)
	case "shm":
		tc.Log = c.log.With("subsys", "SHM")
		return shm.New(tc, shm.Options{Dir: c.cfg.ShmDir, Queues: min(c.size-1, 8)})
	case "socket":
		return socket.New(tc, socket.Options{
			Network: c.cfg.SocketNetwork, IfName: c.cfg.Interface, Family: c.cfg.Family, Streams: c.cfg.Streams,
		})
	}
	panic("ringo: no transport " + name)
}

// watchGroup makes the failure of another rank end the waits of this one.
func (c *Comm) watchGroup() {
	select {
	case <-c.gone:
	case <-c.group.Failed():
		c.guard.Abort(&peerError{c.group.Failure()})
	}
}

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Do carries out a call and returns when this rank's part is done: its result
// is complete and its memory is the caller's again. It allocates nothing after
// the first call of a kind. An error is an *Error; one that wraps ErrInvalid or
// ErrUnsupported leaves the communicator usable, any other ends it on all ranks.
func (c *Comm) Do(call *Call) error {
	if err := call.check(c.rank, c.size); err != nil {
		return c.errorOf(call, 0, err)
	}
	if c.queue.busy() {
		return c.start(call).Wait()
	}
	c.run.Lock()
	err := c.carryOut(call)
	c.run.Unlock()
	return err
}

// Start begins a call and returns at once; calls are carried out in the order
// they were started. When as many are waiting as the queue holds (1024), Start
// waits for space.
func (c *Comm) Start(call *Call) *Pending {
	if err := call.check(c.rank, c.size); err != nil {
		p := newPending(call)
		p.finish(c.errorOf(call, 0, err))
		return p
	}
	return c.start(call)
}

// carryOut does a checked call, with c.run held.
func (c *Comm) carryOut(call *Call) error {
	if f := c.failed.Load(); f != nil {
		return c.errorOf(call, 0, fmt.Errorf("the communicator has failed before: %w", f))
	}
	if err := c.guard.Aborted(); err != nil {
		return c.fail(call, err)
	}
	c.guard.Begin(c.cfg.Timeout)
	j := &c.job
	if err := c.prepare(j, call); err != nil {
		return c.fail(call, err)
	}
	if err := c.engine.Run(j); err != nil {
		return c.fail(call, err)
	}
	if j.Reducer != nil && j.Reducer.Finishes() && len(j.Out) > 0 {
		j.Reducer.Finish(j.Out)
	}
	return nil
}

// prepare fills in a job: its sign, algorithm, program, memory and arithmetic.
func (c *Comm) prepare(j *engine.Job, call *Call) error {
	s := sign{kind: call.Kind, typ: call.Type, count: call.Count, root: -1}
	switch call.Kind {
	case KindSend, KindRecv:
		s.kind = KindSend
	case KindAllGatherv:
		s.count = hashCounts(call.OutCounts)
	case KindAlltoAllv:
		s.count = 0
	}
	j.Reducer = nil
	if call.Kind.Reduces() {
		s.op = call.Op.Kind
		r, err := kernels.NewReducer(call.Type, call.Op, c.size)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		j.Reducer = r
	}
	if s.kind != KindSend { // nothing below can be wrong on this rank alone
		c.seq = max(c.seq+1, 1)
		s.seq = c.seq
	}
	if call.Kind.Rooted() {
		s.root = call.Root
	}

	size := 1
	in, out := 0, 0
	if call.Kind != KindBarrier {
		size = call.Type.Size()
		in, out = call.shape(c.rank, c.size)
	}
	s.algo = c.plan(call.Kind, call.Count*size)
	if c.cfg.trace {
		c.log.Log(context.Background(), levelTrace, call.String(), "subsys", "CALL", "seq", s.seq, "algo", s.algo.String())
	}
	j.Stamp = s.stamp()
	// A Send returns when its message is in the queue, so that two ranks may both
	// send and then receive what fits there.
	j.Lend = s.kind != KindSend

	key := programKey{kind: call.Kind, algo: s.algo, peer: int32(s.root)}
	if s.kind == KindSend {
		key.peer = int32(call.Peer)
	}
	if c.program == nil || key != c.key {
		p, err := c.compile(key)
		if err != nil {
			return err
		}
		c.key, c.program = key, p
	}
	j.Program = c.program

	j.In, j.Out = nil, nil
	if in > 0 {
		j.In = call.In.Bytes()[:in*size]
	}
	if out > 0 {
		j.Out = call.Out.Bytes()[:out*size]
	}
	c.place(j, call, size)
	return nil
}

// place fills in the layouts of a job.
func (c *Comm) place(j *engine.Job, call *Call, size int) {
	shape := j.Program.Shape()
	one := call.Count * size
	switch call.Kind {
	case KindAllReduce, KindReduce, KindBroadcast:
		j.InL = engine.Even(one, shape.In, size)
		j.OutL = j.InL
		if shape.In == 0 || shape.Out > shape.In {
			j.OutL = engine.Even(one, shape.Out, size)
			j.InL = j.OutL
		}
	case KindAllGatherv:
		lens := scaled(call.OutCounts, size)
		j.OutL = engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: lens}
		j.InL = engine.Layout{Total: lens[c.rank], Chunk: lens[c.rank]}
	case KindAlltoAllv:
		j.InL = engine.Layout{Off: offsets(call.InCounts, call.InOffsets, size), Len: scaled(call.InCounts, size)}
		j.OutL = engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: scaled(call.OutCounts, size)}
	default: // chunks are the shares of the ranks
		j.InL = engine.Layout{Total: shape.In * one, Chunk: one}
		j.OutL = engine.Layout{Total: shape.Out * one, Chunk: one}
	}
	if (call.Kind == KindAlltoAll || call.Kind == KindAlltoAllv) && call.In.Overlaps(call.Out) {
		c.spare = append(c.spare[:0], j.In...)
		j.In = c.spare
	}
}

func scaled(counts []int, size int) []int {
	out := make([]int, len(counts))
	for i, n := range counts {
		out[i] = n * size
	}
	return out
}

func offsets(counts, offs []int, size int) []int {
	if offs != nil {
		return scaled(offs, size)
	}
	out := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		out[i] = out[i-1] + counts[i-1]*size
	}
	return out
}

// compile finds or makes the program of a key.
func (c *Comm) compile(key programKey) (*engine.Program, error) {
	if p := c.programs[key]; p != nil {
		return p, nil
	}
	p, err := engine.Compile(key.schedule(c.topo), sched.Rank(c.rank), c.links)
	if err == nil {
		c.programs[key] = p
	}
	return p, err
}

// fail ends the communicator: this rank's waits, and by way of the group those
// of all others. Arguments that are wrong on this rank alone were found before.
func (c *Comm) fail(call *Call, cause error) *Error {
	if errors.Is(cause, ErrInvalid) || errors.Is(cause, ErrUnsupported) {
		return c.errorOf(call, c.seq, cause)
	}
	e := c.errorOf(call, c.seq, cause)
	if !errors.Is(cause, ErrPeer) && !errors.Is(e, ErrMismatch) && !errors.Is(cause, ErrTimeout) && !errors.Is(cause, ErrAborted) {
		// A connection broke. Whose fault it was the group knows, in a moment.
		select {
		case <-c.group.Failed():
			e.Err = fmt.Errorf("%w (%v)", &peerError{c.group.Failure()}, e.Err)
		case <-time.After(rootCauseWait):
		}
	}
	if c.failed.CompareAndSwap(nil, e) {
		c.guard.Abort(e)
		c.group.Fail(e.Error())
	}
	return e
}

// rootCauseWait is how long a rank whose connection broke waits to hear from the
// group which rank has died, so as to name it and not just a neighbour.
const rootCauseWait = 300 * time.Millisecond

// errorOf gives an error its place.
func (c *Comm) errorOf(call *Call, seq uint32, cause error) *Error {
	e := &Error{Op: call.Kind.String(), Seq: seq, Rank: c.rank, Host: c.hostname(), Peer: -1, Err: cause}
	if call.Kind == KindSend || call.Kind == KindRecv {
		e.Seq = 0
	}
	var st *engine.StepError
	if errors.As(cause, &st) {
		e.Peer, e.Phase, e.Err = int(st.Peer), st.Phase, st.Err
		e.Transport = c.links.via(e.Peer)
		var m *engine.MismatchError
		if errors.As(st.Err, &m) {
			e.Err = &mismatch{rank: c.rank, peer: e.Peer, cause: m}
		}
		var peer *peerError // how a transport words its wait adds nothing to who failed
		if errors.As(st.Err, &peer) {
			e.Err = peer
		}
		var earlier *Error // an abort's reason needs no second place
		if errors.As(st.Err, &earlier) {
			e.Peer, e.Phase, e.Transport = -1, "", ""
		}
	}
	return e
}

func (c *Comm) hostname() string {
	host, _, _ := strings.Cut(c.cfg.HostID, "/")
	return host
}

func openError(cfg Config, err error) error {
	host, _, _ := strings.Cut(cfg.HostID, "/")
	return &Error{Op: "Open", Rank: cfg.Rank, Host: host, Peer: -1, Err: err}
}

// Abort ends all operations of the communicator, here and on all other ranks,
// and returns at once. The reason is given to all. Close is still to be called.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = ErrAborted
	} else {
		reason = fmt.Errorf("%w: %w", ErrAborted, reason)
	}
	e := &Error{Op: "Abort", Rank: c.rank, Host: c.hostname(), Peer: -1, Err: reason}
	if c.failed.CompareAndSwap(nil, e) {
		c.guard.Abort(e)
		c.group.Fail(e.Error())
	}
}

// Err is why the communicator has failed, nil while it is well. It does not wait.
func (c *Comm) Err() error {
	if e := c.failed.Load(); e != nil {
		return e
	}
	if err := c.guard.Aborted(); err != nil {
		return err
	}
	return nil
}

// Close leaves the communicator. It waits for operations that were started and
// gives everything back. Other ranks may still receive what this one has sent.
// Calls after Close return ErrClosed.
func (c *Comm) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.queue.close()
	c.run.Lock()
	defer c.run.Unlock()
	c.failed.CompareAndSwap(nil, &Error{Op: "Close", Rank: c.rank, Host: c.hostname(), Peer: -1, Err: ErrClosed})
	close(c.gone)
	c.watch.Wait()
	return c.release()
}

func (c *Comm) release() error {
	var errs []error
	for _, t := range c.transports {
		errs = append(errs, t.Close())
	}
	errs = append(errs, c.group.Close())
	return errors.Join(errs...)
}
