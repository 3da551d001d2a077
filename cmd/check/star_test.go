package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
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

// TestMailbox: a mailbox returns its messages in order, before errNothing or the error of its end, and takes no more
// than mostAhead.
func TestMailbox(t *testing.T) {
	over := make(chan struct{})
	close(over)
	b := newMailbox[int]()
	_, err := b.take(over)
	require.Equal(t, errNothing, err)
	var text strings.Builder
	for i := range mostAhead {
		fmt.Fprintln(&text, i)
	}
	b.fill(strings.NewReader(text.String()))
	for i := range mostAhead {
		m, err := b.take(over)
		require.NoError(t, err)
		require.Equal(t, i, m)
	}
	require.Zero(t, cap(b.list), "an empty mailbox takes no memory")
	_, err = b.take(nil)
	require.Equal(t, io.EOF, err)

	b = newMailbox[int]()
	b.fill(strings.NewReader(text.String() + "1\n2\n"))
	for range mostAhead {
		_, err := b.take(nil)
		require.NoError(t, err)
	}
	_, err = b.take(nil)
	require.EqualError(t, err, "it says more than it should")

	synctest.Test(t, func(t *testing.T) {
		b := newMailbox[int]()
		r, w := io.Pipe()
		go b.fill(r)
		go func() { time.Sleep(time.Minute); fmt.Fprintln(w, 7); w.Close() }()
		m, err := b.take(t.Context().Done())
		require.NoError(t, err)
		require.Equal(t, 7, m)
		_, err = b.take(nil)
		require.Equal(t, io.EOF, err)
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
	s := &spoke{conn: conn, enc: json.NewEncoder(conn)}
	require.NoError(t, s.say(answer{}))
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(time.Millisecond) {
		if known, yes := acknowledges(conn, 0); known && yes {
			break
		}
	}
	l := s.examined(&loss{Stopped: true})
	require.Equal(t, &loss{Stopped: true, Why: "its host answers, and the process says nothing"}, l)
}
