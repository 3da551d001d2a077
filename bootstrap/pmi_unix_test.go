//go:build unix

package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// All processes get the ID that rank 0 leaves in the launcher's store. Each process asks once; later calls return the
// same ID or error. A conversation that the context cuts off returns its cause, and rank 0 serves nothing then.
func TestStored(t *testing.T) {
	fresh := func() { conversation.held, conversation.id, conversation.err = false, ID{}, nil }
	t.Cleanup(fresh)
	launch := func(value string, silent bool) (fd int) { // the store has value from the barrier on, or what rank 0 has put
		fresh()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		ours, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		launcher, err := l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { launcher.Close() })
		go func() {
			for in := bufio.NewScanner(launcher); in.Scan() && !silent; {
				words := strings.Fields(in.Text())
				name := strings.TrimPrefix(words[0], "cmd=")
				if name == "put" {
					value = strings.TrimPrefix(words[3], "value=")
				}
				fmt.Fprintln(launcher, map[string]string{"init": "cmd=response_to_init rc=0",
					"get_my_kvsname": "cmd=my_kvsname kvsname=k", "put": "cmd=put_result rc=0",
					"barrier_in": "cmd=barrier_out", "get": "cmd=get_result rc=0 value=" + value,
					"finalize": "cmd=finalize_ack"}[name])
			}
		}()
		f, err := ours.(*net.TCPConn).File()
		require.NoError(t, err)
		ours.Close()
		fd, err = syscall.Dup(int(f.Fd()))
		require.NoError(t, err)
		f.Close()
		return fd
	}
	spec := Spec{Rank: 0, Size: 2, LocalSize: 2, Secret: "s", Store: launch("", false)}
	id, err := stored(t.Context(), spec, ListenOptions{})
	require.NoError(t, err)
	require.Regexp(t, `^127\.0\.0\.1:`, id.Addr(), "all are on this host")
	all := []<-chan joined{join(t.Context(), id, 0, 2), join(t.Context(), id, 1, 2)}
	for _, j := range all {
		got := <-j
		require.NoError(t, got.err)
		require.NoError(t, got.g.Close())
	}
	again, err := stored(t.Context(), spec, ListenOptions{}) // serves the same once more
	require.NoError(t, err)
	require.Equal(t, id, again)
	Stop(id)

	other, err := randomID("10.0.0.1:4000")
	require.NoError(t, err)
	spec = Spec{Rank: 1, Size: 2, Store: launch(other.String(), false)}
	for range 2 {
		id, err = stored(t.Context(), spec, ListenOptions{})
		require.NoError(t, err)
		require.Equal(t, other, id)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	spec = Spec{Rank: 0, Size: 3, LocalSize: 2, Store: launch("", true)}
	_, err = stored(ctx, spec, ListenOptions{Addr: "127.0.0.1:0"})
	require.EqualError(t, err, "not all ranks have asked the launcher where rank 0 is: enough")
	_, again2 := stored(t.Context(), spec, ListenOptions{})
	require.Equal(t, err, again2)

	fresh()
	_, err = stored(t.Context(), Spec{Rank: 1, Size: 2, Store: 1 << 20}, ListenOptions{})
	require.ErrorContains(t, err, "PMI_FD=1048576: ")
}
