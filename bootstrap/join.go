package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/process"
)

// DefaultJoinTimeout bounds Join when its context has no deadline.
const DefaultJoinTimeout = 60 * time.Second

// JoinOptions are for a rank that joins.
type JoinOptions struct {
	Source net.IP // local address to connect from; nil is the kernel's choice
	TLS    *TLS   // nil for a connection in clear; all ranks must have it or none
	// Dial connects to the ID's Addr, with "tcp"; nil is a net.Dialer. With it a rank whose process serves the ID goes
	// there too, else it stays inside the process. Keep-alive is the caller's affair, unless Dial returns a *net.TCPConn.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger // nil is silence

	machine string // in place of machineID, for tests
	apart   bool   // keep the connection where the hub is in this process, for tests

	// Where processes of the group before have listened, which may have ended: a refused connection is final, and this
	// rank opens none of these ports, at which others may still knock. Nil for a first group.
	ports []string
}

// Join enters the group of id as one of size ranks, and returns when all ranks have
// entered. The deadline is ctx's, or DefaultJoinTimeout. An error is a *JoinError, and
// every rank gets the same one: ranks that did not come, two that claim the same rank,
// sizes that differ, ranks that died meanwhile.
//
// A process that has not proved that it has the ID's key is not believed, and cannot end
// Join: another job's hub may have the port for a moment. Join tries again until the
// deadline, and the error then describes that process.
//
// If ctx ends with a *Failure as its cause, also before Join, all ranks that wait hear at once that the Culprits will
// not come.
func Join(ctx context.Context, id ID, rank, size int, o JoinOptions) (Group, error) {
	return (&joiner{id: id, rank: rank, size: size, opt: o}).join(ctx)
}

func (j *joiner) join(ctx context.Context) (Group, error) {
	id, rank, size := j.id, j.rank, j.size
	if err := id.Check(); err != nil {
		return nil, &JoinError{Reason: err.Error(), Err: err}
	}
	if size < 1 || size > rendezvous.MaxRanks || rank < 0 || rank >= size {
		return nil, &JoinError{Reason: fmt.Sprintf("rank %d of %d: want 0 ≤ rank < size ≤ %d", rank, size,
			rendezvous.MaxRanks)}
	}
	if !j.partial && joinedAs(slotOf{id, rank}) {
		return nil, &JoinError{Reason: fmt.Sprintf("process %d joins as rank %d again: it must Close the first group "+
			"before, or have another ID", os.Getpid(), rank)}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultJoinTimeout)
		defer cancel()
	}
	j.log, j.since = orSilent(j.opt.Log), time.Now()
	g, err := j.admitted(ctx)
	if err != nil {
		j.closePorts()
	}
	return g, err
}

// A slotTable has the slots of a process in groups that it has joined and not left. Only so a rank that uses an ID twice
// hears why at once: the hub may have closed its listener, or ended.
type slotTable struct {
	sync.Mutex
	of map[slotOf]int // the number of calls of enlist that have not ended
}

var slots = process.NewRegistry(func() *slotTable { return &slotTable{of: map[slotOf]int{}} })

type slotOf struct {
	id   ID
	rank int
}

func joinedAs(s slotOf) bool {
	members := slots.In(nil)
	members.Lock()
	defer members.Unlock()
	return members.of[s] > 0
}

// enlist notes a slot until the function that it returns is called.
func enlist(s slotOf) func() {
	members := slots.In(nil)
	members.Lock()
	defer members.Unlock()
	members.of[s]++
	return sync.OnceFunc(func() {
		members.Lock()
		defer members.Unlock()
		if members.of[s]--; members.of[s] == 0 {
			delete(members.of, s)
		}
	})
}

func (j *joiner) admitted(ctx context.Context) (Group, error) {
	l, err := j.enter(ctx)
	if err != nil && willNot(ctx) { // ranks that wait for this one must hear so
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
		defer cancel()
		if told, no := j.try(brief); no == nil {
			l, err = told, nil
		}
	}
	if err != nil {
		return nil, err
	}
	g, err := j.await(ctx, l)
	if err != nil {
		l.close()
		return nil, err
	}
	return g, nil
}

