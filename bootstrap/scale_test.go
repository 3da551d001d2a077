package bootstrap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hubAlone serves an ID until its standard input ends, and then tells its greatest memory.
func hubAlone() {
	if f := os.Getenv("HUB_PROFILE"); f != "" {
		w, _ := os.Create(f)
		pprof.StartCPUProfile(w)
		defer w.Close()
		defer pprof.StopCPUProfile()
	}
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0"})
	fmt.Println(id.String(), err)
	io.Copy(io.Discard, os.Stdin)
	status, _ := os.ReadFile("/proc/self/status")
	fmt.Println(regexp.MustCompile(`VmHWM:\s*(\d+ kB)`).FindString(string(status)))
}

// BenchmarkRendezvous has ranks meet at a hub in another process, exchange profiles once, and
// leave.
func BenchmarkRendezvous(b *testing.B) {
	for _, n := range []int{1024, 2048, 16384} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				rendezvous(b, n)
			}
		})
	}
}

func rendezvous(b testing.TB, n int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), scene+"=hub")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(b, lines.Scan())
	id, err := ParseID(strings.Fields(lines.Text())[0])
	require.NoError(b, err)
	groups := make([]Group, n)
	errs := make([]error, n)
	all := func(what string, f func(r int) error) {
		start := time.Now()
		var wg sync.WaitGroup
		for r := range n {
			wg.Go(func() { errs[r] = f(r) })
		}
		wg.Wait()
		b.Log(what, time.Since(start))
		for _, err := range errs {
			require.NoError(b, err)
		}
	}
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	dialling := make(chan struct{}, 256) // this machine is not thousands
	all("join", func(r int) (err error) {
		j := &joiner{id: id, rank: r, size: n, opt: JoinOptions{Source: net.IPv4(127, 0, 1, byte(r%64))}, log: orSilent(nil), since: time.Now()}
		dialling <- struct{}{}
		l, err := j.enter(ctx)
		<-dialling
		if err == nil {
			groups[r], err = j.await(ctx, l)
		}
		return err
	})
	if n <= 2048 {
		all("gather", func(r int) error {
			_, err := groups[r].AllGather(ctx, profileOf(r))
			return err
		})
	}
	all("leave", func(r int) error { return groups[r].Close() })
	in.Close()
	require.True(b, lines.Scan())
	b.Log(lines.Text())
	require.NoError(b, cmd.Wait())
	b.Log("hub's CPU", cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime())
}

// profileOf is like what a rank says of itself when a communicator is opened.
func profileOf(r int) []byte {
	return fmt.Appendf(nil, `{"Version":"0.2.0","Rank":%d,"Host":"5f2b3c4d-%04x","Pid":%d,"Hostname":"node%04d.cluster.example","Wish":["inproc","shm","plugin","ib","socket"],`+
		`"SlotBytes":0,"Slots":0,"Settings":[{"Name":"Deterministic","Value":"","Variable":"RINGO_DETERMINISTIC"},{"Name":"lines between GPUs","Value":"","Variable":"RINGO_LINES"}],`+
		`"Cores":96,"GPU":"NVIDIA H200","GPUID":"GPU-%08x-%04x","Processors":132,"Blocks":128}`, r, r/8, 1000+r*7919%30000, r/8, r*2654435761, r)
}
