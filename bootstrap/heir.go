// Heirs: where the ranks that are left meet after the process that served the hub has died.

package bootstrap

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// maxHeirs is how many processes besides the hub's may die, one after the other, before the others cannot go on.
const maxHeirs = 4

// An heir is a rank in whose process the others meet if the hub's has died: the first that lives.
type heir struct {
	Rank int
	Addr string // of a port that is open since the rank joined, and serves nobody as long as the hub lives
}

// heirs are the first maxHeirs ranks that have such a port.
func (l *lobby) heirs() (all []heir) {
	for r := 0; r < l.size && len(all) < maxHeirs; r++ {
		s := l.seats[r]
		host, _, err := net.SplitHostPort(s.from)
		if s.Port > 0 && err == nil {
			all = append(all, heir{r, net.JoinHostPort(host, strconv.Itoa(s.Port))})
		}
	}
	return all
}

// claimPort opens the port of a rank that may be an heir, at the address near, which the hub can reach. It returns the
// number of the port, 0 if there is none.
func (j *joiner) claimPort(near net.Addr) int {
	at, ok := near.(*net.TCPAddr)
	if !ok || j.opt.Dial != nil || hubOf(j.id) != nil {
		return 0
	}
	for j.port == nil {
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: at.IP, Zone: at.Zone})
		if err != nil {
			return 0
		}
		if slices.Contains(j.opt.ports, portIn(ln.Addr().String())) {
			defer ln.Close() // after another was found
			continue
		}
		j.port = ln
	}
	return j.port.Addr().(*net.TCPAddr).Port
}

// portIn is the port of host:port.
func portIn(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (j *joiner) closePort() {
	for _, ln := range []net.Listener{j.port, j.eye} {
		if ln != nil {
			ln.Close()
		}
	}
}

// An estate holds the means of a rank to go on without the hub.
type estate struct {
	heirs []heir
	port  net.Listener // nil if this rank is no heir
	opt   JoinOptions  // for the group that goes on
}

// inherit gives the member its estate.
func (j *joiner) inherit(m *member, s *start) {
	m.estate = estate{heirs: s.Heirs, opt: j.opt}
	m.estate.opt.ports = []string{portIn(j.id.Addr()), strconv.Itoa(s.Pulse)}
	for _, h := range s.Heirs {
		m.estate.opt.ports = append(m.estate.opt.ports, portIn(h.Addr))
	}
	if slices.ContainsFunc(s.Heirs, func(h heir) bool { return h.Rank == m.rank }) {
		m.estate.port = j.port
		return
	}
	if j.port != nil {
		j.port.Close()
	}
}

// takePort returns the heir's port once, then nil.
func (m *member) takePort() net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	port := m.estate.port
	m.estate.port = nil
	return port
}

// succeed has the ranks that are left meet at the first heir that lives. An heir is passed over only if its host says
// that its process has ended, and more than half of the ranks that may live must come: so two groups cannot begin.
func (m *member) succeed(ctx context.Context, wait time.Duration) (Regrouping, error) {
	key, err := hkdf.Key(sha256.New, m.key, nil, "ringo heir", keyLen)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	ended := m.known()
	living := m.size - len(ended) // heirs that are passed over count: they may have gone on first
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := m.estate.opt
	for _, h := range m.estate.heirs {
		id, err := IDOf(h.Addr, key)
		if err != nil {
			return Regrouping{}, err
		}
		if h.Rank == m.rank {
			m.serveHeirs(id, wait, ended)
		}
		for {
			g, r, err := Meet(ctx, id, m.rank, m.size, nil, o)
			if err == nil && 2*len(r.Came) <= living {
				g.Close()
				return Regrouping{}, fmt.Errorf("the process that serves the rendezvous has died, and only ranks %s have come, "+
					"not more than half of the %d that may live", ranges(r.Came), living)
			}
			if err == nil {
				return Regrouping{Members: r.Came, Group: g}, nil
			}
			if errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
				ended[h.Rank] = "its process has ended"
				break
			}
			if f, ok := errors.AsType[*Failure](err); !ok || f.Rank >= 0 || ctx.Err() != nil {
				// other failures mean that the heir has died while this rank waited there
				return Regrouping{}, err
			}
		}
	}
	return Regrouping{}, errors.New("the process that serves the rendezvous has died, and none lives that could take " +
		"its place")
}

// known are the ranks that will not come, and why.
func (m *member) known() map[int]string {
	ended := map[int]string{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.gone {
		ended[r] = "it has left"
	}
	if f := m.failure; f != nil && f.Died {
		for _, r := range f.Culprits {
			ended[r] = f.Reason
		}
	}
	for _, r := range m.hosts {
		ended[r] = "it served the rendezvous"
	}
	return ended
}

// serveHeirs serves the rendezvous of the ranks that are left, in place of the hub.
func (m *member) serveHeirs(id ID, wait time.Duration, ended map[int]string) {
	port, o := m.takePort(), m.estate.opt
	if port == nil { // this rank closes its group
		return
	}
	hubs.Lock()
	defer hubs.Unlock()
	hubs.m[id] = newHub(id, port, ListenOptions{TLS: o.TLS, Log: o.Log, Timeout: 2 * wait}, maps.Clone(ended))
}

// bereft waits until it is known whether the process that serves the hub has died, and reports whether it has.
func (m *member) bereft(ctx context.Context) bool {
	select {
	case <-m.mourned:
	case <-m.closed:
		return false
	case <-ctx.Done():
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.hubDied
	m.hubDied = false // the heirs' ports serve once
	return first
}

// regroupAlone goes on without the hub.
func (m *member) regroupAlone(ctx context.Context, wait time.Duration) (Regrouping, error) {
	if !m.bereft(ctx) {
		return Regrouping{}, errNoRendezvous
	}
	r, err := m.succeed(ctx, wait)
	if err != nil {
		err = fmt.Errorf("regroup: %w", err)
	}
	return r, err
}
