package check

import (
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

// JoinOptions are for a rank that joins.
type JoinOptions struct {
	// Timeout is how long ranks may take to come (20 s by default). Where rank 0 serves the rendezvous itself, the others go on
	// without those that have not come, and say so.
	Timeout time.Duration
	// Spec is what the launcher says; nil is the environment.
	Spec *bootstrap.Spec
	// Host is this host's name in the report; empty is the one that it has.
	Host string
	// Absent are ranks that are known not to come, with their hosts; they are not counted in Spec.
	Absent []Loss
}

// Join makes this process a rank of the job that a launcher has started: ringo run, torchrun,
// mpirun, srun, a Kubernetes indexed job; see bootstrap.FromEnv for the variables. Without a
// launcher the job is this process alone. The error names the ranks that did not come, where the others could not go on
// without them; it wraps a *bootstrap.JoinError then.
func Join(ctx context.Context, o JoinOptions) (*Job, error) {
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
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
			return Alone(), nil
		}
		o.Spec = &spec
	}
	m := &meeting{JoinOptions: o, tls: tls, me: profile{Host: o.Host, ID: cfg.HostID, Boot: ThisMachine("/").text("proc/sys/kernel/random/boot_id")}}
	if m.me.Host == "" {
		m.me.Host, _, _ = strings.Cut(cfg.HostID, "/")
	}
	return m.meet(ctx)
}

// A profile is what a rank tells the others when they meet.
type profile struct {
	Host  string   // its name
	ID    string   // what tells hosts apart
	Boot  string   // of its kernel
	Rank  int      // in the job; ranks that have not come are counted there and not in the group
	Where []string // rank 0: addresses of its hub
}

type meeting struct {
	JoinOptions
	tls *bootstrap.TLS
	me  profile
}

// meet finds the others: all, or those that have come.
func (m *meeting) meet(ctx context.Context) (*Job, error) {
	m.me.Rank = m.Spec.Rank
	ctx, cancel := context.WithTimeout(ctx, 2*m.Timeout+10*time.Second)
	defer cancel()
	first, cancel := context.WithTimeout(ctx, m.Timeout)
	group, err := m.Spec.Join(first, bootstrap.ListenOptions{TLS: m.tls}, bootstrap.JoinOptions{TLS: m.tls})
	cancel()
	var missing []int
	if no, ok := errors.AsType[*bootstrap.JoinError](err); ok && len(no.Missing) > 0 && !slices.Contains(no.Missing, 0) && !strings.HasPrefix(m.Spec.Addr, "ringo:") && m.Spec.Store == 0 {
		missing = no.Missing
		group, err = m.without(ctx, missing)
	}
	if err != nil {
		return nil, err
	}
	defer group.Close()
	return m.connect(ctx, group, missing)
}

// without has the ranks that have come meet again.
func (m *meeting) without(ctx context.Context, missing []int) (bootstrap.Group, error) {
	id, err := m.Spec.ID()
	if err != nil {
		return nil, err
	}
	id = id.Derive(fmt.Sprint("check without ", missing))
	rank := m.Spec.Rank
	for _, gone := range missing {
		if gone < m.Spec.Rank {
			rank--
		}
	}
	if rank == 0 {
		if err := bootstrap.Serve(id, bootstrap.ListenOptions{TLS: m.tls}); err != nil {
			return nil, err
		}
	}
	return bootstrap.Join(ctx, id, rank, m.Spec.Size-len(missing), bootstrap.JoinOptions{TLS: m.tls})
}

// connect has the ranks tell each other who they are, and connects them to rank 0.
func (m *meeting) connect(ctx context.Context, group bootstrap.Group, missing []int) (*Job, error) {
	var ln net.Listener
	if group.Rank() == 0 {
		var err error
		if ln, err = net.Listen("tcp", ":0"); err != nil {
			return nil, fmt.Errorf("check: rank 0: %w", err)
		}
		defer ln.Close()
		m.me.Where = whereTo(ln)
	}
	mine, err := json.Marshal(m.me)
	if err != nil {
		return nil, err
	}
	parts, err := group.AllGather(ctx, mine)
	if err != nil {
		return nil, err
	}
	profiles := make([]profile, len(parts))
	for i, p := range parts {
		if err := json.Unmarshal(p, &profiles[i]); err != nil {
			return nil, fmt.Errorf("check: rank %d says nothing sensible: %w: have all the same version of ringo?", i, err)
		}
	}
	size := m.Spec.Size
	j := newJob(m.me.Rank, make([]Member, size+len(m.Absent)), group.Key())
	j.tls = m.tls
	names := uniqueNames(profiles)
	for i, p := range profiles {
		j.members[p.Rank] = Member{Rank: p.Rank, Host: names[i], ID: p.ID, Boot: p.Boot}
	}
	for _, r := range missing {
		j.members[r] = Member{Rank: r}
		j.lost[r] = Loss{Rank: r, Absent: true, Why: fmt.Sprintf("it did not come within %v: is its host up, and its process started? can it reach %s?", m.Timeout, m.Spec.Addr)}
	}
	for i, l := range m.Absent {
		l.Rank, l.Absent = size+i, true
		j.members[l.Rank] = Member{Rank: l.Rank, Host: l.Host}
		j.lost[l.Rank] = l
	}
	if group.Rank() == 0 {
		if !slices.ContainsFunc(profiles, func(p profile) bool { return p.Boot != m.me.Boot }) {
			j.meetAt = "127.0.0.1:0"
		}
		err = j.accept(ctx, ln)
	} else {
		err = j.reach(ctx, profiles[0].Where)
	}
	if err != nil {
		return nil, err
	}
	// All are connected when all have come here; then the rendezvous is needed no longer.
	if _, err := group.AllGather(ctx, nil); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

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

// whereTo are the addresses at which others may reach a listener on all interfaces: that on
// the way out, the others, loopback.
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

// accept takes a connection of every other rank that lives.
func (j *Job) accept(ctx context.Context, ln net.Listener) error {
	want := len(j.Live()) - 1
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	conns := map[int]net.Conn{}
	came := make(chan caller)
	go func() { j.serve(ln, wantStar, came) }()
	for len(conns) < want {
		select {
		case c := <-came:
			if old := conns[c.From]; old != nil { // it has tried again
				old.Close()
			}
			conns[c.From] = c.conn
		case <-ctx.Done():
			for _, c := range conns {
				c.Close()
			}
			return fmt.Errorf("check: %d of %d ranks have connected to rank 0: can they reach %v? %w", len(conns), want, ln.Addr(), context.Cause(ctx))
		}
	}
	j.star = newHub(len(j.members), conns)
	return nil
}

// reach connects to rank 0 at one of its addresses.
func (j *Job) reach(ctx context.Context, where []string) error {
	var errs []error
	for {
		for _, at := range where {
			c, err := j.call(ctx, "", at, greeting{From: j.rank, Want: wantStar})
			if err == nil {
				j.star = newRay(c)
				return nil
			}
			errs = append(errs, err)
		}
		if ctx.Err() != nil || len(errs) > 3*len(where) {
			return fmt.Errorf("check: rank %d: rank 0 cannot be reached: %w", j.rank, errors.Join(errs[len(errs)-len(where):]...))
		}
	}
}
