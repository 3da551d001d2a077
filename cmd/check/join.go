package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// joinOptions are for a rank that joins.
type joinOptions struct {
	// Timeout is how long ranks may take to come (20 s by default). Then the others go on without the missing ranks,
	// and the report names these.
	Timeout time.Duration
	// Spec are the launcher's settings; nil is those of the environment.
	Spec *bootstrap.Spec
	// Host is this host's name in the report; if empty, the machine's own host name.
	Host string
	// Hosts are the names of hosts by rank, for findings about ranks that do not come; nil are those of the Spec, if it
	// has them.
	Hosts []string
	// Spent is how much of the time for a check is over.
	Spent time.Duration
	// Absent are ranks that will not come, with their hosts; Spec does not count them.
	Absent []loss

	connect time.Duration // in place of connectTime, for tests
	late    time.Duration // in place of lateTime, for tests
	version string        // in place of ringo.Version, for tests
}

// connectTime is how long ranks that have met may take to connect to the first of them; leastConnect is for those that
// others have kept waiting for long.
const (
	connectTime  = 15 * time.Second
	leastConnect = 5 * time.Second
)

// join makes this process a rank of the job that a launcher has started: ringo run, torchrun,
// mpirun, srun, a Kubernetes indexed job; see bootstrap.FromEnv for the variables. Without a
// launcher the job is this process alone.
//
// The error is an *absentError if this rank has no part in the job: nobody answers at the meeting point, which rank 0
// serves unless the launcher does; or the others have begun without this rank.
func join(ctx context.Context, o joinOptions) (*job, error) {
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	began := time.Now().Add(-o.Spent)
	cfg, err := ringo.Config{}.FromEnv()
	if err != nil {
		return nil, err
	}
	tls, err := bootstrap.TLSFromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	if o.Spec == nil {
		spec, ok, err := bootstrap.FromEnv(os.Getenv)
		if err != nil {
			return nil, err
		}
		if !ok {
			return alone(), nil
		}
		o.Spec = &spec
	}
	if o.Hosts == nil {
		o.Hosts = o.Spec.Hosts
	}
	here := thisMachine("/")
	m := &meeting{joinOptions: o, began: began, tls: tls, me: profile{Version: cmp.Or(o.version, ringo.Version),
		Host: o.Host, ID: cfg.HostID, Boot: here.text("proc/sys/kernel/random/boot_id"), MACs: hardware()}}
	m.me.Addresses, _ = here.Addresses() // the stage of hosts reports an error
	if m.me.Host == "" {
		m.me.Host, _, _ = strings.Cut(cfg.HostID, "/")
	}
	return m.meet(ctx)
}

// A profile is a rank's description of itself at the rendezvous.
type profile struct {
	Host  string   // its host's name
	ID    string   // identifies the host: different for different hosts
	Boot  string   // boot ID of its kernel
	Where []string // addresses at which it takes connections, if it turns out to be the first rank
	// Version is that of ringo.
	Version string
	// Addresses are those of its host, and MACs those of the host's cards.
	Addresses []address
	MACs      []string
}

type meeting struct {
	joinOptions
	began time.Time
	tls   *bootstrap.TLS
	me    profile
}

// meet finds the others that have come, and connects them.
func (m *meeting) meet(ctx context.Context) (*job, error) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, fmt.Errorf("check: rank %d: %w", m.Spec.Rank, err)
	}
	defer ln.Close()
	m.me.Where = whereTo(ln)
	card, err := json.Marshal(m.me)
	if err != nil {
		return nil, err
	}
	seen := &neighbours{seen: map[string]map[string]bool{}}
	watching, seenEnough := context.WithCancel(ctx)
	defer seenEnough()
	go seen.watch(watching, thisMachine("/"))
	seen.asked.Go(func() { seen.ask(m.me.Addresses) })
	group, roster, err := m.come(ctx, card, m.Timeout)
	if err != nil {
		return nil, m.explain(err, card)
	}
	j, where, err := m.job(group, roster)
	if err != nil {
		group.Close()
		return nil, err
	}
	j.neighbours = seen
	patience := min(connectTime, max(leastConnect, connectTime+leastConnect-time.Since(m.began)))
	if err := j.connect(ctx, ln, where, cmp.Or(m.connect, patience)); err != nil {
		group.Close()
		return nil, err
	}
	if len(roster.Away) == 0 {
		group.Close()
	} else { // kept, to tell ranks that come late
		j.group = group
	}
	return j, nil
}

