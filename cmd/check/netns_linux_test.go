package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// inNamespace calls f on a thread of its own in a network namespace, a new one if ns is nil, which it gives.
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

// A lan is hosts that are network namespaces, joined by a bridge in one more.
type lan struct {
	t      *testing.T
	fabric *os.File
	hosts  []*os.File
}

// newLAN makes so many hosts, a, b, c …, whose eth0 is 10.77.0.1, 2, 3 …
func newLAN(t *testing.T, hosts int, tools ...string) *lan {
	for _, tool := range append(tools, "ip") {
		if _, err := exec.LookPath(tool); err != nil {
			gputest.Missing(t, "netns", err.Error())
		}
	}
	l := &lan{t: t}
	l.fabric = l.namespace()
	l.need(l.fabric, "ip link add lan type bridge", "ip link set lan up")
	for h := range hosts {
		ns := l.namespace()
		l.hosts = append(l.hosts, ns)
		l.need(l.fabric, fmt.Sprintf("ip link add port%d type veth peer name eth0 netns /proc/%d/fd/%d", h, os.Getpid(), ns.Fd()),
			fmt.Sprintf("ip link set port%d master lan up", h))
		l.need(ns, "ip link set lo up", fmt.Sprintf("ip addr add 10.77.0.%d/24 dev eth0", h+1), "ip link set eth0 up")
	}
	return l
}

func (l *lan) namespace() *os.File {
	ns, err := inNamespace(nil, nil)
	if err != nil {
		gputest.Missing(l.t, "netns", err.Error())
	}
	l.t.Cleanup(func() { ns.Close() })
	return ns
}

// need runs commands in a namespace; a kernel may lack the modules for them.
func (l *lan) need(ns *os.File, commands ...string) {
	l.t.Helper()
	if err := commandsIn(ns, commands...); err != nil {
		gputest.Missing(l.t, "netns", err.Error())
	}
}

func commandsIn(ns *os.File, commands ...string) error {
	for _, c := range commands {
		words := strings.Fields(c)
		if _, err := inNamespace(ns, func() error {
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", c, err, out)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// check carries out stages with a rank on each host, and gives the report, and as it is printed. at is where the ranks meet.
func (l *lan) check(at, stages string) (*report, string) {
	l.t.Helper()
	var outs []*bytes.Buffer
	var cmds []*exec.Cmd
	for h, ns := range l.hosts {
		name := string(rune('a' + h))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+name, "RINGO_TEST_STAGES="+stages, fmt.Sprint("RINGO_RANK=", h), fmt.Sprint("RINGO_SIZE=", len(l.hosts)),
			"RINGO_COMM_ID="+at, "RINGO_COMM_SECRET=a test's", "RINGO_HOSTID="+name)
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		_, err := inNamespace(ns, cmd.Start)
		require.NoError(l.t, err)
		l.t.Cleanup(func() { _ = cmd.Process.Kill() })
		outs, cmds = append(outs, out), append(cmds, cmd)
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), tier.Soon(2*time.Minute))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
		}
	})()
	for _, cmd := range cmds {
		require.NoError(l.t, cmd.Wait())
	}
	r, err := readReport(outs[0])
	require.NoError(l.t, err)
	var said bytes.Buffer
	require.NoError(l.t, r.Print(&said))
	return r, said.String()
}

// Ranks that share a machine and no network namespace, as pods of one node do, meet again where they have met, whether there is a default route or not.
func TestNetnsMeet(t *testing.T) {
	l := newLAN(t, 4)
	r, said := l.check("10.77.0.1:29717", "collectives")
	require.Empty(t, codes(r), said)
	require.Equal(t, well, r.Verdict)
	require.Len(t, r.Of("collectives", "all-reduce of 1 MiB"), 1)
}

// Real links: six hosts that are network namespaces, joined by a bridge. Host c may send 20 Mbit/s,
// what host d sends takes 20 ms, host e loses packets, host f has another MTU.
func TestNetns(t *testing.T) {
	tier.Heavy(t)
	l := newLAN(t, 6, "tc", "nft")
	ill := map[string]string{"c": "slow-link host c", "d": "late-link host d", "e": "loss host e", "f": "mtu-differs host f, eth0"}
	loss := t.TempDir() + "/loss.nft" // one packet in twenty
	wrong := map[string]string{
		"c": "tc qdisc add dev eth0 root tbf rate 20mbit burst 16kb latency 50ms",
		"d": "tc qdisc add dev eth0 root netem delay 20ms",
		"e": "nft -f " + loss,
		"f": "ip link set eth0 mtu 1400",
	}
	require.NoError(t, os.WriteFile(loss, []byte("table ip loss {\n chain in {\n  type filter hook input priority 0; policy accept;\n  ip saddr 10.77.0.0/24 numgen random mod 20 0 counter drop\n }\n}\n"), 0o644))
	for h, ns := range l.hosts {
		name := string(rune('a' + h))
		if c := wrong[name]; c != "" && name == "d" {
			if err := commandsIn(ns, c); err != nil { // the kernel has no netem
				t.Log(err)
				delete(ill, name)
			}
		} else if c != "" {
			l.need(ns, c)
		}
	}
	r, said := l.check("10.77.0.1:29717", "host network")
	found := codes(r)
	for _, want := range ill {
		require.Contains(t, found, want, said)
	}
	for _, f := range r.Findings { // hosts a and b are well
		in := func(h string) bool { return slices.Contains([]string{"a", "b"}, h) }
		require.False(t, in(f.Subject.Host) && (!f.Subject.IsPair() || in(f.Subject.To.Host)) && f.Code != "shm-full", said)
	}
	t.Log(said)
}
