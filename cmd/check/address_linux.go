package check

import (
	"bytes"
	"encoding/binary"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// askTimes is how many times, and askEvery how often, a network is asked who else has an address.
const (
	askTimes = 3
	askEvery = 100 * time.Millisecond
)

// alsoAnswers are the cards of an interface's network that answer for an IPv4 address of this host, as RFC 5227 has it:
// other hosts' tables do not change. None is known to a process that may not use packet sockets.
func alsoAnswers(iface string, ip net.IP) (macs []string) {
	i, err := net.InterfaceByName(iface)
	if err != nil || len(i.HardwareAddr) != 6 || i.Flags&net.FlagBroadcast == 0 {
		return nil
	}
	order := func(n uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n)) }
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(order(unix.ETH_P_ARP)))
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	at := &unix.SockaddrLinklayer{Protocol: order(unix.ETH_P_ARP), Ifindex: i.Index}
	wait := unix.NsecToTimeval(int64(askEvery / 4))
	if unix.Bind(fd, at) != nil || unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) != nil {
		return nil
	}
	all := *at
	all.Halen = 6
	copy(all.Addr[:], bytes.Repeat([]byte{0xff}, 6))
	ask := []byte{0, 1, 8, 0, 6, 4, 0, 1} // Ethernet, IPv4, their lengths, a request
	ask = append(append(ask, i.HardwareAddr...), make([]byte, 4+6)...)
	ask = append(ask, ip...)
	b := make([]byte, 64)
	for range askTimes {
		_ = unix.Sendto(fd, ask, 0, &all)
		for end := time.Now().Add(askEvery); time.Now().Before(end); {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err == nil && n >= 28 && bytes.Equal(b[14:18], ip) && !bytes.Equal(b[8:14], i.HardwareAddr) {
				macs = append(macs, net.HardwareAddr(b[8:14]).String())
			}
		}
	}
	return macs
}
