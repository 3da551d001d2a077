//go:build unix

package launch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// keeperName is the argument 0 of this program as a keeper.
const keeperName = "ringo: keeper"

// init runs the keeper before the program's main, in a process that is started as one.
func init() {
	if os.Args[0] == keeperName {
		if conn, err := connOf(os.Stdin); err == nil {
			newKeeping(conn).run()
		}
		os.Exit(0)
	}
}

// A keeper is the ranks' parent, in a process of its own. It ends all that they have started when the job ends, or when
// the launcher is killed. On Linux orphans become its children (PR_SET_CHILD_SUBREAPER), however they have left their
// rank. A keeper is this program again; it hears of the launcher's orders, and of its end, by a socket.
type keeper struct {
	cmd     *exec.Cmd
	conn    *net.UnixConn
	number  int
	started chan report // the answer to an order
	over    chan report
	gone    chan struct{} // the keeper has ended
	born    chan *process // processes whose reports come from now on
}

// An order goes from the launcher to its keeper. With startOrder come three files.
type order struct {
	Kind      orderKind
	Number    int // of the process
	Signal    int
	Path      string
	Args, Env []byte // each ends with a zero byte: JSON has no strings of any bytes
	Group     int    // the process group to join, 0 for one of its own
}

type orderKind int

const (
	startOrder orderKind = iota
	signalOrder
	tidyOrder
	endOrder
)

// A report goes from a keeper to its launcher.
type report struct {
	Kind   reportKind
	Number int // of the process
	Pid    int
	Errno  int    // of startedReport: why not, else 0
	Status int    // of endedReport: the exit status
	Signal int    // of endedReport: what killed it
	Stop   string // of haltedReport: the signal, or "" if it goes on
	Left   leftovers
}

type reportKind int

const (
	startedReport reportKind = iota
	haltedReport
	endedReport
	overReport
)

// newParent starts a keeper. Its last words go to errors, as no launcher may be left to tell. Where it cannot be
// started this process starts the ranks itself.
func newParent(errors *os.File) parent {
	ours, theirs, err := socketPair()
	if err != nil {
		return direct{}
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: self(), Args: []string{keeperName}, Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if errors != nil {
		cmd.Stderr = errors
	}
	conn, err := connOf(ours)
	if err != nil {
		return direct{}
	}
	if cmd.Start() != nil {
		conn.Close()
		return direct{}
	}
	k := &keeper{cmd: cmd, conn: conn, started: make(chan report, 1), over: make(chan report, 1),
		gone: make(chan struct{}), born: make(chan *process)}
	go k.listen()
	return k
}

// self is the path of this program, also if another one has its name by now.
func self() string {
	const same = "/proc/self/exe"
	path, err := os.Executable()
	now, err1 := os.Stat(path)
	ran, err2 := os.Stat(same)
	if err2 == nil && (err != nil || err1 != nil || !os.SameFile(now, ran)) {
		return same
	}
	return path
}

func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fds[0]), "keeper"), os.NewFile(uintptr(fds[1]), "launcher"), nil
}

// connOf makes a connection of a file, which it closes.
func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// listen hears the keeper's reports until it ends.
func (k *keeper) listen() {
	reports := make(chan report)
	go func() {
		defer close(reports)
		for in := json.NewDecoder(k.conn); ; {
			var r report
			if in.Decode(&r) != nil {
				return
			}
			reports <- r
		}
	}()
	processes := map[int]*process{}
	for r := range reports {
		switch r.Kind {
		case startedReport:
			k.started <- r
			if r.Errno == 0 {
				p := <-k.born
				processes[p.number] = p
			}
		case haltedReport:
			processes[r.Number].halt(r.Stop)
		case endedReport:
			processes[r.Number].end(ending{status: r.Status, signal: syscall.Signal(r.Signal)})
			delete(processes, r.Number)
		case overReport:
			k.over <- r
		}
	}
	for _, p := range processes {
		p.end(ending{err: errKeeper})
	}
	close(k.gone)
}

var errKeeper = errors.New("the process that starts and ends the ranks (" + keeperName + ") was killed")

// send sends an order. An error shows as the keeper's end.
func (k *keeper) send(o order, files ...*os.File) {
	body, _ := json.Marshal(o) // it is plain
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var rights []byte
	if fds != nil {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := k.conn.WriteMsgUnix(binary.BigEndian.AppendUint32(nil, uint32(len(body))), rights, nil); err == nil {
		_, _ = k.conn.Write(body)
	}
}

func (k *keeper) start(p program, files [3]*os.File) (*process, error) {
	k.number++
	o := order{Kind: startOrder, Number: k.number, Path: p.path, Args: joined(p.args), Env: joined(p.env)}
	if p.here {
		o.Group = unix.Getpgrp()
	}
	k.send(o, files[:]...)
	select {
	case <-k.gone:
		return nil, errKeeper
	case r := <-k.started:
		if r.Errno != 0 {
			return nil, &os.PathError{Op: "fork/exec", Path: p.path, Err: syscall.Errno(r.Errno)}
		}
		started := newProcess(r.Pid, k.number)
		k.born <- started
		return started, nil
	}
}

func (k *keeper) signal(p *process, s syscall.Signal) {
	k.send(order{Kind: signalOrder, Number: p.number, Signal: int(s)})
}

func (k *keeper) tidy(p *process) { k.send(order{Kind: tidyOrder, Number: p.number}) }

func (k *keeper) end() leftovers {
	k.send(order{Kind: endOrder})
	select {
	case <-k.gone:
		return leftovers{}
	case r := <-k.over:
		return r.Left
	}
}

func (k *keeper) close() {
	k.conn.CloseWrite() // the keeper's own end closes the rest
	<-k.gone
	k.conn.Close()
	k.cmd.Wait()
}

// joined is list with a zero byte after each, which no argument and no variable contains.
func joined(list []string) []byte {
	if len(list) == 0 {
		return nil
	}
	return []byte(strings.Join(list, "\x00") + "\x00")
}

// split is the list that joined was made of.
func split(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b[:len(b)-1]), "\x00")
}

// drain passes on what a pipe has now, without waiting for more.
func drain(r *os.File, w io.Writer) error {
	c, err := r.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for range 1 << 20 / len(buf) { // who writes for ever is not read for ever
		n, failed := 0, error(nil)
		err := c.Read(func(fd uintptr) bool {
			n, failed = unix.Read(int(fd), buf)
			return true
		})
		if err != nil || failed != nil || n <= 0 {
			return nil // empty
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// receive reads an order and its files.
func receive(conn *net.UnixConn) (o order, files []int, err error) {
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(3*4))
	n, m, _, _, err := conn.ReadMsgUnix(head, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return o, nil, err
	}
	if m > 0 {
		if messages, err := unix.ParseSocketControlMessage(rights[:m]); err == nil && len(messages) > 0 {
			files, _ = unix.ParseUnixRights(&messages[0])
		}
	}
	if _, err = io.ReadFull(conn, head[n:]); err != nil {
		return o, files, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	if _, err = io.ReadFull(conn, body); err != nil {
		return o, files, err
	}
	return o, files, json.Unmarshal(body, &o)
}

// outlive has the keeper end after the launcher: signals to both, as at the end of a session, do not end it. Ranks get
// the signals' usual meaning, which signal.Ignore would take from them.
func outlive() {
	sink := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(sink, s)
		}
	}
}
