package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// inNamespace calls f on a thread of its own in the network namespace ns, or in a new one if ns is nil, and returns the
// namespace.
func inNamespace(ns *os.File, f func() error) (*os.File, error) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		var err error
		if ns == nil {
			if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
				ns, err = os.Open("/proc/thread-self/ns/net")
			}
		} else {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil && f != nil {
			err = f()
		}
		done <- err
	}()
	err := <-done
	return ns, err
}

// A lan is hosts that are network namespaces, joined by a bridge in one more for each of their interfaces.
type lan struct {
	t      *testing.T
	fabric *os.File
	hosts  []*os.File
	ranks  []lanRank
	net    *lanSwitch // joins eth0 of the hosts in place of the fabric, if not nil
	args   []string   // of the ranks' command
	begun  func(cmds []*exec.Cmd)
}

// A lanRank is a rank on a host of a lan.
type lanRank struct {
	host   int
	before string // shell commands that go before its program, in mounts and names of its own
}

// newLAN makes so many hosts, a, b, c …, with a rank each.
func newLAN(t *testing.T, hosts int) *lan {
	need.Tool(t, "ip")
	l := &lan{t: t}
	l.fabric = l.namespace()
	for h := range hosts {
		l.hosts, l.ranks = append(l.hosts, l.namespace()), append(l.ranks, lanRank{host: h})
		l.need(l.hosts[h], "ip link set lo up")
	}
	return l
}

// rail joins the hosts by one more interface: eth0 is 10.77.0.1, 2, 3 …, eth1 is 10.78.0.1, 2, 3 …, and so on.
func (l *lan) rail(n int) {
	l.need(l.fabric, fmt.Sprintf("ip link add lan%d type bridge; ip link set lan%d up", n, n))
	for h, ns := range l.hosts {
		l.need(l.fabric, fmt.Sprintf("ip link add %s type veth peer name eth%d netns /proc/%d/fd/%d; ip link set %s master "+
			"lan%d up", portName(h, n), n, os.Getpid(), ns.Fd(), portName(h, n), n))
		l.need(ns, fmt.Sprintf("ip addr add 10.%d.0.%d/24 dev eth%d; ip link set eth%d up", 77+n, h+1, n, n))
	}
}

// portName is the fabric's end of an interface of a host.
func portName(host, rail int) string { return fmt.Sprintf("port%d%s", host, strings.Repeat("x", rail)) }

func (l *lan) namespace() *os.File {
	ns, err := inNamespace(nil, nil)
	if err != nil {
		need.Missing(l.t, "netns", err.Error())
	}
	l.t.Cleanup(func() { ns.Close() })
	return ns
}

// need runs a script in a namespace, and skips the test if the kernel lacks modules for the script.
func (l *lan) need(ns *os.File, script string) {
	l.t.Helper()
	if err := scriptIn(ns, script); err != nil {
		need.Missing(l.t, "netns", err.Error())
	}
}

func scriptIn(ns *os.File, script string) error {
	if script == "" {
		return nil
	}
	_, err := inNamespace(ns, func() error {
		if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", script, err, bytes.TrimSpace(out))
		}
		return nil
	})
	return err
}

// start starts a rank.
func (l *lan) start(rank int, at, stages string, out, said io.Writer) *exec.Cmd {
	l.t.Helper()
	r := l.ranks[rank]
	args := append([]string{os.Args[0]}, l.args...)
	if r.before != "" {
		args = append([]string{"unshare", "-mui", "sh", "-ec", r.before + "\nexec \"$0\" \"$@\""}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	name := string(rune('a' + r.host))
	cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+name, "RINGO_TEST_STAGES="+stages, fmt.Sprint("RINGO_RANK=", rank),
		fmt.Sprint("RINGO_SIZE=", len(l.ranks)),
		"RINGO_COMM_ID="+at, "RINGO_COMM_SECRET=a test's", "RINGO_HOSTID="+name)
	cmd.Stdout, cmd.Stderr = out, said
	_, err := inNamespace(l.hosts[r.host], cmd.Start)
	require.NoError(l.t, err)
	return cmd
}

// check carries out stages with the ranks, and gives the report of the first, and as it is printed. at is where the
// ranks meet. Once the first has ended, the others are ended too.
func (l *lan) check(at, stages string) (*report, string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), tier.Soon(2*time.Minute))
	defer cancel()
	said := make([]bytes.Buffer, len(l.ranks))
	var report bytes.Buffer
	var cmds []*exec.Cmd
	for rank := range l.ranks {
		out := io.Discard
		if rank == 0 {
			out = &report
		}
		cmd := l.start(rank, at, stages, out, &said[rank])
		defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
		cmds = append(cmds, cmd)
	}
	if l.begun != nil {
		l.begun(cmds)
	}
	err := cmds[0].Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && len(l.args) > 0 { // by a verdict
		err = nil
	}
	time.AfterFunc(time.Second, cancel) // a rank that takes longer to end may have been stopped
	for _, cmd := range cmds[1:] {
		_ = cmd.Wait()
	}
	var all string
	for rank := range said {
		all += fmt.Sprintf("rank %d: %s\n", rank, &said[rank])
	}
	require.NoError(l.t, err, all)
	r, err := readReport(&report)
	require.NoError(l.t, err, all)
	var printed bytes.Buffer
	require.NoError(l.t, r.Print(&printed))
	return r, printed.String() + all
}
