package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// labGroups carries out collectives of simulated hosts: the ranks of a group meet at rank 0's host, and each two
// exchange labPart bytes.
type labGroups struct {
	fake      *fakeNet
	listeners []net.Listener // by rank

	mu   sync.Mutex
	came map[[3]int]chan net.Conn // by rank, caller and step
}

// labPart is how much two ranks exchange.
const labPart = 64 << 10

func newLabGroups(fake *fakeNet, hosts []*fakeHost) *labGroups {
	g := &labGroups{fake: fake, came: map[[3]int]chan net.Conn{}}
	for rank, h := range hosts {
		ln := fake.listen(byte(rank+1), h.addresses[0].Net.IP)
		g.listeners = append(g.listeners, ln)
		go g.serve(rank, ln)
	}
	return g
}

// callers is where a rank finds the connection of a caller in a step.
func (g *labGroups) callers(rank, from, step int) chan net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := [3]int{rank, from, step}
	if g.came[at] == nil {
		g.came[at] = make(chan net.Conn, 1)
	}
	return g.came[at]
}

func (g *labGroups) serve(rank int, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			head := make([]byte, 8)
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			from, step := int(binary.BigEndian.Uint32(head)), int(binary.BigEndian.Uint32(head[4:]))
			if step == 0 { // it only asks where the others are
				_, _ = c.Write(head)
				return
			}
			g.callers(rank, from, step) <- c
		}()
	}
}

// call connects two ranks in a step, numbered from 1; 0 is for the rendezvous.
func (g *labGroups) call(ctx context.Context, me, peer, step int) (net.Conn, error) {
	for {
		c, err := g.fake.dial(ctx, byte(me+1), "", g.listeners[peer].Addr().String(), 0)
		if err == nil {
			_, err = c.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(me)), uint32(step)))
		}
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// collect is a rank's part of a group's collective.
func (g *labGroups) collect(ctx context.Context, me int, group []int, step int) error {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, trialTime(time.Until(end)))
	defer cancel()
	meeting, err := g.call(ctx, me, 0, 0)
	if err == nil {
		defer bounded(ctx, meeting)()
		_, err = io.ReadFull(meeting, make([]byte, 8))
		meeting.Close()
	}
	if err != nil {
		return fmt.Errorf("rank %d did not reach the rendezvous: %w", me, err)
	}
	errs := make(chan error, len(group))
	for _, peer := range group {
		go func() { errs <- g.exchange(ctx, me, peer, step+1) }()
	}
	for range group {
		if failed := <-errs; failed != nil && err == nil {
			err = failed
			cancel()
		}
	}
	return err
}

func (g *labGroups) exchange(ctx context.Context, me, peer, step int) (err error) {
	if peer == me {
		return nil
	}
	var c net.Conn
	if me < peer {
		c, err = g.call(ctx, me, peer, step)
	} else {
		select {
		case c = <-g.callers(me, peer, step):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		defer c.Close()
		defer bounded(ctx, c)()
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, labPart))
			sent <- err
		}()
		if _, err = io.ReadFull(c, make([]byte, labPart)); err == nil {
			err = <-sent
		}
	}
	if err != nil {
		return fmt.Errorf("rank %d waits for rank %d: %w", me, peer, err)
	}
	return nil
}
