package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/need"
)

// A wire is one direction between a host and the fabric, whose frames this process carries, with faults that a kernel
// without netem cannot make.
type wire struct {
	delay   time.Duration
	jitter  time.Duration // random delay up to this, in addition; the order is kept
	flip    int           // in one of this many large frames a byte changes, unnoticed by checksums; 0: never
	swap    int           // one of this many large frames changes places with the next
	twice   int           // one of this many frames comes twice
	onlyTo  byte          // if not 0, the faults affect only frames to the host of this number, from 1
	blocked bool          // nothing passes
}

// A wiring gives each host, numbered from 1, its wires for sending and for receiving; zero wires are good ones.
type wiring func(host int) (sends, receives wire)

// wireUp replaces each host's eth0 by one that wires join with the fabric.
func (l *lan) wireUp(w wiring) {
	for h, ns := range l.hosts {
		far := l.tap(l.fabric, portName(h, 0)+"t")
		l.need(ns, "ip link del eth0")
		near := l.tap(ns, "eth0")
		l.need(l.fabric, fmt.Sprintf("ip link set %st master lan0 up", portName(h, 0)))
		l.need(ns, fmt.Sprintf("ip addr add 10.77.0.%d/24 dev eth0; ip link set eth0 up", h+1))
		sends, receives := w(h + 1)
		go sends.carry(far, near, uint64(h))
		go receives.carry(near, far, uint64(h)+100)
	}
}

// A frame of a TAP device has a virtio_net_hdr before it.
const (
	netHeader   = 10
	addressedTo = netHeader + 14 + 16 + 3 // the last byte of the receiver's IPv4 address
	aLargeFrame = 4096
)

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

// carry passes frames on until a device is closed.
func (w wire) carry(to, from *os.File, seed uint64) {
	type parcel struct {
		frame []byte
		due   time.Time
	}
	way := make(chan parcel, 512)
	defer close(way)
	go func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.frame)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 7))
	one := func(of int) bool { return of > 0 && random.IntN(of) == 0 }
	buffer := make([]byte, 1<<17)
	var held []byte
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		f, due := append([]byte{}, buffer[:n]...), time.Now()
		if w.onlyTo == 0 || n > addressedTo && f[addressedTo] == w.onlyTo {
			if w.blocked {
				continue
			}
			due = due.Add(w.delay)
			if w.jitter > 0 {
				due = due.Add(rand.N(w.jitter))
			}
			if n > aLargeFrame && one(w.flip) {
				f[n-1000] ^= 16
			}
			if held == nil && n > aLargeFrame && one(w.swap) { // another follows at once
				held = f
				continue
			}
			if one(w.twice) {
				way <- parcel{f, due}
			}
		}
		way <- parcel{f, due}
		if held != nil {
			way <- parcel{held, due}
			held = nil
		}
	}
}
