package check

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A rank that is late comes to all the gathers of a stage that were held without it, and is not lost.
func TestLateRankKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := local("a", "b")
		for i, j := range jobs {
			jobs[i] = j.enter("host")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		const gathers = 30
		for range gathers {
			_, err := jobs[0].Gather(over, []byte("a's"))
			require.NoError(t, err)
		}
		synctest.Wait()
		for range gathers {
			parts, err := jobs[1].Gather(t.Context(), []byte("b's"))
			require.NoError(t, err)
			require.Equal(t, "a's", string(parts[0]))
		}
		synctest.Wait()
		ended := make(chan error)
		go func() {
			_, err := jobs[1].conclude(t.Context(), []byte("b's"))
			ended <- err
		}()
		parts, err := jobs[0].conclude(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "b's", string(parts[1]))
		require.NoError(t, <-ended)
		for _, j := range jobs {
			require.NoError(t, j.Close())
		}
	})
}

// TestTalkative: a rank that says more than mostAhead messages that nobody waits for is lost, and what it said before
// is heard.
func TestTalkative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := &spoke{wire: newWire(near)}
		go func() {
			enc := json.NewEncoder(far)
			for seq := 1; enc.Encode(message{Seq: seq}) == nil; seq++ {
			}
		}()
		synctest.Wait()
		for seq := range mostAhead {
			m, lost := s.receive(canceled(t))
			require.Nil(t, lost)
			require.Equal(t, seq+1, m.Seq)
		}
		_, lost := s.receive(canceled(t))
		require.Equal(t, &loss{Why: "its connection broke (it says more than it should)"}, lost)
		require.NoError(t, s.close())
	})
}

// TestStoppedAnswers: the kernel of a process that says nothing acknowledges messages, so that the process is taken for
// stopped and its host for well.
func TestStoppedAnswers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("another kernel does not tell what was acknowledged")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := dialSmall(t.Context(), "", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.LessOrEqual(t, packetOf(conn).payload, smallSegment)
	s := &spoke{wire: &wire{Conn: conn, enc: json.NewEncoder(conn)}}
	require.NoError(t, s.say(message{}))
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(time.Millisecond) {
		if known, yes := acknowledges(conn, 0); known && yes {
			break
		}
	}
	l := s.examined(&loss{Stopped: true})
	require.Equal(t, &loss{Stopped: true, Why: "its host answers, and the process says nothing"}, l)
}
