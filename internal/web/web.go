// Package web serves a few documents to a browser or a program that reads them. It speaks as much of HTTP
// as that needs: net/http would make the command two megabytes larger, and its first build a tenth longer.
package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"time"
)

// An Answer is what a request gets. Its zero value says that nothing is there.
type Answer struct {
	Status string // as in "503 Service Unavailable"; empty is "200 OK"
	Type   string // of the Body, as in "text/plain"; empty is text/html
	Body   []byte
}

// Serve answers whoever asks the listener for a path, until ctx ends, and then closes it.
func Serve(ctx context.Context, l net.Listener, at func(path string) Answer) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			l.Close()
			return fmt.Errorf("serve: %w", err)
		}
		go answer(c, at)
	}
}

const (
	mostRequest = 64 << 10         // bytes of a request
	mostTime    = 30 * time.Second // for a request and its answer
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
	if _, err := in.ReadMIMEHeader(); err != nil {
		return
	}
	method, rest, _ := strings.Cut(line, " ")
	path, _, _ := strings.Cut(rest, " ")
	path, _, _ = strings.Cut(path, "?")
	var a Answer
	if method == "GET" || method == "HEAD" {
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
	fmt.Fprintf(&text, "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", a.Status, a.Type, len(a.Body))
	if method != "HEAD" {
		text.Write(a.Body)
	}
	c.Write(text.Bytes())
}
