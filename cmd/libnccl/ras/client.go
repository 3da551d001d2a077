package ras

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// clientProtocol is the version of NCCL's protocol with clients.
const clientProtocol = 2

const (
	maxClients = 64               // at a time in one process; more are hung up on
	maxLine    = 1 << 10          // bytes of a command
	clientIdle = time.Minute      // for the next command
	clientTime = 30 * time.Second // to take an answer
	waitTime   = 5 * time.Second  // for the job's processes, where the client says nothing
	maxWait    = time.Minute      // whatever the client says
)

// takeClients serves clients until the door is closed.
func (s *server) takeClients(l net.Listener) {
	for {
		c, err := l.Accept()
		if s.began.Err() != nil {
			if err == nil {
				c.Close()
			}
			return
		}
		if err != nil { // out of descriptors, or reset before it was taken
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		room := !s.closed && s.clients < maxClients
		if room {
			s.clients++
			s.conns[c] = true
			s.work.Go(func() {
				(&client{Conn: c, s: s, wait: time.Duration(s.o.Factor) * waitTime}).serve()
				s.leave(c)
				s.mu.Lock()
				s.clients--
				s.mu.Unlock()
			})
		}
		s.mu.Unlock()
		if !room {
			c.Close()
		}
	}
}

// A client is one connection of a client.
type client struct {
	net.Conn
	s      *server
	wait   time.Duration // for the job's processes
	asJSON bool
}

// serve answers a client's commands. The connection ends after the answer to a status command; a monitoring client
// stays.
func (c *client) serve() {
	in := bufio.NewReaderSize(c, maxLine)
	for {
		c.SetDeadline(time.Now().Add(clientIdle))
		line, err := in.ReadSlice('\n')
		if err != nil { // it hung up, is idle, or sends a line without an end
			return
		}
		answer, last := c.command(strings.TrimRight(string(line), "\r\n"))
		c.SetDeadline(time.Now().Add(clientTime))
		if _, err := io.WriteString(c, answer); err != nil || last {
			return
		}
	}
}

// command is the answer to a command. last reports whether the connection ends with it.
func (c *client) command(line string) (answer string, last bool) {
	verb, rest := strings.ToLower(line), ""
	for _, v := range []string{"client protocol", "timeout", "set format", "monitor"} {
		if strings.HasPrefix(verb, v+" ") {
			verb, rest = v, line[len(v)+1:]
			break
		}
	}
	const ok = "OK\n"
	switch verb {
	case "client protocol":
		return fmt.Sprintf("SERVER PROTOCOL %d\n", clientProtocol), false
	case "timeout":
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil || n < 0 {
			return fmt.Sprintf("ERROR: Invalid timeout value %s\n", rest), false
		}
		if c.wait = min(time.Duration(min(n, 1<<20))*time.Second, maxWait); n == 0 { // for ever
			c.wait = maxWait
		}
		return ok, false
	case "set format":
		switch strings.ToLower(rest) {
		case "text", "json":
			c.asJSON = strings.EqualFold(rest, "json")
			return ok, false
		}
		return fmt.Sprintf("ERROR: Invalid format %s\n", rest), false
	case "status", "verbose status":
		x := c.s.survey(c.wait)
		if c.asJSON {
			return c.s.json(x), true
		}
		return c.s.text(x, verb != "status"), true
	case "monitor":
		lifecycle, trace, bad := events(rest)
		if bad != "" {
			return fmt.Sprintf("ERROR: Invalid event group '%s'\n", bad), false
		}
		c.monitor(lifecycle, trace)
		return "", true
	}
	return fmt.Sprintf("ERROR: Unknown command %s\n", line), false
}
