package fifo

import (
	"runtime"
	"sync/atomic"
	"time"
)

// NewLocal makes a queue between two goroutines of this process, in ordinary
// memory. Each end waits in its own way. A slot takes as much memory as the longest
// message so far that it held, so Reserve allocates when messages become longer.
func NewLocal(g Geometry, producer, consumer Waiting) (*Producer, *Consumer, error) {
	if err := g.Check(); err != nil {
		return nil, nil, err
	}
	r := newLocalRing(g)
	p, c := new(Producer), new(Consumer)
	pp, cp := newLocalParker(), newLocalParker()
	p.init(r, producer, pp, cp)
	c.init(r, consumer, cp, pp)
	return p, c, nil
}

// localParker parks a goroutine and no thread. A token left over from a wake
// that came too late makes one later park return early, which a park may.
type localParker struct {
	token chan struct{}
	timer *time.Timer
}

func newLocalParker() *localParker {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &localParker{token: make(chan struct{}, 1), timer: t}
}

func (*localParker) yield() { runtime.Gosched() }
func (*localParker) move()  {} // the Go scheduler's business

func (l *localParker) park(state *atomic.Uint32, d time.Duration) {
	l.timer.Reset(d)
	select {
	case <-l.token:
	case <-l.timer.C:
	}
	l.timer.Stop()
}

func (l *localParker) wake(*atomic.Uint32) {
	select {
	case l.token <- struct{}{}:
	default:
	}
}
