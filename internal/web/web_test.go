package web_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
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

	// Who sends a request without end is not listened to.
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