// come is one attempt to meet.
func (m *meeting) come(ctx context.Context, card []byte, timeout time.Duration) (bootstrap.Group, *bootstrap.Roster,
	error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return m.Spec.Meet(ctx, card, bootstrap.ListenOptions{TLS: m.tls}, bootstrap.JoinOptions{TLS: m.tls,
		Dial: func(ctx context.Context, _, to string) (net.Conn, error) { return dialSmall(ctx, "", to) }})
}

// linger returns when the others, which have begun without this rank, have ended.
func (m *meeting) linger(ctx context.Context, card []byte) {
	ctx, cancel := context.WithTimeout(ctx, withinFull+time.Minute)
	defer cancel()
	every := cmp.Or(m.late, lateTime)
	for failed := 0; failed < 3 && ctx.Err() == nil; failed++ { // one attempt may fail where all are busy
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
		group, _, err := m.come(ctx, card, every)
		if err == nil { // the others' group has ended, and the launcher's rendezvous has begun a new one
			group.Close()
			return
		}
		if errors.Is(err, bootstrap.ErrExcluded) {
			failed = -1
		}
	}
}

// lateTime is how often a rank that has come too late looks whether the others are still there.
const lateTime = time.Second

// explain turns the error of a rendezvous into one that names the missing rank.
func (m *meeting) explain(err error, card []byte) error {
	me := component{m.me.Host, fmt.Sprint("rank ", m.Spec.Rank)}
	no, ok := errors.AsType[*bootstrap.JoinError](err)
	switch {
	case errors.Is(err, bootstrap.ErrExcluded):
		return &absentError{Who: me, Why: "it was not checked: " + no.Reason,
			wait: func(ctx context.Context) { m.linger(ctx, card) }}
	case !ok || no.Nobody == nil:
		return err
	}
	at, who := m.Spec.Addr, component{Part: "the rendezvous of the launcher"}
	if id, err := m.Spec.ID(); err == nil {
		at = id.Addr()
	}
	if m.Spec.Store == 0 && !strings.HasPrefix(m.Spec.Addr, "ringo:") {
		host, _, _ := net.SplitHostPort(at)
		who = component{host, "rank 0"}
	}
	ip, mine := net.ParseIP(ipOf(at)), ""
	if ip.IsLoopback() || slices.ContainsFunc(m.me.Addresses, func(a address) bool { return a.Net.IP.Equal(ip) }) {
		mine = ", an address of this host itself,"
	}
	return &absentError{Who: who,
		Why: fmt.Sprintf("nothing answers %v at %s%s within %v (%v), and the ranks meet there: is the host up, its process "+
			"started and the port open? or have the others ended before this rank came?", me, at, mine, m.Timeout, no.Nobody)}
}

// An absentError means that the leading rank is missing, or that the others have begun without this rank.
type absentError struct {
	Who  component
	Why  string
	wait func(context.Context)
}

// Wait returns at once, unless the others go on without this rank; then it returns when they have ended or their time
// is over. A rank that exits earlier with an error would end the others too, since most launchers then kill all ranks.
func (e *absentError) Wait(ctx context.Context) {
	if e.wait != nil {
		e.wait(ctx)
	}
}

func (e *absentError) Error() string { return e.Who.String() + ": " + e.Why }

// job is the job of the ranks that have come, and the addresses at which the first of them takes connections.
func (m *meeting) job(group bootstrap.Group, roster *bootstrap.Roster) (*job, []string, error) {
	profiles := make([]profile, len(roster.Cards))
	for i, p := range roster.Cards {
		if err := json.Unmarshal(p, &profiles[i]); err != nil {
			return nil, nil, fmt.Errorf("check: rank %d says nothing sensible: %w: have all the same version of ringo?",
				roster.Came[i], err)
		}
	}
	size := m.Spec.Size
	j := newJob(m.Spec.Rank, make([]member, size+len(m.Absent)), group.Key())
	j.tls, j.first, j.began = m.tls, roster.Came[0], m.began
	names := uniqueNames(profiles)
	for i, p := range profiles {
		j.members[roster.Came[i]] = member{Rank: roster.Came[i], Host: names[i], ID: p.ID, Boot: p.Boot, Version: p.Version,
			Addresses: p.Addresses, MACs: p.MACs}
	}
	for r, why := range roster.Away {
		l := loss{Rank: r, Absent: true, Why: why}
		switch {
		case why != "":
			l.Why += "; look into its output"
		case len(roster.Came) == 1:
			l.Why = fmt.Sprintf("nobody else came to %s within %v: were their processes started? is that address right, and "+
				"its port open? is the host there cut off?", m.where(), m.Timeout)
		default:
			l.Why = fmt.Sprintf("did not come within %v: is the host up, and the process started? can it reach the others, "+
				"who met at %s?", m.Timeout, m.where())
		}
		if r < len(m.Hosts) {
			l.Host = m.Hosts[r]
		}
		j.members[r] = member{Rank: r, Host: l.Host}
		j.lost[r] = l
	}
	for i, l := range m.Absent {
		l.Rank, l.Absent = size+i, true
		j.members[l.Rank] = member{Rank: l.Rank, Host: l.Host}
		j.lost[l.Rank] = l
	}
	return j, profiles[0].Where, nil
}

