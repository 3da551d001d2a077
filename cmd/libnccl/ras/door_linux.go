package ras

import (
	"context"
	"net"
	"os"
	"syscall"
)

// giveDoor hands the listening socket of clients to a process of the job that asks for it.
func (s *server) giveDoor(c net.Conn) {
	u, ok := c.(*net.UnixConn)
	s.mu.Lock()
	door, _ := s.door.(*net.TCPListener)
	s.mu.Unlock()
	if !ok || door == nil {
		return
	}
	raw, err := door.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = u.WriteMsgUnix([]byte{1}, syscall.UnixRights(int(fd)), nil)
	})
}

// askForDoor asks a process of this machine for its listening socket, nil if it has none.
func (s *server) askForDoor(ctx context.Context, to *Card) net.Listener {
	c, err := s.call(ctx, to, wantDoor)
	if err != nil {
		return nil
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil
	}
	var l net.Listener
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			f := os.NewFile(uintptr(fd), "door")
			if l == nil {
				l, _ = net.FileListener(f) // which has a descriptor of its own
			}
			f.Close()
		}
	}
	return l
}
