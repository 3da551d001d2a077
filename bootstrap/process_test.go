package bootstrap

import (
	"bufio"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/internal/test/freeport"
)

// scene is the variable that makes this test binary play a rank.
const scene = "BOOTSTRAP_TEST_SCENE"

func TestMain(m *testing.M) {
	if s := os.Getenv(scene); s == "hub" {
		hubAlone()
		return
	} else if s != "" {
		play(s)
		return
	}
	_ = flag.Set("test.parallel", "16") // they wait
	goleak.VerifyTestMain(m)
}

// play joins by FromEnv, prints that it has, plays the scene and then prints
// the group's failure.
func play(s string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	spec, ok, err := FromEnv(os.Getenv)
	if !ok || err != nil {
		fmt.Println("env:", ok, err)
		return
	}
	presume(spec.Addr, spec.Secret)
	g, err := spec.Join(ctx, ListenOptions{}, JoinOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := g.AllGather(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("in", os.Getpid())
	if s == "heirs" || s == "shrink" {
		outlive(ctx, g, s == "heirs")
		return
	}
	actor, _ := strconv.Atoi(s[len(s)-1:])
	if g.Rank() == actor {
		switch s[:len(s)-2] {
		case "fail and exit":
			g.Fail("disk full")
			return
		case "leave":
			g.Close()
			return
		case "exit":
			time.Sleep(100 * time.Millisecond) // the others leave the AllGather
			return
		}
	}
	if strings.HasPrefix(s, "leave") {
		select {
		case <-g.Failed():
			fmt.Println(g.Failure())
		case <-time.After(300 * time.Millisecond):
			_, err := g.AllGather(ctx, nil)
			fmt.Println("fine,", err)
		}
		g.Close()
		return
	}
	<-g.Failed()
	fmt.Println(g.Failure())
	g.Close()
}

// outlive has ranks go on when the process that serves the rendezvous dies: once, or again and again until two are
// left. With again, rank 0 of each group exits by itself.
func outlive(ctx context.Context, g Group, again bool) {
	for g.Size() > 2 {
		if again && g.Rank() == 0 {
			time.Sleep(100 * time.Millisecond) // the others leave the AllGather
			return
		}
		<-g.Failed()
		next, err := g.Regroup(ctx, 15*time.Second)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(g.Failure(), next.Members)
		g.Close()
		g = next.Group
		if _, err := g.AllGather(ctx, nil); err != nil {
			fmt.Println(err)
			return
		}
		if !again {
			break
		}
	}
	g.Close()
}

type rankProcess struct {
	*exec.Cmd
	out *bufio.Scanner
}

func (p *rankProcess) line() string {
	if !p.out.Scan() {
		return "(end)"
	}
	return p.out.Text()
}

func startRanks(t *testing.T, n int, s string) []*rankProcess {
	t.Helper()
	addr, secret := freeport.Addr(t), rand.Text()
	ranks := make([]*rankProcess, n)
	for r := range ranks {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), scene+"="+s, fmt.Sprintf("RINGO_RANK=%d", r), fmt.Sprintf("RINGO_SIZE=%d", n),
			"RINGO_COMM_ID="+addr, "RINGO_COMM_SECRET="+secret)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ranks[r] = &rankProcess{cmd, bufio.NewScanner(out)}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	for r, p := range ranks {
		require.Equal(t, fmt.Sprint("in ", p.Process.Pid), p.line(), "rank %d", r)
	}
	return ranks
}

func TestProcesses(t *testing.T) {
	const died, ended = ": its connection ended without goodbye", ": its process ended without goodbye"
	tests := []struct {
		name  string
		actor int
		want  string // said by all the others
	}{
		{"kill", 2, "rank 2 died" + died},
		{"kill", 0, "rank 0 died" + ended}, // and the hub with it
		{"exit", 1, "rank 1 died" + died},
		{"exit", 0, "rank 0 died" + ended},
		{"fail and exit", 2, "rank 2 failed: disk full"},
		{"fail and exit", 0, "rank 0 failed: disk full"},
		{"leave", 2, "fine, all-gather: rank 2 has left the group"},
		{"leave", 0, "fine, all-gather: rank 0 has left the group"},
	}
	for _, tt := range tests {
		name := fmt.Sprint(tt.name, " ", tt.actor)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranks := startRanks(t, 4, name)
			if tt.name == "kill" {
				require.NoError(t, ranks[tt.actor].Process.Kill())
			}
			for r, p := range ranks {
				if r != tt.actor {
					require.Contains(t, p.line(), tt.want, "rank %d", r)
				}
			}
		})
	}
}

// The ranks that are left go on when the process that serves their rendezvous dies, and when the next one does.
func TestHeirs(t *testing.T) {
	t.Parallel()
	ranks := startRanks(t, 5, "heirs")
	for n, members := range []string{"[1 2 3 4]", "[1 2 3]", "[1 2]"} {
		for r, p := range ranks[n+1:] {
			require.Equal(t, "rank 0 died: its process ended without goodbye "+members, p.line(), "rank %d", r)
		}
	}
	for _, p := range ranks {
		require.Equal(t, "(end)", p.line())
	}
}
