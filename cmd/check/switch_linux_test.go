package check

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/need"
)

// labRate is the usual rate of the laboratory's real links, in bytes a second.
const labRate = 25e6

// A frame of a TAP device has a virtio_net_hdr before it.
const (
	netHeader   = 10
	aLargeFrame = 4096
	oneOfLarge  = 15                     // large frames of which flip and swap change one
	switchQueue = 100 * time.Millisecond // what would leave later is dropped
)

// A lanSwitch joins the hosts' eth0 in this process, by rules.
type lanSwitch struct {
	rate  float64 // bytes a second, 0: any
	taps  []*os.File
	begin time.Time // for rules that begin later; zero is not yet

	mu      sync.Mutex
	rules   []labRule
	uplinks map[bool]time.Time // by direction: when all that is on its way has left
}

// join has a switch join the hosts: eth0 is 10.77.0.1, 2, 3 …
func (l *lan) join(rate float64, rules []labRule) {
	s := &lanSwitch{rate: rate, rules: rules, uplinks: map[bool]time.Time{}}
	l.net = s
	for h, ns := range l.hosts {
		s.taps = append(s.taps, l.tap(ns, "eth0"))
		l.need(ns, fmt.Sprintf("ip link set eth0 address 02:00:00:00:77:%02x up; ip addr add 10.77.0.%d/24 dev eth0", h,
			h+1))
	}
	for h := range s.taps {
		go s.read(h)
	}
}

// start begins the time of rules.
func (s *lanSwitch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = time.Now()
}

// tap makes a TAP device whose frames this process reads and writes.
func (l *lan) tap(ns *os.File, name string) *os.File {
	var f *os.File
	if _, err := inNamespace(ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
			return err
		}
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), name)
		return nil
	}); err != nil {
		need.Missing(l.t, "netns", "TAP: "+err.Error())
	}
	l.t.Cleanup(func() { f.Close() })
	return f
}

// A lanWay is one direction between two hosts.
type lanWay struct {
	from, to   int // from 0
	parcels    chan lanParcel
	free, last time.Time // when what is on its way has left, and has come
	held       []byte    // a frame that changes places with the next
	random     *rand.Rand
}

type lanParcel struct {
	frame []byte
	due   time.Time
}

// read passes on what a host sends, until its device is closed.
func (s *lanSwitch) read(from int) {
	ways := make([]*lanWay, len(s.taps))
	for to, tap := range s.taps {
		w := &lanWay{from: from, to: to, parcels: make(chan lanParcel, 4096),
			random: rand.New(rand.NewPCG(uint64(from), uint64(to)))}
		ways[to] = w
		defer close(w.parcels)
		go func() {
			for p := range w.parcels {
				time.Sleep(time.Until(p.due))
				_, _ = tap.Write(p.frame)
			}
		}()
	}
	buffer := make([]byte, 1<<17)
	for {
		n, err := s.taps[from].Read(buffer)
		if err != nil {
			return
		}
		if n < netHeader+14 {
			continue
		}
		receiver := buffer[netHeader : netHeader+6]
		for to, w := range ways { // a frame to many goes to all others
			if to != from && (receiver[0]&1 == 1 || int(receiver[5]) == to) {
				s.pass(w, append([]byte(nil), buffer[:n]...))
			}
		}
	}
}

// rule is what the rules say of a way now, together.
func (s *lanSwitch) rule(from, to int) (all labRule, free time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.covers(from+1, to+1) && (!r.cut || !s.begin.IsZero() && time.Since(s.begin) > labCut) {
			all = all.and(r)
		}
	}
	return all, s.uplinks[from < to]
}

// pass puts a frame on its way, if the rules let it pass.
func (s *lanSwitch) pass(w *lanWay, f []byte) {
	r, shared := s.rule(w.from, w.to)
	large, now := len(f) > aLargeFrame, time.Now()
	chance := func(of float64) bool { return of > 0 && w.random.Float64() < of }
	if r.gone || chance(r.loss) || r.longest > 0 && largestOf(f) > r.longest {
		return
	}
	if large && r.flip && chance(1./oneOfLarge) {
		f[len(f)-1000] ^= 16
	}
	if large && r.swap && w.held == nil && chance(1./oneOfLarge) { // another follows at once
		w.held = f
		return
	}
	rate := s.rate
	if r.rate > 0 {
		rate = r.rate * labRate
	}
	at := now
	if rate > 0 {
		if w.free = later(w.free, now); w.free.Sub(now) > switchQueue {
			return
		}
		w.free = w.free.Add(seconds(float64(len(f)) / rate))
		at = w.free
	}
	if r.uplink > 0 {
		if shared = later(shared, now); shared.Sub(now) > switchQueue {
			return
		}
		shared = shared.Add(seconds(float64(len(f)) / (r.uplink * labRate)))
		s.mu.Lock()
		s.uplinks[w.from < w.to] = shared
		s.mu.Unlock()
		at = later(at, shared)
	}
	at = at.Add(r.delay)
	if r.jitter > 0 {
		at = at.Add(time.Duration(w.random.Int64N(int64(r.jitter))))
	}
	w.last = later(at, w.last) // the order is kept
	frames := [][]byte{f}
	if chance(r.twice) {
		frames = append(frames, f)
	}
	if w.held != nil {
		frames, w.held = append(frames, w.held), nil
	}
	for _, f := range frames {
		select {
		case w.parcels <- lanParcel{f, w.last}:
		default:
		}
	}
}

// largestOf is the length of the largest packet of a frame, which the kernel may have left to the card to divide.
func largestOf(f []byte) int {
	if headers, part := binary.NativeEndian.Uint16(f[2:]), binary.NativeEndian.Uint16(f[4:]); f[1] != 0 {
		return int(headers) + int(part) - 14
	}
	return len(f) - netHeader - 14
}
