package check

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// phases are the times that a pair of hosts spends on each measurement over one rail. Small messages may take up to far
// if a distant peer answers too few of them within ping or burst.
type phases struct{ ping, burst, stream, far time.Duration }

// phasesOf divides a slot among rails and phases; a part is left for connecting.
func phasesOf(slot time.Duration, rails int) phases {
	per := slot / time.Duration(rails)
	return phases{ping: min(per/10, 25*time.Millisecond), burst: min(per/10, 25*time.Millisecond),
		stream: min(per/5, 100*time.Millisecond), far: per / 8}
}

// A linkResult holds the measurements of both ends of a connection; There is the direction to the acceptor.
type linkResult struct {
	Latency           time.Duration // one way: half of a quick round trip
	Small             segments      // of this end's small messages
	There, Back       streamResult
	ThereSeg, BackSeg segments
}

// A streamResult is the measurement of a stream's receiver.
type streamResult struct {
	Bytes   int64         // received within Time
	Time    time.Duration // without the beginning of the stream
	All     int64         // bytes of all blocks
	Corrupt int           // number of wrong blocks
	First   int64         // offset of the first wrong block
}

// rate is the bandwidth in GB/s.
func (s streamResult) rate() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(s.Bytes) / s.Time.Seconds() / 1e9
}

// segments are the TCP segments with data, and those that were lost, as the sender's kernel counts them; 0 if it does
// not.
type segments struct{ Sent, Again int }

// A watched connection tells what a kernel would, in tests.
type watched interface {
	segments() segments
	acknowledges(late time.Duration) bool
}

// countSegments asks the kernel about a connection; zero if that is not TCP.
func countSegments(c net.Conn) segments {
	if w, ok := c.(watched); ok {
		return w.segments()
	}
	return kernelSegments(c)
}

// acknowledges reports whether the other kernel has acknowledged all that was sent, or something of late, if that is
// known.
func acknowledges(c net.Conn, late time.Duration) (known, yes bool) {
	if w, ok := c.(watched); ok {
		return true, w.acknowledges(late)
	}
	return kernelAcknowledges(c, late)
}

