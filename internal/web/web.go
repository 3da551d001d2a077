// Package web serves a few documents to a browser or a program that reads them. It speaks as much of HTTP
// as that needs: net/http would make the command two megabytes larger, and its first build a tenth longer.
package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"syscall"
	"time"
)

// An Answer answers a request. The zero Answer is "404 Not Found".
type Answer struct {
	Status string // as in "503 Service Unavailable"; empty is "200 OK"
	Type   string // of the Body, as in "text/plain"; empty is text/html
	Body   []byte
}

// Serve answers requests for paths, until ctx ends, and then closes l and returns nil. Its error is
// one of l.Accept, after which it closes l too.
func Serve(ctx context.Context, l net.Listener, at func(path string) Answer) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	places := make(chan struct{}, mostConns)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		c, err := accept(ctx, l)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			l.Close()
			return fmt.Errorf("serve: %w", err)
		}
		go func() {
			defer func() { <-places }()
			answer(c, at)
		}()
	}
}

// passing are errors of Accept after which there may be a connection later.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}

// accept is the next connection. It waits while the process has no descriptor for one.
func accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if err == nil || !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
			return c, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mayAsk reports whether a request for a host is meant for us. A page of a stranger may reach a server on loopback by
// a name of the stranger's that leads here, so only local names are right there; any name is for other servers.
func mayAsk(host string, local net.Addr) bool {
	if a, ok := local.(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

const (
	mostRequest = 64 << 10         // bytes of a request
	mostTime    = 30 * time.Second // for a request and its answer
	mostConns   = 100              // at a time
	pause       = 50 * time.Millisecond
)

// answer serves one request of a connection.
func answer(c net.Conn, at func(path string) Answer) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(mostTime))
	in := textproto.NewReader(bufio.NewReader(io.LimitReader(c, mostRequest)))
	line, err := in.ReadLine()
	if err != nil {
		return
	}
	head, err := in.ReadMIMEHeader()
	if err != nil {
		return
	}
	method, rest, _ := strings.Cut(line, " ")
	path, _, _ := strings.Cut(rest, " ")
	path, _, _ = strings.Cut(path, "?")
	var a Answer
	switch {
	case method != "GET" && method != "HEAD":
		a = Answer{"405 Method Not Allowed", "text/plain", []byte("GET and HEAD are all there is\n")}
	case !mayAsk(head.Get("Host"), c.LocalAddr()):
		a = Answer{"421 Misdirected Request", "text/plain", []byte("this is not that host\n")}
	default:
		a = at(path)
	}
	if a.Status == "" && a.Body == nil {
		a = Answer{"404 Not Found", "text/plain", []byte("there is nothing at " + path + "\n")}
	}
	if a.Status == "" {
		a.Status = "200 OK"
	}
	if a.Type == "" {
		a.Type = "text/html"
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		a.Status, a.Type, len(a.Body))
	if method != "HEAD" {
		text.Write(a.Body)
	}
	c.Write(text.Bytes())
}
