package check

import (
	"context"
	"fmt"
	"sync"
)

// Two hosts have no third to be compared with: their link is judged by its two directions and by the speed of the
// interfaces.
const (
	linkStreams     = 4 // of the second measurement
	manyStreams     = "bandwidth of 4 streams"
	pairFloor       = 0.3   // a link is slow below this part of the other direction's bandwidth or of the interface's speed
	pairFloorShared = 0.1   // pairFloor for hosts that are one machine, whose interfaces' speed means nothing
	nearBy          = 2.5e3 // us; farther away a stream ends before it has found its pace
	exactSum        = 0.05  // GB/s of several streams nearby; of less, few blocks are sent, and the sum says little
	// Up to sureSpeed any core is quick enough. One stream that is about as quick as several together fills the link, and
	// is slow below pairFloorSure, if several, of which the sum is less exact, are below pairFloorMany.
	sureSpeed     = 1.25 // GB/s
	steadyPart    = 1.5
	pairFloorSure = 0.6
	pairFloorMany = 0.75
	farAway       = 2000. // us of latency, beyond which a stream ends before TCP has found the speed of a card
	tcpSpeed      = 5     // GB/s that are expected of TCP at most, whatever the interface's speed
)

// several is a measurement over one rail by several TCP streams at once, for caller and acceptor. It is for a job of
// two hosts, which cannot be compared with a third: a single stream may be slow on a good link.
func (c *crew) several(ctx context.Context, rail rail, peer, round, number int, p phases) {
	var wg sync.WaitGroup
	parts := make([]*crew, linkStreams)
	for i := range parts {
		part := &crew{j: c.j, hosts: c.hosts, ranks: c.ranks, me: c.me}
		parts[i] = part
		wg.Go(func() {
			if c.me < peer {
				part.call(ctx, rail, peer, round, number+(i+1)*maxRails, p)
			} else {
				c.wait(ctx, rail, peer, round, number+(i+1)*maxRails, p)
			}
		})
	}
	wg.Wait()
	sum := map[subject]float64{}
	var ways []subject
	for _, part := range parts {
		for _, m := range part.list {
			switch {
			case m.Quantity == "bandwidth":
				if sum[m.Subject] == 0 {
					ways = append(ways, m.Subject)
				}
				sum[m.Subject] += m.Value
			case m.Quantity == "corrupt":
				c.list = append(c.list, m)
			}
		}
	}
	for _, s := range ways {
		c.list = append(c.list, measurement{Subject: s, Quantity: manyStreams, Value: sum[s], Unit: "GB/s"})
	}
}

// best is the bandwidth of one stream or of several together.
func (w *way) best() float64 {
	if w.many < exactSum && w.latency < nearBy {
		return w.bandwidth
	}
	return max(w.bandwidth, w.many)
}

// slowOfTwo judges the ways between two hosts, by the other direction and by the interfaces' speed. If one stream is
// slow the link is measured again; a link counts as slow if several streams together are.
func (j *netJudge) slowOfTwo(ways []*way) {
	for _, w := range ways {
		rate := w.best()
		if rate == 0 {
			continue
		}
		steady := w.latency < nearBy && rate < steadyPart*w.bandwidth &&
			(w.bandwidth < steadyPart*w.many || w.many < exactSum)
		slow := func(one, want float64) bool {
			switch {
			case steady && want <= sureSpeed:
				return w.bandwidth < pairFloorSure*one && rate < pairFloorMany*want
			case j.shared:
				return rate < pairFloorShared*want
			}
			return rate < pairFloor*want
		}
		var text string
		var want float64
		for _, o := range ways {
			back := o.best()
			if o.subject != pairOf(w.subject.To, w.subject.component) {
				continue
			} else if rate < (1-slowFloor)*back {
				j.suspect([]*way{w})
			}
			if slow(o.bandwidth, back) {
				want, text = back, fmt.Sprintf("the other way %s", digits(back))
			}
		}
		if speed := min(w.speed, tcpSpeed); !j.shared && w.latency < farAway && slow(speed, speed) && speed > want {
			want, text = speed, fmt.Sprintf("its interfaces are set to %s", digits(w.speed))
		}
		switch {
		case text == "":
			continue
		case w.many > 0 || w.second > 0 && steady && rate < exactSum: // several streams may take longer than there is time
			j.add(degraded, "slow-link", w.subject, want/rate, "%s GB/s by %d streams at most, %s, and which of the two "+
				"hosts it is a third would show: %s", digits(rate), linkStreams, text, remedies["slow-link"])
		default:
			j.add(well, "slow-stream", w.subject, 0, "%s GB/s by one stream, %s; several were not measured", digits(rate), text)
		}
		j.last("bandwidth", []*way{w}, true)
	}
}