// willNot reports whether ctx has ended because another group has failed, so that this rank does not come.
func willNot(ctx context.Context) bool {
	_, ok := errors.AsType[*Failure](context.Cause(ctx))
	return ok
}

type joiner struct {
	id         ID
	rank, size int
	opt        JoinOptions
	log        *slog.Logger
	since      time.Time
	met        error // from a process that is not our hub, if one answered
	busy       error // why our hub had no slot yet

	partial bool    // begin without ranks that do not come; see Meet
	card    []byte  // with partial
	roster  *Roster // with partial: who has come

	port    net.Listener // of a rank that may be a successor
	witness net.Listener // of a rank that may be a witness
}

// strangerTime is the time after which Join warns that another process answers.
const strangerTime = 3 * time.Second

// loopbackTime is how long Join waits for a loopback interface that is down: a namespace may still be set up.
const loopbackTime = time.Second

// elsewhereTime is how long a rank whose process serves an address that is not its host's tries to reach itself there:
// a gateway may still be set up.
const elsewhereTime = time.Second

// elsewhere is the error of a rank that serves at an address where others do not reach it.
func (j *joiner) elsewhere(err error) *JoinError {
	return &JoinError{Err: syscall.EADDRNOTAVAIL, Nobody: err, Reason: fmt.Sprintf(
		"%s is no address of this host, and rank %d, which serves the rendezvous there, does not reach itself by it (%v): "+
			"set RINGO_COMM_ID, NCCL_COMM_ID or MASTER_ADDR to an address of the host of rank %d, or start rank %d where it is",
		j.id.Addr(), j.rank, err, j.rank, j.rank)}
}

