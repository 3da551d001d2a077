package check

import (
	"context"
	"fmt"
	"io"
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
