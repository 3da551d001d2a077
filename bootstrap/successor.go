// Successors: where the ranks that are left meet after the process that served the hub has died.

package bootstrap

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// takePort returns the successor's port once, then nil.
func (m *member) takePort() net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	port := m.succession.port
	m.succession.port = nil
	return port
}

// succeed has the ranks that are left meet at the first successor that lives. A successor is passed over only if its
// host says that its process has ended, and more than half of the ranks that may live must come: so two groups cannot
// begin.
func (m *member) succeed(ctx context.Context, wait time.Duration) (Regrouping, error) {
	key, err := hkdf.Key(sha256.New, m.key, nil, "ringo heir", keyLen)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	ended := m.absentees()
	living := m.size - len(ended) // successors that are passed over count: they may have gone on first
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := m.succession.opt
	for _, h := range m.succession.successors {
		id, err := IDOf(h.Addr, key)
		if err != nil {
			return Regrouping{}, err
		}
		if h.Rank == m.rank {
			m.serve(id, wait, ended)
		}
		for {
			g, r, err := Meet(ctx, id, m.rank, m.size, nil, o)
			if err == nil && 2*len(r.Came) <= living {
				g.Close()
				return Regrouping{}, fmt.Errorf("the process that serves the rendezvous has died, and only ranks %s have come, "+
					"not more than half of the %d that may live", rendezvous.Ranges(r.Came), living)
			}
			if err == nil {
				return Regrouping{Members: r.Came, Group: g}, nil
			}
			if errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
				ended[h.Rank] = "its process has ended"
				break
			}
			if f, ok := errors.AsType[*Failure](err); !ok || f.Rank >= 0 || ctx.Err() != nil {
				// other failures mean that the successor has died while this rank waited there
				return Regrouping{}, err
			}
		}
	}
	return Regrouping{}, errors.New("the process that serves the rendezvous has died, and none lives that could take " +
		"its place")
}

// absentees are the ranks that will not come, and why.
func (m *member) absentees() map[int]string {
	ended := map[int]string{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.peers.gone {
		ended[r] = "it has left"
	}
	if f := m.failure; f != nil && f.Died {
		for _, r := range f.Culprits {
			ended[r] = f.Reason
		}
	}
	for _, r := range m.peers.hosts {
		ended[r] = "it served the rendezvous"
	}
	return ended
}

// serve serves the rendezvous of the ranks that are left, in place of the hub.
func (m *member) serve(id ID, wait time.Duration, ended map[int]string) {
	port, o := m.takePort(), m.succession.opt
	if port == nil { // this rank closes its group
		return
	}
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	hubs.m[id] = newHub(id, port, ListenOptions{TLS: o.TLS, Log: o.Log, Timeout: 2 * wait}, maps.Clone(ended))
}

// regroupAlone goes on without the hub, once it is known whether its process has died.
func (m *member) regroupAlone(ctx context.Context, wait time.Duration) (Regrouping, error) {
	select {
	case <-m.succession.known:
	case <-m.uplink.open.Done():
		return Regrouping{}, errNoRendezvous
	case <-ctx.Done():
		return Regrouping{}, errNoRendezvous
	}
	m.mu.Lock()
	first := m.succession.hubDied
	m.succession.hubDied = false // the successors' ports serve once
	m.mu.Unlock()
	if !first {
		return Regrouping{}, errNoRendezvous
	}
	r, err := m.succeed(ctx, wait)
	if err != nil {
		err = fmt.Errorf("regroup: %w", err)
	}
	return r, err
}
