package internal_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/web"
)

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- web.Serve(ctx, l, func(path string) (a web.Answer) {
			switch path {
			case "/":
				a.Body = []byte("the page")
			case "/busy":
				a.Status = "503 Service Unavailable"
			}
			return a
		})
	}()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	status, body := get("/?x")
	require.Equal(t, 200, status)
	require.Equal(t, "the page", body)
	status, body = get("/favicon.ico")
	require.Equal(t, 404, status)
	require.Equal(t, "there is nothing at /favicon.ico\n", body)
	status, _ = get("/busy")
	require.Equal(t, 503, status)

	// Nobody changes anything here, nor reads it by a name that a stranger has given to this machine.
	resp, err := http.Post("http://"+l.Addr().String()+"/", "text/plain", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 405, resp.StatusCode)
	for host, want := range map[string]int{"stranger.example": 421, "stranger.example:80": 421, "localhost:80": 200,
		"LOCALHOST": 200, "127.0.0.1": 200, "[::1]:80": 200, "10.1.2.3": 421} {
		q, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+"/", nil)
		require.NoError(t, err)
		q.Host = host
		resp, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}

	// A request without end is cut off.
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	line := bytes.Repeat([]byte("x"), 64<<10)
	sent := 0
	for err == nil && sent < 64<<20 {
		_, err = c.Write(line)
		sent += len(line)
	}
	require.Less(t, sent, 64<<20)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	cancel()
	require.NoError(t, <-ended)
}

// A scarce is a listener that has no descriptor left at first, and counts connections.
type scarce struct {
	net.Listener
	fails int
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.fails > 0 {
		l.fails--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A server goes on when descriptors are there again.
func TestServeWithoutDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- web.Serve(ctx, &scarce{l, 3}, func(string) web.Answer { return web.Answer{Body: []byte("x")} })
	}()
	resp, err := http.Get("http://" + l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	cancel()
	require.NoError(t, <-ended)
}
