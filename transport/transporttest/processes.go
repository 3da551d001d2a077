package transporttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/transport"
)

// Processes runs the cases that need a second process. Call it from a test function
// itself, not from a subtest: the second process is this test binary again, which the
// environment tells to run the same function as the peer.
func Processes(t *testing.T, open Open) {
	servePeer(t, open)
	leaks(t)
	s := suite{open: open}
	for _, spin := range []bool{false, true} {
		t.Run(fmt.Sprintf("spin %v", spin), func(t *testing.T) {
			t.Run("echo", func(t *testing.T) { s.remoteEcho(t, spin) })
			t.Run("last words", func(t *testing.T) { s.remoteLastWords(t, spin) })
			t.Run("killed", func(t *testing.T) { s.remoteKilled(t, spin) })
		})
	}
}

// remoteEcho: another process sends back the same bytes.
func (s suite) remoteEcho(t *testing.T, spin bool) {
	p := s.peer(t, job{Role: "echo", Limits: small, Spin: spin})
	messages := s.many(2000)
	size := func(i int) int { return rand.New(rand.NewPCG(1, uint64(i))).IntN(small.SlotBytes + 1) }
	require.NoError(t, conntest.Flow(p.send, p.recv, messages, size))
	require.NoError(t, p.send.Close())
	require.NoError(t, p.wait(), "the peer's exit status")
}

// remoteLastWords: slots that a process sent before it closed and exited are received.
func (s suite) remoteLastWords(t *testing.T, spin bool) {
	p := s.peer(t, job{Role: "last words", Limits: small, Spin: spin})
	require.NoError(t, p.wait())
	for i := range small.Slots {
		get(t, p.recv, 100, uint64(i))
	}
	require.ErrorIs(t, receive(p.recv), fifo.ErrClosed)
}

// remoteKilled: the death of a peer ends all waits soon, with an error that says so.
func (s suite) remoteKilled(t *testing.T, spin bool) {
	for _, delay := range delays {
		p := s.peer(t, job{Role: "sleep", Limits: small, Spin: spin})
		failed := make(chan error, 2)
		go func() { failed <- receive(p.recv) }()
		go func() { failed <- flood(p.send) }()
		time.Sleep(delay)
		require.NoError(t, p.cmd.Process.Kill())
		for range 2 {
			select {
			case err := <-failed:
				require.NotErrorIs(t, err, fifo.ErrClosed, "this was no farewell")
				require.ErrorContains(t, err, "the peer has gone")
			case <-time.After(2 * time.Second):
				t.Fatal("no error within 2 s of the peer's death")
			}
		}
		require.Error(t, p.wait())
	}
}

// peerVariable tells a process that it is the peer.
const peerVariable = "RINGO_TRANSPORTTEST_PEER"

// job is the task of a peer.
type job struct {
	Role   string
	Limits transport.Limits
	Spin   bool
	Addr   []byte // of the parent
}

// peer is a second process, connected both ways.
type peer struct {
	transport.Transport
	cmd  *exec.Cmd
	send transport.SendConn
	recv transport.RecvConn
	end  func() error
}

// wait waits for the process to end.
func (p *peer) wait() error { return p.end() }

// peer starts a process that does j.
func (s suite) peer(tb testing.TB, j job) *peer {
	cfg := conntest.Config(0, j.Limits)
	cfg.Spin = j.Spin
	p := &peer{Transport: s.open(tb, cfg)}
	tb.Cleanup(func() { require.NoError(tb, p.Close()) })
	addr, err := p.Listen()
	require.NoError(tb, err)
	j.Addr = addr

	jobs, toPeer, err := os.Pipe()
	require.NoError(tb, err)
	fromPeer, addrs, err := os.Pipe()
	require.NoError(tb, err)
	p.cmd = exec.Command(os.Args[0], "-test.run=^"+top(tb)+"$")
	if _, ok := tb.(*testing.B); ok {
		p.cmd.Args = append(p.cmd.Args[:1], "-test.run=^$", "-test.bench=^"+top(tb)+"$", "-test.benchtime=1x")
	}
	temp := tb.TempDir() // the peer exits or is killed, and leaves its own behind
	p.cmd.Env = append(os.Environ(), peerVariable+"=1", "TMPDIR="+temp, "GOTMPDIR="+temp)
	p.cmd.Stderr = os.Stderr
	p.cmd.ExtraFiles = []*os.File{jobs, addrs}
	err = p.cmd.Start()
	jobs.Close()
	addrs.Close()
	require.NoError(tb, err)
	ended := false
	p.end = func() error {
		if ended {
			return nil
		}
		ended = true
		return p.cmd.Wait()
	}
	tb.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.end()
	})

	require.NoError(tb, json.NewEncoder(toPeer).Encode(j))
	toPeer.Close()
	addr = nil
	require.NoError(tb, json.NewDecoder(fromPeer).Decode(&addr), "the peer did not start")
	fromPeer.Close()
	other := transport.Info{Rank: 1, Host: cfg.Self.Host, Process: "peer"}
	p.send, err = p.Dial(other, addr)
	require.NoError(tb, err)
	p.recv, err = p.Accept(other)
	require.NoError(tb, err)
	return p
}

