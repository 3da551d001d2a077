package ringo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/shm"
	"github.com/ringo-go/ringo/transport/socket"
)

// process tells apart address spaces, also across containers that number their
// processes alike.
var process = sync.OnceValue(func() string {
	var b [8]byte
	rand.Read(b[:])
	return fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(b[:]))
})

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

	me := profile{
		Version: Version, Limits: c.cfg.limits(), Wish: order, Hostname: c.cfg.hostname(), Order: c.cfg.Deterministic,
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
	if c.cfg.Device != nil {
		if err := me.describe(c.cfg.Device); err != nil {
			return err
		}
	}
	if c.rank == 0 {
		me.Plan = c.cfg.plan
		if me.Plan == nil {
			read := loadPlan(c.cfg.Plan)
			me.Plan = &read
		}
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
	c.cfg.plan = c.profiles[0].Plan
	if c.given, err = c.cfg.plan.parse(); err != nil {
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
	return c.connectDevice(ctx, me.Info)
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