// enter tries until a hub that has our key welcomes us.
func (j *joiner) enter(ctx context.Context) (*link, error) {
	warned := false
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		l, err := j.try(ctx)
		if err == nil {
			return l, nil
		}
		var no *JoinError
		if errors.As(err, &no) {
			return nil, no
		}
		if j.opt.ports != nil && errors.Is(err, syscall.ECONNREFUSED) {
			return nil, &JoinError{Err: err, Nobody: err, Reason: err.Error()}
		}
		if h := hubOf(j.id); h != nil && h.opt.elsewhere && time.Since(j.since) > elsewhereTime {
			return nil, j.elsewhere(err)
		}
		if auth.NoLoopback(err) && time.Since(j.since) > loopbackTime {
			return nil, &JoinError{Err: err, Nobody: err, Reason: fmt.Sprintf(
				"%v: loopback is down in this network namespace: bring it up (ip link set lo up), or have the ranks meet at "+
					"another address", err)}
		}
		if _, no := errors.AsType[tlsFailed](err); no || refusedByTLS(err) || errors.Is(err, auth.ErrKey) ||
			errors.Is(err, auth.ErrHungUp) || errors.Is(err, auth.ErrProtocol) {
			j.meets(err)
			if !warned && time.Since(j.since) > strangerTime {
				warned = true
				j.log.Warn("join: another process answers; trying on", "addr", j.id.Addr(), "err", err)
			}
		}
		j.log.Debug("join: trying again", "addr", j.id.Addr(), "err", err)
		select {
		case <-ctx.Done():
			return nil, j.unanswered(ctx, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// meets keeps the error of a try that met a process which is not our hub. The last try is cut off by the deadline, so
// its error tells less than earlier ones and does not replace them.
func (j *joiner) meets(err error) {
	if j.met == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		j.met = err
	}
}

func (j *joiner) unanswered(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.DeadlineExceeded) {
		return &JoinError{Reason: fmt.Sprintf("cancelled before %s answered (%v)", j.id.Addr(), last), Err: cause}
	}
	if j.busy != nil {
		return &JoinError{Err: cause, Reason: fmt.Sprintf("no place at %s within %s: %v; every rank must Close it",
			j.id.Addr(), rendezvous.Spell(j.waited(ctx)), j.busy)}
	}
	if j.met != nil && (refusedByTLS(j.met) || j.opt.TLS != nil && !errors.Is(j.met, auth.ErrKey)) {
		return &JoinError{Err: cause, Reason: fmt.Sprintf(
			"no TLS (%v) with what answers at %s within %s: %v; is it another job, or does it have other certificates? set "+
				"RINGO_TLS_CERT, RINGO_TLS_KEY and RINGO_TLS_CA for the ranks and for what serves the ID, or for none",
			j.opt.TLS, j.id.Addr(), rendezvous.Spell(j.waited(ctx)), j.met)}
	}
	if errors.Is(j.met, auth.ErrHungUp) && errors.Is(last, syscall.ECONNREFUSED) {
		return &JoinError{Err: cause, Nobody: last, Reason: fmt.Sprintf(
			"what answered at %s has hung up (%v), and within %s nobody listens there any more: its process has ended, and "+
				"may have said why, or the job has begun without this rank; each group needs an ID of its own",
			j.id.Addr(), j.met, rendezvous.Spell(j.waited(ctx)))}
	}
	if j.met != nil {
		return &JoinError{Err: cause, Reason: fmt.Sprintf(
			"no rendezvous of this job at %s within %s, but a process that did not prove that it has our key (%v): is it "+
				"another job, or has that another RINGO_COMM_SECRET or another number of ranks (WORLD_SIZE, RINGO_SIZE)?",
			j.id.Addr(), rendezvous.Spell(j.waited(ctx)), j.met)}
	}
	return &JoinError{Err: cause, Nobody: last, Reason: fmt.Sprintf(
		"no answer from %s within %s (%v): is rank 0 running, can this host reach that address, or has the job begun "+
			"without this process? else raise RINGO_JOIN_TIMEOUT",
		j.id.Addr(), rendezvous.Spell(j.waited(ctx)), last)}
}

// waited is the time from the start of Join to the end of ctx.
func (j *joiner) waited(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok && end.Before(time.Now()) {
		return end.Sub(j.since)
	}
	return time.Since(j.since)
}

// try connects once and does the handshake.
func (j *joiner) try(ctx context.Context) (_ *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	below, err := j.call(ctx)
	if err != nil {
		return nil, err
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		end := time.Unix(1, 0)
		if willNot(ctx) { // go on: if this rank was the last, the group has begun, and await takes the start
			end = time.Now().Add(goodbyeTime)
		}
		below.SetDeadline(end)
	})
	defer func() {
		if !stop() && err == nil {
			<-cut
			err = below.SetDeadline(time.Time{})
		}
		if err != nil {
			below.Close()
		}
	}()
	conn := below
	if j.opt.TLS != nil {
		if conn, err = j.opt.TLS.Client(below); err != nil {
			return nil, tlsFailed{err}
		}
	}
	l := newLink(conn)
	if err := j.greet(l); err != nil {
		return nil, err
	}
	return l, nil
}

// call connects to the hub, inside the process if that serves the ID.
func (j *joiner) call(ctx context.Context) (net.Conn, error) {
	h := hubOf(j.id)
	if h == nil || j.opt.Dial != nil || j.opt.apart || h.opt.elsewhere {
		return j.dial(ctx, j.id.Addr())
	}
	return h.entry.inner.dial(ctx)
}

func (j *joiner) dial(ctx context.Context, address string) (net.Conn, error) {
	if j.opt.Dial != nil {
		return j.opt.Dial(ctx, "tcp", address)
	}
	d := net.Dialer{}
	if j.opt.Source != nil {
		d.LocalAddr = &net.TCPAddr{IP: j.opt.Source}
	}
	return d.DialContext(ctx, "tcp", address)
}

// tlsFailed is the error of a listener with which no TLS could be agreed.
type tlsFailed struct{ error }

func (e tlsFailed) Unwrap() error { return e.error }

