package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// A gap is what sizes of packets show of a direction: those of Passes bytes arrive, and of Vanishes bytes none does, an
// MTU black hole; with 0 for Vanishes all arrive. Headers of IP and TCP count. The zero gap knows nothing.
type gap struct{ Passes, Vanishes int }

func (g gap) ill() bool { return g.Vanishes > 0 }

// packetSizes are the sizes of packets that are tried if one of full size does not arrive: usual MTUs of networks,
// tunnels and clouds.
var packetSizes = []int{480, 576, 800, 1000, 1280, 1400, 1420, 1450, 1480, 1492, 1500, 4000, 8000, 8950}

const (
	fullWait    = 400 * time.Millisecond // for a packet of full size, before sizes are tried: the kernel sends it again
	sweepWait   = time.Second            // for all sizes
	leastWait   = 250 * time.Millisecond // a packet without an answer for so long was sent twice
	sweeps      = 3                      // of each direction
	plainHeader = 52                     // bytes of IPv4, TCP and its timestamps
	plainPacket = 1500
)

// errGap ends a measurement: large packets do not pass.
var errGap = errors.New("large packets do not pass")

// A packet is a full one of a connection: its payload and its size in bytes.
type packet struct{ payload, size int }

// largeTrip has a packet with n bytes of payload pass between the ends of a connection. linkForth sends it; linkBack
// asks for one. Nothing else is on its way, so the kernel sends one packet. The result is how many segments both ends
// have sent again.
func largeTrip(c net.Conn, kind byte, n int) (again int, err error) {
	request := make([]byte, smallLen)
	request[0] = kind
	binary.BigEndian.PutUint32(request[4:], uint32(n))
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	answer := make([]byte, smallLen)
	if kind == linkBack {
		answer = make([]byte, n)
	} else if _, err := c.Write(make([]byte, n)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, answer); err != nil {
		return 0, err
	}
	return countSegments(c).Again + int(binary.BigEndian.Uint32(answer)), nil
}

// answerLarge is the other side of largeTrip.
func answerLarge(c net.Conn, request []byte) error {
	n := int(min(binary.BigEndian.Uint32(request[4:]), 1<<17))
	if request[0] == linkForth {
		if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
			return err
		}
		n = smallLen
	}
	answer := make([]byte, max(n, smallLen))
	binary.BigEndian.PutUint32(answer, uint32(countSegments(c).Again))
	_, err := c.Write(answer)
	return err
}

// gaps finds the gaps of a connection's directions, forth and back. Usually it costs two round trips. If a packet of
// full size does not arrive, more connections, made by dial, tell which sizes do. The error is that of c.
func gaps(ctx context.Context, c net.Conn, dial func(context.Context) (net.Conn, error)) (found [2]gap, err error) {
	full := packetOf(c)
	passed := make(chan error, 1)
	go func() {
		_, err := largeTrip(c, linkForth, full.payload)
		if err == nil {
			_, err = largeTrip(c, linkBack, full.payload)
		}
		passed <- err
	}()
	end, _ := ctx.Deadline()
	select {
	case err := <-passed:
		return found, err
	case <-time.After(min(time.Until(end)/4, fullWait)):
	}
	ctx, cancel := context.WithTimeout(ctx, min(time.Until(end)*7/8, sweepWait))
	defer cancel()
	var all sync.WaitGroup
	var results [2][sweeps]gap
	for way, kind := range []byte{linkForth, linkBack} {
		for i := range sweeps {
			all.Go(func() { results[way][i] = sweep(ctx, kind, full, dial) })
		}
	}
	all.Wait()
	for way := range found {
		found[way] = agreed(results[way][:])
	}
	if found[0].ill() || found[1].ill() {
		_ = c.SetDeadline(time.Unix(1, 0))
		<-passed
		return found, errGap
	}
	return [2]gap{}, <-passed
}

// sweep has packets of ascending sizes pass, over a connection of its own, until one does not arrive. The gap is zero
// if that may be chance: smaller ones were lost too, or time was too short.
func sweep(ctx context.Context, kind byte, full packet, dial func(context.Context) (net.Conn, error)) (g gap) {
	c, err := dial(ctx)
	if err != nil {
		return gap{}
	}
	defer c.Close()
	defer bounded(ctx, c)()
	last, lost := time.Now(), 0
	for _, size := range append(slices.Clone(packetSizes), full.size) {
		if size > full.size || size == g.Passes {
			continue
		}
		again, err := largeTrip(c, kind, size-full.size+full.payload)
		switch {
		case err == nil:
			g.Passes, last, lost = size, time.Now(), again
			continue
		case time.Since(last) < leastWait || g.Passes == 0 || lost > 1: // one may be sent again where all are busy
			return gap{}
		}
		g.Vanishes = size
		return g
	}
	return g
}

// agreed is the gap that all sweeps show that show any, two at least; zero if there is none.
func agreed(results []gap) gap {
	known := slices.DeleteFunc(slices.Clone(results), func(g gap) bool { return g == gap{} })
	if len(known) < 2 || slices.ContainsFunc(known, func(g gap) bool { return g != known[0] }) {
		return gap{}
	}
	return known[0]
}

// pass is the other side of a sweep.
func pass(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * sweepWait))
	_ = answerLink(conn, phases{})
}

// largestPacket is the quantity of a gap: the largest size that passes, and the smallest that vanishes as text.
const largestPacket = "largest packet"

// gaps blames black holes.
func (j *netJudge) gaps() {
	j.plain(&fault{severity: broken, code: "black-hole", quantity: "bandwidth", whole: "large packets vanish", again: true,
		weight: func(w *way) float64 { return 45 },
		text: func(w *way, _ *cause) string {
			return fmt.Sprintf("MTU: packets of more than %d bytes vanish (those of %d do), and smaller ones pass", w.gap.Passes,
				w.gap.Vanishes)
		}}, func(w *way) bool { return w.gap.ill() })
}
