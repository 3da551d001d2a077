package p2p

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// exportNull hands out /dev/null once.
func exportNull(t *testing.T) *exporter {
	e, err := newExporter("null", func(int) (int, error) {
		return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	})
	require.NoError(t, err)
	t.Cleanup(e.close)
	return e
}

// Silent callers, more than there are places, do not keep a peer out.
func TestExportSilentCallers(t *testing.T) {
	e := exportNull(t)
	for range 525 {
		c, err := net.DialTimeout("unix", e.Socket, exportTime)
		for ; err != nil; c, err = net.DialTimeout("unix", e.Socket, exportTime) {
			require.ErrorIs(t, err, unix.EAGAIN) // the listener has not taken the last ones yet
		}
		defer c.Close()
	}
	start, files := time.Now(), 0
	require.NoError(t, fetch(t.Context(), &e.Export, 0, 1, func(i, fd int) error {
		files++
		return nil
	}))
	require.Equal(t, 1, files)
	require.Less(t, time.Since(start), exportTime*9/10)
}

// An impostor on the socket of a peer that has gone learns nothing of the secret, and
// is not believed.
func TestExportImpostor(t *testing.T) {
	l, err := net.Listen("unix", fmt.Sprintf("@ringo-test-%s-%d", t.Name(), os.Getpid()))
	require.NoError(t, err)
	defer l.Close()
	secret := []byte("never to be seen on the socket..")
	heard := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 4096)
		n, _ := c.Read(b)
		said := append([]byte(nil), b[:n]...)
		c.Write(said) // the same hello
		n, _ = c.Read(b)
		heard <- append(said, b[:n]...)
		c.Write(b[:n]) // the same proof
		c.Read(b)
	}()
	err = fetch(t.Context(), &Export{Socket: l.Addr().String(), Secret: secret}, 0, 1, func(int, int) error {
		t.Error("a file of an impostor")
		return nil
	})
	require.ErrorContains(t, err, "it has another key")
	require.NotContains(t, string(<-heard), string(secret))
}

// The error of a wait for a file is the cause of its context: a death is no time-out.
func TestFetchEnds(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	e, err := newExporter("slow", func(int) (int, error) {
		close(asked)
		<-release
		return -1, os.ErrClosed
	})
	require.NoError(t, err)
	t.Cleanup(e.close)
	defer close(release)
	ctx, end := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		end(os.ErrProcessDone)
	}()
	err = fetch(ctx, &e.Export, 0, 1, func(int, int) error { return nil })
	require.ErrorIs(t, err, os.ErrProcessDone)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, fetch(ctx, &e.Export, 0, 0, nil), os.ErrProcessDone)
}
