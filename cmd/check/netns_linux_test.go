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

// Real links: six hosts that are network namespaces, joined by a bridge. Host c may send 20 Mbit/s,
// what host d sends takes 20 ms, host e loses packets, host f has another MTU.
func TestNetns(t *testing.T) {
	tier.Heavy(t)
	for _, tool := range []string{"ip", "tc", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			gputest.Missing(t, "netns", err.Error())
		}
	}
	new := func() *os.File {
		ns, err := inNamespace(nil, nil)
		if err != nil {
			gputest.Missing(t, "netns", err.Error())
		}
		t.Cleanup(func() { ns.Close() })
		return ns
	}
	run := func(ns *os.File, commands ...string) error {
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
	need := func(err error) {
		t.Helper()
		if err != nil {
			gputest.Missing(t, "netns", err.Error())
		}
	}
	fabric := new()
	need(run(fabric, "ip link add lan type bridge", "ip link set lan up"))
	names := []string{"a", "b", "c", "d", "e", "f"}
	ill := map[string]string{"c": "slow-link host c", "d": "late-link host d", "e": "loss host e", "f": "mtu-differs host f, eth0"}
	loss := t.TempDir() + "/loss.nft" // one packet in twenty
	wrong := map[string]string{
		"c": "tc qdisc add dev eth0 root tbf rate 20mbit burst 16kb latency 50ms",
		"d": "tc qdisc add dev eth0 root netem delay 20ms",
		"e": "nft -f " + loss,
		"f": "ip link set eth0 mtu 1400",
	}
	require.NoError(t, os.WriteFile(loss, []byte("table ip loss {\n chain in {\n  type filter hook input priority 0; policy accept;\n  ip saddr 10.77.0.0/24 numgen random mod 20 0 counter drop\n }\n}\n"), 0o644))
	var outs []*bytes.Buffer
	var cmds []*exec.Cmd
	for h, name := range names {
		ns := new()
		need(run(fabric, fmt.Sprintf("ip link add port%d type veth peer name eth0 netns /proc/%d/fd/%d", h, os.Getpid(), ns.Fd()),
			fmt.Sprintf("ip link set port%d master lan up", h)))
		need(run(ns, "ip link set lo up", fmt.Sprintf("ip addr add 10.77.0.%d/24 dev eth0", h+1), "ip link set eth0 up"))
		if c := wrong[name]; c != "" {
			if err := run(ns, c); err != nil && name == "d" { // the kernel has no netem
				t.Log(err)
				delete(ill, name)
			} else {
				need(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+name, fmt.Sprint("RINGO_RANK=", h), fmt.Sprint("RINGO_SIZE=", len(names)),
			"RINGO_COMM_ID=10.77.0.1:29717", "RINGO_COMM_SECRET=a test's", "RINGO_HOSTID="+name)
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		_, err := inNamespace(ns, cmd.Start)
		require.NoError(t, err)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		outs, cmds = append(outs, out), append(cmds, cmd)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Soon(2*time.Minute))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
		}
	})()
	for _, cmd := range cmds {
		require.NoError(t, cmd.Wait())
	}
	r, err := readReport(outs[0])
	require.NoError(t, err)
	var said bytes.Buffer
	require.NoError(t, r.Print(&said))
	found := codes(r)
	for _, want := range ill {
		require.Contains(t, found, want, "%s", &said)
	}
	for _, f := range r.Findings { // hosts a and b are well
		in := func(h string) bool { return slices.Contains([]string{"a", "b"}, h) }
		require.False(t, in(f.Subject.Host) && (!f.Subject.IsPair() || in(f.Subject.To.Host)) && f.Code != "shm-full", "%s", &said)
	}
	t.Log(said.String())
}
