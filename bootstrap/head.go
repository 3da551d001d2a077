package bootstrap

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/process"
)

// Ranks of one machine share results. In a large group the hub sends the result of an AllGather to the
// first rank of each machine, its head. The other ranks get the result from the head: in the head's
// process by reference, else over a unix socket. A rank that cannot, since the head has died or left, asks
// the hub. So the hub sends each machine one copy, and deaths and goodbyes work as in small groups.

const (
	headedRanks = 64               // groups of fewer ranks have no heads
	fetchTime   = 20 * time.Second // limit for a head that is stopped; the death of one is seen at once
)

// A head gives the results of AllGathers to the other ranks of its machine, the takers.
type head struct {
	key      []byte
	takers   int
	ln       net.Listener // nil if all takers are in this process
	unproven *auth.Pending
	over     context.Context // ended by end
	close    context.CancelFunc
	wg       sync.WaitGroup

	mu     sync.Mutex
	kept   rendezvous.Results
	taken  map[uint64]int    // number of takers that have got it
	frames map[uint64][]byte // encoded when first asked for
	news   chan struct{}     // closed at the next result, and when the head ends
	ended  bool
}

// A headTable has the heads of a process, by headName.
type headTable struct {
	sync.Mutex
	m map[string]*head
}

var localHeads = process.NewRegistry(func() *headTable { return &headTable{m: map[string]*head{}} })

// headName is the abstract unix socket of a head. Only the group's ranks can compute it.
func headName(key []byte, rank int) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "ringo head %d", rank)
	return "@ringo-" + hex.EncodeToString(h.Sum(nil)[:16])
}

const headProtocol = "ringo gathered 1"

// newHead makes rank a head. If it cannot listen, takers in other processes ask the hub.
func newHead(key []byte, rank, takers int, apart bool) *head {
	h := &head{key: key, takers: takers, kept: rendezvous.Results{}, taken: map[uint64]int{}, frames: map[uint64][]byte{},
		news: make(chan struct{})}
	h.over, h.close = context.WithCancel(context.Background())
	name := headName(key, rank)
	heads := localHeads.In(nil)
	heads.Lock()
	heads.m[name] = h
	heads.Unlock()
	if apart {
		if ln, err := net.Listen("unix", name); err == nil {
			h.ln = ln
			h.unproven = auth.NewPending(maxUnproven, handshakeTime, nil)
			h.wg.Go(func() { h.unproven.Serve(ln, h.serve) })
		}
	}
	return h
}

// keep keeps a result for the takers.
func (h *head) keep(g *rendezvous.Gathered) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.kept.Keep(g)
	for _, seq := range slices.Sorted(maps.Keys(h.taken)) {
		if !rendezvous.Kept(seq, g.Seq) {
			h.forget(seq)
		}
	}
	close(h.news)
	h.news = make(chan struct{})
}

// forget drops a result. Under mu.
func (h *head) forget(seq uint64) {
	delete(h.kept, seq)
	delete(h.taken, seq)
	delete(h.frames, seq)
}

var errNotHere = errors.New("the head does not have it")

// get waits for the result of AllGather seq, at most fetchTime.
func (h *head) get(ctx context.Context, seq uint64) (*rendezvous.Gathered, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for {
		h.mu.Lock()
		g, news, ended := h.kept[seq], h.news, h.ended
		if g != nil {
			if h.taken[seq]++; h.taken[seq] == h.takers {
				h.forget(seq)
			}
		}
		h.mu.Unlock()
		switch {
		case g != nil:
			return g, nil
		case ended:
			return nil, errNotHere
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, errNotHere
		}
	}
}

// serve sends a rank of another process the result that it asks for.
func (h *head) serve(c net.Conn) {
	var seq uint64
	trusted := false
	err := auth.Answer(c, h.key, headProtocol, func(body []byte) []byte {
		if len(body) == 8 {
			seq, trusted = binary.BigEndian.Uint64(body), h.unproven.Trust(c)
		}
		return nil
	})
	if !trusted {
		return
	}
	defer c.Close()
	if g, missing := h.get(h.over, seq); err == nil && missing == nil {
		c.SetDeadline(time.Now().Add(fetchTime))
		defer context.AfterFunc(h.over, func() { c.SetDeadline(time.Now().Add(flushTime)) })()
		c.Write(h.frame(g)) // a rank that does not get it asks the hub
	}
}

func (h *head) frame(g *rendezvous.Gathered) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.frames[g.Seq]
	if f == nil {
		f = rendezvous.Encode(g)
		if h.kept[g.Seq] != nil {
			h.frames[g.Seq] = f
		}
	}
	return f
}

// end ends the head: from now on the takers ask the hub.
func (h *head) end(rank int) {
	heads := localHeads.In(nil)
	heads.Lock()
	delete(heads.m, headName(h.key, rank))
	heads.Unlock()
	h.mu.Lock()
	if !h.ended {
		h.ended = true
		close(h.news)
	}
	h.mu.Unlock()
	h.close()
	if h.ln != nil {
		h.ln.Close()
		h.unproven.Close()
		h.wg.Wait()
	}
}

// fetch gets a result from the head of a rank's machine.
func fetch(ctx context.Context, key []byte, rank int, seq uint64) (*rendezvous.Gathered, error) {
	name := headName(key, rank)
	heads := localHeads.In(nil)
	heads.Lock()
	h := heads.m[name]
	heads.Unlock()
	if h != nil {
		return h.get(ctx, seq)
	}
	d := net.Dialer{Timeout: fetchTime}
	c, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(2 * fetchTime))
	if _, err := auth.Call(c, key, headProtocol, binary.BigEndian.AppendUint64(nil, seq)); err != nil {
		return nil, err
	}
	m, err := rendezvous.Decode(bufio.NewReader(c), rendezvous.MaxBody)
	g, ok := m.(*rendezvous.Gathered)
	if err != nil || !ok || g.Seq != seq {
		return nil, errNotHere
	}
	return g, nil
}