// Messages of the caller have 8 bytes; the first byte is one of these.
const (
	linkPing  = 'p' // to be sent back
	linkSend  = 's' // a stream follows
	linkRecv  = 'r' // a stream is wanted
	linkForth = 'f' // a packet of a size follows, see largeTrip
	linkBack  = 'b' // such a packet is wanted
	smallLen  = 8
	burstLen  = 32 // small messages at once
	bursts    = 32 // at least
	blockLen  = 128 << 10
	blockKind = 16 // different blocks
	headLen   = 16 // magic, number, CRC, last
	magic     = 0x52434b31
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blocks are the blocks of streams: random bytes, and their checksums.
var blocks = sync.OnceValue(func() *blockSet {
	s := &blockSet{data: make([]byte, blockKind*blockLen)}
	src := rand.NewChaCha8([32]byte{1})
	src.Read(s.data)
	for i := range s.sum {
		s.sum[i] = crc32.Checksum(s.block(i), castagnoli)
	}
	return s
})

type blockSet struct {
	data []byte
	sum  [blockKind]uint32
}

func (s *blockSet) block(i int) []byte { return s.data[i*blockLen : (i+1)*blockLen] }

// measureLink is the caller's side. Before streams it calls large, whose error ends the measurement.
func measureLink(c net.Conn, p phases, large func() error) (r linkResult, err error) {
	before := countSegments(c)
	err = r.measureSmall(c, p)
	quiet := countSegments(c)
	r.Small = quiet.since(before)
	if err != nil {
		return r, err
	}
	if err = large(); err != nil {
		return r, fmt.Errorf("a large packet: %w", err)
	}
	small := make([]byte, smallLen)
	small[0] = linkSend
	if _, err = c.Write(small); err != nil {
		return r, err
	}
	if err = sendStream(c, p.stream); err != nil {
		return r, fmt.Errorf("send: %w", err)
	}
	if err = readJSON(c, &r.There); err != nil {
		return r, fmt.Errorf("send: %w", err)
	}
	r.ThereSeg = countSegments(c).since(quiet)
	small[0] = linkRecv
	if _, err = c.Write(small); err != nil {
		return r, err
	}
	if r.Back, err = receiveStream(c, p.stream); err != nil {
		r.Back = streamResult{} // a part of a stream is no measurement
		return r, fmt.Errorf("receive: %w", err)
	}
	return r, readJSON(c, &r.BackSeg)
}

// measureSmall measures the latency of small messages, and sends many, of which the kernel counts the segments.
func (r *linkResult) measureSmall(c net.Conn, p phases) error {
	small := make([]byte, smallLen)
	small[0] = linkPing
	trip := func() error {
		_, err := c.Write(small)
		if err == nil {
			_, err = io.ReadFull(c, small)
		}
		if err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		return nil
	}
	if err := trip(); err != nil { // not timed: the other side may be busy with another host
		return err
	}
	var trips []time.Duration
	for begin := time.Now(); goesOn(begin, p.ping, p.far, len(trips), 10, 2000); {
		start := time.Now()
		if err := trip(); err != nil {
			return err
		}
		trips = append(trips, time.Since(start))
	}
	slices.Sort(trips)
	r.Latency = trips[len(trips)/10] / 2
	many := make([]byte, burstLen*smallLen)
	begin := time.Now()
	for n := 0; goesOn(begin, p.burst, p.far, n, bursts, 10*bursts); n++ {
		for range burstLen {
			if _, err := c.Write(small); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
		}
		if _, err := io.ReadFull(c, many); err != nil {
			return fmt.Errorf("ping: %w", err)
		}
	}
	return nil
}

func (s segments) since(o segments) segments { return segments{s.Sent - o.Sent, s.Again - o.Again} }

// goesOn reports whether to send more small messages: for the usual time, at most most of them; and up to the time far
// while fewer than least have been answered.
func goesOn(begin time.Time, usual, far time.Duration, done, least, most int) bool {
	took := time.Since(begin)
	return done == 0 || done < most && took < usual || done < least && took < far
}

// answerLink is the other side, until the caller hangs up. It returns the segments of this end's small messages; the
// caller reports errors.
func answerLink(c net.Conn, p phases) segments {
	small := make([]byte, smallLen)
	begin := countSegments(c)
	var quiet *segments // before the first large message
	var err error
	for err == nil {
		if _, err = io.ReadFull(c, small); err != nil {
			break
		}
		if now := countSegments(c); small[0] != linkPing && quiet == nil {
			quiet = &now
		}
		switch small[0] {
		case linkPing:
			_, err = c.Write(small)
		case linkForth, linkBack:
			err = answerLarge(c, small)
		case linkSend:
			var s streamResult
			if s, err = receiveStream(c, p.stream); err == nil {
				err = writeJSON(c, s)
			}
		case linkRecv:
			before := countSegments(c)
			if err = sendStream(c, p.stream); err == nil {
				err = writeJSON(c, countSegments(c).since(before))
			}
		default:
			err = fmt.Errorf("a message that is none: %q", small)
		}
	}
	if quiet == nil {
		return countSegments(c).since(begin)
	}
	return quiet.since(begin)
}

// sendStream sends blocks for a time, in random order.
func sendStream(c net.Conn, d time.Duration) error {
	set := blocks()
	head := make([]byte, headLen)
	end := time.Now().Add(d)
	for n, last := uint32(0), false; !last; n++ {
		last = !time.Now().Before(end)
		i := int(n) % blockKind
		binary.BigEndian.PutUint32(head, magic)
		binary.BigEndian.PutUint32(head[4:], n)
		binary.BigEndian.PutUint32(head[8:], set.sum[i])
		binary.BigEndian.PutUint32(head[12:], 0)
		if last {
			binary.BigEndian.PutUint32(head[12:], 1)
		}
		if _, err := (&net.Buffers{head, set.block(i)}).WriteTo(c); err != nil {
			return err
		}
	}
	return nil
}

// receiveStream receives a stream of sendStream. It leaves the first quarter out of the time, in which
// TCP finds its pace.
func receiveStream(c net.Conn, d time.Duration) (s streamResult, err error) {
	b := make([]byte, headLen+blockLen)
	var start, begin time.Time
	for n := uint32(0); ; n++ {
		if _, err = io.ReadFull(c, b); err != nil {
			return s, err
		}
		now := time.Now()
		if binary.BigEndian.Uint32(b) != magic || binary.BigEndian.Uint32(b[4:]) != n ||
			binary.BigEndian.Uint32(b[8:]) != crc32.Checksum(b[headLen:], castagnoli) {
			if s.Corrupt++; s.Corrupt == 1 {
				s.First = s.All
			}
		}
		s.All += int64(len(b))
		switch {
		case start.IsZero():
			start = now
		case begin.IsZero() && now.Sub(start) >= d/4:
			begin = now
		case !begin.IsZero():
			s.Bytes += int64(len(b))
			s.Time = now.Sub(begin)
		}
		if binary.BigEndian.Uint32(b[12:]) != 0 {
			if s.Bytes == 0 { // the link is so slow that nothing came after the first quarter
				s.Bytes, s.Time = s.All-int64(len(b)), now.Sub(start)
			}
			return s, nil
		}
	}
}

// writeJSON and readJSON pass a small value.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readJSON(r io.Reader, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	b := make([]byte, min(binary.BigEndian.Uint32(n[:]), 1<<16))
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// bounded has a connection end with a context.
func bounded(ctx context.Context, c net.Conn) (stop func() bool) {
	if end, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(end)
	}
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}
