package check

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
)

// protocol names the handshake of connections between ranks. It changes with the messages on them.
const protocol = "ringo check 1"

// greetTime bounds a handshake, callTime the connecting before it.
const (
	greetTime = 5 * time.Second
	callTime  = 3 * time.Second
)

// Purposes of a connection.
const (
	wantStar = "star"
	wantLink = "link"
)

// A greeting introduces a caller, authenticated by the job's key.
type greeting struct {
	From int    `json:"from"` // rank
	Want string `json:"want"`
	Rail int    `json:"rail,omitempty"`  // of a link
	Pair int    `json:"round,omitempty"` // of a link: the number of the round
	// Sizes is for a link over which packets of many sizes are to pass, beside the one that is measured.
	Sizes bool `json:"sizes,omitempty"`
}

// A caller is a connection whose other end is a rank of the job.
type caller struct {
	greeting
	conn net.Conn
}

// call connects to another rank, from an address of this host if one is given, and proves to the
// other rank that this one belongs to the job.
func (j *job) call(ctx context.Context, from, to string, g greeting) (net.Conn, error) {
	dial, segment := dialSegments, 0
	if j.dial != nil {
		dial = j.dial
	}
	if g.Want == wantStar {
		segment = smallSegment
	}
	c, err := dial(ctx, from, to, segment)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(g)
	if err == nil {
		late := time.Now().Add(greetTime)
		if end, ok := ctx.Deadline(); ok && end.Before(late) {
			late = end
		}
		_ = c.SetDeadline(late)
		if j.tls != nil && g.Want == wantStar {
			sealed, err := j.tls.Client(c)
			if err != nil {
				c.Close()
				return nil, err
			}
			c = sealed
		}
		_, err = auth.Call(c, j.key, protocol+" "+g.Want, body)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}

func listenTCP(ip net.IP) (net.Listener, error) { return net.ListenTCP("tcp", &net.TCPAddr{IP: ip}) }

// serve hands on the connections that ranks of the job make to a listener, until it is closed.
func (j *job) serve(ln net.Listener, want string, came chan<- caller) {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too few descriptors, maybe
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			who, err := j.answer(c, want)
			if err != nil {
				c.Close()
				return
			}
			select {
			case came <- who:
			case <-stop.Done():
				who.conn.Close()
			}
		}()
	}
}

// answer is the other side of call.
func (j *job) answer(c net.Conn, want string) (who caller, err error) {
	_ = c.SetDeadline(time.Now().Add(greetTime))
	who.conn = c
	if j.tls != nil && want == wantStar {
		sealed, err := j.tls.Server(c)
		if err != nil {
			return who, err
		}
		c, who.conn = sealed, sealed
	}
	err = auth.Answer(c, j.key, protocol+" "+want, func(body []byte) []byte {
		if json.Unmarshal(body, &who.greeting) != nil {
			who.From = -1
		}
		return nil
	})
	if err == nil && (who.From < 0 || who.From >= len(j.members)) {
		err = errors.New("check: a caller that is no rank")
	}
	if err != nil {
		return who, err
	}
	return who, c.SetDeadline(time.Time{})
}