// top is the name of the test function that tb belongs to.
func top(tb testing.TB) string {
	name := tb.Name()
	for i := range name {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}

// servePeer does the peer's job and exits, in a process that is the peer. In
// others it does nothing.
func servePeer(tb testing.TB, open Open) {
	if os.Getenv(peerVariable) == "" {
		return
	}
	if err := serve(tb, open); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(tb testing.TB, open Open) error {
	jobs, addrs := os.NewFile(3, "jobs"), os.NewFile(4, "addresses")
	var j job
	if err := json.NewDecoder(jobs).Decode(&j); err != nil {
		return err
	}
	cfg := conntest.Config(1, j.Limits)
	cfg.Self.Process, cfg.Spin = "peer", j.Spin
	cfg.Guard.SetDeadline(fifo.Now() + int64(time.Minute)) // the parent may have died
	tr := open(tb, cfg)
	defer tr.Close()
	addr, err := tr.Listen()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(addrs).Encode(addr); err != nil {
		return err
	}
	parent := transport.Info{Rank: 0, Host: cfg.Self.Host, Process: "process"}
	send, err := tr.Dial(parent, j.Addr)
	if err != nil {
		return err
	}
	recv, err := tr.Accept(parent)
	if err != nil {
		return err
	}
	switch j.Role {
	case "echo":
		return echo(send, recv)
	case "sink":
		return sink(recv, make([]byte, j.Limits.SlotBytes))
	case "exchange":
		return exchange(send, recv, j.Limits.SlotBytes)
	case "last words":
		for i := range j.Limits.Slots {
			if err := conntest.Put(send, 100, uint64(i)); err != nil {
				return err
			}
		}
		return send.Close()
	case "sleep":
		time.Sleep(time.Minute)
	}
	return errors.New("nobody ended the peer")
}

// echo sends back what it receives until the other side closes.
func echo(send transport.SendConn, recv transport.RecvConn) error {
	for {
		in, stamp, err := recv.Next()
		if errors.Is(err, fifo.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		out, err := send.Reserve(in.Len())
		if err != nil {
			return err
		}
		copy(out.Bytes(), in.Bytes())
		if err := send.Publish(stamp); err != nil {
			return err
		}
		if err := recv.Release(); err != nil {
			return err
		}
	}
}

// exchange sends and receives by turns, until the other side closes.
func exchange(send transport.SendConn, recv transport.RecvConn, size int) error {
	data := make([]byte, size)
	for {
		err := swap(send, recv, data)
		if errors.Is(err, fifo.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// swap sends data and receives as much.
func swap(send transport.SendConn, recv transport.RecvConn, data []byte) error {
	slot, err := send.Reserve(len(data))
	if err != nil {
		return err
	}
	copy(slot.Bytes(), data)
	if err := send.Publish(transport.Stamp{1}); err != nil {
		return err
	}
	if slot, _, err = recv.Next(); err != nil {
		return err
	}
	copy(data, slot.Bytes())
	return recv.Release()
}

// sink copies what it receives to dst until the other side closes.
func sink(recv transport.RecvConn, dst []byte) error {
	for {
		in, _, err := recv.Next()
		if errors.Is(err, fifo.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		copy(dst, in.Bytes())
		if err := recv.Release(); err != nil {
			return err
		}
	}
}