// where is the address at which the ranks meet.
func (m *meeting) where() string {
	if id, err := m.Spec.ID(); err == nil {
		return id.Addr()
	}
	return m.Spec.Addr
}

// connect connects all that have come to the first of them.
func (j *job) connect(ctx context.Context, ln net.Listener, where []string, within time.Duration) error {
	way, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if j.First() {
		j.accept(way, ln, where, within)
	} else if err := j.reach(way, where); err != nil {
		return err
	}
	// All ranks learn which ranks have not connected.
	roll, cancel := context.WithTimeout(ctx, within+rollTime)
	defer cancel()
	_, err := j.conclude(roll, nil)
	if err = cmp.Or(context.Cause(ctx), err); err != nil {
		j.Close()
	}
	return err
}

// rollTime is how long a rank that has connected may take to say so.
const rollTime = 5 * time.Second

// uniqueNames gives different names to different hosts.
func uniqueNames(profiles []profile) []string {
	names, owner := make([]string, len(profiles)), map[string]string{}
	for i, p := range profiles {
		name := p.Host
		for k := 2; owner[name] != "" && owner[name] != p.ID+"."; k++ {
			name = fmt.Sprintf("%s#%d", p.Host, k)
		}
		owner[name], names[i] = p.ID+".", name
	}
	return names
}

// whereTo are the addresses at which others may reach a listener on all interfaces: the address of
// the default route, the other interfaces', loopback.
func whereTo(ln net.Listener) []string {
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	var where []string
	add := func(ip net.IP) {
		if at := net.JoinHostPort(ip.String(), port); !slices.Contains(where, at) {
			where = append(where, at)
		}
	}
	if list, err := addresses(); err == nil {
		for _, a := range list {
			add(a.Net.IP)
		}
	}
	add(net.IPv4(127, 0, 0, 1))
	return where
}

// accept takes a connection of every other rank that has come. Who does not connect is lost.
func (j *job) accept(ctx context.Context, ln net.Listener, where []string, within time.Duration) {
	live := j.Live()
	want := len(live) - 1
	conns := map[int]net.Conn{}
	came := make(chan caller)
	go j.serve(ln, wantStar, came)
	for over := false; len(conns) < want && !over; {
		select {
		case c := <-came:
			if old := conns[c.From]; old != nil { // it has tried again
				old.Close()
			}
			conns[c.From] = c.conn
		case <-ctx.Done():
			over = true
		}
	}
	ln.Close()
	why := fmt.Sprintf("it came, and made no connection to %v at %s within %v", j.component(j.first),
		strings.Join(where, ", "), within.Round(time.Millisecond))
	h := newHub(len(j.members), j.first, conns)
	for _, r := range live {
		if c := conns[r]; c != nil && isLoopback(j.meetAt) {
			j.meetAt = ipOf(c.LocalAddr().String())
		}
		if r != j.first && conns[r] == nil {
			h.missed = append(h.missed, loss{Rank: r, Cut: true, Why: why})
		}
	}
	j.star = h
}

// reach connects to the first rank at one of its addresses. Some of them may lead nowhere from here, so no attempt
// takes long at first.
func (j *job) reach(ctx context.Context, where []string) error {
	var last []error // of each address
	for try := time.Second; ; try *= 2 {
		var errs []error
		for _, at := range where {
			c, err := j.callWithin(ctx, try, at)
			if err == nil {
				j.meetAt = ipOf(at)
				j.star = newRay(c, j.component(j.first), j.component(j.rank))
				return nil
			}
			errs = append(errs, err)
		}
		if ctx.Err() == nil || last == nil { // else the errors only tell that the time is over
			last = errs
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return &absentError{Who: j.component(j.first),
				Why: fmt.Sprintf("it leads the check, and %v cannot reach it: %v; is its process stopped, or a port closed?",
					j.component(j.rank), errors.Join(last...))}
		}
	}
}

// ipOf is the host part of "host:port".
func ipOf(at string) string {
	host, _, _ := net.SplitHostPort(at)
	return host
}

func isLoopback(host string) bool { return net.ParseIP(host).IsLoopback() }

func (j *job) callWithin(ctx context.Context, d time.Duration, at string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return j.call(ctx, "", at, greeting{From: j.rank, Want: wantStar})
}
