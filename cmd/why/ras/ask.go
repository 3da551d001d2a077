package ras

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// Port is the TCP port at which RAS listens on each node of a job.
const Port = "28028"

// maxAnswer bounds an answer of RAS, in bytes.
const maxAnswer = 1 << 28

// Ask asks RAS at an address, HOST or HOST:PORT, for JSON, or for text if the NCCL there is too old for JSON. It takes
// up to 30 s.
func Ask(ctx context.Context, address string) (*Report, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), Port)
	}
	b, err := ask(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("RAS at %s: %w", address, err)
	}
	all, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("RAS at %s: %w", address, err)
	}
	return &all[len(all)-1], nil
}

// helloTime is how long RAS may take for its greeting. A process that was stopped as it took the connection never
// greets; another connection may reach another process of the job.
const helloTime = 2 * time.Second

func ask(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // RAS itself waits up to 10 s for each of two rounds
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%w; does the job run on this node, with NCCL_RAS_ENABLE not 0?", err)
		}
		answer, err := talk(ctx, conn)
		conn.Close()
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("no whole answer: %w", ctx.Err())
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		}
	}
}

// talk asks over a connection. Its error is os.ErrDeadlineExceeded if RAS did not greet within helloTime.
func talk(ctx context.Context, conn net.Conn) ([]byte, error) {
	conn.SetDeadline(time.Now().Add(helloTime))
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	in := bufio.NewReaderSize(conn, 4096)
	say := func(command string) (string, error) {
		if _, err := io.WriteString(conn, command+"\n"); err != nil {
			return "", err
		}
		line, err := in.ReadSlice('\n')
		return strings.TrimSpace(string(line)), err
	}
	hello, err := say("CLIENT PROTOCOL 2")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(hello, "SERVER PROTOCOL ") {
		return nil, fmt.Errorf("%w: it says %.60q", errNone, hello)
	}
	format, err := say("SET FORMAT json")
	if err != nil {
		return nil, err
	}
	command := "STATUS\n"
	if format != "OK" { // before NCCL 2.28.7
		command = "VERBOSE STATUS\n"
	}
	conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, command); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(in, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxAnswer:
		return nil, errors.New("an answer that does not end")
	}
	return b, nil
}
