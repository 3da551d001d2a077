//go:build linux

package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// A lan is hosts that are network namespaces of this machine, joined by a bridge in one more.
// They have no names and are gone when nobody holds them.
type lan struct {
	t      *testing.T
	tools  map[string]string // the paths of programs
	fabric *os.File          // the namespace of the bridge
	hosts  []*os.File
	id     bootstrap.ID
}

// interfaceOf is the name of a host's interface: hosts differ in that.
func interfaceOf(host int) string { return []string{"eth0", "net1", "wan2"}[host] }

func addressOf(host int) string { return fmt.Sprint("10.77.0.", host+1) }

// newLAN makes hosts, the first of which has the rendezvous.
func newLAN(t *testing.T, hosts int, tools ...string) *lan {
	l := &lan{t: t, tools: map[string]string{}}
	for _, tool := range append(tools, "ip") {
		l.tools[tool] = need.Tool(t, tool)
	}
	var err error
	if l.fabric, err = newNamespace(); err != nil {
		need.Missing(t, "netns", err.Error())
	}
	t.Cleanup(func() { l.fabric.Close() })
	l.need(l.fabric, "ip link add lan type bridge", "ip link set lan up")
	for h := range hosts {
		ns, err := newNamespace()
		require.NoError(t, err)
		t.Cleanup(func() { ns.Close() })
		l.hosts = append(l.hosts, ns)
		l.need(l.fabric,
			fmt.Sprintf("ip link add port%d type veth peer name %s netns /proc/%d/fd/%d", h, interfaceOf(h), os.Getpid(),
				ns.Fd()),
			fmt.Sprintf("ip link set port%d master lan up", h))
		l.run(ns, "ip link set lo up", fmt.Sprintf("ip addr add %s/24 dev %s", addressOf(h), interfaceOf(h)),
			"ip link set "+interfaceOf(h)+" up")
	}
	require.NoError(t, inside(l.hosts[0], func() (err error) {
		l.id, err = ringo.NewID(addressOf(0) + ":0")
		return err
	}))
	t.Cleanup(func() { bootstrap.Stop(l.id) })
	return l
}

// newNamespace is a namespace that lives as long as the file is open.
func newNamespace() (ns *os.File, err error) {
	err = onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return ns, err
}

// inside calls f on a thread that is in a namespace. What f opens and starts belongs there.
func inside(ns *os.File, f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
}

// onOwnThread calls f on a thread of its own, which ends with it.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// run runs commands in a namespace and gives what they print.
func (l *lan) run(ns *os.File, commands ...string) (printed string) {
	l.t.Helper()
	printed, err := l.commands(ns, commands)
	require.NoError(l.t, err)
	return printed
}

// need is run for commands that a kernel may lack the modules for.
func (l *lan) need(ns *os.File, commands ...string) {
	l.t.Helper()
	if _, err := l.commands(ns, commands); err != nil {
		need.Missing(l.t, "netns", err.Error())
	}
}

func (l *lan) commands(ns *os.File, commands []string) (printed string, err error) {
	for _, c := range commands {
		words := strings.Fields(c)
		if err = inside(ns, func() error {
			out, err := exec.Command(l.tools[words[0]], words[1:]...).CombinedOutput()
			printed += string(out)
			if err != nil {
				return fmt.Errorf("%s: %w: %s", c, err, out)
			}
			return nil
		}); err != nil {
			break
		}
	}
	return printed, err
}

// cut takes a host off the lan, without anybody hearing of it; mend puts it back.
func (l *lan) cut(host int)  { l.run(l.fabric, fmt.Sprintf("ip link set port%d nomaster", host)) }
func (l *lan) mend(host int) { l.run(l.fabric, fmt.Sprintf("ip link set port%d master lan", host)) }

// start starts a rank on each host.
func (l *lan) start(what string, env ...string) []*exec.Cmd {
	l.t.Helper()
	var cmds []*exec.Cmd
	for h, ns := range l.hosts {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+what, "RINGO_COMM_ID="+l.id.String(), fmt.Sprint("RINGO_RANK=", h),
			fmt.Sprint("RINGO_SIZE=", len(l.hosts)), fmt.Sprint("RINGO_HOSTID=host", h), "RINGO_DEBUG=INFO")
		cmd.Env = append(cmd.Env, env...)
		out := new(transcript.Transcript)
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(l.t, inside(ns, cmd.Start))
		l.t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // again, maybe
			if l.t.Failed() {
				l.t.Logf("rank %d: %v: %s", h, cmd.ProcessState, out)
			}
		})
		cmds = append(cmds, cmd)
	}
	return cmds
}

// underWay starts ranks that work until one of them is missed, and waits until they do.
func (l *lan) underWay(timeout string) []*exec.Cmd {
	l.t.Helper()
	cmds := l.start("loop", "RINGO_TIMEOUT="+timeout)
	for _, cmd := range cmds {
		commtest.Await(l.t, cmd, "under way")
	}
	return cmds
}

// end waits for a process.
func (l *lan) end(cmd *exec.Cmd, within time.Duration) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), tier.Soon(within))
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	err := cmd.Wait()
	require.NoError(l.t, ctx.Err(), "the rank goes on after %v", within)
	return err
}

