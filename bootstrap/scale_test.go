package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/stretchr/testify/require"
)

// hubAlone serves an ID until its standard input ends, and then prints its peak memory.
func hubAlone() {
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0"})
	fmt.Println(id.String(), err)
	io.Copy(io.Discard, os.Stdin)
	status, _ := os.ReadFile("/proc/self/status")
	fmt.Printf("%s\n", regexp.MustCompile(`VmHWM:\s*\d+ kB`).Find(status))
}

// BenchmarkRendezvous has ranks meet at a hub in another process, exchange profiles, and
// leave. The ranks, 8 at a place (machine), are bare connections: one machine could not run thousands of
// members. They send a member's messages; one place in 64 checks what it receives.
//
//	go test ./bootstrap -run '^$' -bench Rendezvous/16384 -benchtime 1x -v
func BenchmarkRendezvous(b *testing.B) {
	for _, n := range []int{2048, 16384} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if most := descriptors(); testing.Short() && n > 2048 || most < n+256 {
				b.Skipf("%d ranks take as many descriptors of each of two processes, which may have %d", n, most)
			}
			for b.Loop() {
				meetAndPart(b, n)
			}
		})
	}
}

func meetAndPart(b *testing.B, n int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), scene+"=hub")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	require.True(b, lines.Scan())
	id, err := ParseID(string(bytes.Fields(lines.Bytes())[0]))
	require.NoError(b, err)
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()

	links := make([]*link, n)
	errs := make([]error, n)
	all := func(what string, f func(r int) error) {
		start := time.Now()
		var wg sync.WaitGroup
		for r := range n {
			wg.Go(func() { errs[r] = f(r) })
		}
		wg.Wait()
		b.ReportMetric(time.Since(start).Seconds(), "s/"+what)
		for r, err := range errs {
			require.NoError(b, err, "rank %d", r)
		}
	}
	dialling := make(chan struct{}, 256) // one machine cannot dial as much at once as thousands
	all("join", func(r int) (err error) {
		j := &joiner{id: id, rank: r, size: n, opt: JoinOptions{Source: net.IPv4(127, 0, 1, byte(r%64)),
			machine: fmt.Sprint(r / 8)}, log: orSilent(nil), since: time.Now()}
		dialling <- struct{}{}
		links[r], err = j.enter(ctx)
		<-dialling
		if err != nil {
			return err
		}
		m, err := links[r].receive(rendezvous.MaxBody)
		if _, ok := m.(*rendezvous.Start); !ok && err == nil {
			err = fmt.Errorf("got %T", m)
		}
		return err
	})
	all("gather", func(r int) error {
		links[r].send(&rendezvous.Part{Data: profileOf(r)})
		if r%512 != 0 {
			return pass(links[r].in)
		}
		m, err := links[r].receive(rendezvous.MaxBody)
		if err != nil {
			return err
		}
		for q, p := range m.(*rendezvous.Gathered).Data {
			if !bytes.Equal(p, profileOf(q)) {
				return fmt.Errorf("got %s of rank %d", p, q)
			}
		}
		return nil
	})
	all("leave", func(r int) error {
		links[r].send(&rendezvous.Leave{})
		for {
			m, err := links[r].receive(rendezvous.MaxBody)
			if _, ok := m.(*rendezvous.Bye); ok || err != nil {
				links[r].close()
				return err
			}
		}
	})
	in.Close()
	require.True(b, lines.Scan())
	var kB int
	fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kB)
	b.ReportMetric(float64(kB)/1024, "MiB-of-hub")
	require.NoError(b, cmd.Wait())
	b.ReportMetric((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), "cpu-s-of-hub")
}

// pass reads a frame and throws it away.
func pass(in *bufio.Reader) error {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(head[:])))
	return err
}

// profileOf resembles the part of a rank in the AllGather that opens a communicator.
func profileOf(r int) []byte {
	return fmt.Appendf(nil,
		`{"Version":"0.2.0","Rank":%d,"Host":"5f2b3c4d-%04x","Pid":%d,"Hostname":"node%04d.cluster.example","Wish":["inproc","shm","plugin","ib","socket"],`+
			`"SlotBytes":0,"Slots":0,"Settings":[{"Name":"Deterministic","Value":"","Variable":"RINGO_DETERMINISTIC"},{"Name":"lines between GPUs","Value":"","Variable":"RINGO_LINES"}],`+
			`"Cores":96,"GPU":"NVIDIA H200","GPUID":"GPU-%08x-%04x","Processors":132,"Blocks":128}`, r, r/8, 1000+r*7919%30000,
		r/8, r*2654435761, r)
}
