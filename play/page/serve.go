package page

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

// Serve gives the page to whoever asks the listener for "/", until ctx ends, and then closes it.
// It speaks as much of HTTP as a browser needs: net/http would make the command two megabytes
// larger.
func Serve(ctx context.Context, l net.Listener, page []byte) error {
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
		go answer(c, page)
	}
}

// mostRequest is how many bytes a request may have.
const mostRequest = 64 << 10

// answer serves one request of a connection.
func answer(c net.Conn, page []byte) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
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
	status, body := "200 OK", page
	if path != "/" || method != "GET" && method != "HEAD" {
		status, body = "404 Not Found", []byte("the page is at /\n")
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", status, len(body))
	if method != "HEAD" {
		head.Write(body)
	}
	c.Write(head.Bytes())
}