// complaint is the error that a rank ended with, "" for none: logs name ranks too.
func complaint(cmd *exec.Cmd) string {
	_, after, _ := strings.Cut(commtest.Output(cmd), "error: ")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// Collectives are right over slow links, over links that lose packets, and where hosts have
// other interfaces that lead nowhere.
func TestNetnsCheck(t *testing.T) {
	tier.Heavy(t)
	for _, c := range []struct {
		name  string
		tool  string
		each  string // host, with its interface for IF and its number for HOST
		first string // host alone
		env   string
	}{
		{"plain", "ip", "", "", ""},
		{"slow", "tc", "tc qdisc add dev IF root tbf rate 400mbit burst 64kb latency 50ms", "", "RINGO_SOCKET_STREAMS=2"},
		{"loss", "nft", "nft -f testdata/loss.nft", "", ""},
		{"IPv6", "ip", "ip addr add fd77::HOST/64 dev IF nodad", "", "RINGO_SOCKET_FAMILY=AF_INET6"},
		{"two interfaces", "ip",
			"ip link add link IF name two type macvlan mode bridge; ip addr add 10.78.0.HOST/24 dev two; ip link set two up", "",
			"RINGO_SOCKET_IFNAME=eth,net,wan,two"},
		{"an interface that leads nowhere", "ip", "",
			"ip link add dead type veth peer name end; ip addr add 10.99.0.1/24 dev dead; ip link set dead up",
			"RINGO_SOCKET_IFNAME=eth,net,wan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLAN(t, 3, c.tool)
			for h, ns := range l.hosts {
				if c.each != "" {
					l.need(ns, strings.Split(strings.NewReplacer("IF", interfaceOf(h), "HOST", fmt.Sprint(h+1)).Replace(c.each),
						";")...)
				}
			}
			if c.first != "" {
				l.run(l.hosts[0], strings.Split(c.first, ";")...)
			}
			for h, cmd := range l.start("check", c.env) {
				require.NoError(t, l.end(cmd, 60*time.Second), "rank %d: %s", h, commtest.Output(cmd))
				require.Contains(t, commtest.Output(cmd), "fine over socket")
				want := "network socket (" + interfaceOf(h)
				if c.name == "two interfaces" {
					want += ", two"
				}
				require.Contains(t, commtest.Output(cmd), want+")")
			}
			if c.name == "loss" {
				require.NotContains(t, l.run(l.hosts[0], "nft list table ip loss"), "counter packets 0", "nothing was lost")
			}
		})
	}
}

// The ranks of a part meet at the address by which their host is reached, which has no route to the rest of the world
// here. The part's first rank is on the last host.
func TestNetnsSplit(t *testing.T) {
	tier.Heavy(t)
	l := newLAN(t, 3)
	for h, cmd := range l.start("part") {
		require.NoError(t, l.end(cmd, 60*time.Second), "rank %d: %s", h, commtest.Output(cmd))
		require.Contains(t, commtest.Output(cmd), "all of the part: 3")
	}
}

// A link that is cut in the middle is an error of all ranks when their patience ends, and they
// name the rank that they miss.
func TestNetnsCut(t *testing.T) {
	tier.Heavy(t)
	l := newLAN(t, 2)
	cmds := l.underWay("2s")
	l.cut(1)
	for h, cmd := range cmds {
		require.Error(t, l.end(cmd, 20*time.Second))
		require.Contains(t, complaint(cmd), fmt.Sprint("rank ", 1-h))
	}
}

// A peer that dies while its link is cut cannot say so. When the link is back, its host does, and
// the others hear that it has gone.
func TestNetnsHalfOpen(t *testing.T) {
	tier.Heavy(t)
	l := newLAN(t, 2)
	cmds := l.underWay("60s")
	l.cut(1)
	require.NoError(t, cmds[1].Process.Kill())
	require.Error(t, l.end(cmds[1], 5*time.Second))
	l.mend(1)
	require.Error(t, l.end(cmds[0], 30*time.Second))
	require.Contains(t, complaint(cmds[0]), "rank 1")
}

// A host that is gone for good says nothing ever. It is missed after 15 to 20 s of silence, though
// patience is longer: all others name it, and it cannot know that it is the one.
func TestNetnsSilent(t *testing.T) {
	tier.Heavy(t)
	t.Parallel()
	l := newLAN(t, 3)
	cmds := l.underWay("10m")
	l.cut(1)
	for h, cmd := range cmds {
		require.Error(t, l.end(cmd, 60*time.Second))
		want := "rank 1 died: "
		if h == 1 {
			want = "who is to blame cannot be known: ranks 0, 1 and 2"
		}
		require.Contains(t, complaint(cmd), want)
	}
}

// A link that is cut for a moment is not noticed.
func TestNetnsMended(t *testing.T) {
	l := newLAN(t, 2)
	l.cut(1)
	cmds := l.start("check")
	time.Sleep(300 * time.Millisecond) // rank 1 knocks in vain meanwhile
	l.mend(1)
	for h, cmd := range cmds {
		require.NoError(t, l.end(cmd, 60*time.Second), "rank %d: %s", h, commtest.Output(cmd))
	}
}

// A host whose address changes loses its connections, at the latest when patience ends; ranks
// that meet again then use the new address.
func TestNetnsAddress(t *testing.T) {
	tier.Heavy(t)
	l := newLAN(t, 2)
	cmds := l.underWay("2s")
	l.run(l.hosts[1], "ip addr del 10.77.0.2/24 dev net1", "ip addr add 10.77.0.9/24 dev net1")
	for h, cmd := range cmds {
		require.Error(t, l.end(cmd, 20*time.Second))
		require.Contains(t, complaint(cmd), fmt.Sprint("rank ", 1-h))
	}
	bootstrap.Stop(l.id)
	require.NoError(t, inside(l.hosts[0], func() (err error) {
		l.id, err = ringo.NewID("10.77.0.1:0")
		return err
	}))
	for h, cmd := range l.start("check") {
		require.NoError(t, l.end(cmd, 60*time.Second), "rank %d: %s", h, commtest.Output(cmd))
	}
}