// refusedByTLS reports whether a listener has refused this rank's certificate, or the lack of one.
// In TLS 1.3 that error comes after the handshake.
func refusedByTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// greet has both sides prove that they know the key, this side first, and waits to
// be admitted. Before the hub's proof no message of the hub is believed.
func (j *joiner) greet(l *link) error {
	me := &rendezvous.Claim{Rank: j.rank, Size: j.size, Pid: os.Getpid(), Hosts: hubOf(j.id) != nil, Host: hostname(),
		Machine: cmp.Or(j.opt.machine, machineID()), Partial: j.partial, Card: j.card, Port: j.claimPort(l.conn.LocalAddr()),
		Witness: j.claimWitness()}
	if _, err := auth.Call(l.conn, j.id.key(), protocol, rendezvous.Append(nil, me)); err != nil {
		return err
	}
	m, err := l.receive(rendezvous.MaxBody)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *rendezvous.Welcome:
		return nil
	case *rendezvous.Refusal:
		if m.Cause == rendezvous.Busy {
			j.busy = errors.New(m.Reason)
			return j.busy
		}
		return j.refused(m)
	}
	return rendezvous.ErrMalformed
}

// refused turns the hub's refusal into this rank's error.
func (j *joiner) refused(r *rendezvous.Refusal) *JoinError {
	e := &JoinError{Reason: r.Reason, Missing: r.Missing}
	switch r.Cause {
	case rendezvous.Timeout:
		e.Err = context.DeadlineExceeded
	case rendezvous.Cancelled:
		e.Err = &Failure{Rank: r.Rank, Culprits: []int{r.Rank}, Reason: "cancelled while joining"}
		if r.Rank == j.rank {
			e.Err = context.Canceled
		}
	case rendezvous.Dead:
		e.Err = &Failure{Rank: r.Rank, Culprits: []int{r.Rank}, Died: true, Reason: "while joining"}
	case rendezvous.TooLate:
		e.Err = ErrExcluded
	}
	return e
}

// await waits for the start. When ctx ends it asks the hub for a verdict, since
// the hub knows which ranks are missing.
func (j *joiner) await(ctx context.Context, l *link) (Group, error) {
	stop := context.AfterFunc(ctx, func() {
		g := &rendezvous.GiveUp{Timeout: errors.Is(ctx.Err(), context.DeadlineExceeded), Waited: j.waited(ctx)}
		if f, ok := errors.AsType[*Failure](context.Cause(ctx)); ok { // of the group from which this one was to grow
			g.Dead, g.Reason = f.Culprits, f.Error()
		}
		l.send(g)
		l.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
	})
	m, err := l.receive(rendezvous.MaxBody)
	if r, ok := m.(*rendezvous.Roster); ok && j.entered(r) {
		m, err = l.receive(rendezvous.MaxBody)
	}
	inTime := stop()
	if err != nil {
		if !inTime {
			return nil, j.unanswered(ctx, err)
		}
		f := &Failure{Rank: -1, Died: true, Reason: explain(err)}
		return nil, &JoinError{Reason: fmt.Sprintf("%v (%s)", f, j.id.Addr()), Err: f}
	}
	switch m := m.(type) {
	case *rendezvous.Refusal:
		return nil, j.refused(m)
	case *rendezvous.Start:
		g := j.enrol(l, m)
		if inTime {
			return g, nil
		}
		return stillWanted(g, context.Cause(ctx))
	}
	return nil, &JoinError{Reason: rendezvous.ErrMalformed.Error(), Err: rendezvous.ErrMalformed}
}

// stillWanted returns g, a group that has started. If cause is why this rank will not come after all, it ends the group
// instead: all other ranks are in the group, so they hear of the failure there.
func stillWanted(g Group, cause error) (Group, error) {
	f, failed := errors.AsType[*Failure](cause)
	switch {
	case failed && !f.Died: // the group hears of a death by itself
		g.Fail(f.Error(), f.Culprits...)
	case errors.Is(cause, context.Canceled):
		g.Fail("cancelled while joining")
	default:
		return g, nil
	}
	g.Close()
	return nil, &JoinError{Reason: fmt.Sprintf("cancelled as the last rank came (%v)", cause), Err: cause}
}

// entered takes the roster. It returns false if this rank is not on it.
func (j *joiner) entered(r *rendezvous.Roster) bool {
	rank := slices.Index(r.Came, j.rank)
	if !j.partial || rank < 0 {
		return false
	}
	j.roster = r
	j.rank, j.size = rank, len(r.Came)
	return true
}
