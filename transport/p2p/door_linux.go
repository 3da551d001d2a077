package p2p

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/process"
)

const (
	protocol    = "ringo gpu memory 2" // the context of the handshake
	secretBytes = 32
	maxPending  = 64
	exportTime  = 10 * time.Second // for one caller to prove itself and get all files
	maxReason   = 1024             // bytes of the reason why there is no file
)

// A door is where other processes of this host get files of GPU memory. A process has one,
// while it has exporters.
type door struct {
	socket   string
	secret   []byte
	listener net.Listener
	pending  *auth.Pending
	work     sync.WaitGroup

	mu        sync.Mutex
	exporters map[string]*exporter // guarded by mu
}

var doors = process.Shared[struct{}, *door]{End: (*door).close}

// An exporter serves an Export.
type exporter struct {
	Export
	export func(i int) (fd int, err error)
	door   *door
	work   sync.WaitGroup    // one for each caller that is served
	conns  map[net.Conn]bool // the callers'; under the lock of the door
}

// newExporter hands out files, each made by export when it is asked for.
func newExporter(id string, export func(i int) (fd int, err error)) (*exporter, error) {
	d, err := doors.Open(nil, struct{}{}, openDoor)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &exporter{Export: Export{d.socket, d.secret, id}, export: export, door: d, conns: map[net.Conn]bool{}}
	d.exporters[id] = e
	return e, nil
}

func openDoor() (*door, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@ringo-gpu-" + rand.Text()})
	if err != nil {
		return nil, err
	}
	d := &door{socket: l.Addr().String(), secret: make([]byte, secretBytes), listener: l,
		pending: auth.NewPending(maxPending, exportTime, nil), exporters: map[string]*exporter{}}
	rand.Read(d.secret)
	d.work.Go(func() { d.pending.Serve(l, func(c net.Conn) { d.serve(c.(*net.UnixConn)) }) })
	return d, nil
}

// serve sends files to a caller that knows the secret.
func (d *door) serve(c *net.UnixConn) {
	var e *exporter
	var w want
	trusted := false
	err := auth.Answer(c, d.secret, protocol, func(body []byte) []byte {
		var err error
		if trusted = d.pending.Trust(c); !trusted {
			return nil
		}
		if w, err = parseWant(body); err != nil {
			return []byte(err.Error())
		}
		if e = d.enter(w.id, c); e == nil {
			return []byte("the peer has given that memory back")
		}
		return nil
	})
	if e != nil {
		defer e.leave(c)
	}
	if trusted {
		defer c.Close()
	}
	if e == nil || err != nil {
		return
	}
	c.SetDeadline(time.Now().Add(exportTime))
	for i := w.first; i-w.first < w.files && err == nil; i++ {
		var fd int
		if fd, err = e.export(i); err != nil {
			reason := err.Error()
			c.Write(append([]byte{1}, reason[:min(len(reason), maxReason)]...))
			return
		}
		_, _, err = c.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil)
		closeFile(fd)
	}
}

// enter notes a caller of an exporter, which it returns; nil if there is none.
func (d *door) enter(id string, c net.Conn) *exporter {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.exporters[id]
	if e != nil {
		e.conns[c] = true
		e.work.Add(1) // under the lock, so before close waits
	}
	return e
}

func (e *exporter) leave(c net.Conn) {
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	delete(e.conns, c)
	e.work.Done()
}

// close ends the exporter and its connections.
func (e *exporter) close() {
	e.door.mu.Lock()
	delete(e.door.exporters, e.ID)
	for c := range e.conns {
		c.Close()
	}
	e.door.mu.Unlock()
	e.work.Wait()
	doors.Leave(nil, struct{}{})
}

// close ends the door, after its last exporter.
func (d *door) close() error {
	err := d.listener.Close()
	d.pending.Close()
	d.work.Wait()
	return err
}

// fetch gets files of an Export, one after the other, and closes each after f. If files is 0
// it only finds out whether the Export can be reached.
func fetch(ctx context.Context, x *Export, first, files int, f func(i, fd int) error) (err error) {
	if x == nil {
		return errors.New("the peer hands out no files")
	}
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause // not the time-out, by which AfterFunc ended the wait
		}
	}()
	dialer := net.Dialer{Timeout: exportTime}
	conn, err := dialer.DialContext(ctx, "unix", x.Socket)
	if err != nil {
		return fmt.Errorf("the processes are in different network namespaces, or the peer has gone: %w", err)
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	c.SetDeadline(time.Now().Add(exportTime))
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	w := want{x.ID, first, files}
	refusal, err := auth.Call(c, x.Secret, protocol, w.bytes())
	if err == nil && len(refusal) > 0 {
		err = errors.New(string(refusal))
	}
	if err != nil {
		return fmt.Errorf("handshake with the peer: %w", err)
	}
	for i := first; i < first+files; i++ {
		fd, err := receive(c)
		if err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		err = f(i, fd)
		closeFile(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// receive is the descriptor of the next file.
func receive(c *net.UnixConn) (fd int, err error) {
	word, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.ReadMsgUnix(word, control) // sets close-on-exec
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return -1, err
	}
	if word[0] != 0 { // the reason why there is none
		reason, _ := io.ReadAll(io.LimitReader(c, maxReason))
		return -1, errors.New(string(reason))
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil {
		return -1, err
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("no file came, perhaps because this process has too many open")
}
